"""How a process lives: forked from this one, not longer than its parent, and not ended by a signal that is for the
program; and a descriptor that reports the end of another."""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from psearch.arena import system_calls
from psearch.arena.blocks import drop_blocks_but

GONE = 255
"""Exit code of a worker whose real one cannot be known any more: another thread reaped it, the answer that held it was
never read, or the fork server is gone."""
_ORPHANED = 1
_CHECK_MS = 200
"""Milliseconds between two looks at the parent, where the system has no pidfds."""
_STDERR = 2
_OOM_SCORE = 300
"""Added to the score (of 1,000) of a worker: when memory runs out, the kernel ends one, which can be replaced, rather
than the program, unless that has taken a third of the memory for itself."""
_MOST_DESCRIPTORS = 1 << 16
"""Descriptors that are looked at where there is no /proc."""
GROUP_SIGNALS = {
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
}
"""What a terminal, a service manager or a batch system sends to the whole group. Workers leave it to the program what
becomes of them: one that survives the end of its terminal keeps them."""


def open_pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends; None where the system has none (Linux before
    5.3)."""
    try:
        return system_calls.pidfd_open(pid)
    except OSError:
        return None


def process_state(pid: int) -> str | None:
    """Return the state of a process as the kernel names it: `R` running, `S` asleep, `D` waiting for a disk, `T`
    stopped, `t` stopped by a debugger, `Z` ended but not yet waited for. None for a number without a process, and
    without /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0].decode()  # the name before it may hold anything
    except (OSError, IndexError):
        return None


def can_write(link: Connection) -> bool:
    """Tell whether a short message goes out without waiting: the other side may be stopped, and have read none for
    long."""
    poll = select.poll()
    poll.register(link, select.POLLOUT)
    return any(events & select.POLLOUT for _, events in poll.poll(0))


# -- within a process that has a parent --------------------------------------------------------------------------------


def end_with_forking_thread() -> None:
    """Have the kernel kill this process when the thread that forked it ends, also while it is stopped, or waits for a
    lock in machine code. A wish only: where that cannot be had it ends when it looks.

    For a fork of the thread that lives as long as its process; the caller asks `is_orphan` afterwards.
    """
    with suppress(OSError):
        system_calls.set_parent_death_signal(signal.SIGKILL)


def close_all_but(kept: Sequence[int]) -> None:
    """Close, in a fork, what the program has open besides the standard streams and `kept`: a pipe, a socket, a file
    that it closes must not stay open here."""
    try:
        end = 1 + max(map(int, os.listdir("/proc/self/fd")))
    except OSError:
        end = min(os.sysconf("SC_OPEN_MAX"), _MOST_DESCRIPTORS)
    begin = _STDERR + 1
    for descriptor in sorted(kept):
        os.closerange(begin, descriptor)
        begin = descriptor + 1
    os.closerange(begin, end)


def is_orphan(parent: int) -> bool:
    """Tell whether the parent, given by its process number, has ended. Costs a system call."""
    return os.getppid() != parent


def end_if_orphan(parent: int, link: Connection | None = None) -> None:
    """Leave at once, without exit handlers, when the parent has ended, or the other end of `link` is closed.

    For loops that come by often.
    """
    poll = select.poll()
    if link is not None:
        poll.register(link, 0)  # only the hang-up
    if is_orphan(parent) or poll.poll(0):
        os._exit(_ORPHANED)


def messages_of(pipe: Connection, parent: int) -> Iterator[Any]:
    """Return what the parent sends, from now on until it ends, or its end of the pipe is closed."""
    watched = open_pidfd(parent)
    awaited: list[Any] = [pipe] if watched is None else [pipe, watched]

    def messages() -> Iterator[Any]:
        with suppress(EOFError, ConnectionResetError):
            while not is_orphan(parent) and pipe in wait(awaited):
                yield pipe.recv()

    return messages()


@contextmanager
def ended_with_parent(parent: int, link: socket.socket | Connection | None = None) -> Iterator[None]:
    """End with the parent: within this, the process ends at once when its parent does, or when the other end of `link`
    is closed.

    For what may take long and does not look (a compilation, perft): a thread waits meanwhile, and is gone afterwards.
    What it interrupts has to let other threads run. Where no thread can be had nothing waits. parent: its process
    number.
    """
    watched = open_pidfd(parent)
    finished, finish = os.pipe()
    poll = select.poll()
    poll.register(finished, select.POLLIN)
    if watched is not None:
        poll.register(watched, select.POLLIN)
    if link is not None:
        poll.register(link, 0)  # only the hang-up

    def wait() -> None:
        end_if_orphan(parent)  # before the descriptor was opened, perhaps
        while finished not in (ready := dict(poll.poll(_CHECK_MS if watched is None else None))):
            if ready:
                os._exit(_ORPHANED)
            end_if_orphan(parent)

    thread = threading.Thread(target=wait, daemon=True)
    try:
        with suppress(RuntimeError):  # ulimit -u
            thread.start()
        yield
    finally:
        os.write(finish, b".")
        if thread.ident is not None:
            thread.join()
        for descriptor in (finished, finish, watched):
            if descriptor is not None:
                os.close(descriptor)


# -- signals that are for the program ----------------------------------------------------------------------------------


@contextmanager
def signals_blocked(numbers: Collection[signal.Signals]) -> Iterator[None]:
    """Block signals: a process that is started meanwhile begins with them blocked; one that comes before it ignores
    them cannot end it. In this thread they wait until the end."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def ignore_blocked(numbers: Collection[signal.Signals]) -> None:
    """Ignore these signals in a process begun with them blocked: what arrived meanwhile is dropped."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


# -- forks of this process ---------------------------------------------------------------------------------------------


def fork_process(target: str, descriptors: Sequence[int], pipe: int) -> int:
    """Fork a process that calls a function (`module:name`) with the pipe, the number of this process, and the
    descriptors, which it keeps; it ends with the function, also where the pipe does. Of shared memory it keeps nothing.

    Only for a process with a single Python thread. Raises OSError when there is no room for another process.
    """
    module, _, name = target.partition(":")
    function: Callable[..., None] = getattr(importlib.import_module(module), name)

    def run(parent: int) -> None:
        gc.freeze()
        gc.enable()  # it goes on for long, and makes garbage
        function(Connection(pipe), parent, *descriptors)

    return fork(run, [pipe, *descriptors])


def fork(run: Callable[[int], None], kept: Sequence[int], blocks: Sequence[int] = ()) -> int:
    """Fork this process, and return the number of the fork, which never returns into what the program was doing, nor
    runs its exit handlers.

    run: what it does, given the number of this process; kept: descriptors that stay open beside the standard streams;
    blocks: those of the memory that stays mapped.
    """
    parent = os.getpid()
    is_bound = threading.get_native_id() == parent  # this thread ends only with its process, and the fork with it
    with signals_blocked(GROUP_SIGNALS):
        with warnings.catch_warnings():
            # Python 3.12 warns of any thread; those left are numpy's, which know about fork
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid != 0:
            return pid
        status = 1
        try:
            gc.disable()  # what the program had may not be finalized here: files removed, descriptors closed
            if is_bound:
                end_with_forking_thread()
            ignore_blocked(GROUP_SIGNALS)
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals():
                if callable(signal.getsignal(number)) and number not in GROUP_SIGNALS:
                    signal.signal(number, signal.SIG_DFL)
            with suppress(OSError, ValueError), open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
                file.write(b"%d" % min(1000, int(file.read()) + _OOM_SCORE))
            drop_blocks_but(blocks)
            close_all_but(kept)
            with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the program has gone
                run(parent)
            status = 0
        except BaseException:
            if sys.__stderr__ is not None:
                traceback.print_exc(file=sys.__stderr__)
                sys.__stderr__.flush()
        finally:
            os._exit(status)
