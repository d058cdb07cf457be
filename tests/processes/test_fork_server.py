"""A fork server that is stopped, short of something, or not to be had; and what it inherits."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import chess
import pytest
from limits import address_space, lowered, open_files
from timing import wait_for_ends

from psearch.arena.blocks import MIB
from psearch.processes import child
from psearch.processes.child import ChildProcess
from psearch.processes.fork_server import close_server, fork_server
from psearch.processes.lifetime import GONE, process_state
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError

SLACK_S = 6.0
"""Seconds that a slow and loaded machine may take, which may start another fork server; a wrong wait takes 10 s."""


@pytest.fixture
def server() -> Iterator[ChildProcess]:
    """The fork server's process; goes on, and ends, after the test."""
    close_server()
    with Supervisor(1, 1, start_method="forkserver"):
        process = fork_server().process
    yield process
    if process.is_alive():
        os.kill(process.pid, signal.SIGCONT)
    close_server()


def stop(process: ChildProcess) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    while process_state(process.pid) != "T":
        time.sleep(0.01)


def find_move(engine: Supervisor) -> bool:
    return engine.search(SearchRequest(chess.Board(), Limits(depth=3))).bestmove is not None


def test_one_that_is_stopped_is_replaced(server: ChildProcess) -> None:
    with Supervisor(2, 1, start_method="forkserver") as first:
        pids = [worker.pid for worker in first.pool.workers]
        stop(server)
        start = time.monotonic()
        replacement = fork_server()
        assert time.monotonic() - start < 1 + SLACK_S
        assert replacement.process.pid != server.pid
        with Supervisor(1, 1, start_method="forkserver") as second:
            assert find_move(second)
        wait_for_ends(pids)  # with their fork server
        assert find_move(first), "with other workers"


def test_one_that_is_stopped_in_a_request_is_given_up(server: ChildProcess) -> None:
    client = fork_server()
    stop(server)
    start = time.monotonic()
    with pytest.raises(PsearchError, match="the process that starts workers has ended"):
        client.fork("os:getpid", (), 0)
    assert time.monotonic() - start < 1 + SLACK_S
    assert server.exitcode == -signal.SIGKILL
    with Supervisor(1, 1, start_method="forkserver") as engine:
        assert find_move(engine)


def test_one_that_goes_on_in_time_is_kept(server: ChildProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal stops the whole group, and the program may continue first."""
    looks = iter("T")
    monkeypatch.setattr(child, "process_state", lambda pid: next(looks, "S"))
    assert fork_server().process.pid == server.pid
    assert next(looks, None) is None


def test_the_death_of_a_worker_is_noticed_while_it_is_stopped(server: ChildProcess) -> None:
    noticed: list[float] = []
    with Supervisor(8, 1, start_method="forkserver") as engine:
        workers = engine.pool.workers
        stop(server)
        start = time.monotonic()
        workers[3].kill()
        request = SearchRequest(
            chess.Board(), Limits(movetime_ms=500), on_note=lambda note: noticed.append(time.monotonic())
        )
        notes = engine.search(request).notes
        assert notes != [] and f"worker 3 exited with code {GONE}" in notes[0], "nobody tells how"
        assert noticed[0] - start < 1 + SLACK_S
        assert server.exitcode == -signal.SIGKILL
        assert find_move(engine)


def test_workers_that_come_at_once(server: ChildProcess) -> None:
    assert fork_server().is_ready()
    stop(server)
    start = time.monotonic()
    assert not fork_server().is_ready()
    assert time.monotonic() - start < SLACK_S
    server.kill()
    server.join(10)
    start = time.monotonic()
    assert not fork_server().is_ready(), "it is only just starting"
    assert time.monotonic() - start < SLACK_S
    deadline = start + 100

    while not fork_server().is_ready():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with Supervisor(1, 1, start_method="forkserver") as engine:
        assert find_move(engine)


def test_how_a_worker_ended_is_not_waited_for(server: ChildProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells that the fork server is stopped where there is no /proc."""
    with Supervisor(8, 1, start_method="forkserver") as engine:
        monkeypatch.setattr(child, "process_state", lambda pid: None)
        stop(server)
        start = time.monotonic()
        engine.pool.kill()
        for worker in engine.pool.workers:
            worker.join(10)
        assert [worker.exitcode for worker in engine.pool.workers] == [GONE] * 8
        assert time.monotonic() - start < SLACK_S
        os.kill(server.pid, signal.SIGCONT)
    with Supervisor(1, 1, start_method="forkserver") as engine:
        (worker,) = engine.pool.workers
        worker.kill()
        worker.join(10)
        assert worker.exitcode == -signal.SIGKILL, "it is asked again"


def test_closing_while_it_is_stopped(server: ChildProcess) -> None:
    engine = Supervisor(2, 1, start_method="forkserver")
    stop(server)
    start = time.monotonic()
    engine.close()
    close_server()
    assert time.monotonic() - start < SLACK_S
    assert server.exitcode == -signal.SIGKILL


def test_workers_end_with_the_program_while_it_is_stopped() -> None:
    program = """
    import chess
    from psearch.processes.fork_server import fork_server
    from psearch.processes.request import SearchRequest
    from psearch.processes.supervisor import Supervisor
    from psearch.results import Limits
    engine = Supervisor(2, 1, start_method="forkserver")
    print(fork_server().process.pid, *[worker.pid for worker in engine.pool.workers], flush=True)
    engine.search(SearchRequest(chess.Board(), Limits(movetime_ms=100_000)))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        server, *workers = (int(word) for word in parent.stdout.readline().split())
        time.sleep(0.2)
        os.kill(server, signal.SIGSTOP)
        try:
            parent.kill()
            wait_for_ends(workers)
        finally:
            os.kill(server, signal.SIGCONT)
        wait_for_ends([server])


def test_memory_that_it_does_not_get(server: ChildProcess) -> None:
    before = open_files(server.pid)
    for _ in range(3):
        with (
            lowered(resource.RLIMIT_AS, address_space(server.pid) + 20 * MIB, server.pid),
            pytest.raises(PsearchError, match=r"cannot take 128 MiB of shared memory: .* \(see ulimit -v"),
        ):
            Supervisor(1, 128, start_method="forkserver")
    assert open_files(server.pid) == before, "the memory of a failed start must not stay"
    with Supervisor(1, 128, start_method="forkserver") as engine:
        assert find_move(engine)
    assert fork_server().process.pid == server.pid


def test_descriptors_that_it_does_not_get(server: ChildProcess) -> None:
    before = open_files(server.pid)
    for more in range(3):  # a pipe, the arena and the table come with a worker
        with (
            lowered(resource.RLIMIT_NOFILE, before + more, server.pid),
            pytest.raises(PsearchError, match=r"ulimit -n"),
        ):
            Supervisor(1, 1, start_method="forkserver")
        assert open_files(server.pid) == before
    with Supervisor(1, 1, start_method="forkserver") as engine:
        assert find_move(engine)
    assert fork_server().process.pid == server.pid


THREADED = """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
import psearch
from psearch.processes import fork_server
print(psearch.search("startpos", threads=2, depth=3).bestmove is not None)
print(open(f"/proc/{fork_server.fork_server().process.pid}/cmdline").read().split("\\0")[1])
"""


def test_an_isolated_program_stays_isolated(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "sitecustomize.py").write_text(f"open({str(ran)!r}, 'a').write('x')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-I", "-c", THREADED]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100)
    assert (done.stdout, done.stderr) == ("True\n-I\n", "")
    assert not ran.exists()


@pytest.mark.parametrize("executable", ["/usr/sbin/uwsgi", "", None])
def test_a_program_that_is_no_interpreter_is_not_started(
    monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    close_server()
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(PsearchError, match=r"a program with threads needs a Python interpreter") as refused:
        Supervisor(1, 1, start_method="forkserver")
    assert "\n" not in str(refused.value) and "start_method='fork'" in str(refused.value)
    with Supervisor(1, 1, start_method="fork") as engine:
        assert find_move(engine)


def test_a_frozen_program(monkeypatch: pytest.MonkeyPatch) -> None:
    close_server()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(PsearchError, match="needs a Python interpreter"):
        fork_server()


def test_a_program_that_starts_itself_does_so_once(tmp_path: Path) -> None:
    """The executable looks like an interpreter, and runs the program whatever its arguments are."""
    script = tmp_path / "happy"
    program = f"""
    #!{sys.executable}
    import sys, threading, time
    sys.executable = __file__
    open({str(tmp_path / "starts")!r}, "a").write("x")
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    import psearch
    try:
        psearch.search("startpos", threads=2, depth=3)
    except psearch.PsearchError as error:
        print(error)
    """
    script.write_text(textwrap.dedent(program).lstrip())
    script.chmod(0o755)
    done = subprocess.run([str(script)], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("the process that starts workers has ended\n", "")
    assert (tmp_path / "starts").read_text() == "xx"
