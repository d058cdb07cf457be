"""Real worker processes: answers, speed of stopping, deaths, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chess
import pytest
from limits import NEEDS_POPULATE, resident_kb
from positions import KIWIPETE
from timing import When, least, seconds_of

from psearch.arena.arena import Arena
from psearch.arena.validate import describe, leftovers
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.perft_tasks import count_leaves
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits, PsearchError

DEADLINE_S = 60.0


@contextmanager
def deadline(engine: Supervisor, seconds: float = DEADLINE_S) -> Iterator[None]:
    """A search that hangs is killed, and says what the arena looked like."""

    def expire() -> None:
        print("hang:\n" + describe(engine.arena), file=sys.stderr, flush=True)
        for process in engine.pool.workers:
            process.kill()

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def children() -> set[int]:
    """Processes whose parent is this one, without the fork server, which stays until the program ends."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and "psearch.processes.fork_server" not in _command(int(entry.name)):
                found.add(int(entry.name))
    return found


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_start_methods(method: str) -> None:
    before = children()
    with Supervisor(2, 16, start_method=method) as engine, deadline(engine):
        result = engine.search(SearchRequest(chess.Board(), Limits(depth=8)))
        assert result.bestmove in chess.Board().legal_moves
        assert result.info.depth == 8
        assert leftovers(engine.arena) == []
    assert children() <= before


def test_a_table_that_was_not_used_is_not_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    with Supervisor(1, 1) as engine:
        cleared: list[Arena] = []
        engine.search(SearchRequest(chess.Board(), Limits(depth=1)))
        monkeypatch.setattr(Arena, "forget", lambda arena: cleared.append(arena))
        for _ in range(2):
            engine.forget()
            assert cleared == [engine.arena]
    with Supervisor(1, 1) as engine:
        engine.forget()
        assert len(cleared) == 1


@pytest.mark.parametrize("depth", [-1, 101, 128, 1000, 10**18])
def test_perft_deeper_than_a_stack_is_refused(depth: int) -> None:
    with pytest.raises(PsearchError, match="depth of perft"):
        count_leaves(chess.Board(), depth, 1)
    assert sum(count_leaves(chess.Board(), 2, 1)[0].values()) == 400


@NEEDS_POPULATE
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_have_mapped_the_table_before_they_search(method: str) -> None:
    for _ in range(3):
        with Supervisor(2, 64, start_method=method) as engine:
            resident = [resident_kb(worker.pid, 64 << 10) for worker in engine.pool.workers]
        if resident == [[64 << 10]] * 2:
            break  # else one made a large page of small ones, which takes them out of the other's page table
    assert resident == [[64 << 10]] * 2


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""  # gone already


def test_one_worker_process_searches_the_tree_of_the_serial_search() -> None:
    counts = set()
    for policy in ("serial", "garms", "serial"):
        with Supervisor(1, 16) as engine, deadline(engine):
            info = engine.search(
                SearchRequest(chess.Board(KIWIPETE), Limits(depth=7), options=SearchOptions(policy=policy))
            ).info
            counts.add((info.nodes, str(info.score), info.seldepth, tuple(info.pv)))
    assert len(counts) == 1


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_plain_value_with_real_processes(threads: int) -> None:
    """There are more workers than cores, too. test_step.py compares the serial plain search with naive negamax."""
    boards = [chess.Board(), chess.Board(KIWIPETE), chess.Board("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1")]
    with Supervisor(1, 1) as alone:
        expected = [
            alone.search(SearchRequest(b, Limits(depth=4), options=SearchOptions.plain())).info.score for b in boards
        ]
    joins = 0
    with Supervisor(threads, 1) as engine:
        for _ in range(5):
            for board, score in zip(boards, expected, strict=True):
                with deadline(engine):
                    result = engine.search(
                        SearchRequest(board, Limits(depth=4), options=SearchOptions.plain(split_depth=1))
                    )
                assert result.info.score == score, board.fen()
                assert leftovers(engine.arena) == []
                joins += sum(worker.joins for worker in result.info.workers)
    assert joins > 0


def test_infos_come_in_order_and_lines_are_legal() -> None:
    infos: list[Info] = []
    board = chess.Board(KIWIPETE)
    with Supervisor(2, 16) as engine, deadline(engine):
        engine.search(SearchRequest(board, Limits(depth=8), on_info=infos.append))
    assert [info.depth for info in infos] == sorted(info.depth for info in infos)
    assert {info.depth for info in infos if info.bound == "exact"} == set(range(1, 9))
    assert [info.nodes for info in infos] == sorted(info.nodes for info in infos)
    for info in infos:
        line = board.copy()
        for move in info.pv:
            assert move in line.legal_moves
            line.push(move)


def test_movetime_and_stop() -> None:
    with Supervisor(2, 16) as engine, deadline(engine):
        results = []

        def search(limits: Limits, **more: Any) -> None:
            results.append(engine.search(SearchRequest(chess.Board(KIWIPETE), limits, **more)))

        assert 0.29 < least(lambda: seconds_of(lambda: search(Limits(movetime_ms=300))), 1.0) < 1.0
        assert not results[-1].interrupted
        control = SearchControl()

        def late() -> float:
            nonlocal control
            control = SearchControl()
            with When(control.stop) as stop:
                search(Limits(), control=control, on_info=stop.now)
            assert stop.done_at is not None
            return time.monotonic() - stop.done_at

        assert least(late, 0.8) < 0.8
        assert results[-1].interrupted
        assert results[-1].bestmove in chess.Board(KIWIPETE).legal_moves
        # stopped before it began
        result = engine.search(SearchRequest(chess.Board(KIWIPETE), Limits(), control=control))
        assert result.bestmove in chess.Board(KIWIPETE).legal_moves


def test_node_limit() -> None:
    with Supervisor(1, 16) as engine, deadline(engine):
        for limit in (1, 2, 1000, 123_457):
            assert engine.search(SearchRequest(chess.Board(), Limits(nodes=limit))).info.nodes == limit
    with Supervisor(3, 16) as engine, deadline(engine):
        assert 200_000 <= engine.search(SearchRequest(chess.Board(), Limits(nodes=200_000))).info.nodes < 230_000


def test_an_exception_in_the_callback_stops_the_search() -> None:
    class Oops(Exception):
        pass

    def fail(info: Info) -> None:
        if info.depth >= 3:
            raise Oops

    with Supervisor(2, 16) as engine, deadline(engine):
        with pytest.raises(Oops):
            engine.search(SearchRequest(chess.Board(KIWIPETE), Limits(), on_info=fail))
        assert engine.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=4))).info.depth == 4  # still usable


def test_memory_that_is_not_there_is_refused() -> None:
    with pytest.raises(PsearchError, match="not enough memory"):
        Supervisor(1, 1 << 22)
    for threads in (0, 1025):
        with pytest.raises(PsearchError, match="threads"):
            Supervisor(threads, 16)
    with pytest.raises(PsearchError, match="hash"):
        Supervisor(1, 0)


def test_no_shared_memory_file_is_left() -> None:
    shm = Path("/dev/shm")
    before = set(shm.iterdir()) if shm.exists() else set()
    with Supervisor(2, 16) as engine, deadline(engine):
        engine.search(SearchRequest(chess.Board(), Limits(depth=5)))
        assert (set(shm.iterdir()) if shm.exists() else set()) <= before
    assert (set(shm.iterdir()) if shm.exists() else set()) <= before


def test_a_forgotten_supervisor_does_not_hang_the_exit() -> None:
    command = [sys.executable, "-c", "from psearch.processes.supervisor import Supervisor; engine = Supervisor(2, 1)"]
    assert subprocess.run(command, timeout=60, check=True, capture_output=True).stderr == b""
