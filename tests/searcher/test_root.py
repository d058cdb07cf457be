"""Endgame tables and a limited strength: one keyword each for `search`, `Engine` and `analyse_many`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import chess
import pytest
from chess.engine import Limit

import psearch

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
        with pytest.raises(psearch.PsearchError, match="UCI_Elo"):
            engine.analyse(board, LIMIT, options={"UCI_Elo": None})
        engine.configure({"UCI_Elo": None, "SyzygyPath": ""})
        assert engine.analyse(board, LIMIT)["tbhits"] == 0


def test_one_search_takes_a_limit_of_python_chess() -> None:
    board = chess.Board()
    assert psearch.search(board, Limit(depth=3)).depth == 3
    assert psearch.search(board, Limit(nodes=500)).nodes == 500
    assert psearch.search(board, Limit(white_clock=1.0, black_clock=9.0)).time_s < 0.9
    for arguments in ({"limit": Limit(depth=3), "depth": 4}, {"limit": 4}):
        with pytest.raises(psearch.PsearchError, match=r"either limit, or depth|limit must be a chess"):
            psearch.search(board, **arguments)
