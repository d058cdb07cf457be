"""Tasks shared out to processes: answers, errors, deaths, and that no process outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from programs import PIPES
from timing import wait_for_ends

from psearch.processes.task_processes import share_out
from psearch.results import PsearchError, WorkerDied

SLEEP_S = 500.0
TASKS = """
import os, time

def say(*words):
    # one write a line: the fork server has no stdout for its processes
    with open(os.environ["SAID"], "ab", buffering=0) as file:
        file.write((" ".join(map(str, words)) + "\\n").encode())

def make():
    say("begun", os.getpid())
    return work

def work(task):
    if task == "fail":
        raise ValueError("of the task")
    time.sleep(task)
    return task
"""
PROGRAM = """
import sys
from program_tasks import make, say
from psearch.processes import task_processes
from psearch.processes import starting

starting._usual_method = lambda: sys.argv[1]
tasks = [task if task == "fail" else float(task) for task in sys.argv[2:]]
for place, answer in task_processes.share_out(make, tasks, 2):
    say("done", place)
"""
METHODS = pytest.mark.parametrize("method", ["fork", "forkserver"])


@dataclass
class Run:
    process: subprocess.Popen[str]
    pids: list[int]
    """Process ids of its two processes."""


Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Begins a run, and waits until its processes have begun and so many tasks are done."""
    path, said_in = tmp_path / "program.py", tmp_path / "said"
    path.write_text(PROGRAM)
    (tmp_path / "program_tasks.py").write_text(TASKS)
    started: list[subprocess.Popen[str]] = []

    def run(*words: str, done: int = 0) -> Run:
        process = subprocess.Popen(
            [sys.executable, str(path), *words],
            start_new_session=True,
            env={**os.environ, "SAID": str(said_in)},
            **PIPES,
        )
        started.append(process)
        begun: list[int] = []
        while len(begun) < 2 or said_in.read_text().count("done") < done:
            assert process.poll() is None or len(begun) == 2
            time.sleep(0.02)
            lines = said_in.read_text().splitlines() if said_in.exists() else []
            begun = [int(line.split()[1]) for line in lines if line.startswith("begun")]
        return Run(process, begun)

    yield run
    for process in started:
        with process:
            process.kill()


def square(number: int) -> tuple[int, int]:
    return number**2, os.getpid()


def make_square() -> Callable[[int], tuple[int, int]]:
    return square


def fail(number: int) -> int:
    if number == 2:
        raise PsearchError("number 2")
    time.sleep(number and SLEEP_S)
    return number


def make_fail() -> Callable[[int], int]:
    return fail


def kill(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def make_kill() -> Callable[[int], None]:
    return kill


def test_answers_come_with_their_places() -> None:
    found = dict(share_out(make_square, range(20), 3))
    assert {place: answer for place, (answer, _) in found.items()} == {number: number**2 for number in range(20)}
    pids = {pid for _, pid in found.values()}
    assert os.getpid() not in pids
    wait_for_ends(list(pids), 0.0)


def test_what_a_task_raises_is_raised_here_at_once() -> None:
    begun = time.monotonic()
    with pytest.raises(PsearchError, match=r"^number 2$"):
        list(share_out(make_fail, [0, 1, 2, 0], 2))
    assert time.monotonic() - begun < SLEEP_S / 2


def test_a_dead_process_is_noticed() -> None:
    with pytest.raises(WorkerDied, match="a process of the study ended"):
        list(share_out(make_kill, range(5), 2))


def test_who_stops_asking_leaves_no_process() -> None:
    answers = share_out(make_fail, [0, 1, 1], 2)
    next(answers)
    begun = time.monotonic()
    answers.close()
    assert time.monotonic() - begun < SLEEP_S / 2


@METHODS
def test_no_process_outlives_a_killed_parent(start: Start, method: str) -> None:
    """One of them is at work, the other waits for more."""
    run = start(method, "0", f"{SLEEP_S}", done=1)
    run.process.kill()
    wait_for_ends(run.pids)


@METHODS
def test_ctrl_c_ends_all(start: Start, method: str) -> None:
    """The terminal sends it to every process of the group; only the parent reports it."""
    run = start(method, "0", f"{SLEEP_S}", f"{SLEEP_S}", f"{SLEEP_S}", done=1)
    os.killpg(run.process.pid, signal.SIGINT)
    _, errors = run.process.communicate(timeout=120)
    assert errors.count("KeyboardInterrupt") == 1 and errors.endswith("KeyboardInterrupt\n")
    wait_for_ends(run.pids, 0.0)


@METHODS
def test_an_error_is_reported_once(start: Start, method: str) -> None:
    run = start(method, f"{SLEEP_S}", "0", "fail", "0")
    _, errors = run.process.communicate(timeout=120)
    assert errors.splitlines()[-1] == "ValueError: of the task"
    assert "in work" in errors and "Exception in thread" not in errors
    wait_for_ends(run.pids, 0.0)


@METHODS
@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_process_ends_the_others(start: Start, method: str, number: int) -> None:
    """The one that is at work, or the one that waits for more."""
    run = start(method, "0", f"{SLEEP_S}", done=1)
    os.kill(run.pids[number], signal.SIGKILL)
    _, errors = run.process.communicate(timeout=120)
    assert errors.splitlines()[-1].startswith("psearch.results.WorkerDied: a process of the study ended")
    wait_for_ends(run.pids, 0.0)
