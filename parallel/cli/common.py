"""What all commands of the command line share: exit status, signals, parsers, messages.

Nothing here imports numba or numpy, so that `--help` and errors answer at once.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from psearch.defaults import MAX_THREADS

EXIT_PERFT_FAILED = 1
EXIT_SYSTEM = 1
EXIT_UNSOUND = 1
EXIT_BAD_INPUT = 2
EXIT_WORKER_DIED = 3
EXIT_SIGNAL = 128

SHELLS = ("bash", "zsh", "fish")
"""that `completion.py` makes scripts for"""

STUDIES = ("speedup", "simulate", "predict", "calibrate")
"""Commands of `cli_studies.py`, which is imported when one of them is asked for."""

TRACE_HELP = "record what each worker does, for https://ui.perfetto.dev (Trace Event format)"


class Parser(argparse.ArgumentParser):
    """Reports an error as one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        complain(message)
        sys.exit(EXIT_BAD_INPUT)


class Interrupted(KeyboardInterrupt):
    """SIGINT or SIGTERM arrived where there is nothing yet to report."""


class Signals:
    """SIGINT and SIGTERM: a stop request while a search runs, an exception at any other time.

    A second signal is always an exception, so that an impatient user gets out.
    """

    def __init__(self) -> None:
        # The handler runs in the main thread, so a search there must poll is_set(): inside wait() it would
        # hold the lock that set() needs.
        self.stop = threading.Event()
        self.searching = False
        self.received: int | None = None
        self._former: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.searching and self.received is None:
            self.received = number
            self.stop.set()
        else:
            self.received = number
            raise Interrupted

    @property
    def exit_status(self) -> int:
        """0, or 128 + the number of the signal that arrived."""
        return EXIT_SIGNAL + self.received if self.received else 0


Commands = dict[str, tuple[Callable[[], argparse.ArgumentParser], Callable[[argparse.Namespace, Signals], int]]]
"""By name: what makes the parser, and what runs the command and gives the exit status."""


def make_parser(name: str, usage: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A parser whose help keeps its line breaks."""
    return Parser(
        prog=name,
        usage=usage,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """A converter for argparse. int() alone would take `1_000` and digits of any script."""

    def convert(text: str) -> int:
        if not re.fullmatch("[+-]?[0-9]{1,30}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}, not {text[:40]!a}")
        return int(text)

    return convert


def usable_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return min(MAX_THREADS, len(os.sched_getaffinity(0)))
    return min(MAX_THREADS, os.cpu_count() or 1)


def check_hash(hash_mb: int) -> None:
    """Refuse what cannot fit before kernels are compiled for it; the supervisor looks closer."""
    from psearch.results import PsearchError

    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    if hash_mb >= memory_mb:
        raise PsearchError(f"--hash {hash_mb} does not fit in this machine's {memory_mb} MiB of memory")


def prepare_kernels() -> None:
    """Load the compiled kernels; compile them on the first run, with the progress on stderr."""
    from psearch.kernels import load_kernels
    from psearch.terminal.display import StatusLine

    with StatusLine() as status:
        load_kernels(progress=status)


def tell_of_trace(dropped: dict[int, int], path: Path) -> None:
    """That a trace has been written, and whether all of it; dropped: events, by worker."""
    say(f"trace: {path}")
    if dropped:
        workers = f"worker {next(iter(dropped))}" if len(dropped) == 1 else f"{len(dropped)} workers"
        complain(f"the trace is not complete: {sum(dropped.values()):,} events of {workers} found no room")


def say(text: str) -> None:
    """One line on stderr, if there is one."""
    if sys.stderr is not None:  # print() would turn to stdout
        print(text, file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """One line on stderr, whatever the message contains."""
    line = " ".join(message.split())
    say("psearch: " + "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in line))
