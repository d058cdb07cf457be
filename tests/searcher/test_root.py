"""Endgame tables and a limited strength: one keyword each for `search`, `Engine` and `analyse_many`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import chess
import pytest
from chess.engine import Cp, Limit, PovScore

import psearch
from psearch.options import SearchOptions
from psearch.processes.request import SearchRequest
from psearch.results import Info, Limits, Result
from psearch.searcher.root import prepared
from psearch.strength import MIN_ELO, human_delay_s, node_limit

TABLES = str(Path(__file__).parents[1] / "data" / "syzygy")
WON = "8/8/8/4k3/8/8/8/4K2R w - - 0 1"
LIMIT = Limit(nodes=3_000)


def by_search(fen: str, **settings: object) -> tuple[chess.Move | None, chess.engine.PovScore, int]:
    found = psearch.search(fen, LIMIT, hash_mb=1, **settings)
    return found.bestmove, found.score, found.info.tbhits


def by_engine(fen: str, **settings: object) -> tuple[chess.Move | None, chess.engine.PovScore, int]:
    with psearch.Engine(hash_mb=1, **settings) as engine:
        info = engine.analyse(chess.Board(fen), LIMIT)
    return info["pv"][0], info["score"], info["tbhits"]


def by_many(fen: str, **settings: object) -> tuple[chess.Move | None, chess.engine.PovScore, int]:
    (found,) = psearch.analyse_many([fen], LIMIT, workers=1, hash_mb=1, **settings)
    return found.bestmove, found.score, found.info.tbhits


WAYS = (by_search, by_engine, by_many)


@pytest.mark.parametrize("way", WAYS)
def test_tables_decide_the_root(way: Callable) -> None:
    move, score, hits = way(WON, syzygy=TABLES)
    assert hits > 0 and score.relative > chess.engine.Cp(10_000)
    assert move in chess.Board(WON).legal_moves
    with pytest.raises(psearch.PsearchError, match="cannot read endgame tables in /nowhere"):
        way(WON, syzygy="/nowhere")


def test_a_strength_is_the_same_in_every_way() -> None:
    """It limits nodes, and may take another move than the best one; the same one each time."""
    fen = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"
    found = [way(fen, elo=1200)[0] for way in WAYS]
    assert found.count(found[0]) == 3
    assert psearch.search(fen, LIMIT, elo=1200).nodes < 1_000
    assert len(psearch.search(fen, LIMIT, elo=1200).lines) == 1
    with pytest.raises(psearch.PsearchError, match="elo must be a whole number from"):
        by_search(fen, elo=50)


def test_tables_and_strength_are_options_of_an_engine() -> None:
    with psearch.Engine(hash_mb=1) as engine:
        board = chess.Board(WON)
        assert engine.analyse(board, LIMIT)["tbhits"] == 0
        engine.configure({"SyzygyPath": TABLES})
        assert engine.analyse(board, LIMIT)["tbhits"] > 0
        engine.configure({"UCI_Elo": 1100})
        assert engine.analyse(board, Limit(depth=30))["nodes"] < 500
        assert engine.analyse(board, LIMIT, options={"UCI_Elo": None})["tbhits"] > 0
        engine.configure({"UCI_LimitStrength": False})
        assert engine.analyse(board, LIMIT)["tbhits"] > 0
        engine.configure({"UCI_LimitStrength": True})
        assert engine.analyse(board, Limit(depth=30))["nodes"] < 500
        engine.configure({"UCI_Elo": None, "SyzygyPath": ""})
        assert engine.analyse(board, LIMIT)["tbhits"] == 0


def test_a_weaker_move_depends_on_the_seed_of_the_game_alone() -> None:
    """One draw for all interfaces: the same search of a game is answered alike, and games differ."""
    board = chess.Board()
    lines = [Info(1, 1, PovScore(Cp(0), chess.WHITE), "exact", 80, 0.1, [move]) for move in board.legal_moves][:4]
    asked: list[SearchRequest] = []
    shown: list[int] = []

    def search(request: SearchRequest) -> Result:
        asked.append(request)
        for number, line in enumerate(lines, start=1):
            request.on_info(replace(line, multipv=number))
        return Result(lines[0].pv[0], lines[0], lines=lines)

    def weaker(search: Callable[[SearchRequest], Result], seed: str = "") -> Result:
        options = SearchOptions(elo=MIN_ELO)
        asked = prepared(
            SearchRequest(board, Limits(), options, seed=seed, on_info=lambda info: shown.append(info.multipv)), None
        )
        return asked.finished(search(asked.request))

    def moves(seeds: Iterable[str]) -> list[chess.Move | None]:
        return [weaker(search, seed).bestmove for seed in seeds]

    assert len(set(moves(["a"] * 20))) == 1
    assert len(set(moves(map(str, range(20))))) > 1
    assert {(request.multipv, request.limits.nodes) for request in asked} == {(4, node_limit(MIN_ELO))}
    assert set(shown) == {1}
    assert weaker(lambda request: Result(None, lines[0])).bestmove is None


def test_a_delay_is_like_a_person_s() -> None:
    def delay_s(fen: str, *words: str, usual_s: float = 180.0, increment_s: float | None = 2.0) -> float:
        board = chess.Board(fen)
        for word in words[:-1]:
            board.push_uci(word)
        dice = Random(1)
        return human_delay_s(board, chess.Move.from_uci(words[-1]), dice, usual_s, increment_s)

    complex_s = delay_s("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", "e1g1")
    simple_s = delay_s("8/8/4k3/8/8/4K3/4P3/8 w - - 0 1", "e3e4")
    recapture_s = delay_s(chess.STARTING_FEN, "e2e4", "d7d5", "e4d5", "d8d5")
    only_s = delay_s("k7/8/8/8/8/8/5P1P/r5K1 w - - 0 1", "g1g2")
    assert max(recapture_s, only_s) < simple_s < complex_s <= 9.0
    assert delay_s(chess.STARTING_FEN, "e2e4", usual_s=1.0, increment_s=0.0) <= 0.05
    assert delay_s(chess.STARTING_FEN, "e2e4", usual_s=9e9) == 15.0
    assert 0.2 < delay_s(chess.STARTING_FEN, "e2e4", usual_s=0.5, increment_s=None) <= 0.5


def test_one_search_takes_a_limit_of_python_chess() -> None:
    board = chess.Board()
    assert psearch.search(board, Limit(depth=3)).depth == 3
    assert psearch.search(board, Limit(nodes=500)).nodes == 500
    assert psearch.search(board, Limit(white_clock=1.0, black_clock=9.0)).time_s < 0.9
    for arguments in ({"limit": Limit(depth=3), "depth": 4}, {"limit": 4}):
        with pytest.raises(psearch.PsearchError, match=r"either limit, or depth|limit must be a chess"):
            psearch.search(board, **arguments)
