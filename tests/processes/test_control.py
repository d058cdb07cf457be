"""Steering without a search, and ending a wait from elsewhere."""

from __future__ import annotations

import select
import signal
import threading

import pytest

from psearch.processes.control import SearchControl, Wake


def test_only_an_attached_search_is_woken() -> None:
    control = SearchControl()
    woken: list[str] = []
    control.ponderhit()
    control.attach(lambda: woken.append("first"))
    assert woken == [] and control.take_ponderhit() and not control.take_ponderhit()
    control.stop()
    control.attach(lambda: woken.append("second"))
    control.ponderhit()
    control.attach(None)
    control.stop()
    assert woken == ["first", "second"] and control.is_stopped


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
def test_a_signal_may_stop_in_the_midst_of_any_call() -> None:
    """Its handler runs in the thread that holds the lock."""
    control = SearchControl()
    woken: list[int] = []

    def wake() -> None:
        woken.append(len(woken))
        if len(woken) == 1:
            signal.raise_signal(signal.SIGUSR1)

    former = signal.signal(signal.SIGUSR1, lambda number, frame: control.stop())
    try:
        control.attach(wake)
        control.ponderhit()
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert control.is_stopped and woken == [0, 1]


def test_a_wake_is_set_once_by_any_number_of_calls() -> None:
    wake = Wake()
    for calls in (1, 3, 100_000):  # more than a pipe holds
        assert select.select([wake], [], [], 0)[0] == []
        for _ in range(calls):
            wake.set()
        assert select.select([wake], [], [], 0)[0] == [wake]
        wake.clear()
    timer = threading.Timer(0.05, wake.set)
    timer.start()
    assert select.select([wake], [], [], 30)[0] == [wake]
    timer.join()
    wake.close()
