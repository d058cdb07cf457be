"""Lifetime of a child process: its fork, its end when the parent ends, and signals that are meant for the program only.
Also descriptors that report the end of another process."""

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
"""Exit code of a worker whose real one is lost: another thread reaped it, or the fork server did not deliver it."""
_ORPHANED = 1
_CHECK_MS = 200
"""Milliseconds between two checks of the parent, where the system has no pidfds."""
_STDERR = 2
_OOM_SCORE = 300
"""Increase of a worker's out-of-memory score (0 to 1,000). When memory runs out, the kernel kills a worker, which can
be replaced, rather than the program, unless the program has taken a third of the memory for itself."""
_MOST_DESCRIPTORS = 1 << 16
"""Number of descriptors to close where there is no /proc to list them."""
GROUP_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
"""Signals that a terminal, a service manager or a batch system sends to the whole process group. Workers ignore them:
the program decides when its workers end, and may itself survive the end of its terminal."""


def open_pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends; None before Linux 5.3."""
    try:
        return system_calls.pidfd_open(pid)
    except OSError:
        return None


def process_state(pid: int) -> str | None:
    """Return the kernel's letter for the state of a process: `R` running, `S` asleep, `D` waiting for a disk, `T`
    stopped, `t` stopped by a debugger, `Z` ended but not yet reaped. None if there is no such process, or no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0].decode()  # the name before it may hold anything
    except (OSError, IndexError):
        return None


def can_write(link: Connection) -> bool:
    """Tell whether a short message can be sent without blocking: the other side may be stopped, and the pipe full."""
    poll = select.poll()
    poll.register(link, select.POLLOUT)
    return any(events & select.POLLOUT for _, events in poll.poll(0))


# -- within a process that has a parent --------------------------------------------------------------------------------


def end_with_forking_thread() -> None:
    """Have the kernel kill this process when the thread that forked it ends, even while this process is stopped or
    waits for a lock in machine code. Where the system cannot, the process still ends at its next check.

    Only for a fork by the main thread, which lives as long as its process. Call `is_orphan` afterwards.
    """
    with suppress(OSError):
        system_calls.set_parent_death_signal(signal.SIGKILL)


def close_all_but(kept: Sequence[int]) -> None:
    """Close all descriptors but the standard streams and `kept`: a fork must not keep open what the program closes."""
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
    """Tell whether the parent, given by its process number, has ended. This costs a system call."""
    return os.getppid() != parent


def end_if_orphan(parent: int, link: Connection | None = None) -> None:
    """Exit at once, without exit handlers, if the parent has ended or the other end of `link` is closed."""
    poll = select.poll()
    if link is not None:
        poll.register(link, 0)  # only the hang-up
    if is_orphan(parent) or poll.poll(0):
        os._exit(_ORPHANED)


def messages_of(pipe: Connection, parent: int) -> Iterator[Any]:
    """Return an iterator of the parent's messages, which ends when the parent does, or closes its end of the pipe."""
    watched = open_pidfd(parent)
    awaited: list[Any] = [pipe] if watched is None else [pipe, watched]

    def messages() -> Iterator[Any]:
        with suppress(EOFError, ConnectionResetError):
            while not is_orphan(parent) and pipe in wait(awaited):
                yield pipe.recv()

    return messages()


@contextmanager
def ended_with_parent(parent: int, link: socket.socket | Connection | None = None) -> Iterator[None]:
    """Exit at once, within this context, when the parent ends or the other end of `link` is closed.

    Use it around long work that cannot check by itself (a compilation, perft), and that releases the GIL: a thread
    waits meanwhile. Where the system grants no thread, nothing is watched. parent: its process number.
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
        end_if_orphan(parent)  # the parent may have ended before the descriptor was opened
        while finished not in (ready := dict(poll.poll(_CHECK_MS if watched is None else None))):
            if ready:
                os._exit(_ORPHANED)
            end_if_orphan(parent)

    thread = threading.Thread(target=wait, daemon=True)
    try:
        with suppress(RuntimeError):  # the system refuses a thread (ulimit -u)
            thread.start()
        yield
    finally:
        os.write(finish, b".")
        if thread.ident is not None:
            thread.join()
        for descriptor in (finished, finish, watched):
            if descriptor is not None:
                os.close(descriptor)


# -- signals to the whole group ----------------------------------------------------------------------------------------


@contextmanager
def signals_blocked(numbers: Collection[signal.Signals]) -> Iterator[None]:
    """Block signals within the context. A process started meanwhile inherits this, and can then ignore them."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def ignore_blocked(numbers: Collection[signal.Signals]) -> None:
    """Ignore these signals in a process that was started with them blocked; drop those that have arrived."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


# -- forks of this process ---------------------------------------------------------------------------------------------


def fork_process(target: str, descriptors: Sequence[int], pipe: int) -> int:
    """Fork a process that calls a function (`module:name`) with the pipe, this process's number and the descriptors.

    The new process keeps only these descriptors, and no shared memory; it ends when the function returns or the pipe
    is closed. Only for a process with a single Python thread. Raises OSError when the system refuses.
    """
    module, _, name = target.partition(":")
    function: Callable[..., None] = getattr(importlib.import_module(module), name)

    def run(parent: int) -> None:
        gc.freeze()
        gc.enable()  # the process lives long and makes garbage
        function(Connection(pipe), parent, *descriptors)

    return fork(run, [pipe, *descriptors])


def fork(run: Callable[[int], None], kept: Sequence[int], blocks: Sequence[int] = ()) -> int:
    """Fork this process and return the new number; the fork calls `run` with this process's number and ends.

    kept: descriptors that stay open besides the standard streams; blocks: descriptors of memory that stays mapped. The
    fork runs no exit handlers.
    """
    parent = os.getpid()
    is_bound = threading.get_native_id() == parent  # the main thread ends only with its process: tie the fork to it
    with signals_blocked(GROUP_SIGNALS):
        with warnings.catch_warnings():
            # Python 3.12 warns of any thread; the remaining ones are numpy's, which survive a fork
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid != 0:
            return pid
        status = 1
        try:
            gc.disable()  # the program's objects must not be finalized here: that could remove files
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
            with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the program has ended
                run(parent)
            status = 0
        except BaseException:
            if sys.__stderr__ is not None:
                traceback.print_exc(file=sys.__stderr__)
                sys.__stderr__.flush()
        finally:
            os._exit(status)
