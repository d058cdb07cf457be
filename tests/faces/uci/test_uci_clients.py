"""The UCI engine under python-chess, simple and asynchronous, and in random conversations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import chess
import chess.engine
import pytest
from hypothesis import example, given, settings
from programs import PSEARCH
from timing import least
from uci_sessions import EngineSessions, check_reader, sessions

Limit = chess.engine.Limit
TIMEOUT_S = 120.0
MATE_IN_1 = chess.Board("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1")


@pytest.fixture(scope="module")
def engine() -> Iterator[chess.engine.SimpleEngine]:
    with chess.engine.SimpleEngine.popen_uci(PSEARCH, timeout=TIMEOUT_S) as client:
        client.configure({"Hash": 16})
        client.ping()
        yield client


def test_options_and_name(engine: chess.engine.SimpleEngine) -> None:
    assert engine.id["name"].startswith("psearch ")
    assert engine.options["Threads"].max == 1024
    assert engine.options["Policy"].default == "calibrated"
    engine.configure({"Threads": 2, "Policy": "ybw", "SplitDepth": 3})
    assert engine.play(MATE_IN_1, Limit(depth=4)).move == chess.Move.from_uci("e1e8")
    engine.configure({"Threads": 1, "Policy": "calibrated", "SplitDepth": 1})


def test_play_a_game_on_a_clock(engine: chess.engine.SimpleEngine) -> None:
    """It is lost on time only if other programs have the cores for a second: not each time."""

    def is_lost_on_time() -> bool:
        board = chess.Board()
        clocks = {chess.WHITE: 1.0, chess.BLACK: 1.0}
        while board.ply() < 60 and not board.is_game_over():
            start = time.perf_counter()
            limit = Limit(white_clock=clocks[True], black_clock=clocks[False], white_inc=0.05, black_inc=0.05)
            move = engine.play(board, limit, game=board.root()).move
            clocks[board.turn] += 0.05 - (time.perf_counter() - start)
            if clocks[board.turn] <= 0:
                return True
            assert move is not None
            board.push(move)
        assert board.ply() > 20
        return False

    assert not all(is_lost_on_time() for _ in range(3))


def test_ponder(engine: chess.engine.SimpleEngine) -> None:
    board = chess.Board()
    for _ in range(4):
        played = engine.play(board, Limit(time=0.1), ponder=True)
        assert played.move is not None
        board.push(played.move)
        assert not board.is_game_over()
        reply = played.ponder if played.ponder in board.legal_moves else next(iter(board.legal_moves))
        assert reply is not None
        board.push(reply)
    # python-chess may take a ping for a ponderhit (see below) and remember that until the next play, whatever comes in
    # between: that play would then wait for an engine which does not search. A play without pondering ends it.
    engine.play(board, Limit(time=0.1))
    engine.ping()


def test_a_ponder_search_that_the_client_forgets_to_stop() -> None:
    """python-chess looks at its caller's own board to see if a ponder search goes on: here it has moved on already."""
    with chess.engine.SimpleEngine.popen_uci(PSEARCH, timeout=TIMEOUT_S) as client:
        client.play(chess.Board(), Limit(depth=2))
        board = chess.Board()
        played = client.play(board, Limit(depth=6), ponder=True)
        assert played.move is not None and played.ponder is not None
        board.push(played.move)
        board.push(played.ponder)
        client.ping()
        assert client.analyse(chess.Board(), Limit(depth=5))["depth"] == 5


def test_analyse(engine: chess.engine.SimpleEngine) -> None:
    board = chess.Board("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3")
    info = engine.analyse(board, Limit(depth=7))
    assert info["depth"] == 7
    assert info["score"].turn == chess.WHITE
    lines = engine.analyse(board, Limit(depth=5), multipv=4)
    assert len({line["pv"][0] for line in lines}) == 4
    scores = [line["score"].relative for line in lines]
    assert scores == sorted(scores, reverse=True)
    only = [chess.Move.from_uci("h2h4")]
    assert engine.analyse(board, Limit(depth=4), root_moves=only)["pv"][0] in only
    assert engine.analyse(board, Limit(nodes=5000))["nodes"] == 5000
    assert engine.analyse(MATE_IN_1, Limit(mate=1))["score"].white() == chess.engine.Mate(1)


def test_analysis_is_stopped(engine: chess.engine.SimpleEngine) -> None:
    def seconds() -> float:
        with engine.analysis(chess.Board()) as analysis:
            for info in analysis:
                if info.get("depth", 0) >= 6:
                    break
            start = time.perf_counter()
            analysis.stop()
            assert analysis.wait().move in chess.Board().legal_moves
            return time.perf_counter() - start

    assert least(seconds, 0.5) < 0.5


def test_async() -> None:
    async def talk() -> None:
        transport, engine = await chess.engine.popen_uci(PSEARCH)
        await engine.configure({"Threads": 2})
        await engine.ping()
        assert (await engine.play(MATE_IN_1, Limit(depth=4))).move == chess.Move.from_uci("e1e8")
        with await engine.analysis(chess.Board()) as analysis:
            async for info in analysis:
                if info.get("depth", 0) >= 5:
                    break
        # a new command while the last one runs: python-chess stops it first
        first = asyncio.ensure_future(engine.analyse(chess.Board(), Limit(time=30)))
        await asyncio.sleep(0.3)
        start = time.perf_counter()
        info = await engine.analyse(MATE_IN_1, Limit(depth=3))
        assert time.perf_counter() - start < 10.0
        assert info["score"].relative == chess.engine.Mate(1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await engine.quit()
        assert await transport._wait() == 0  # type: ignore[attr-defined]
        transport.close()

    asyncio.run(talk())


@settings(max_examples=300, deadline=None)
@given(lines=sessions())
@example(lines=["go nodes 9999999999999999999 mate 9999999999999999999 wtime 9999999999999999999 depth 999999999999"])
def test_the_reader_bears_anything(lines: list[str]) -> None:
    check_reader(lines)


def test_the_engine_bears_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSEARCH_NO_FILES", "1")
    with EngineSessions() as engine:

        @settings(max_examples=40, deadline=None)
        @given(lines=sessions(8))
        def hold(lines: list[str]) -> None:
            engine.check(lines)

        hold()
