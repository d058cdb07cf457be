"""The same work on all cores: forked processes that take what is next."""

from __future__ import annotations

import ctypes
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence

import multiprocess
from multiprocess.connection import Connection, wait

_MOST_PROCESSES = 16
_PR_SET_PDEATHSIG = 1


def in_processes(work: Callable[[str], str], items: Sequence[str]) -> Iterator[str]:
    """Do `work` for every item, in any order; gives its results as they come.

    A process is forked for each core, so this one must have a single thread. Raises RuntimeError when one of them
    fails or is killed; none outlives this call, nor this process.
    """
    most = min(len(os.sched_getaffinity(0)), _MOST_PROCESSES, len(items))
    if most <= 1:
        yield from map(work, items)
        return
    context = multiprocess.get_context("fork")
    counter = context.Value("q", 0)
    ours, theirs = context.Pipe(duplex=False)
    processes = [
        context.Process(target=_share, args=(work, items, counter, theirs, os.getpid()), daemon=True)
        for _ in range(most)
    ]
    try:
        for process in processes:
            process.start()
        done = 0
        while done < len(items):
            ready = wait([ours, *(process.sentinel for process in processes)])
            if ours in ready:
                failure, result = ours.recv()
                if failure:
                    raise RuntimeError(failure)
                done += 1
                yield result
            elif any(process.exitcode for process in processes):
                raise RuntimeError("a process that compiled was killed")
            else:
                # through with its share: the others go on
                processes = [process for process in processes if process.exitcode is None]
    finally:
        for process in processes:
            process.kill()
            process.join()
        ours.close()
        theirs.close()


def _share(
    work: Callable[[str], str], items: Sequence[str], counter: multiprocess.Value, results: Connection, parent: int
) -> None:
    """One process: leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    while True:
        with counter.get_lock():
            number = counter.value
            counter.value += 1
        if number >= len(items):
            return
        try:
            answer = ("", work(items[number]))
        except Exception:
            answer = (traceback.format_exc(), "")
        with counter.get_lock():
            results.send(answer)
