"""Tests on machines of any speed that do other work as well: an event is waited for, not a time. Where a time is what
is promised, it is measured again when it was too long, for other programs may have the cores for a second; what is
late by itself is late each time."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from psearch.processes.lifetime import process_state

LONG_S = 60.0
"""for what takes milliseconds"""


def wait_until(is_so: Callable[[], object], seconds: float = LONG_S) -> None:
    """Look again and again."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be asked how it ended."""
    return process_state(pid) in (None, "Z")


def wait_for_ends(pids: Sequence[int], seconds: float = LONG_S) -> None:
    """A process that is killed may take a moment to end."""
    wait_until(lambda: all(map(has_ended, pids)), seconds)


def is_crowded() -> bool:
    """Tell whether more programs want to run than there are cores: then a time says little of what is tested."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


def least(measure: Callable[[], float], enough: float, tries: int = 3) -> float:
    """The least of some measurements, of no more than it takes to get below `enough`; of some more in a crowd."""
    found = measure()
    count = 1
    while found >= enough and count < (5 * tries if is_crowded() else tries):
        found = min(found, measure())
        count += 1
    return found


def usual(times: Sequence[float]) -> float:
    """The median of some measurements that cannot be made again; the least of them in a crowd."""
    return min(times) if is_crowded() else statistics.median(times)


def last_bound(search: Callable[[], str], tries: int = 5) -> str:
    """Return the last depth's bound of a search that is stopped. Searches again if it stopped between two depths
    ("exact")."""
    for _ in range(tries - 1):
        if (bound := search()) != "exact":
            return bound
    return search()


def seconds_of(function: Callable[[], object]) -> float:
    """Return the duration of a call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


class When:
    """Does something, once, in a thread of its own, as soon as it is told to by `now`. A context manager.

    action: what to do; done_at: when it was done, on `time.monotonic`.
    """

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self._go = threading.Event()
        self._is_over = False
        self.done_at: float | None = None
        self._thread = threading.Thread(target=self._run)

    def now(self, *_: object) -> None:
        """May be called again and again, by callbacks of any kind."""
        self._go.set()

    def _run(self) -> None:
        self._go.wait()
        if not self._is_over:
            self._action()
            self.done_at = time.monotonic()

    def __enter__(self) -> When:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = not self._go.is_set()
        self._go.set()
        self._thread.join()


def assert_no_processor_time(pids: Sequence[int]) -> None:
    """Nothing for a second, as soon as what they were at is finished."""
    before: list[int] = []
    deadline = time.monotonic() + LONG_S
    while before != (before := _ticks(pids)):
        assert time.monotonic() < deadline, "never idle"
        time.sleep(0.3)
    time.sleep(1.0)

    assert _ticks(pids) == before


def _ticks(pids: Sequence[int]) -> list[int]:
    """Return the processor ticks of each process."""
    found = []
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found.append(int(fields[11]) + int(fields[12]))
    return found
