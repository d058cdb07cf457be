"""The same work on all cores: forked processes that are given one item after another.

Nothing but pipes is used: semaphores and shared memory would need a place to write to. What comes through them is
pickled by a process of this program, for this program.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

try:
    tempfile.gettempdir()
except OSError:
    # dill, which multiprocess imports, asks for a folder for temporary files, of which it makes none here
    tempfile.tempdir = "/"

import multiprocess
from multiprocess.connection import Connection, wait

from psearch.core.toolchain.kernel_cache import PlugInError

_MOST_PROCESSES = 16
_PR_SET_PDEATHSIG = 1
_T = TypeVar("_T")


class WorkFailed(Exception):
    """The work on an item raised an exception: its type and text; `words` has its place, too."""

    def __init__(self, summary: str, words: str) -> None:
        super().__init__(summary)
        self.words = words


class ProcessKilled(Exception):
    """A process ended before its work was done."""


class _Process(NamedTuple):
    process: Any
    pipe: Connection


def in_processes(
    work: Callable[[str], _T], items: Sequence[str], most_processes: int = _MOST_PROCESSES
) -> Iterator[_T]:
    """Do `work` for every item, in any order; gives its results as they come.

    A process is forked for each core, so this one must have a single thread; or as many as the system allows, and if
    that is less than two, none. Raises WorkFailed, PlugInError, ProcessKilled; no process outlives this call, nor this
    process.
    """
    waiting = list(reversed(items))
    processes = _start(work, min(len(os.sched_getaffinity(0)), most_processes, len(items)))
    try:
        if not processes:
            yield from map(work, items)
            return
        by_pipe = {each.pipe: each for each in processes}
        for pipe in by_pipe:
            _give_next(pipe, waiting)
        left = len(items)
        while left:
            for pipe in wait(list(by_pipe)):
                try:
                    failure, result = pipe.recv()
                except (EOFError, OSError):
                    raise ProcessKilled(_end_of(by_pipe[pipe].process)) from None
                if failure:
                    raise failure if isinstance(failure, PlugInError) else WorkFailed(*failure)
                _give_next(pipe, waiting)
                left -= 1
                yield result
    finally:
        for process, pipe in processes:
            process.kill()
            process.join()
            pipe.close()


def _give_next(pipe: Connection, waiting: list[str]) -> None:
    if waiting:
        with contextlib.suppress(OSError):  # the process has ended: its answer will say so
            pipe.send(waiting.pop())


def _end_of(process: Any) -> str:
    process.join()
    return f"signal {-process.exitcode}" if process.exitcode < 0 else f"status {process.exitcode}"


def _start(work: Callable[[str], _T], count: int) -> list[_Process]:
    """So many processes, or as many as the system allows; none if that is one."""
    context = multiprocess.get_context("fork")
    started: list[_Process] = []
    while len(started) < count and count > 1:
        try:
            ours, theirs = context.Pipe()
        except OSError:
            break
        with theirs:
            process = context.Process(target=_share, args=(work, theirs, os.getpid()), daemon=True)
            try:
                process.start()
            except OSError:
                ours.close()
                break
        started.append(_Process(process, ours))
    return started


def _share(work: Callable[[str], _T], items: Connection, parent: int) -> None:
    """One process: leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
    while True:
        item = items.recv()
        try:
            answer: tuple[Any, Any] = (None, work(item))
        except PlugInError as error:
            answer = (error, None)
        except Exception as error:
            answer = ((summary(error), traceback.format_exc()), None)
        items.send(answer)


def summary(error: Exception) -> str:
    """Return what an exception says, and its kind."""
    return ": ".join(part for part in (type(error).__name__, str(error)) if part)


def end_with(parent: int) -> None:
    """Be killed when the parent ends, or at once if it has."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
