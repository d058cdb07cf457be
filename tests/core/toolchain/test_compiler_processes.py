"""The compiler's processes: all the work is done, and none of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from psearch.core.toolchain.compiler import compiler_processes as processes
from psearch.core.toolchain.compiler.compiler_processes import ProcessKilled, WorkFailed, in_processes


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

    with pytest.raises(WorkFailed, match="ValueError: no such kernel") as raised:
        list(in_processes(fail, [str(number) for number in range(50)]))
    assert "in fail" in raised.value.words


@pytest.mark.skipif(not two_cores(), reason="nothing is forked on one core")
def test_a_process_that_is_killed_hangs_nobody():
    def die(item: str) -> str:
        if item == "3":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return item

    with pytest.raises(ProcessKilled, match="signal 9"):
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


@pytest.mark.skipif(not two_cores(), reason="nothing is forked on one core")
@pytest.mark.parametrize("allowed", [0, 1])
def test_where_no_process_can_be_had_the_work_is_done_with_fewer(monkeypatch, allowed):
    """As under a limit of processes, or of descriptors."""
    start = processes.multiprocess.get_context("fork").Process.start
    started = []

    def start_few(process):
        if len(started) == allowed:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(process)
        start(process)

    monkeypatch.setattr(processes.multiprocess.get_context("fork").Process, "start", start_few)
    done = list(in_processes(lambda item: (item, os.getpid()), [str(number) for number in range(20)]))
    assert sorted(item for item, _ in done) == sorted(str(number) for number in range(20))
    assert {pid == os.getpid() for _, pid in done} == {not allowed}


@pytest.mark.skipif(not two_cores(), reason="nothing is forked on one core")
def test_nothing_is_written_anywhere(monkeypatch):
    """Semaphores and shared memory need /dev/shm, or a folder for temporary files."""
    for name in ("heap.Arena", "synchronize.SemLock"):
        monkeypatch.setattr(f"multiprocess.{name}.__init__", lambda *arguments: pytest.fail("it needs a place"))
    assert sorted(in_processes(str.upper, ["a", "b", "c"])) == ["A", "B", "C"]


def test_they_end_with_the_one_that_started_them(tmp_path):
    """Also when it is killed."""
    program = """
import os, time
from psearch.core.toolchain.compiler.compiler_processes import in_processes
def work(item):
    with open(item, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
list(in_processes(work, [f"{folder}/{number}" for number in range(2)]))
"""
    started = subprocess.Popen([sys.executable, "-c", f"folder = {str(tmp_path)!r}\n{program}"])
    try:
        wait_until(lambda: len([path for path in tmp_path.iterdir() if path.read_text()]) == 2 or not two_cores())
    finally:
        started.kill()
        started.wait()
    pids = [int(path.read_text()) for path in tmp_path.iterdir()]
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
