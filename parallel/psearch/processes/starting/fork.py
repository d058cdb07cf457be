"""Forks one worker, or another process: by the program itself while it has a single thread, else by its fork server."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from psearch.arena.arena import Arena
from psearch.arena.blocks import drop_blocks_but
from psearch.processes.lifetime import close_all_but, end_with_forking_thread, outlives_its_forks
from psearch.processes.program_signals import GROUP_SIGNALS, ignore_blocked, signals_blocked
from psearch.processes.worker_main import worker_main

_OOM_SCORE = 300
"""Of 1,000: when memory runs out, the kernel ends a worker, which can be replaced, rather than the program, unless that
has taken a third of the memory for itself."""


def _reset_handlers() -> None:
    """Signal handlers of the program that was forked are not for its workers."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)) and number not in GROUP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)


def fork_worker(arena: Arena, index: int, pipe: Connection) -> int:
    """Fork a worker, with the arena that this process has mapped, and return its process number.

    Of what this process has open it keeps the pipe and the standard streams. Only for a process with a single Python
    thread. Raises OSError when there is no room for another process.
    """
    return _fork(lambda parent: worker_main(arena, index, pipe, parent), [pipe.fileno()], arena.descriptors())


def imported(target: str) -> Callable[..., None]:
    """Return the function that `module:name` names; a fork of this process has it then."""
    module, _, name = target.partition(":")
    function: Callable[..., None] = getattr(importlib.import_module(module), name)
    return function


def fork_process(target: str, pipe: Connection, descriptors: Sequence[int] = ()) -> int:
    """Fork a process that calls a function (`module:name`) with the pipe, the number of this process, and the
    descriptors, which it keeps; it ends with the function, also where the pipe does.

    The rest: see `fork_worker`; of the shared memory it keeps nothing.
    """
    function = imported(target)

    def run(parent: int) -> None:
        gc.freeze()
        gc.enable()  # this one has a life of its own, and garbage
        with suppress(EOFError, BrokenPipeError, ConnectionResetError):
            function(pipe, parent, *descriptors)

    return _fork(run, [pipe.fileno(), *descriptors])


def _fork(run: Callable[[int], None], kept: Sequence[int], blocks: Sequence[int] = ()) -> int:
    """run: what the new process does, given the number of this one; kept: descriptors that stay open; blocks: those of
    the memory that stays mapped."""
    parent = os.getpid()
    is_bound = outlives_its_forks()
    with signals_blocked(GROUP_SIGNALS):
        with warnings.catch_warnings():
            # Python 3.12 warns of any thread; those left are numpy's, which know about fork
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _be_forked(lambda: run(parent), kept, blocks, is_bound)
        return pid


def _be_forked(run: Callable[[], None], kept: Sequence[int], blocks: Sequence[int], is_bound: bool) -> None:
    """The forked process: never returns into what the program was doing, nor runs its exit handlers.

    is_bound: the kernel is to end it with the thread that forked it.
    """
    status = 1
    try:
        gc.disable()  # what the program had may not be finalized here: files removed, descriptors closed
        if is_bound:
            end_with_forking_thread()
        ignore_blocked(GROUP_SIGNALS)
        _reset_handlers()
        _prefer_for_oom_killer()
        drop_blocks_but(blocks)
        close_all_but(kept)
        run()
        status = 0
    except BaseException:
        if sys.__stderr__ is not None:
            traceback.print_exc(file=sys.__stderr__)
            sys.__stderr__.flush()
    finally:
        os._exit(status)


def _prefer_for_oom_killer() -> None:
    with suppress(OSError, ValueError), open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
        file.write(b"%d" % min(1000, int(file.read()) + _OOM_SCORE))
