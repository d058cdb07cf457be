"""Signals that are for the program, not for the processes that it starts."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager

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
