"""The word that a slow start shows on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from terminals import on_terminal

from psearch.terminal.loading import PATIENCE_S, Loading

pytestmark = pytest.mark.timeout(120, method="thread")  # the other method takes the timer for itself

SHOWN = b"loading"
GONE = b"\r\x1b[2K"
COMMANDS = [["--threads", "1", "--depth", "1", "startpos"], ["perft", "1", "startpos"]]


@contextmanager
def terminal(kind: str = "xterm") -> Iterator[int]:
    """The other end of stderr. Not a fixture: pytest replaces stderr after those."""
    ours, theirs = pty.openpty()
    with open(theirs, "w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        patch.setenv("TERM", kind)
        yield ours
    os.close(ours)


def written(terminal: int) -> bytes:
    os.set_blocking(terminal, False)
    try:
        return os.read(terminal, 4096)
    except BlockingIOError:
        return b""


def test_a_quick_start_says_nothing() -> None:
    with terminal() as ours:
        with Loading(time.monotonic()):
            pass
        time.sleep(PATIENCE_S + 0.1)
        assert written(ours) == b""


def test_a_slow_start_says_so_until_it_is_over() -> None:
    with terminal() as ours:
        with Loading(time.monotonic() - 10) as loading:
            time.sleep(0.05)
            assert written(ours) == SHOWN
            loading.end()
            assert written(ours) == GONE
        assert written(ours) == b""
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_it_waits_for_its_time() -> None:
    for _ in range(5):
        began = time.monotonic()
        with terminal() as ours, Loading(began):
            time.sleep(PATIENCE_S / 2)
            early = written(ours)
            if time.monotonic() >= began + PATIENCE_S:
                continue  # it took longer to look
            time.sleep(PATIENCE_S)
            assert (early, written(ours)) == (b"", SHOWN)
            return
    pytest.fail("no sleep was as short as it was to be")


def test_only_where_somebody_watches() -> None:
    with terminal("dumb") as ours:
        with Loading(0.0):
            time.sleep(0.02)
        assert written(ours) == b""

    def elsewhere() -> None:
        with Loading(0.0):
            time.sleep(0.02)

    with terminal() as ours:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert written(ours) == b""


def test_a_timer_of_somebody_else_stays() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        with terminal() as ours:
            with Loading(0.0):
                time.sleep(0.02)
            assert written(ours) == b""
        assert signal.getsignal(signal.SIGALRM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


@pytest.mark.timeout(600, method="thread")
@pytest.mark.usefixtures("kernels", "search_kernels")  # who compiles says so where the word would be
@pytest.mark.parametrize("words", COMMANDS)
def test_commands_that_start_slowly(words: list[str]) -> None:
    """The word is gone before anything else is written, and nothing of it is on stdout."""
    program = f"""
import sys
from psearch.faces.cli import kernels
from psearch.faces.cli.main import main
kernels._STARTED_S -= 10
sys.exit(main({words}))
"""
    shown, answer, status = on_terminal([sys.executable, "-c", program], stdout_too=False)
    assert status == 0
    assert shown.encode() == SHOWN + GONE
    assert "loading" not in answer
