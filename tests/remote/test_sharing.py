"""Tasks on a cluster that is none: the driver and its process are real, Ray is not."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import cluster_tasks
import pytest
from timing import wait_for_ends, wait_until

import psearch
from psearch.processes.lifetime import open_pidfd
from psearch.remote import cluster_processes
from psearch.remote.cluster_processes import ClusterProcesses, cluster_address, share_out_on
from psearch.results import PsearchError, WorkerDied


def _children() -> set[str]:
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


def test_every_task_is_answered_once(fake_ray: Path) -> None:
    before = _children()
    answers = list(share_out_on("auto", cluster_tasks.make, range(100)))
    assert sorted(answers) == [(place, place * place) for place in range(100)]
    assert _children() == before


def test_no_tasks(fake_ray: Path) -> None:
    assert list(share_out_on("auto", cluster_tasks.make, [])) == []


def test_what_was_lost_is_done_again(fake_ray: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    tasks = [1, ("die", str(tmp_path / "done")), 2, 3]
    answers = share_out_on("auto", cluster_tasks.make, tasks, on_note=notes.append)
    assert sorted(answers) == [(0, 1), (1, 0), (2, 4), (3, 9)]
    assert len(notes) == 1 and notes[0].startswith("a process on node one")


def test_a_task_that_nobody_survives(fake_ray: Path) -> None:
    with pytest.raises(WorkerDied, match="task 2 was lost 3 times with its process"):
        list(share_out_on("auto", cluster_tasks.make, [1, "die", 3]))


def test_what_a_task_raises_is_raised(fake_ray: Path) -> None:
    with pytest.raises(ValueError, match="I do not sing"):
        list(share_out_on("auto", cluster_tasks.make, [1, "sing"]))


def test_nodes_come_and_go(fake_ray: Path) -> None:
    notes: list[str] = []
    answers = share_out_on("auto", cluster_tasks.make, range(300), on_note=notes.append)
    found = []
    for number, answer in enumerate(answers):
        if number == 20:
            fake_ray.write_text("two 2\n")
        found.append(answer)
    assert sorted(found) == [(place, place * place) for place in range(300)]
    assert notes == ["node one (127.0.0.1) is gone"]


def test_a_node_with_another_psearch_is_named_and_the_others_go_on(fake_ray: Path) -> None:
    fake_ray.write_text("one 1\nother-version 1\n")
    notes: list[str] = []
    assert len(list(share_out_on("auto", cluster_tasks.make, range(20), on_note=notes.append))) == 20
    reason = f"psearch {psearch.__version__} is installed there, here 0.0.1"
    assert notes == [f"node other-version (127.0.0.1) cannot be used: {reason}"]


def test_tasks_are_read_as_they_are_given(fake_ray: Path) -> None:
    read = 0

    def tasks() -> Iterator[int]:
        nonlocal read
        while read < 10_000:
            read += 1
            yield read

    answers = share_out_on("auto", cluster_tasks.make, tasks())
    for _ in range(10):
        next(answers)
    assert read <= 14
    answers.close()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("InvalidAuthToken", "needs another token: set RAY_AUTH_MODE=token"),
        ("Could not find any running Ray instance. Please", "no Ray cluster runs on this machine: `ray start --head`"),
        ("something\nelse", "no Ray cluster is available at auto: something else"),
    ],
)
def test_no_connection(fake_ray: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: str) -> None:
    monkeypatch.setenv("FAKE_RAY_INIT", said)
    with pytest.raises(PsearchError) as caught:
        ClusterProcesses("auto", cluster_tasks.make)
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_a_cluster_that_does_not_answer(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_RAY_INIT", "hang")
    monkeypatch.setattr(cluster_processes, "CONNECT_S", 2.0)
    before = _children()
    with pytest.raises(PsearchError, match="no answer within 2 s"):
        ClusterProcesses("auto", cluster_tasks.make)
    assert _children() == before


def test_a_cluster_that_is_lost_is_left_at_once(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search may be under way: its driver is not waited for, that may be halted."""
    monkeypatch.setattr(cluster_processes, "_SILENCE_S", 3.0)
    monkeypatch.setattr(cluster_processes, "_CLOSE_S", 1000.0)
    with ClusterProcesses("auto", cluster_tasks.make) as cluster:
        os.kill(cluster._driver.pid, signal.SIGSTOP)
        with pytest.raises(PsearchError, match="has stalled for 3 s"):
            while True:
                cluster.give(0, 0, bytes(100_000))  # does not wait for ever when nobody reads it
                cluster.messages(0.1)


def test_what_is_awaited_ends_the_wait(fake_ray: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x")
    with ClusterProcesses("auto", cluster_tasks.make, most=0) as cluster:
        assert cluster.messages(1000.0, reading) == []
    os.close(reading)
    os.close(writing)


def test_files_of_a_cluster_for_one_command(fake_ray: Path) -> None:
    """Ray lets everybody write into its folder: nobody else gets to that, and it is removed."""
    with ClusterProcesses("local", cluster_tasks.make) as cluster:
        folder = cluster._folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {path.name for path in folder.iterdir()} == {"ray", "stderr"}
        assert len(str(folder)) < 30, "sockets have long names below it"
    assert not folder.exists()


_ISOLATED = """
import subprocess, sys
sys.path[:0] = {path!r}
subprocess.Popen = lambda words, **more: sys.exit(" ".join(words[1:-1]))
from psearch.remote.cluster_processes import ClusterProcesses
ClusterProcesses("auto", print)
"""


def test_an_isolated_program_has_an_isolated_driver(fake_ray: Path) -> None:
    program = _ISOLATED.format(path=[path for path in sys.path if path])
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True)
    assert done.stderr == "-I -P -m psearch.remote.ray_driver\n"


def test_a_frozen_program_has_no_driver(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(PsearchError, match="several machines need a Python interpreter"):
        ClusterProcesses("auto", cluster_tasks.make)


def test_what_ray_prints_is_not_seen(
    fake_ray: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_RAY_INIT", "print")
    assert len(list(share_out_on("auto", cluster_tasks.make, range(3)))) == 3
    assert capfd.readouterr() == ("", "")


def test_the_end_of_the_driver_is_noticed(fake_ray: Path) -> None:
    with ClusterProcesses("auto", cluster_tasks.make) as cluster:
        threading.Timer(0.5, cluster._driver.kill).start()
        with pytest.raises(PsearchError, match="the connection to the cluster is lost"):
            while True:
                cluster.messages(1.0)


_PROGRAM = """
import cluster_tasks, time
from psearch.remote.cluster_processes import ClusterProcesses
with ClusterProcesses("auto", cluster_tasks.make) as cluster:
    print(cluster._driver.pid, flush=True)
    time.sleep(100)
"""


def test_the_driver_ends_with_the_program(fake_ray: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    with program, program.stdout:
        driver = int(program.stdout.readline())
        watch = open_pidfd(driver)
        assert watch is not None
        program.kill()
    try:
        assert select.select([watch], [], [], 60.0)[0]
    finally:
        os.close(watch)


def test_a_driver_that_connects_ends_with_its_program(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_RAY_INIT", "hang")
    program = subprocess.Popen([sys.executable, "-c", _PROGRAM], stderr=subprocess.DEVNULL)
    try:
        wait_until(Path(f"{fake_ray}.hangs").exists)
        (driver,) = _children_of(program.pid)
    finally:
        program.kill()
        program.wait()
    wait_for_ends([driver])


def _children_of(pid: int) -> list[int]:
    return [
        int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()
    ]


@pytest.mark.parametrize("text", ["", "ray://", "host", "host:0", "host:99999", "a b:1", "ray://h:1/x", "http://h:1"])
def test_addresses_that_are_none(fake_ray: Path, text: str) -> None:
    with pytest.raises(PsearchError, match=r"neither auto nor local, nor HOST:PORT or ray://HOST\[:PORT\]"):
        cluster_address(text)


def test_addresses(fake_ray: Path) -> None:
    pairs = {
        "auto": "auto",
        "local": "local",
        "head:6379": "head:6379",
        "[::1]:6379": "[::1]:6379",
        "ray://head": "ray://head:10001",
        "ray://[::1]": "ray://[::1]:10001",
    }
    assert {text: cluster_address(text) for text in pairs} == pairs


@pytest.mark.parametrize("version", ["2.9.3", "1.13.0", "0.8"])
def test_a_ray_that_is_too_old(fake_ray: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("psearch.remote.cluster_processes.metadata.version", lambda name: version)
    with pytest.raises(PsearchError, match=f"Ray {version} is too old, 2.60 or later is needed: pip install"):
        cluster_address("auto")
