"""Workers start from any program, and nothing of them outlives it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import chess
import pytest
from limits import open_files
from timing import When, assert_no_processor_time, least, wait_for_ends

from psearch.processes.child import ChildProcess
from psearch.processes.fork_server import fork_server
from psearch.processes.request import SearchRequest
from psearch.processes.starting import fork_is_safe
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits, PsearchError

TIMEOUT_S = 240


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def run_script(folder: Path, text: str) -> str:
    """Run a program of its own from a file, as a user's would be; its stdout. It must say nothing on stderr."""
    script = folder / "program.py"
    script.write_text(textwrap.dedent(text))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_script_with_threads_and_without_a_main_guard(tmp_path: Path) -> None:
    output = run_script(
        tmp_path,
        """
        import threading, time
        import psearch
        print("main runs")
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print(psearch.search("startpos", threads=2, depth=5).bestmove)
        """,
    )
    lines = output.splitlines()
    assert lines[0] == "main runs"
    assert lines[1:] != []
    assert chess.Move.from_uci(lines[1]) in chess.Board().legal_moves
    assert len(lines) == 2, "main ran again in a worker"


def test_engines_in_threads_side_by_side() -> None:
    """Started and searching at the same time; neither gets the other's answers."""
    mates = {
        "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1": "e1e8",
        "4r1k1/8/8/8/8/8/5PPP/6K1 b - - 0 1": "e8e1",
        "7k/8/5KQ1/8/8/8/8/8 w - - 0 1": "g6g7",
    }
    found: dict[str, set[str]] = {fen: set() for fen in mates}

    def run(fen: str) -> None:
        with Supervisor(2, 1) as engine:
            for _ in range(5):
                found[fen].add(str(engine.search(SearchRequest(chess.Board(fen), Limits(depth=4))).bestmove))

    threads = [threading.Thread(target=run, args=(fen,)) for fen in mates]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {fen: {move} for fen, move in mates.items()}


def _search_in_a_daemon(answers: multiprocessing.Queue[str]) -> None:
    with Supervisor(2, 1) as engine:
        board = chess.Board("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1")
        answers.put(str(engine.search(SearchRequest(board, Limits(depth=4))).bestmove))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_daemonic_process(method: str) -> None:
    """A fork inherits the fork server of this program, and must not use it."""
    with Supervisor(1, 1, start_method="forkserver"):
        context = multiprocessing.get_context(method)
        answers = context.Queue()
        process = context.Process(target=_search_in_a_daemon, args=(answers,), daemon=True)
        process.start()
        assert answers.get(timeout=TIMEOUT_S) == "e1e8"
        process.join(60)
        assert process.exitcode == 0
        answers.close()
        answers.join_thread()
    with Supervisor(1, 1, start_method="forkserver") as engine:  # ours still works
        assert engine.search(SearchRequest(chess.Board(), Limits(depth=2))).bestmove is not None


def test_a_fork_of_the_program_leaves_our_workers_alone() -> None:
    """Its exit handlers run `close` on the copies of our engines."""
    with Supervisor(2, 1, start_method="forkserver") as engine:
        program = f"""
        import os, sys, chess
        from psearch.processes.request import SearchRequest
        from psearch.processes.supervisor import Supervisor
        from psearch.results import Limits
        engine = Supervisor(2, 1, start_method="fork")
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        result = engine.search(SearchRequest(chess.Board(), Limits(depth=3)))
        print(result.bestmove is not None, {engine.pool.workers[0].pid})
        """
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60
        )
        assert done.stdout.startswith("True"), done.stderr
        assert done.stderr == ""


PARENT = """
import sys, threading, time
_, state, method = sys.argv
if method == "forkserver":
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
import chess
from psearch.processes import child
from psearch.processes.fork_server import fork_server
from psearch.processes.perft_tasks import count_leaves
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits
def say(pids):
    print(*[fork_server().process.pid] if method == "forkserver" else [], *pids, flush=True)
if state == "counting":
    pids = []
    init = child.ChildProcess.__init__
    def born(one, index, pid, pipe, server=None):
        init(one, index, pid, pipe, server)
        pids.extend([pid] * ((server is None) == (method == "fork")))
        if len(pids) == 2:
            say(pids)
    child.ChildProcess.__init__ = born
    count_leaves(chess.Board(), 12, 2)
engine = Supervisor(2, 16)
say([worker.pid for worker in engine.pool.workers])
if state == "searching":
    engine.search(SearchRequest(chess.Board(), Limits(movetime_ms=100_000)))
sys.stdin.read()
"""


@pytest.mark.parametrize("method", ["fork", "forkserver"])
@pytest.mark.parametrize("state", ["idle", "searching", "counting"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_program_that_is_killed(state: str, number: signal.Signals, method: str) -> None:
    command = [sys.executable, "-c", PARENT, state, method]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            pids = [int(word) for word in parent.stdout.readline().split()]
            served = [parent.pid, pids[0], pids[0]]
            assert [parent_of(pid) for pid in pids] == ([parent.pid] * 2 if method == "fork" else served)
            time.sleep(0.2)
        finally:
            parent.send_signal(number)
        parent.wait(60)
        wait_for_ends(pids)


def test_nothing_outlives_a_program_killed_while_the_fork_server_starts() -> None:
    program = """
    import threading, time
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    from psearch.processes.fork_server import fork_server
    print(fork_server().process.pid, flush=True)
    time.sleep(600)
    """
    for delay in (0.0, 0.02, 0.1, 0.3, 0.6):
        command = [sys.executable, "-c", textwrap.dedent(program)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
            server = int(parent.stdout.readline())
            time.sleep(delay)
            parent.kill()
        wait_for_ends([server])


@pytest.mark.parametrize("method", ["fork", "forkserver"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_death_is_noticed_at_once_and_named(method: str, number: signal.Signals) -> None:
    with Supervisor(3, 1, start_method=method) as engine:

        def seconds() -> float:
            """Return the time from the death to the note."""
            noticed: list[tuple[float, str]] = []
            pids = [worker.pid for worker in engine.pool.workers]
            died_at: list[float] = []

            def kill() -> None:
                time.sleep(0.1)  # the supervisor has other things to do while reports come
                died_at.append(time.monotonic())
                os.kill(pids[2], number)

            with When(kill) as killer:
                request = SearchRequest(
                    chess.Board(),
                    Limits(movetime_ms=1000),
                    on_info=killer.now,
                    on_note=lambda note: noticed.append((time.monotonic(), note)),
                )
                result = engine.search(request)
            assert result.notes == [f"worker 2 was killed by signal {number.value}; new workers continue"]
            assert [note for _, note in noticed] == result.notes
            wait_for_ends(pids)
            return noticed[0][0] - died_at[0]

        assert least(seconds, 0.5) < 0.5
        assert engine.search(SearchRequest(chess.Board(), Limits(depth=4))).notes == []


def test_a_death_between_searches_is_noticed_at_the_next() -> None:
    with Supervisor(2, 1, start_method="forkserver") as engine:
        os.kill(engine.pool.workers[0].pid, signal.SIGKILL)
        wait_for_ends([engine.pool.workers[0].pid])
        result = engine.search(SearchRequest(chess.Board(), Limits(depth=7)))
        assert result.info.depth == 7
        assert result.notes == ["worker 0 was killed by signal 9; it has been replaced"]


def test_when_the_fork_server_is_killed_its_workers_end_and_the_next_engine_gets_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("psearch.processes.starting.SERVER_SEARCH_S", 60.0)  # a busy machine starts slowly
    with Supervisor(2, 1, start_method="forkserver") as engine:
        pids = [worker.pid for worker in engine.pool.workers]
        server = fork_server().process

        def kill(info: Info) -> None:
            if info.depth == 6:
                server.kill()
                wait_for_ends(pids)  # or a quick search would be over before

        result = engine.search(SearchRequest(chess.Board(), Limits(depth=12), on_info=kill))
        assert result.info.depth == 12 and "new workers continue" in result.notes[0]
    with Supervisor(2, 1, start_method="forkserver") as engine:
        assert fork_server().process.pid != server.pid
        assert engine.search(SearchRequest(chess.Board(), Limits(depth=4))).info.depth == 4


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_nothing_is_left_and_no_processor_time_used_between_searches(method: str) -> None:
    with Supervisor(2, 16, start_method=method) as engine:
        engine.search(SearchRequest(chess.Board(), Limits(depth=5)))
        server = [fork_server().process.pid] if method == "forkserver" else []
        assert_no_processor_time([*server, *(process.pid for process in engine.pool.workers)])
    before = [open_files(pid) for pid in ("self", *server)]
    for _ in range(3):
        with Supervisor(4, 1, start_method=method) as engine:
            engine.search(SearchRequest(chess.Board(), Limits(depth=2)))
    assert [open_files(pid) for pid in ("self", *server)] == before


def test_fork_is_for_programs_without_threads() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    assert not fork_is_safe()
    done.set()
    thread.join()
    code = "from psearch.processes.starting import fork_is_safe; print(fork_is_safe())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


def test_an_unknown_start_method_is_refused() -> None:
    with pytest.raises(PsearchError, match="start_method must be one of fork, forkserver, not 'spawn'"):
        Supervisor(1, 1, start_method="spawn")


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_threads_that_reap_the_same_worker_agree(method: str) -> None:
    """One that closes the engine and one that found the worker dead: neither must wait for a process long gone."""
    for _ in range(5):
        supervisor = Supervisor(threads=2, hash_mb=1, start_method=method)
        try:
            codes: list[int | None] = []
            barrier = threading.Barrier(4)

            def reap(workers: list[ChildProcess], barrier: threading.Barrier, codes: list[int | None]) -> None:
                barrier.wait()
                for worker in workers:
                    worker.join(10)
                    codes.append(worker.exitcode)

            threads = [
                threading.Thread(target=reap, args=(supervisor.pool.workers, barrier, codes))
                for _ in range(barrier.parties)
            ]
            for thread in threads:
                thread.start()
            start = time.monotonic()
            for worker in supervisor.pool.workers:
                worker.kill()
            for thread in threads:
                thread.join(30)
            assert codes == [-signal.SIGKILL] * 8
            assert time.monotonic() - start < 5
        finally:
            supervisor.close()
