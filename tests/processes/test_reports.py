"""What a search says on its way and in the end: bounds that tell of mates, and their lines."""

from __future__ import annotations

import chess
import chess.engine
import pytest

from psearch.processes.request import SearchRequest
from psearch.processes.search_reports import centipawns, to_score
from psearch.processes.supervisor import Supervisor
from psearch.results import WON_CP, Info, Limits
from psearch_core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY

ROOK = chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1")
MATE_IN_2 = chess.Board("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1")
MATED_IN_1 = chess.Board("kbK5/pp6/RP6/8/8/8/8/8 b - - 0 1")


def reports(engine: Supervisor, board: chess.Board, nodes: int) -> list[Info]:
    """All that a search says; the result is the last."""
    engine.forget()
    infos: list[Info] = []
    result = engine.search(SearchRequest(board, Limits(nodes=nodes), on_info=infos.append, live_from_s=float("inf")))
    return [*infos, result.info]


@pytest.mark.parametrize(
    ("value", "bound", "score"),
    [
        (MATE - 3, BOUND_EXACT, chess.engine.Mate(2)),
        (4 - MATE, BOUND_EXACT, chess.engine.Mate(-2)),
        (MATE - 85, BOUND_LOWER, chess.engine.Cp(WON_CP)),
        (84 - MATE, BOUND_UPPER, chess.engine.Cp(-WON_CP)),
        # who wins is not known of these, only how long it lasts at least
        (4 - MATE, BOUND_LOWER, chess.engine.Mate(-2)),
        (MATE - 3, BOUND_UPPER, chess.engine.Mate(2)),
        (31, BOUND_LOWER, chess.engine.Cp(31)),
    ],
)
def test_a_bound_that_tells_of_a_mate_is_won_or_lost(value: int, bound: int, score: chess.engine.Score) -> None:
    assert to_score(value, chess.WHITE, bound).relative == score
    assert to_score(value, chess.BLACK, bound).black() == score


@pytest.mark.parametrize("turn", chess.COLORS)
def test_a_score_goes_back_to_what_the_search_counts(turn: chess.Color) -> None:
    """Who moves mates after an odd number of plies, who does not after an even number."""
    won, lost = range(MATE - 1, MATE_IN_MAX_PLY, -2), range(-MATE, -MATE_IN_MAX_PLY, 2)
    for value in (*won, *lost, -WON_CP, -31, 0, 31, WON_CP):
        assert centipawns(to_score(value, turn)) == value


def test_a_far_mate_in_a_missed_window_is_won() -> None:
    """Rook and king against king: windows are missed by mates in 30 to 60 long before one is found."""
    won = 0
    with Supervisor(1, 16) as engine:
        for nodes in range(200_000, 1_400_000, 200_000):
            for info in reports(engine, ROOK, nodes):
                score = info.score.relative
                assert info.bound == "exact" or not score.is_mate(), info
                won += score == chess.engine.Cp(WON_CP)
    assert won > 0


@pytest.mark.parametrize("board", [MATE_IN_2, MATED_IN_1], ids=["given", "taken"])
def test_an_exact_mate_stays_one_wherever_the_search_is_stopped(board: chess.Board) -> None:
    stopped = 0
    with Supervisor(1, 1) as engine:
        for nodes in range(100, 6000, 100):
            *infos, last = reports(engine, board, nodes)
            exact = [info for info in infos if info.bound == "exact" and info.score.is_mate()]
            if exact:
                stopped += 1
                assert (last.bound, last.score) == ("exact", exact[-1].score), infos
                assert len(last.pv) == len(exact[-1].pv)
    assert stopped > 10


def test_a_move_that_missed_the_window_has_a_reply() -> None:
    bounds = 0
    with Supervisor(1, 16) as engine:
        for board in (ROOK, chess.Board()):
            for info in reports(engine, board, 1_000_000):
                bounds += info.bound != "exact"
                assert len(info.pv) > 1 or info.depth == 1, info
    assert bounds > 10
