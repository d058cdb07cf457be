"""The status line: redrawn on a terminal, lines elsewhere, silence where nobody watches; the time left."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import pytest
from terminals import Terminal

from psearch.terminal import status as status_module
from psearch.terminal.status import StatusLine
from psearch.terminal.streams import text_table


def terminal_of(monkeypatch: pytest.MonkeyPatch, kind: str = "xterm") -> Terminal:
    """Replace stderr by a terminal of 30 columns. No fixture: pytest replaces stderr after fixtures have run."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("LINES", "24")
    return stream


def test_a_terminal_shows_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    threads = threading.active_count()
    with StatusLine(only_terminal=True) as status:
        assert terminal.getvalue() == "", "nothing to say yet"
        status("first")
        status("the second text, [bold]much[/bold] wider than this terminal")
        assert threading.active_count() == threads, "workers are forked meanwhile"
    written = terminal.getvalue()
    assert "first" in written
    assert "the second text, [bold]much[/…" in written
    assert "\x1b[1A" in written or "\x1b[2K" in written, "the line is erased"
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1, "the cursor is back"


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch, "dumb")
    with StatusLine() as status:
        status("first")
    assert terminal.getvalue() == "first\n"


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(status_module.time, "monotonic", lambda: now)
    with StatusLine() as status:
        for _ in range(12):
            status(f"at {now:g}")
            now += 1
    assert capsys.readouterr().err == "at 100\nat 105\nat 110\n"


def test_a_log_does_not_get_what_only_a_terminal_does(capsys: pytest.CaptureFixture[str]) -> None:
    with StatusLine(only_terminal=True) as status:
        status("first", 1, 2)
    assert capsys.readouterr().err == ""


def test_stderr_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with StatusLine() as status:
        status("first", 1, 2)


def test_time_left_of_slow_and_changing_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Steps that take minutes count all the same; a total may grow; new work forgets the old."""
    now = 0.0
    monkeypatch.setattr(status_module.time, "monotonic", lambda: now)
    monkeypatch.setattr(status_module, "_INTERVAL_S", 0.0)
    with StatusLine() as status:
        for clock, done, total in (
            *((0.0, 0, 5), (600.0, 1, 5), (1200.0, 2, 5), (1800.0, 3, 5), (1800.0, 3, 9), (1800.0, 9, 9)),
            *((2000.0, 0, 4), (2002.0, 2, 4)),
        ):
            now = clock
            status(f"{done}/{total}", done, total)
    assert capsys.readouterr().err.splitlines() == [
        *("0/5", "1/5, 0:40:00 left", "2/5, 0:30:00 left", "3/5, 0:20:00 left", "3/9, 1:00:00 left", "9/9"),
        *("0/4", "2/4, 0:00:02 left"),
    ]


def test_rich_is_imported_by_terminals_only() -> None:
    program = """
import sys
import chess
from psearch.terminal.display import search_display
from psearch.terminal.status import StatusLine
from psearch.terminal.streams import text_table
with StatusLine() as status, search_display(chess.Board()):
    status("a line")
sys.exit(int("rich" in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "a line\n")


def test_a_name_does_not_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with StatusLine() as status:
        status("a\x1b]0;x\x07b")
    assert "\x1b]0" not in terminal.getvalue()
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    with StatusLine() as status:
        status("a\x1b]0;x\x07b\u202e\udcff")
    assert plain.getvalue() == "a\\x1b]0;x\\x07b\\u202e\\udcff\n"


def test_nor_does_a_cell_of_a_table() -> None:
    assert text_table(["name"], [["\x1b[31mred"]]) == "name\n\\x1b[31mred"
