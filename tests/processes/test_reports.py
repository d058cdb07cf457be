"""What a search says on its way and in the end: bounds that tell of mates, and their lines; and what users get where
null windows prove the value of the root: the same as from principal variation search."""

from __future__ import annotations

import time
from collections.abc import Iterator

import chess
import chess.engine
import pytest

from psearch.arena import setup
from psearch.arena.validate import leftovers
from psearch.options import SearchOptions
from psearch.processes.request import SearchRequest
from psearch.processes.search_reports import centipawns, to_score
from psearch.processes.supervisor import Supervisor
from psearch.results import WON_CP, Info, Limits, PsearchError
from psearch_core.chess.board.bridge import from_chess_move
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
    """The side to move mates after an odd number of plies, the other side after an even number."""
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


KIWIPETE = chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1")
SWINGS = chess.Board("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1")
MATE_IN_3 = chess.Board("r1b1kb1r/pppp1ppp/5q2/4n3/3KP3/2N3PN/PPP4P/R1BQ1B1R b kq - 0 1")
PROVED = SearchOptions(driver="null")
ALONE = SearchOptions(driver="null", policy="serial")
"""Options that make the same tree every time."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Supervisor]:
    with Supervisor(4, 16) as engine:
        yield engine


def searched(
    engine: Supervisor, board: chess.Board, limits: Limits, options: SearchOptions = PROVED, **request: object
) -> list[Info]:
    """All that is told; the result is the last."""
    engine.forget()
    infos: list[Info] = []
    result = engine.search(
        SearchRequest(board, limits, options, on_info=infos.append, live_from_s=float("inf"), **request)  # type: ignore[arg-type]
    )
    engine.settle()  # an answer does not wait for workers that notice the stop late
    assert leftovers(engine.arena) == []
    assert result.bestmove == result.info.pv[0]
    return [*infos, result.info]


def assert_playable(board: chess.Board, line: list[chess.Move]) -> None:
    board = board.copy()
    for move in line:
        assert board.is_legal(move)
        board.push(move)


def test_every_depth_ends_with_an_exact_score_and_a_line(engine: Supervisor) -> None:
    infos = searched(engine, KIWIPETE, Limits(depth=11))
    exact = [info for info in infos[:-1] if info.bound == "exact"]
    assert [info.depth for info in exact] == list(range(1, 12))
    assert infos[-1].score == exact[-1].score and infos[-1].bound == "exact"
    for info in exact:
        assert_playable(KIWIPETE, info.pv)
        assert len(info.pv) >= min(info.depth, 3)
    assert len(infos) < 5 * 11, "most null windows are nobody's business"


def test_what_is_told_meanwhile_leaves_the_aspiration_window(engine: Supervisor) -> None:
    """The clock takes such a report for trouble, and gives the iteration its end."""
    before = told = 0
    for info in searched(engine, SWINGS, Limits(depth=13), ALONE)[:-1]:
        score = info.score.relative.score(mate_score=32000)
        if info.bound == "exact":
            before = score
        elif info.depth > setup.PROVED_DEPTH:
            told += 1
            assert score >= before + 25 if info.bound == "lower" else score <= before - 25
    assert told


def test_a_stop_keeps_the_move_that_was_proved_last(engine: Supervisor) -> None:
    """It was told to nobody while the search went on."""
    lower = 0
    for nodes in range(20_000, 60_000, 4_000):
        infos = searched(engine, KIWIPETE, Limits(nodes=nodes), ALONE)
        assert int(engine.arena.header[0]["best_move"]) == from_chess_move(infos[-1].pv[0], KIWIPETE)
        lower += infos[-1].bound == "lower"
    assert lower


def test_a_mate_has_its_distance_and_its_line(engine: Supervisor) -> None:
    found = searched(engine, MATE_IN_3, Limits(depth=12))[-1]
    assert found.score.relative == chess.engine.Mate(3)
    assert len(found.pv) == 5
    board = MATE_IN_3.copy()
    for move in found.pv:
        board.push(move)
    assert board.is_checkmate()


def test_several_lines_and_chosen_moves(engine: Supervisor) -> None:
    engine.forget()
    result = engine.search(SearchRequest(KIWIPETE, Limits(depth=9), PROVED, multipv=3))
    firsts = [line.pv[0] for line in result.lines]
    assert len(set(firsts)) == 3
    values = [line.score.relative for line in result.lines]
    assert values == sorted(values, reverse=True)
    only = [move for move in KIWIPETE.legal_moves if move not in firsts]
    assert searched(engine, KIWIPETE, Limits(depth=9), only=only)[-1].pv[0] in only


def test_an_answer_at_any_moment(engine: Supervisor) -> None:
    for ms in (1, 3, 10, 30, 100):
        start = time.monotonic()
        info = searched(engine, KIWIPETE, Limits(movetime_ms=ms))[-1]
        assert time.monotonic() - start < 5
        assert_playable(KIWIPETE, info.pv)


def test_a_limit_of_nodes_is_kept_by_one_worker() -> None:
    with Supervisor(1, 16) as one:
        infos = searched(one, KIWIPETE, Limits(nodes=60_000))
        assert infos[-1].nodes == 60_000 and infos[-1].depth > setup.PROVED_DEPTH


def test_who_proves() -> None:
    auto = SearchOptions(driver="auto")
    assert not auto.proves(1, 1) and not auto.proves(7, 1)
    assert auto.proves(8, 1) and not auto.proves(8, 2)
    assert not SearchOptions(driver="auto", policy="lazy").proves(8, 1)
    assert not SearchOptions().proves(8, 1) and PROVED.proves(1, 3)
    with pytest.raises(PsearchError, match=r"driver must be one of auto, pvs, null, not 'mtd'"):
        SearchOptions(driver="mtd")
