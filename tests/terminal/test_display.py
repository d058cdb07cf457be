"""Output on a terminal: lines, the live table, a drawn board, the status line; also where it becomes narrower."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from typing import TextIO

import chess
import chess.engine
import pytest
from reports import cp, moves, workers
from rich.console import Console, ConsoleDimensions
from rich.text import Text
from terminals import CONTROL, Screen, Terminal

from psearch.faces.cli.output import complain
from psearch.results import Info
from psearch.terminal import live_display
from psearch.terminal import status as status_module
from psearch.terminal.display import line_display
from psearch.terminal.live_display import AnalysisProgress, ShrinkableLive, draw, search_view
from psearch.terminal.status import StatusLine
from psearch.terminal.streams import folded, text_table

ROOK_ENDING = "8/8/8/8/3k4/8/8/3K3R w - - 0 1"


def draw_on(stream: TextIO, monkeypatch: pytest.MonkeyPatch, fen: str, **environment: str) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        draw(chess.Board(fen))


def drawn(monkeypatch: pytest.MonkeyPatch, fen: str, **environment: str) -> str:
    """Return the drawing that a terminal receives."""
    terminal = Terminal()
    draw_on(terminal, monkeypatch, fen, **environment)
    return terminal.getvalue()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_letters(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    """Figures look like the other side's there, if the background is dark, and filled ones are all alike."""
    lines = drawn(monkeypatch, ROOK_ENDING, **environment).splitlines()
    assert lines[4] == "4  .  .  .  k  .  .  .  . "
    assert lines[7] == "1  .  .  .  K  .  .  .  R " and lines[8].split() == list("abcdefgh")
    assert drawn(monkeypatch, ROOK_ENDING.replace("w", "b"), **environment).splitlines() == lines, "White is below"


def test_the_board_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every square has a background, and no figure is hollow: those vanish on some backgrounds."""
    text = drawn(monkeypatch, ROOK_ENDING)
    rows = CONTROL.sub("", text).splitlines()
    assert rows[4] == "4           ♚             "
    assert rows[8].split() == list("abcdefgh")
    assert len(set(CONTROL.findall(text))) >= 4
    assert not set("♔♕♖♗♘♙") & set(text)
    assert drawn(monkeypatch, ROOK_ENDING.replace("w", "b")) == text, "White is below"


def test_files_get_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    stream = io.TextIOWrapper(file, "latin-1")
    draw_on(stream, monkeypatch, ROOK_ENDING)
    stream.flush()
    assert b"4  .  .  .  k" in file.getvalue() and b"\x1b" not in file.getvalue()


def test_lines_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "pv         " + "Nf3 Nc6 " * 20
    monkeypatch.setenv("COLUMNS", "30")
    rows = folded(f"{line}\ndepth", Terminal(), 11).splitlines()
    assert rows[0] == "pv         Nf3 Nc6 Nf3 Nc6 Nf3"
    assert rows[1] == "           Nc6 Nf3 Nc6 Nf3 Nc6"
    assert rows[-1] == "depth"
    assert " ".join(rows).split() == f"{line} depth".split()
    assert folded(line, io.StringIO(), 11) == line
    for width in ("12", "3"):
        monkeypatch.setenv("COLUMNS", width)
        assert all(row in ("Nf3", "Nc6") or len(row) <= int(width) for row in folded(line, Terminal(), 11).split("\n"))


def test_messages_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "30")
    complain("interrupted; 1,429 of 2,247 positions are in out.pgn.journal: the same command continues from there")
    rows = stream.getvalue().splitlines()
    assert rows[:2] == ["psearch: interrupted; 1,429 of", "    2,247 positions are in"]
    assert max(map(len, rows)) <= 30


def test_lines_on_a_terminal_that_cannot_redraw(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdout", stream)
    line_display(chess.Board())(Info(5, 9, cp(30), "exact", 1900, 1.0, moves("e2e4", "e7e5", "g1f3")))
    assert stream.getvalue() == "depth 5/9  score +0.30  nodes 1,900  nps\n    1,900  time 1.00  pv e4 e5 Nf3\n"


def test_lines_print_what_is_new_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Reports of two lines take turns; counters alone are no news."""
    board = chess.Board()
    first = Info(5, 9, cp(30), "exact", 900, 1.0, moves("e2e4"), multipv=1)
    second = Info(5, 9, cp(25), "exact", 950, 1.1, moves("d2d4"), multipv=2)
    display = line_display(board)
    for info in (first, second, first, second):
        display(info)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_lines_only_for_news(capsys: pytest.CaptureFixture[str]) -> None:
    display = line_display(chess.Board())
    for nodes in (10, 20, 30):
        display(Info(3, 3, cp(5), "exact", nodes, 1.0, moves("e2e4")))
    display(Info(0, 0, cp(0), "exact", 0, 0.0))
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("count", [0, 2, 16, 64])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 24), (40, 10), (200, 60)])
def test_finished_iterations_stay_in_sight(count: int, width: int, height: int) -> None:
    console = Console(width=width, height=height, force_terminal=True, color_system=None)
    line = moves(*("g1f3", "g8f6", "f3g1", "f6g8") * 10)
    earlier = [Info(depth, 40, cp(depth), "exact", 12345678, depth * 2.5, line) for depth in range(40, 0, -1)]
    info = Info(41, 60, cp(31), "exact", 1234567890, 112.4, line, workers(count))
    with console.capture() as capture:
        console.print(search_view(chess.Board(), info, ConsoleDimensions(width, height), (), earlier, 300_000))
    lines = capture.get().splitlines()
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert "112.4 s of 300 s" in " ".join(capture.get().split())
    shown = [line for line in lines if line.startswith("depth ") and "/" not in line]
    assert [int(line.split()[1]) for line in shown] == list(range(40, 40 - len(shown), -1)), "the last ones"
    assert not shown or shown[0].startswith("depth 40    +0.40   100.0 s  Nf3 Nf6")
    assert len(shown) >= 5 or height < 20 or count == 16


def test_the_live_table_keeps_what_was_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last report of each depth; bounds and other lines are no finished iteration."""
    shown = []
    monkeypatch.setattr(live_display, "search_view", lambda *arguments: shown.append(arguments) or "")
    monkeypatch.setattr(sys, "stdout", Terminal())
    with live_display.table_display(chess.Board(), 2000) as display:
        for depth, bound, multipv, move in (
            *((1, "exact", 1, "a2a3"), (2, "lower", 1, "b2b3"), (2, "exact", 1, "c2c3"), (2, "exact", 2, "d2d3")),
            *((2, "exact", 1, "e2e3"), (3, "upper", 1, "f2f3")),
        ):
            display(Info(depth, 3, cp(5), bound, 10, 0.1, moves(move), multipv=multipv))
    _, best, _, _, earlier, movetime_ms = shown[-1]
    assert (best.depth, movetime_ms) == (3, 2000)
    assert [(info.depth, info.pv) for info in earlier] == [(2, moves("e2e3")), (1, moves("a2a3"))]


@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 64, 1024])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (200, 60)])
def test_live_display_fits_the_terminal(count: int, width: int, height: int) -> None:
    console = Console(width=width, height=height, force_terminal=True, color_system=None, record=True)
    info = Info(9, 17, cp(31), "exact", 1234567, 0.8, moves("e2e4", "e7e5", "g1f3"), workers(count))
    with console.capture() as capture:
        console.print(search_view(chess.Board(), info, ConsoleDimensions(width, height)))
    lines = capture.get().splitlines()
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert "pv e4 e5 Nf3" in capture.get()
    assert f"mean of {count}" in capture.get() or count <= 16


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


def frame(number: int) -> Text:
    return Text(f"frame {number}: {'x' * 60}\nshort\n\n{'y' * 75}", no_wrap=True, overflow="ellipsis")


def shown(widths: list[int], screen: Screen) -> list[str]:
    """Return the final screen after frames for these widths between two lines."""
    output = Terminal()
    console = Console(file=output, force_terminal=True, width=widths[0], height=24)
    console.print("before")
    with ShrinkableLive(console=console, auto_refresh=False, transient=True) as live:
        for number, width in enumerate(widths):
            console.size = (width, 24)  # type: ignore[assignment]  # rich's setter takes any pair
            screen.feed(output.take())
            screen.resize(width)
            live.update(frame(number), refresh=True)
            assert all(len(line) <= width for line in screen.lines)
        screen.feed(output.take())
        assert sum("frame" in line for line in screen.lines) == 1
    console.print("after")
    screen.feed(output.take())
    return [line for line in screen.lines if line]


@pytest.mark.parametrize("widths", [[80], [80, 40], [80, 79, 30, 7], [80, 20, 80], [20, 80, 20], [76, 75, 74]])
def test_nothing_stays_of_earlier_frames(widths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    assert shown(widths, Screen(widths[0])) == ["before", "after"]


class CuttingScreen(Screen):
    """Cuts off what has no room."""

    def resize(self, width: int) -> None:
        for row in self._rows:
            row.text = row.text[:width]
        self._column = min(self._column, width)
        self.width = width


@pytest.mark.parametrize("name", ["XTERM_VERSION", "TERM"])
def test_terminals_that_cut_lose_nothing_else(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, "linux")
    assert shown([80, 30, 20], CuttingScreen(80)) == ["before", "after"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_table_of_players_cuts_names_only(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal()
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setenv("COLUMNS", str(width))
    head = ("player", "accuracy", "loss, cp", "?!", "?", "??")
    with AnalysisProgress(None) as progress:
        output.take()
        progress.show_table(
            "game 1", head, [["White, a name that is longer than any row", "98.7%", "12", "3", "2", "1"]]
        )
    text = CONTROL.sub("", output.take())
    rows = text[text.index("game 1") :].splitlines()[1:3]
    assert all(len(row) <= width for row in rows)
    assert rows[0].split()[-6:] == ["accuracy", "loss,", "cp", "?!", "?", "??"]
    assert rows[1].split()[-5:] == ["98.7%", "12", "3", "2", "1"]


def test_the_bar_of_an_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal()
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    screen = Screen(80)
    with AnalysisProgress(10) as progress:
        for width in (80, 30, 12, 60):
            screen.feed(output.take())
            screen.resize(width)
            monkeypatch.setenv("COLUMNS", str(width))
            progress._bar.console.size = (width, 24)  # type: ignore[assignment]  # rich's setter takes any pair
            progress.say(f"game of {width}")
            progress._draw()
        screen.feed(output.take())
        assert sum("game" in line for line in screen.lines) == 1
    screen.feed(output.take())
    assert not any(screen.lines)
    with AnalysisProgress(None) as progress:
        progress.advance(searched=True)
        progress._draw()
        screen.feed(output.take())
        shown = " ".join(screen.lines)
        assert "1 positions" in shown and "left" not in shown
    screen.feed(output.take())
    assert not any(screen.lines)
