"""The Python API: python-chess types, any thread, several engines at once; and the benchmark's node count."""

from __future__ import annotations

import doctest
import gc
import importlib
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import chess
import chess.engine
import pytest
from round_robin_entries import step_worker
from timing import least, seconds_of, wait_until

import psearch
from psearch import bench
from psearch.api.question import time_manager, to_limits
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.bench import BENCH_NODES, BENCH_POSITIONS, run_bench
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch_core.records.pruning_record import MODES

MIDDLE_GAME = chess.Board("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3")
MATE_IN_1 = chess.Board("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1")
MATED = chess.Board("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3")
Limit = chess.engine.Limit


def check_info(info: chess.engine.InfoDict, board: chess.Board) -> None:
    """Check for the fields that python-chess's own engines give."""
    assert isinstance(info["score"], chess.engine.PovScore)
    assert info["score"].turn == board.turn
    assert info["depth"] >= 1
    assert info["nodes"] > 0
    assert info["time"] > 0
    assert 0 <= info["hashfull"] <= 1000
    walk = board.copy()
    for move in info["pv"]:
        walk.push(move) if move in walk.legal_moves else pytest.fail(f"{move} in {walk.fen()}")


def test_analyse_and_play() -> None:
    board = MIDDLE_GAME.copy()
    with psearch.Engine(threads=2, hash_mb=16) as engine:
        info = engine.analyse(board, Limit(depth=6))
        check_info(info, board)
        assert info["depth"] == 6
        lines = engine.analyse(board, Limit(depth=5), multipv=3)
        assert [line["multipv"] for line in lines] == [1, 2, 3]
        assert len({line["pv"][0] for line in lines}) == 3
        assert [line["score"].relative for line in lines] == sorted(
            (line["score"].relative for line in lines), reverse=True
        )
        only = [chess.Move.from_uci("a2a3"), chess.Move.from_uci("h2h3")]
        assert engine.analyse(board, Limit(depth=4), root_moves=only)["pv"][0] in only
        assert len(engine.analyse(board, Limit(depth=3), multipv=99, root_moves=only)) == 2
        played = engine.play(board, Limit(white_clock=3.0, black_clock=3.0, white_inc=0.1, black_inc=0.1))
        assert played.move in board.legal_moves
        assert played.info["depth"] >= 1
        assert board == MIDDLE_GAME


def test_limits() -> None:
    with psearch.Engine(hash_mb=1) as engine:
        assert engine.analyse(chess.Board(), Limit(nodes=1234))["nodes"] == 1234
        assert 0.28 < least(lambda: seconds_of(lambda: engine.analyse(chess.Board(), Limit(time=0.3))), 1.0) < 1.0
        assert engine.analyse(MATE_IN_1, Limit(mate=1))["score"].relative == chess.engine.Mate(1)
        clocks = Limit(white_clock=0.1, black_clock=100.0)
        assert least(lambda: seconds_of(lambda: engine.play(chess.Board(), clocks)), 0.5) < 0.5
        assert engine.analyse(chess.Board(), Limit(depth=1000, time=0.05))["depth"] >= 1


def test_a_finished_game() -> None:
    with psearch.Engine(hash_mb=1) as engine:
        info = engine.analyse(MATED, Limit(depth=3))
        assert info["score"].relative == chess.engine.Mate(-0)
        assert info["pv"] == []
        assert engine.play(MATED, Limit(depth=3)).move is None
        with engine.analysis(MATED) as analysis:
            assert list(analysis) == []
            assert analysis.wait().move is None


def test_analysis_iterates_and_stops() -> None:
    with psearch.Engine(threads=2, hash_mb=16) as engine:

        def seconds() -> float:
            with engine.analysis(MIDDLE_GAME) as analysis:
                depths = []
                for info in analysis:
                    check_info(info, MIDDLE_GAME)
                    depths.append(info["depth"])
                    if info["depth"] >= 6:
                        asked = time.perf_counter()
                        break
                analysis.stop()
                best = analysis.wait()
                taken = time.perf_counter() - asked
                assert best.move in MIDDLE_GAME.legal_moves
                assert depths == sorted(depths)
                assert analysis.info["depth"] >= 6
            return taken

        assert least(seconds, 0.5) < 0.5
        with engine.analysis(MIDDLE_GAME, Limit(depth=4), multipv=2) as analysis:
            assert {info["multipv"] for info in analysis} == {1, 2}
            assert len(analysis.multipv) == 2
            assert list(analysis) == []  # it is over
        assert engine.analyse(MIDDLE_GAME, Limit(depth=3))["depth"] == 3


def test_the_board_may_change_while_it_is_analysed() -> None:
    board = chess.Board()
    with psearch.Engine(hash_mb=1) as engine, engine.analysis(board) as analysis:
        board.push_san("e4")
        board.push_san("e5")
        for info in analysis:
            check_info(info, chess.Board())
            if info["depth"] > 4:
                break


def test_stop_from_another_thread() -> None:
    with psearch.Engine(hash_mb=1) as engine:
        stopped_at: list[float] = []

        def stop() -> None:
            wait_until(engine._lock.locked)
            time.sleep(0.3)
            stopped_at.append(time.monotonic())
            engine.stop()

        thread = threading.Thread(target=stop)
        thread.start()
        assert engine.play(chess.Board(), Limit(time=60)).move is not None
        assert time.monotonic() - stopped_at[0] < 2
        thread.join()
        engine.stop()  # nothing is running: nothing happens
        assert engine.analyse(chess.Board(), Limit(depth=3))["depth"] == 3


def test_one_search_at_a_time() -> None:
    with psearch.Engine(hash_mb=1) as engine, engine.analysis(chess.Board()) as analysis:
        next(analysis)
        with pytest.raises(psearch.PsearchError, match="searching already"):
            engine.analyse(chess.Board(), Limit(depth=1))
        with pytest.raises(psearch.PsearchError, match="searching already"):
            engine.new_game()
        assert next(analysis)["depth"] >= 1


def test_closing_ends_an_analysis() -> None:
    engine = psearch.Engine(threads=2, hash_mb=1)
    analysis = engine.analysis(chess.Board())
    next(analysis)
    start = time.monotonic()
    engine.close()
    assert time.monotonic() - start < 2.5
    assert analysis.wait().move is not None
    engine.close()
    with pytest.raises(psearch.PsearchError, match="closed"):
        engine.analyse(chess.Board(), Limit(depth=1))


def test_several_engines_in_one_program() -> None:
    with psearch.Engine(hash_mb=1) as one, psearch.Engine(threads=2, hash_mb=1) as two:
        with one.analysis(chess.Board()) as first, two.analysis(MATE_IN_1, Limit(depth=6)) as second:
            assert second.wait().move == chess.Move.from_uci("e1e8")
            assert next(first)["pv"][0] in chess.Board().legal_moves
        assert one.play(MATE_IN_1, Limit(depth=3)).move == chess.Move.from_uci("e1e8")


def test_table_lasts_until_a_new_game() -> None:
    with psearch.Engine(hash_mb=16) as engine:
        first = engine.analyse(MIDDLE_GAME, Limit(depth=8))["nodes"]
        assert engine.analyse(MIDDLE_GAME, Limit(depth=8))["nodes"] < first
        engine.new_game()
        assert engine.analyse(MIDDLE_GAME, Limit(depth=8))["nodes"] == first


def test_a_death_is_told_and_the_search_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with psearch.Engine(threads=2, hash_mb=1) as engine:
        pid, header = engine._searcher._supervisor.pool.workers[1].pid, engine._searcher._supervisor.arena.header

        def kill() -> None:
            wait_until(lambda: header["info_count"][0] > 0)
            os.kill(pid, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        info = engine.analyse(chess.Board(), Limit(time=1.0))
        thread.join()
        note = "worker 1 was killed by signal 9; new workers continue"
        assert info["string"] == note
        assert [(record.name, record.levelname, record.message) for record in caplog.records] == [
            ("psearch", "WARNING", note)
        ]
        with engine.analysis(chess.Board()) as analysis:
            depth = next(analysis)["depth"]
            os.kill(engine._searcher._supervisor.pool.workers[0].pid, signal.SIGKILL)
            for later in analysis:
                assert later["depth"] >= depth
                depth = later["depth"]
                if len(caplog.records) == 2:
                    analysis.stop()
        assert analysis.wait().move in chess.Board().legal_moves
        assert engine.play(MATE_IN_1, Limit(depth=3)).move == chess.Move.from_uci("e1e8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads"),
        ({"hash_mb": 0}, "hash"),
        ({"hash_mb": 1 << 23}, "not enough memory"),
        ({"policy": "best"}, "policy must be one of"),
        ({"split_depth": 10**30}, "split_depth must be a whole number from 1 to 100"),
    ],
)
def test_bad_arguments(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(psearch.PsearchError, match=message):
        psearch.Engine(**arguments)  # type: ignore[arg-type]


def test_bad_searches() -> None:
    with psearch.Engine(hash_mb=1) as engine:
        for limit in (Limit(depth=0), Limit(nodes=-1), Limit(time=0), Limit(mate=0)):
            with pytest.raises(psearch.PsearchError, match="must be"):
                engine.analyse(chess.Board(), limit)
        with pytest.raises(psearch.PsearchError, match="e2e5 is not a legal move"):
            engine.play(chess.Board(), Limit(depth=1), root_moves=[chess.Move.from_uci("e2e5")])
        with pytest.raises(psearch.PsearchError, match="nothing to choose from"):
            engine.play(chess.Board(), Limit(depth=1), root_moves=[])
        with pytest.raises(psearch.PsearchError, match="multipv"):
            engine.analyse(chess.Board(), Limit(depth=1), multipv=0)
        with pytest.raises(psearch.PsearchError, match="illegal position"):
            engine.analyse(chess.Board(None), Limit(depth=1))
        with pytest.raises(psearch.PsearchError, match="illegal position"):
            engine.analysis(chess.Board(None))
        assert engine.analyse(chess.Board(), Limit(depth=2))["depth"] == 2


@pytest.mark.parametrize(
    "limit",
    [
        {"nodes": 2**63},
        {"nodes": 10**5000},
        {"mate": 10**400},
        {"time": float("nan")},
        {"time": 10**400},
        {"time": float("-inf")},
        {"white_clock": float("nan")},
        {"white_clock": 10**400},
        {"white_clock": 60.0, "white_inc": float("nan")},
        {"depth": float("nan")},
    ],
)
def test_numbers_that_no_search_can_hold(limit: dict[str, float]) -> None:
    with pytest.raises(psearch.PsearchError, match="must be"):
        to_limits(Limit(**limit))  # type: ignore[arg-type]
        time_manager(chess.Board(), Limit(**limit), 20)  # type: ignore[arg-type]


def test_times_without_end_are_no_limit() -> None:
    for limit in (Limit(time=math.inf), Limit(white_clock=math.inf), Limit(white_clock=1e300, white_inc=1e300)):
        assert not time_manager(chess.Board(), limit, 20).is_due(1e9)


@pytest.mark.parametrize(
    "limit", [{"nodes": 2**63}, {"movetime_ms": 10**400}, {"movetime_ms": float("nan")}, {"depth": 101}, {"mate": "1"}]
)
def test_search_refuses_such_numbers_too(limit: dict[str, Any]) -> None:
    (name,) = limit
    with pytest.raises(psearch.PsearchError, match=f"{name} must be a (whole )?number from 1 to"):
        psearch.search("startpos", **limit)


def test_a_clock_that_no_game_has() -> None:
    """A board may hold any number; a record of the search may not."""
    board = chess.Board()
    board.halfmove_clock = 10**20
    with pytest.raises(psearch.PsearchError, match="half-move clock"):
        psearch.search(board, depth=1)


def test_clocks_are_those_of_the_side_to_move() -> None:
    limit = Limit(white_clock=60, black_clock=6, white_inc=0, black_inc=0)
    white, black = chess.Board(), chess.Board()
    black.push_san("e4")
    assert time_manager(white, limit, 20).budget.soft_s == pytest.approx(2.0, rel=0.1)
    assert time_manager(black, limit, 20).budget.soft_s == pytest.approx(0.2, rel=0.1)
    assert time_manager(white, Limit(time=0.5, white_clock=60), 20).budget.hard_s == 0.5
    assert to_limits(Limit(depth=3, nodes=5, mate=2)) == psearch.Limits(depth=3, nodes=5, mate=2)


def test_search_takes_lines_and_moves() -> None:
    result = psearch.search(MIDDLE_GAME, depth=4, hash_mb=1, multipv=3, policy="ybw", threads=2)
    assert [line.multipv for line in result.lines] == [1, 2, 3]
    assert result.bestmove == result.lines[0].pv[0]
    move = chess.Move.from_uci("a2a3")
    assert psearch.search("startpos", depth=3, hash_mb=1, root_moves=[move]).bestmove == move
    assert psearch.search(MATE_IN_1, mate=1, hash_mb=1).info.score.relative == chess.engine.Mate(1)
    for arguments in ({"multipv": 0}, {"policy": "best"}, {"root_moves": [chess.Move.from_uci("e2e5")]}):
        with pytest.raises(psearch.PsearchError):
            psearch.search("startpos", depth=1, **arguments)  # type: ignore[arg-type]


def test_an_engine_that_is_dropped_says_so_and_leaves_nothing() -> None:
    engine = psearch.Engine(threads=2, hash_mb=1)
    pids = [worker.pid for worker in engine._searcher._supervisor.pool.workers]
    with pytest.warns(ResourceWarning, match="not closed"):
        del engine
        gc.collect()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@pytest.mark.parametrize("how", ["script", "interactive", "thread"])
def test_any_program(how: str, tmp_path: Path) -> None:
    """A program needs no `__main__` guard; `interactive` is a program without a file, as Jupyter's cells are."""
    text = """
import chess, chess.engine, psearch, threading
print("once")
def run():
    with psearch.Engine(threads=2, hash_mb=1) as engine:
        print(engine.play(chess.Board("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"), chess.engine.Limit(depth=3)).move)
"""
    text += "t = threading.Thread(target=run); t.start(); t.join()\n" if how == "thread" else "run()\n"
    if how == "interactive":
        done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, timeout=200)
    else:
        (tmp_path / "program.py").write_text(text)
        command = [sys.executable, str(tmp_path / "program.py")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\ne1e8\n", "")


def test_ctrl_c_stops_the_search_and_leaves_the_engine_usable() -> None:
    program = """
import chess, chess.engine, psearch, sys, threading
if sys.argv[1] == "threads":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
with psearch.Engine(threads=2, hash_mb=1) as engine:
    for _ in range(3):
        try:
            print("searching", flush=True)
            engine.analyse(chess.Board(), chess.engine.Limit(time=60))
        except KeyboardInterrupt:
            print(engine.play(chess.Board("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"), chess.engine.Limit(depth=3)).move)
"""
    for kind in ("alone", "threads"):
        command = [sys.executable, "-c", program, kind]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
            assert running.stdout is not None
            for _ in range(3):
                assert running.stdout.readline() == "searching\n"
                time.sleep(0.2)
                os.killpg(running.pid, signal.SIGINT)  # to all of the group, as a terminal does
                assert running.stdout.readline() == "e1e8\n"
            assert running.wait(60) == 0


DOCUMENTED = (
    "psearch",
    "psearch.api.blocking",
    "psearch.api.asynchronous",
    "psearch.text.wdl",
    "psearch.processes.time_manager",
    "psearch.strength",
    "psearch.faces.uci.go",
    "psearch.faces.uci.uci_streams",
    "psearch.settings",
    "psearch.text.values",
)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstrings_tell_the_truth(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_guide_tells_the_truth() -> None:
    """docs/guides/api.md lies beside the sources, not in a wheel."""
    guide = Path(__file__).parent.parent / "docs" / "guides" / "api.md"
    result = doctest.testfile(str(guide), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 10
    assert result.failed == 0


SHALLOW = 5

pytestmark = pytest.mark.usefixtures("search_kernels")


def test_same_nodes_again_and_after_other_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BENCH_DEPTH", SHALLOW)
    first, seconds = run_bench()
    assert first > 0 and seconds > 0
    other = Arena(workers=3, hash_mb=1)
    write_search(other, chess.Board(), Limits(depth=9), SearchOptions())
    for turn in range(300):
        step_worker(other.context, turn % 3, 100)
    assert run_bench()[0] == first
    assert run_bench(options=SearchOptions(policy="serial", pruning=MODES["ael"]))[0] != first
    other.close()


def test_node_count() -> None:
    lines: list[str] = []
    nodes, _ = run_bench(lines.append)
    assert nodes == BENCH_NODES
    assert len(lines) == len(BENCH_POSITIONS)
