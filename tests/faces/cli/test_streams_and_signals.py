"""The command line when its streams are closed, its terminal goes, or signals come: subprocesses with the engine."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
from paths import DATA
from programs import PIPES, PSEARCH, assert_gone, needs_web
from terminals import Screen
from timing import wait_until

from psearch.faces.cli.signals import Signals

SEARCH = [*PSEARCH, "--threads", "2", "--hash", "1"]
ENDLESS = [*SEARCH, "--movetime", "600000", "startpos"]
TIMEOUT_S = 120


pytestmark = pytest.mark.usefixtures("search_kernels")


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_streams_that_were_closed_before_the_start(closed: tuple[int, ...]) -> None:
    """The rest is said on those that are open, and no file of ours takes the number of one that is not."""
    redirections = " ".join(f"{number}>&-" if number else "<&-" for number in closed)
    words = " ".join(f"'{word}'" for word in [*SEARCH, "--depth", "3", "startpos"])
    done = subprocess.run(["sh", "-c", f"{words} {redirections}"], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("best move") == (1 not in closed)
    bad = subprocess.run(["sh", "-c", f"{words} 9 {redirections}"], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", int(2 not in closed))


def test_signals_that_keep_coming() -> None:
    """However many: no traceback, their status, nothing left."""
    with subprocess.Popen(ENDLESS, start_new_session=True, **PIPES) as running:
        running.stdout.readline()
        while running.poll() is None:
            running.send_signal(signal.SIGINT)
            time.sleep(0.002)
        _, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 128 + signal.SIGINT
    assert "Traceback" not in err
    assert_gone(running.pid)


@pytest.mark.parametrize("ends_program", [False, True])
def test_a_signal_after_the_command_raises_nothing(ends_program: bool) -> None:
    """The moment may be any: while the result is turned into a status, while handlers are restored, after that."""
    heeded = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.getsignal(number) for number in heeded}
    try:
        with Signals(ends_program) as signals:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)  # from the same Ctrl-C or supervisor
            signals.is_over = True
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
        for number in heeded:
            assert signal.getsignal(number) == (signal.SIG_IGN if ends_program else former[number])
    finally:
        for number in heeded:
            signal.signal(number, former[number])


PAIRS = [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM), (signal.SIGHUP, signal.SIGTERM)]


def _searched_s(leader: int) -> float:
    """Return the processor time in seconds of the worker in a session that has had most of it."""
    most = 0.0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != leader:
            with contextlib.suppress(OSError):
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(words[3]) == leader:
                    most = max(most, (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"))
    return most


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize(
    ("words", "said", "begun", "answer"),
    [
        (["--threads", "1", "--depth", "100", "startpos"], "", "depth", "best move"),
        # a large table alone can take the processor time by which the search is noticed
        (["--threads", "1", "--hash", "16", "--depth", "100", "--json", "startpos"], "", None, '"bestmove"'),
        (["analyse", "--depth", "100", "--json", str(DATA / "guides" / "wac.epd")], "", None, '"summary"'),
        (["uci"], "uci\n", "id name", ""),
        pytest.param(["serve", "--no-browser", "--port", "0"], "", "http", "", marks=needs_web),
    ],
)
def test_two_signals_at_once_are_one(
    words: list[str], said: str, begun: str | None, answer: str, first: signal.Signals, second: signal.Signals
) -> None:
    """`timeout` signals the process and then its group: the best move, or the summary, is printed all the same."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*PSEARCH, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write(said)
        running.stdin.flush()
        if begun is None:
            wait_until(lambda: _searched_s(running.pid) > 0.5)  # it is searching
        else:
            assert begun in running.stdout.readline()
        for number in (first, second):
            running.send_signal(number)
            time.sleep(0.01)  # so that they are two
        out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 128 + first
    assert answer in out and "Traceback" not in err
    assert_gone(running.pid)


def test_a_second_signal_that_comes_later_does_not_wait() -> None:
    with Signals() as signals:
        signals.searching = True
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert signals.control.is_stopped and signals.exit_status == 128 + signal.SIGTERM
        signals._received_s -= 0.5
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def on_terminal(words: list[str], columns: int = 100) -> tuple[subprocess.Popen[bytes], int]:
    """A program on a terminal of its own, which closes when the descriptor does."""
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    # without buffers there is nothing to be lost at exit
    for name in ("COLUMNS", "LINES", "XTERM_VERSION", "PYTHONUNBUFFERED"):
        environment.pop(name, None)
    running = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, preexec_fn=take_terminal
    )
    os.close(theirs)
    return running, ours


def test_a_closed_terminal_ends_the_search() -> None:
    """SIGHUP comes, and nothing can be written any more."""
    running, ours = on_terminal(ENDLESS)
    seen = b""
    while b"depth" not in seen:
        seen += os.read(ours, 4096)
    os.close(ours)
    assert running.wait(TIMEOUT_S) == 128 + signal.SIGHUP
    assert_gone(running.pid)


def shown_on_a_shrinking_terminal() -> list[str]:
    """Return the screen after a search. It is halted while the window shrinks, so that nothing is on its way."""
    running, ours = on_terminal([*SEARCH, "--movetime", "5000", "startpos"], columns=110)
    screen = Screen(110)
    decoder = codecs.getincrementaldecoder("utf-8")()

    def read() -> bool:
        """Read the available output; return False at its end."""
        try:
            data = os.read(ours, 1 << 16)
        except OSError:
            return False
        screen.feed(decoder.decode(data))
        return bool(data)

    while not any("nps" in line for line in screen.lines):
        assert read()
    for width in (50, 30):
        assert read()
        while select.select([ours], [], [], 0.03)[0]:  # until it is between two frames
            assert read()
        running.send_signal(signal.SIGSTOP)
        os.waitpid(running.pid, os.WUNTRACED)
        while select.select([ours], [], [], 0)[0]:
            assert read()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, width, 0, 0))
        screen.resize(width)
        running.send_signal(signal.SIGCONT)
    while read():
        pass
    os.close(ours)
    assert running.wait(TIMEOUT_S) == 0
    return [line for line in screen.lines if line]


def test_a_terminal_that_becomes_narrow_keeps_no_old_frames() -> None:
    """Unless it does so between the measuring of a frame and its writing, which nobody can prevent: one in many."""
    for _ in range(4):
        lines = shown_on_a_shrinking_terminal()
        if lines[0].startswith("depth 1/"):
            break
    assert lines[0].startswith("depth 1/")  # the finished iterations take the place of the frames
    assert not any("load" in line for line in lines)
    answer = lines[next(number for number, line in enumerate(lines) if line.startswith("best move")) :]
    assert sum("nps" in line for line in answer) == 1
    assert all(len(line) <= 30 for line in lines)


def test_an_analysis_to_a_file_outlives_its_terminal(tmp_path: Path) -> None:
    """Under nohup: the bar on stderr is lost, the result is not."""
    (tmp_path / "x.epd").write_text("4k3/8/8/8/8/8/4P3/4K3 w - -\n" * 5)
    out = tmp_path / "out"
    words = [*PSEARCH, "analyse", "--hash", "1", "--movetime", "300", "--out", str(out), str(tmp_path / "x.epd")]
    running, ours = on_terminal(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *words])
    seen = b""
    while not re.search(b"[1-4]/5", seen):  # the first two may be finished together
        seen += os.read(ours, 4096)
    os.close(ours)
    assert running.wait(TIMEOUT_S) == 0
    assert "searched   " in out.read_text()
    assert sorted(os.listdir(tmp_path)) == ["out", "x.epd"]
