"""Forks one worker: by the program itself while it has a single thread, else by its fork server."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Protocol

from psearch.arena.arena import Arena
from psearch.processes.worker import worker_main

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
"""What a terminal or a service manager sends to the whole group. Workers leave it to the program to stop them."""


class Closable(Protocol):
    """A pipe or a socket."""

    def close(self) -> None: ...


def ignore_stop_signals() -> None:
    """For a process begun with these signals blocked: what arrived meanwhile is dropped."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _reset_handlers() -> None:
    """Signal handlers of the program that was forked are not for its workers."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)) and number not in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)


def fork_worker(arena: Arena, index: int, pipe: Connection, inherited: Sequence[Closable]) -> int:
    """Fork a worker and return its process number. `inherited`: this process's own ends of pipes and
    sockets, closed in the worker.

    Only for a process with a single Python thread. Raises OSError when there is no room for another process.
    """
    parent = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of any thread; those left are numpy's, which know about fork
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _be_worker(arena, index, pipe, inherited, parent)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _be_worker(arena: Arena, index: int, pipe: Connection, inherited: Sequence[Closable], parent: int) -> None:
    """The forked process: never returns into what the program was doing, nor runs its exit handlers."""
    status = 1
    try:
        ignore_stop_signals()
        _reset_handlers()
        for connection in inherited:
            connection.close()
        worker_main(arena, index, pipe, parent)
        status = 0
    except BaseException:
        if sys.__stderr__ is not None:
            traceback.print_exc(file=sys.__stderr__)
            sys.__stderr__.flush()
    finally:
        os._exit(status)
