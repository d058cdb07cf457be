"""`Simulator.play`: moves of games in virtual time."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import pytest
from positions import MIDDLE_GAME

from psearch.options import SearchOptions
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator

ONE_MOVE = "7k/8/8/8/8/8/1r6/K7 w - - 0 1"
MILLISECOND = 0.001


@pytest.fixture(scope="module")
def eight() -> Iterator[Simulator]:
    made = Simulator(8, 4, Costs().without_sharing())
    yield made
    made.close()


def play(simulator: Simulator, fen: str, seconds: float) -> tuple[int, float, int, int]:
    found = simulator.play(chess.Board(fen), seconds, SearchOptions())
    return found.nodes, found.seconds, found.depth, found.bestmove


@pytest.mark.parametrize("limit", [MILLISECOND, 10 * MILLISECOND])
def test_time_is_kept_to_within_some_nodes(eight: Simulator, limit: float) -> None:
    eight.forget()
    nodes, seconds, depth, _ = play(eight, MIDDLE_GAME, limit)
    assert limit <= seconds < limit + 0.2 * MILLISECOND
    assert depth > 1 and 0.5 * 8 * limit < Costs().seconds_of(nodes) <= 8 * seconds * 1.1


def test_no_worker_searches_on_after_the_answer(eight: Simulator) -> None:
    eight.forget()
    play(eight, MIDDLE_GAME, 5 * MILLISECOND)
    assert eight.arena.header[0]["idle_workers"] == 8
    assert (eight.arena.stack["state"] == 0).all() and not eight.arena.stack["open_mask"].any()


def test_the_table_is_kept_until_it_is_to_be_forgotten(eight: Simulator) -> None:
    eight.forget()
    first = play(eight, MIDDLE_GAME, 5 * MILLISECOND)
    later = [play(eight, MIDDLE_GAME, 5 * MILLISECOND) for _ in range(8)]
    eight.forget()
    assert play(eight, MIDDLE_GAME, 5 * MILLISECOND) == first
    assert later[-1][2] > first[2], "what was found before need not be searched again"


def test_a_search_to_a_depth_has_no_deadline(eight: Simulator) -> None:
    before = eight.search("", chess.Board(MIDDLE_GAME), 8, SearchOptions())
    play(eight, MIDDLE_GAME, MILLISECOND)
    assert eight.search("", chess.Board(MIDDLE_GAME), 8, SearchOptions()) == before


def test_the_only_move_is_played_at_once(eight: Simulator) -> None:
    nodes, _, depth, _ = play(eight, ONE_MOVE, 1.0)
    assert depth == 1 and nodes < 100
