"""Main functions of worker processes, each of which runs one worker of an arena.

Between searches a worker blocks on its pipe and uses no processor time. When the parent ends, the pipe does too.
"""

from __future__ import annotations

import gc
from multiprocessing.connection import Connection

from psearch.arena.arena import Arena
from psearch.processes.lifetime import can_write, close_all_but, end_if_orphan, messages_of
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import reports_written
from psearch_core.toolchain.groups import KernelError

READY, GO, DONE = "ready", "go", "done"
REPORTED = "reported"
"""Message from one worker: there are new reports in the ring, of any worker."""

_HERALD = 0
"""Index of the worker that announces reports. It need not have a root: all workers check equally often."""
_FIRST_BURSTS = 4
"""Bursts of the first call, about a millisecond: the first iterations take no longer."""
_BURSTS_PER_CALL = 32
"""Bursts of a call, about 10 ms: the delay of a report, and until a worker notices that its parent has ended."""


def work_alone(arena: Arena) -> None:
    """Run worker 0 of an arena in this process until the search is done; Ctrl-C interrupts it."""
    work = arena.driver.function("work")
    while not work(arena.context, 0, 8 * _BURSTS_PER_CALL):
        continue


def worker_main(arena: Arena, index: int, pipe: Connection, parent: int) -> None:
    """Run a worker process: search at each message, until the parent ends or closes the pipe."""
    commands = messages_of(pipe, parent)
    arena.take_table(index)  # before READY, so that no search waits for this
    pipe.send(READY)
    for _ in commands:
        _search(arena, index, pipe, parent)
        pipe.send(DONE)


def _search(arena: Arena, index: int, pipe: Connection, parent: int) -> None:
    """Work until the search is done. Announce all reports of one call together, to wake the program only once."""
    context, work = arena.context, arena.driver.function("work")
    bursts, announced = _FIRST_BURSTS, 0
    while not work(context, index, bursts):
        if index == _HERALD and (written := reports_written(context)) != announced and can_write(pipe):
            pipe.send(REPORTED)
            announced = written
        if bursts == _BURSTS_PER_CALL:
            end_if_orphan(parent, pipe)
        bursts = min(4 * bursts, _BURSTS_PER_CALL)


def served_main(pipe: Connection, parent: int, *descriptors: int) -> None:
    """Run a worker that the fork server has forked. Its memory comes as descriptors, all else in the first message.

    If the system refuses something, a PsearchError is sent in place of READY.
    """
    gc.disable()
    index, layout, code = pipe.recv()
    try:
        arena = Arena.attach(**layout, descriptors=descriptors)
        if code:  # compiled from a user's file, which may have changed since
            arena.driver.take_packed(code)
    except (KernelError, PsearchError) as error:
        pipe.send(PsearchError(str(error)))
        return
    close_all_but([pipe.fileno()])
    worker_main(arena, index, pipe, parent)
