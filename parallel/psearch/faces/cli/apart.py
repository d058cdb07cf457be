"""Commands that call kernels of a user's file themselves: in a fork of the program, for a kernel may crash, or hear no
signal."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable

from psearch.defaults import POLICY_NAMES
from psearch.faces.cli.exit_status import EXIT_SIGNAL, EXIT_WORKER_DIED
from psearch.faces.cli.output import complain
from psearch.faces.cli.signals import Signals

_PATIENCE_S = 1.0
"""For a fork that was interrupted to tell what it has found."""
_LOOK_S = 0.01


def calls_kernels_of_a_file(command: str, options: argparse.Namespace) -> bool:
    """Tell whether a command, by the name of its module, runs such kernels in the process in which it runs."""
    name = command.rpartition(".")[2]
    is_traced = name == "simulate_command" and options.trace is not None
    if not is_traced and name not in ("bench_command", "predict_command"):
        return False
    named = set((getattr(options, "policy", None) or "").split(","))
    return bool(getattr(options, "with_", None) or getattr(options, "game", None) or named - {"", *POLICY_NAMES})


def run_apart(run: Callable[[], int], signals: Signals) -> int:
    """Return the status of a command that runs in a fork; the fork ends with this process, and with a signal."""
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
    ended = None
    while ended is None:
        try:
            ended = os.waitpid(fork, 0)[1]
        except KeyboardInterrupt:
            ended = _interrupt(fork, signals.received or signal.SIGINT)
            if os.WIFSIGNALED(ended):
                complain("interrupted")
                return signals.exit_status or EXIT_SIGNAL + signal.SIGINT
    signals.is_over = True
    if os.WIFSIGNALED(ended):
        complain(f"a kernel of a file has ended the process that ran it: {signal.Signals(os.WTERMSIG(ended)).name}")
        return EXIT_WORKER_DIED
    return os.waitstatus_to_exitcode(ended)


def _interrupt(fork: int, number: int) -> int:
    """End a fork: it has heard a signal of the terminal already, or is told now; at last it is killed. Returns how it
    ended."""
    for told in (0, number, signal.SIGKILL):
        os.kill(fork, told)
        until = time.monotonic() + _PATIENCE_S
        while told == signal.SIGKILL or time.monotonic() < until:
            pid, ended = os.waitpid(fork, 0 if told == signal.SIGKILL else os.WNOHANG)
            if pid:
                return ended
            time.sleep(_LOOK_S)
    raise AssertionError("a process that was killed has not ended")
