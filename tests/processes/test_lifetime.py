"""A worker's inheritance from the process that forked it; it ends with its parent, whatever it is doing."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import chess
import pytest
from limits import open_files, resident_kb
from timing import has_ended, wait_for_ends, wait_until

from psearch.arena import arena as arena_module
from psearch.processes import lifetime
from psearch.processes.fork_server import fork_server
from psearch.processes.lifetime import GROUP_SIGNALS, ended_with_parent, is_orphan, open_pidfd, process_state
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits

PROGRAM = """
import os, sys, time
from psearch.processes import lifetime
if sys.argv[1] == "without pidfd":
    lifetime.open_pidfd = lambda pid: None
parent = os.getpid()
if os.fork() == 0:
    with lifetime.ended_with_parent(parent):
        print(os.getpid(), flush=True)
        time.sleep(600)
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["with pidfd", "without pidfd"])
def test_it_ends_when_the_parent_is_killed(how: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, how], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        time.sleep(0.5)
        assert not has_ended(child)
        parent.kill()
        wait_for_ends([child])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_ends_when_the_other_end_of_the_link_is_closed() -> None:
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ours.close()
        with ended_with_parent(parent, theirs):
            time.sleep(600)
        os._exit(0)
    theirs.close()
    ours.close()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_one_that_begins_as_an_orphan_ends_at_once() -> None:
    child = os.fork()
    if child == 0:
        with ended_with_parent(os.getpid()):  # not its parent's number
            time.sleep(600)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_nothing_is_left_behind() -> None:
    before, threads = open_files(), threading.active_count()
    for _ in range(3):
        with ended_with_parent(os.getppid()):
            assert threading.active_count() == threads + 1
    assert (open_files(), threading.active_count()) == (before, threads)


def test_a_pidfd_tells_of_an_end() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        descriptor = open_pidfd(process.pid)
        if descriptor is None:
            pytest.skip("the system has no pidfds")
        assert select.select([descriptor], [], [], 0) == ([], [], [])
        process.kill()
        assert select.select([descriptor], [], [], 5)[0] == [descriptor]
        os.close(descriptor)


def test_orphans() -> None:
    assert not is_orphan(os.getppid())
    assert is_orphan(os.getpid())
    lifetime.end_if_orphan(os.getppid())


def test_the_state_of_a_process() -> None:
    def becomes(wanted: str) -> None:
        wait_until(lambda: process_state(process.pid) == wanted)

    # a name that looks like the fields behind it
    name = "import ctypes; ctypes.CDLL(None).prctl(15, b') R 1 (', 0, 0, 0); input()"
    with subprocess.Popen([sys.executable, "-c", name], stdin=subprocess.PIPE) as process:
        if process_state(os.getpid()) is None:
            pytest.skip("the system has no /proc")
        assert process_state(os.getpid()) == "R"
        becomes("S")
        process.send_signal(signal.SIGSTOP)
        becomes("T")
        process.send_signal(signal.SIGCONT)
        becomes("S")
        process.kill()
        becomes("Z")
    assert process_state(process.pid) is None


METHODS = ("fork", "forkserver")


def blocks_of(pid: int) -> list[str]:
    """Shared blocks that a process maps, by the numbers of their files."""
    return [line.split()[4] for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "memfd:psearch" in line]


def files_of(pid: int) -> list[str]:
    """Return the files that a process has open besides its standard streams, without the number of each."""
    folder = Path(f"/proc/{pid}/fd")
    return sorted(os.readlink(file).split("[")[0].strip(":") for file in folder.iterdir() if int(file.name) > 2)


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_holds_its_own_memory_and_its_pipe_only(method: str) -> None:
    reader, writer = os.pipe()
    with Supervisor(1, 16, start_method=method) as first, Supervisor(2, 1, start_method=method) as second:
        for engine in (first, second):
            for worker in engine.pool.workers:
                assert len(blocks_of(worker.pid)) == 2
                assert files_of(worker.pid) == ["anon_inode", "socket"], "the parent's pidfd and the pipe"
        assert not set(blocks_of(first.pool.workers[0].pid)) & set(blocks_of(second.pool.workers[0].pid))
        os.close(writer)
        assert os.read(reader, 1) == b"", "no worker keeps a pipe of the program open"
        os.close(reader)
        assert second.search(SearchRequest(chess.Board(), Limits(depth=3))).bestmove is not None


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_has_nothing_of_an_engine_that_is_closed(method: str) -> None:
    """Even if an array of it is still there."""
    with Supervisor(1, 1, start_method="fork") as first:
        kept = first.arena.header
    with Supervisor(1, 1, start_method=method) as second:
        assert len(blocks_of(second.pool.workers[0].pid)) == 2
    del kept


def test_closing_an_engine_frees_its_memory_while_others_live() -> None:
    def shared_kb() -> int:
        return int(Path("/proc/meminfo").read_text().split("Shmem:")[1].split()[0])

    def freed_kb() -> int:
        first = Supervisor(1, 256, start_method="fork")
        first.arena.clear_table()  # on a slow machine not all of its pages are there yet
        with Supervisor(1, 1, start_method="fork") as second:
            before = shared_kb()
            first.close()
            freed = before - shared_kb()
            assert second.search(SearchRequest(chess.Board(), Limits(depth=3))).bestmove is not None
        return freed

    assert any(freed_kb() > 128 << 10 for _ in range(5)), "other programs take and give back such memory, too"


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_rather_than_the_program_when_memory_runs_out(method: str) -> None:
    def score(pid: int | str) -> int:
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())

    with Supervisor(2, 1, start_method=method) as engine:
        assert [score(worker.pid) for worker in engine.pool.workers] == [min(1000, score("self") + 300)] * 2


@pytest.mark.parametrize("method", METHODS)
def test_signals_to_the_whole_group_are_for_the_program(method: str) -> None:
    with Supervisor(2, 1, start_method=method) as engine:
        pids = [worker.pid for worker in engine.pool.workers]
        if method == "forkserver":
            pids.append(fork_server().process.pid)
        for number in GROUP_SIGNALS:
            for pid in pids:
                os.kill(pid, number)
        time.sleep(0.1)
        assert engine.search(SearchRequest(chess.Board(), Limits(depth=3))).bestmove is not None
        assert [process_state(pid) for pid in pids].count("Z") == 0


@pytest.mark.parametrize("method", METHODS)
def test_more_workers_than_cores_take_a_part_of_the_table_each(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fork server counts the cores itself."""
    cores = arena_module.usable_cores()
    monkeypatch.setattr(arena_module, "usable_cores", lambda: cores)
    workers = 4 * cores
    with Supervisor(workers, 32, start_method=method) as engine:
        for worker in engine.pool.workers:
            (resident,) = resident_kb(worker.pid, 32 * 1024)
            assert resident <= 2 * 32768 // workers + 4096


PARENT = """
import sys, threading, time, chess
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits
engine = Supervisor(3, 1, start_method=sys.argv[1])
pids = [worker.pid for worker in engine.pool.workers]
if sys.argv[1] == "forkserver":
    from psearch.processes.fork_server import fork_server
    pids.append(fork_server().process.pid)
print(*pids, flush=True)
def lock_all():
    engine.arena.frames["node"]["lock"] = 1
    print("locked", flush=True)
threading.Timer(0.3, lock_all).start()
engine.search(SearchRequest(chess.Board(), Limits(movetime_ms=100_000)))
"""


@pytest.mark.parametrize("method", METHODS)
def test_workers_that_cannot_look_end_with_the_program(method: str) -> None:
    """One holds a lock and is killed, one is stopped, one waits for the lock in machine code."""
    with subprocess.Popen([sys.executable, "-c", PARENT, method], stdout=subprocess.PIPE, text=True) as parent:
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert parent.stdout.readline() == "locked\n"
        time.sleep(0.2)
        os.kill(pids[0], signal.SIGSTOP)
        os.kill(pids[1], signal.SIGKILL)
        parent.kill()
        try:
            wait_for_ends(pids)
        finally:
            for pid in pids:
                if process_state(pid) not in (None, "Z"):
                    os.kill(pid, signal.SIGKILL)


def test_workers_do_not_end_with_a_thread_that_forked_them() -> None:
    made: list[Supervisor] = []
    thread = threading.Thread(target=lambda: made.append(Supervisor(2, 1, start_method="fork")))
    thread.start()
    thread.join()
    time.sleep(0.1)
    with made[0] as engine:
        assert engine.search(SearchRequest(chess.Board(), Limits(depth=3))).bestmove is not None


def test_a_program_that_survives_its_terminal_keeps_its_workers() -> None:
    """SIGHUP to the group, as when a terminal closes."""
    program = """
    import os, signal, chess
    from psearch.processes.request import SearchRequest
    from psearch.processes.supervisor import Supervisor
    from psearch.results import Limits
    os.setpgid(0, 0)
    heard = []
    signal.signal(signal.SIGHUP, lambda *about: heard.append(1))
    with Supervisor(2, 1) as engine:
        os.killpg(0, signal.SIGHUP)
        print(engine.search(SearchRequest(chess.Board(), Limits(depth=3))).bestmove is not None, heard)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("True [1]\n", "")
