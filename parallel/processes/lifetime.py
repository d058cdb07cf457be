"""How long a process lives: a descriptor that tells when another has ended, and no life beyond that of the parent."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

GONE = 255
"""Exit code of a worker whose real one cannot be known any more: another thread reaped it, the answer that held it was
never read, or the fork server is gone."""
_ORPHANED = 1
_CHECK_MS = 200
"""Where the system has no pidfds."""


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has none (Linux before 5.3)."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def is_orphan(parent: int) -> bool:
    """Whether the parent, given by its process number, has ended. Costs a system call."""
    return os.getppid() != parent


def end_if_orphan(parent: int) -> None:
    """Leave at once, without exit handlers, when the parent has ended; for loops that come by often."""
    if is_orphan(parent):
        os._exit(_ORPHANED)


@contextmanager
def ended_with_parent(parent: int, link: socket.socket | None = None) -> Iterator[None]:
    """Within this, the process ends at once when its parent does, or when the other end of `link` is closed.

    For what may take long and does not look (a compilation, perft): a thread waits meanwhile, and is gone afterwards.
    What it interrupts has to let other threads run. parent: its process number.
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
    thread.start()
    try:
        yield
    finally:
        os.write(finish, b".")
        thread.join()
        for descriptor in (finished, finish, watched):
            if descriptor is not None:
                os.close(descriptor)
