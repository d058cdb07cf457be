"""The compiler's processes: all the work is done, and none of them is left."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from psearch.core.compiler.processes import in_processes


def children() -> list[str]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [pid for pid in text.split() if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"]


@pytest.fixture(autouse=True)
def _nothing_is_left():
    before = children()
    yield
    assert children() == before


def test_every_item_is_done_once():
    items = [str(number) for number in range(200)]
    assert sorted(in_processes(str.title, items)) == sorted(items)


def test_one_item_needs_no_process():
    assert list(in_processes(lambda item: f"{item} {os.getpid()}", ["a"])) == [f"a {os.getpid()}"]
    assert list(in_processes(str.upper, [])) == []


def two_cores() -> bool:
    return len(os.sched_getaffinity(0)) > 1


@pytest.mark.skipif(not two_cores(), reason="nothing is forked on one core")
def test_a_failure_is_told_with_its_place():
    def fail(item: str) -> str:
        if item == "17":
            raise ValueError("no such kernel")
        return item

    with pytest.raises(RuntimeError, match=r"in fail(.|\n)*no such kernel"):
        list(in_processes(fail, [str(number) for number in range(50)]))


@pytest.mark.skipif(not two_cores(), reason="nothing is forked on one core")
def test_a_process_that_is_killed_hangs_nobody():
    def die(item: str) -> str:
        if item == "3":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return item

    with pytest.raises(RuntimeError, match="killed"):
        list(in_processes(die, [str(number) for number in range(100)]))


@pytest.mark.skipif(not two_cores(), reason="nothing is forked on one core")
def test_whoever_stops_listening_leaves_nothing():
    results = in_processes(lambda item: time.sleep(0.01) or item, [str(number) for number in range(100)])
    next(results)
    results.close()


@pytest.mark.skipif(not two_cores(), reason="nothing is forked on one core")
def test_ignored_signals_are_not_inherited():
    """A worker ignores SIGTERM, and may be the one that compiles."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        handlers = set(in_processes(lambda item: str(signal.getsignal(signal.SIGTERM)), ["a", "b", "c"]))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert handlers == {str(signal.SIG_DFL)}
