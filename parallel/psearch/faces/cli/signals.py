"""Handles signals during a command; runs a command whose kernels may crash or block signals in a fork."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from psearch.faces.cli.output import EXIT_SIGNAL, EXIT_WORKER_DIED, complain
from psearch.processes.control import SearchControl

_SAME_S = 0.5
"""Signals that follow each other within this time count as one, in seconds."""
_PATIENCE_S = 1.0
"""Time for an interrupted fork to print its results, in seconds."""
_LOOK_S = 0.01


class Signals:
    """Turns SIGINT, SIGTERM and SIGHUP into a stop request while a search runs, and into an exception otherwise.

    Signals within half a second count as one: `timeout` and other supervisors signal the process and then its group.
    A second signal always raises, so that an impatient user gets out; a third, while the command cleans up, ends the
    process at once; signals after the command have no effect. SIGHUP stays ignored if it was, as under nohup.

    ends_program: the interpreter exits after the command. SIGINT is then ignored for good, and all three signals once
    one was received, so that late signals do not disturb the exit.
    """

    def __init__(self, ends_program: bool = False) -> None:
        self.control = SearchControl()
        """Stop control of the searches."""
        self.searching = False
        self.received: int | None = None
        """Number of the latest signal that was acted on."""
        self.is_over = False
        """Set when the command has ended; an exception would no longer be caught."""
        self._received_s = -math.inf
        """Time of the latest signal that was acted on."""
        self._ends_program = ends_program
        self._has_raised = False
        self._former: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._former.items():
            ignored = self._ends_program and (number == signal.SIGINT or self.received is not None)
            signal.signal(number, signal.SIG_IGN if ignored else handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self.is_over or now_s - self._received_s < _SAME_S:
            return
        self._received_s = now_s
        if self.searching and self.received is None:
            self.received = number
            self.control.stop()
        elif self._has_raised:
            os._exit(EXIT_SIGNAL + number)
        else:
            self.received = number
            self._has_raised = True
            raise KeyboardInterrupt

    @property
    def exit_status(self) -> int:
        """Return 0, or 128 + the number of the signal that arrived."""
        return EXIT_SIGNAL + self.received if self.received else 0

    def interrupted(self) -> int:
        """Report that the command was interrupted, and return its exit status."""
        complain("interrupted")
        return self.exit_status or EXIT_SIGNAL + signal.SIGINT


def run_apart(run: Callable[[], int], signals: Signals) -> int:
    """Run a command in a fork and return its exit status. The fork ends with this process, and on a signal."""
    program = os.getpid()
    fork = os.fork()
    if fork == 0:
        status = EXIT_WORKER_DIED
        try:
            from psearch.processes.lifetime import end_with_forking_thread, is_orphan

            end_with_forking_thread()
            if not is_orphan(program):
                status = run()
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else EXIT_WORKER_DIED
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
            os._exit(status)
    try:
        ended = os.waitpid(fork, 0)[1]
    except KeyboardInterrupt:
        ended = _interrupt(fork, signals.received or signal.SIGINT)
        if os.WIFSIGNALED(ended):
            return signals.interrupted()
    signals.is_over = True
    if os.WIFSIGNALED(ended):
        complain(f"a kernel of your file crashed: {signal.Signals(os.WTERMSIG(ended)).name}")
        return EXIT_WORKER_DIED
    return os.waitstatus_to_exitcode(ended)


def _interrupt(fork: int, number: int) -> int:
    """End a fork, which the terminal may have signalled already, and return its wait status."""
    for sent in (0, number):
        os.kill(fork, sent)
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            pid, ended = os.waitpid(fork, os.WNOHANG)
            if pid:
                return ended
            time.sleep(_LOOK_S)
    os.kill(fork, signal.SIGKILL)
    return os.waitpid(fork, 0)[1]
