"""A wait is ended from elsewhere, once for any number of calls."""

from __future__ import annotations

import select
import threading

from psearch.processes.wake import Wake


def test_set_and_clear() -> None:
    wake = Wake()
    for calls in (1, 3, 100_000):  # more than a pipe holds
        assert select.select([wake], [], [], 0)[0] == []
        for _ in range(calls):
            wake.set()
        assert select.select([wake], [], [], 0)[0] == [wake]
        wake.clear()
    assert select.select([wake], [], [], 0)[0] == []
    wake.close()


def test_another_thread_ends_a_wait() -> None:
    wake = Wake()
    poll = select.epoll()
    poll.register(wake, select.EPOLLIN)
    timer = threading.Timer(0.05, wake.set)
    timer.start()
    assert poll.poll(30) != []
    timer.join()
    poll.close()
    wake.close()
