"""How long a process lives: a descriptor that tells when another has ended, and no life beyond that of the parent."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from psearch.arena import system_calls

GONE = 255
"""Exit code of a worker whose real one cannot be known any more: another thread reaped it, the answer that held it was
never read, or the fork server is gone."""
_ORPHANED = 1
_CHECK_MS = 200
"""Where the system has no pidfds."""
_STDERR = 2
_MOST_DESCRIPTORS = 1 << 16
"""Looked at where there is no /proc."""


def open_pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends; None where the system has none (Linux before
    5.3)."""
    try:
        return system_calls.pidfd_open(pid)
    except OSError:
        return None


def outlives_its_forks() -> bool:
    """Tell whether this thread ends only with the process, so that a fork may be made to end with the thread."""
    return threading.get_native_id() == os.getpid()


def end_with_forking_thread() -> None:
    """Have the kernel kill this process when the thread that forked it ends, also while it is stopped, or waits for a
    lock in machine code. A wish only: where that cannot be had it ends when it looks.

    For a fork of the thread that lives as long as its process; who calls this asks `is_orphan` afterwards.
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
    if is_orphan(parent) or (link is not None and _has_hung_up(link)):
        os._exit(_ORPHANED)


def can_write(link: Connection) -> bool:
    """Tell whether a short message goes out without waiting: the other side may be stopped, and have read none for
    long."""
    poll = select.poll()
    poll.register(link, select.POLLOUT)
    return any(events & select.POLLOUT for _, events in poll.poll(0))


def _has_hung_up(link: Connection) -> bool:
    poll = select.poll()
    poll.register(link, 0)  # only the hang-up
    return bool(poll.poll(0))


def process_state(pid: int) -> str | None:
    """Return the state of a process as the kernel names it: `R` running, `S` asleep, `D` waiting for a disk, `T`
    stopped, `t` stopped by a debugger, `Z` ended but not yet waited for. None for a number without a process, and
    without /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0].decode()  # the name before it may hold anything
    except (OSError, IndexError):
        return None


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
    timeout_ms = _CHECK_MS if watched is None else None

    def wait() -> None:
        end_if_orphan(parent)  # before the descriptor was opened, perhaps
        while finished not in (ready := dict(poll.poll(timeout_ms))):
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
