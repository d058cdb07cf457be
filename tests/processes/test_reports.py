"""Reports of a search on its way and at its end: bounds, mates and their lines; several lines; and steering."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator

import chess
import chess.engine
import pytest
from inspect_node import TableProbe
from timing import least

from psearch.arena import setup
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.shared_results import InfoRing, Record
from psearch.arena.validate import leftovers
from psearch.options import SearchOptions
from psearch.processes import patience
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.search_reports import Reports, centipawns, to_score
from psearch.processes.supervisor import Supervisor
from psearch.processes.time_manager import Budget, TimeManager
from psearch.results import WON_CP, Info, Limits, PsearchError, Result
from psearch.scheduler.scheduler_entries import work
from psearch_core.chess.board.bridge import from_chess_move
from psearch_core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY

ROOK = chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1")
MATE_IN_2 = chess.Board("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1")
MATED_IN_1 = chess.Board("kbK5/pp6/RP6/8/8/8/8/8 b - - 0 1")


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
            for info in searched(engine, ROOK, Limits(nodes=nodes), SearchOptions()):
                score = info.score.relative
                assert info.bound == "exact" or not score.is_mate(), info
                won += score == chess.engine.Cp(WON_CP)
    assert won > 0


@pytest.mark.parametrize("board", [MATE_IN_2, MATED_IN_1], ids=["given", "taken"])
def test_an_exact_mate_stays_one_wherever_the_search_is_stopped(board: chess.Board) -> None:
    stopped = 0
    with Supervisor(1, 1) as engine:
        for nodes in range(100, 6000, 100):
            *infos, last = searched(engine, board, Limits(nodes=nodes), SearchOptions())
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
            for info in searched(engine, board, Limits(nodes=1_000_000), SearchOptions()):
                bounds += info.bound != "exact"
                assert len(info.pv) > 1 or info.depth == 1, info
    assert bounds > 10


KIWIPETE = chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1")
SWINGS = chess.Board("8/7p/5k2/5p2/p1p2P2/Pr1pPK2/1P1R3P/8 b - - 0 1")
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
    """Return all that a search reports; the result is the last."""
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


@pytest.mark.parametrize("lost", [range(2, 7), range(3, 6), range(4, 11), range(1, 4), range(7, 16)], ids=str)
def test_lines_of_two_depths_are_never_shown_together(lost: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports that a slow reader lets be overwritten are missing at any place."""
    arena, board = Arena(1, 1), chess.Board()
    write_search(arena, board, Limits(depth=5), SearchOptions(), multipv=3)
    moves = [from_chess_move(move, board) for move in list(board.legal_moves)[:3]]
    places = itertools.product(range(1, 6), range(3))
    sent = [Record(0, depth, depth, 0, BOUND_EXACT, line, -1, [moves[line]]) for depth, line in places]
    reports = Reports(arena, board, since=0.0)
    monkeypatch.setattr(InfoRing, "unread", lambda ring: [one for n, one in enumerate(sent) if n not in lost])
    shown = [lines for info in reports.read() if (lines := reports.complete(info))]
    whole = {depth for depth in range(1, 6) if not {3 * depth - 3, 3 * depth - 2, 3 * depth - 1} & {*lost}}
    assert [{line.depth for line in lines} for lines in shown] == [{depth} for depth in sorted(whole)]
    assert all(len({line.pv[0] for line in lines}) == 3 for lines in shown)
    arena.close()


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
    for nodes in range(20_000, 100_000, 4_000):
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


ENDING = chess.Board("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1")


@pytest.mark.parametrize("policy", ["serial", "calibrated", "garms", "root", "lazy", "abdada"])
def test_each_line_has_the_value_of_a_search_without_the_better_moves(policy: str) -> None:
    """In plain mode the value is that of pure minimax, whoever searches it and in whatever order."""
    lines = 4
    with Supervisor(3, 1) as engine:
        for board in (chess.Board(), KIWIPETE, ENDING):
            result = engine.search(
                SearchRequest(board, Limits(depth=3), options=SearchOptions.plain(policy), multipv=lines)
            )
            assert [line.multipv for line in result.lines] == [1, 2, 3, 4]
            assert leftovers(engine.arena) == []
            left = list(board.legal_moves)
            for line in result.lines:
                alone = engine.search(
                    SearchRequest(board, Limits(depth=3), options=SearchOptions.plain("serial"), only=left)
                )
                assert alone.info.score == line.score
                left.remove(line.pv[0])


def test_lines_are_sorted_distinct_and_complete_at_every_depth() -> None:
    infos: list[Info] = []
    with Supervisor(2, 16) as engine:
        result = engine.search(
            SearchRequest(
                KIWIPETE, Limits(depth=7), on_info=lambda info: None if info.is_live else infos.append(info), multipv=5
            )
        )
    assert len(infos) == 7 * 5
    for depth in range(1, 8):
        lines = infos[5 * (depth - 1) : 5 * depth]
        assert {line.depth for line in lines} == {depth}
        assert {line.bound for line in lines} == {"exact"}
        assert len({line.pv[0] for line in lines}) == 5
        scores = [line.score.relative for line in lines]
        assert scores == sorted(scores, reverse=True)
    assert result.bestmove == result.lines[0].pv[0] == infos[-5].pv[0]


def test_stopped_anywhere_the_lines_are_distinct() -> None:
    with Supervisor(2, 16) as engine:
        for nodes in (1, 10, 100, 300, 1000, 3000, 10_000, 30_000, 100_000):
            result = engine.search(SearchRequest(KIWIPETE, Limits(nodes=nodes), multipv=6))
            firsts = [line.pv[0] for line in result.lines]
            assert len(set(firsts)) == len(firsts)
            assert result.bestmove == firsts[0]
            assert leftovers(engine.arena) == []


def test_more_lines_than_moves() -> None:
    with Supervisor(2, 1) as engine:
        board = chess.Board("7k/8/8/8/8/8/q7/K7 w - - 0 1")
        assert len(engine.search(SearchRequest(board, Limits(depth=4), multipv=200)).lines) == 1
        assert len(engine.search(SearchRequest(chess.Board(), Limits(depth=1), multipv=200)).lines) == 20


def test_one_line_is_the_search_as_ever() -> None:
    with Supervisor(1, 16) as engine:
        first = engine.search(SearchRequest(KIWIPETE, Limits(depth=7)))
        engine.forget()
        again = engine.search(SearchRequest(KIWIPETE, Limits(depth=7), only=list(KIWIPETE.legal_moves), multipv=1))
        assert (first.info.nodes, first.bestmove) == (again.info.nodes, again.bestmove)
        assert [line.pv for line in first.lines] == [first.info.pv]


@pytest.mark.parametrize("multipv", [1, 3])
def test_a_search_of_some_moves_stores_nothing_for_the_root(multipv: int) -> None:
    """Its value is not the position's. Lines after the first are searches of some moves, too."""
    arena = Arena(1, 1)
    worst = [chess.Move.from_uci("g2h3"), chess.Move.from_uci("a2a3")]
    only = worst if multipv == 1 else None
    write_search(arena, KIWIPETE, Limits(depth=4), SearchOptions(policy="serial"), only, multipv)
    while not work(arena.context, 0, 1 << 20):
        continue
    entry = TableProbe(arena.context).probe(int(arena.header[0]["root"]["key"]))
    if multipv == 1:
        assert entry is None
    else:
        scores = [int(score) for score in arena.header[0]["line_scores"][:multipv]]
        assert entry.score == scores[0] != scores[-1]
    arena.close()


def test_mate_stops_at_the_wanted_distance_only() -> None:
    with Supervisor(1, 1) as engine:
        start = time.monotonic()
        result = engine.search(SearchRequest(MATE_IN_2, Limits(mate=2, movetime_ms=20_000)))
        assert result.info.score.relative == chess.engine.Mate(2)
        assert time.monotonic() - start < 5
        assert not result.interrupted
        # found, but not short enough: the other limit ends it
        assert engine.search(SearchRequest(MATE_IN_2, Limits(mate=1, depth=5))).info.depth == 5


# Steering


def test_stop_before_during_and_after() -> None:
    with Supervisor(2, 16) as engine:
        early = SearchControl()
        early.stop()
        result = engine.search(SearchRequest(KIWIPETE, Limits(), control=early))
        assert result.interrupted
        assert result.info.depth >= 1  # the first iteration is finished in any case
        during = SearchControl()
        timer = threading.Timer(0.2, during.stop)
        timer.start()
        assert engine.search(SearchRequest(KIWIPETE, Limits(), control=during)).interrupted
        timer.join()
        during.stop()
        late = SearchControl()
        assert not engine.search(SearchRequest(KIWIPETE, Limits(depth=3), control=late)).interrupted
        late.stop()


def test_pondering_ends_on_the_clock_that_starts_with_the_hit() -> None:
    with Supervisor(2, 16) as engine:

        def seconds() -> float:
            control = SearchControl(TimeManager(Budget(hard_s=0.3), 20, pondering=True))
            timer = threading.Timer(0.5, control.ponderhit)
            start = time.perf_counter()
            timer.start()
            result = engine.search(SearchRequest(KIWIPETE, Limits(), control=control))
            taken = time.perf_counter() - start
            assert not result.interrupted
            timer.join()
            return taken

        assert 0.75 < least(seconds, 1.5) < 1.5


def test_the_time_since_it_was_asked_for_counts() -> None:
    with Supervisor(1, 16) as engine:

        def seconds() -> float:
            start = time.perf_counter()
            control = SearchControl(TimeManager(Budget(hard_s=0.5)), asked_at=start - 0.4)
            result = engine.search(SearchRequest(KIWIPETE, Limits(), control=control))
            taken = time.perf_counter() - start
            assert result.info.time_s >= 0.5
            return taken

        assert least(seconds, 0.4) < 0.4


def test_one_search_at_a_time() -> None:
    refused: list[str] = []

    def try_another(info: Info) -> None:
        if not refused:
            try:
                engine.search(SearchRequest(chess.Board(), Limits(depth=1)))
            except PsearchError as error:
                refused.append(str(error))

    with Supervisor(1, 1) as engine:
        engine.search(SearchRequest(chess.Board(), Limits(depth=5), on_info=try_another))
        assert refused == ["this engine is searching already"]
    with pytest.raises(PsearchError, match="closed"):
        engine.search(SearchRequest(chess.Board(), Limits(depth=1)))


def test_an_early_answer_fits_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move and line belong together, though workers go on writing meanwhile; and the next search finds them ready."""
    for name in ("SETTLE_S", "LEAST_SETTLE_S"):  # others may have the cores for longer than these
        monkeypatch.setattr(patience, name, 60.0)
    answers: list[Result] = []
    with Supervisor(2, 1) as engine:
        for number in range(1, 200):
            limits = Limits(movetime_ms=1 + number // 4)
            answers.append(engine.search(SearchRequest(KIWIPETE, limits, multipv=1 + number % 2, patience_s=0.0)))
        assert not any(answer.notes for answer in answers), "late workers are waited for, not replaced"
        assert engine.search(SearchRequest(KIWIPETE, Limits(depth=5))).info.depth == 5
        assert leftovers(engine.arena) == []
    for answer in answers:
        assert answer.bestmove is not None
        assert answer.bestmove == answer.info.pv[0]
        board = KIWIPETE.copy()
        for move in answer.info.pv:
            assert move in board.legal_moves
            board.push(move)


def test_live_reports_name_a_root_move() -> None:
    live: list[Info] = []
    with Supervisor(2, 16) as engine:
        engine.search(
            SearchRequest(
                KIWIPETE, Limits(movetime_ms=1200), on_info=lambda info: live.append(info) if info.is_live else None
            )
        )
    assert live
    for info in live:
        if info.currmove is not None:
            assert info.currmove in KIWIPETE.legal_moves
            assert 1 <= info.currmovenumber <= KIWIPETE.legal_moves.count()
    assert any(info.currmove is not None for info in live)
