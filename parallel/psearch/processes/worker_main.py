"""The process driver: one worker per process, the compiled `step` in each.

Between searches a worker blocks on its pipe and uses no processor time. A pipe that ends means that the parent is
gone, also after a SIGKILL: the worker exits.
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
"""Message of one worker: there is something new in the ring, whichever wrote it."""

_HERALD = 0
"""The worker that reports. With a root or without, it looks as often as any other."""
_FIRST_BURSTS = 4
"""Bursts of the first call, about a millisecond: the first iterations take no longer."""
_BURSTS_PER_CALL = 32
"""About 10 ms: how old a report may become, and how long a worker may take to notice that its parent is gone."""


def work_alone(arena: Arena) -> None:
    """Run worker 0 of an arena in this process until its search is done; Ctrl-C interrupts it."""
    work = arena.driver.function("work")
    while not work(arena.context, 0, 8 * _BURSTS_PER_CALL):
        continue


def worker_main(arena: Arena, index: int, pipe: Connection, parent: int) -> None:
    """Run a worker process: it searches whenever its pipe says so, until the pipe or the parent ends."""
    commands = messages_of(pipe, parent)
    arena.take_table(index)  # before it is ready: no search waits for this
    pipe.send(READY)
    for _ in commands:
        _search(arena, index, pipe, parent)
        pipe.send(DONE)


def _search(arena: Arena, index: int, pipe: Connection, parent: int) -> None:
    """Work until the search is done. Reports between two looks are announced together: the program wakes up once for
    all of them."""
    context, work = arena.context, arena.driver.function("work")
    bursts, told = _FIRST_BURSTS, 0
    while not work(context, index, bursts):
        if index == _HERALD and (written := reports_written(context)) != told and can_write(pipe):
            pipe.send(REPORTED)
            told = written
        if bursts == _BURSTS_PER_CALL:
            end_if_orphan(parent, pipe)
        bursts = min(4 * bursts, _BURSTS_PER_CALL)


def served_main(pipe: Connection, parent: int, *descriptors: int) -> None:
    """Run a worker that the fork server has forked: its memory comes as descriptors, all else in the first message.

    What the system refuses is said in place of READY.
    """
    gc.disable()
    index, layout, code = pipe.recv()
    try:
        arena = Arena.attach(**layout, descriptors=descriptors)
        if code:  # of a user's file, which may be another by now
            arena.driver.take_packed(code)
    except (KernelError, PsearchError) as error:
        pipe.send(PsearchError(str(error)))
        return
    close_all_but([pipe.fileno()])
    worker_main(arena, index, pipe, parent)
