"""A worker's answers: those of a search by itself, the same each time, and errors as outcomes."""

from __future__ import annotations

from collections.abc import Callable

import chess
import pytest
from chess.engine import Cp, Mate
from timing import least

import psearch
from psearch.batch.positions.comparing import Comparer, sure_scores
from psearch.batch.positions.position_pool import PositionWorker, WorkerSettings
from psearch.batch.positions.task import Answer, Batch, Comparison, Part, Task
from psearch.options import SearchOptions
from psearch.results import Limits

MIDDLEGAME = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3"
MATED = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"
NODES = Limits(nodes=3_000)


@pytest.fixture(scope="module")
def worker() -> PositionWorker:
    with PositionWorker(WorkerSettings(hash_mb=1), name="me") as worker:
        yield worker


def answer(worker: PositionWorker, number: int, task: Task, on_look: Callable[[], None] | None = None) -> Answer:
    worker.on_look = on_look
    found = worker.search(number, task).answer
    assert found is not None
    return found


def begun(*tasks: Task) -> Batch:
    return [Part(number, True, [(number, task)]) for number, task in enumerate(tasks)]


def test_a_worker_finds_what_a_search_by_itself_finds(worker: PositionWorker) -> None:
    alone = psearch.search(MIDDLEGAME, nodes=3_000, hash_mb=1)
    outcome = next(worker.work(begun(Task("a", MIDDLEGAME, limits=NODES))))
    assert (outcome.number, outcome.id, outcome.error, outcome.worker) == (0, "a", None, "me")
    found = outcome.answer
    assert found.best == alone.bestmove.uci()
    assert found.nodes == alone.info.nodes
    assert found.lines[0].pv == [move.uci() for move in alone.info.pv]
    assert found.lines[0].score == alone.info.score.relative
    assert found.choices[-1].move == found.best
    assert found.version == psearch.__version__


def test_what_was_searched_before_changes_nothing_in_another_list(worker: PositionWorker) -> None:
    tasks = [Task(name, fen, limits=NODES) for name, fen in (("a", "startpos"), ("b", MIDDLEGAME), ("c", "startpos"))]
    first, _, third = (outcome.answer for outcome in worker.work(begun(*tasks)))
    assert (first.nodes, first.lines, first.best) == (third.nodes, third.lines, third.best)


def test_the_table_is_kept_within_a_list(worker: PositionWorker) -> None:
    task = Task("a", MIDDLEGAME, limits=Limits(depth=6))
    first, second = (outcome.answer for outcome in worker.work([Part(0, True, [(0, task), (1, task)])]))
    assert second.nodes != first.nodes


def test_bad_positions_are_outcomes(worker: PositionWorker) -> None:
    tasks = [
        Task(1, "8/8/8/8 w", limits=NODES),
        Task(2, "startpos", ("e2e5",), NODES),
        Task(3, "startpos", root_moves=("a1a8",), limits=NODES),
        Task(4, "startpos", limits=NODES),
    ]
    found = list(worker.work(begun(*tasks)))
    assert [outcome.error is None for outcome in found] == [False, False, False, True]
    assert "bad FEN" in found[0].error
    assert "e2e5 is not a legal move" in found[1].error


def test_a_game_that_is_over_has_no_move(worker: PositionWorker) -> None:
    found = next(worker.work(begun(Task(1, MATED, limits=NODES)))).answer
    assert found.best is None
    assert (found.lines[0].score, found.lines[0].pv) == (Mate(0), [])


def test_several_lines_and_chosen_moves(worker: PositionWorker) -> None:
    several = next(worker.work(begun(Task(1, MIDDLEGAME, multipv=3, limits=NODES)))).answer
    assert len({line.pv[0] for line in several.lines}) == 3
    chosen = next(worker.work(begun(Task(1, MIDDLEGAME, root_moves=("g8f6", "a7a6"), limits=NODES)))).answer
    assert chosen.best in ("g8f6", "a7a6")


def test_moves_lead_to_the_position() -> None:
    board = Task(1, "startpos", ("e2e4", "e7e5")).board()
    assert board.move_stack == [chess.Move.from_uci("e2e4"), chess.Move.from_uci("e7e5")]
    assert board.piece_at(chess.E5) is not None


def test_it_looks_up_while_it_searches(worker: PositionWorker) -> None:
    looks: list[int] = []
    answer(worker, 0, Task(1, MIDDLEGAME, limits=Limits(movetime_ms=600)), lambda: looks.append(1))
    assert 2 <= len(looks) <= 8


def test_two_threads() -> None:
    with PositionWorker(WorkerSettings(threads=2, hash_mb=1)) as worker:
        found = next(worker.work(begun(Task(1, MIDDLEGAME, limits=NODES)))).answer
    assert found.threads == 2
    assert found.best is not None


def test_more_threads_may_join_a_search_that_goes_on() -> None:
    with PositionWorker(WorkerSettings(hash_mb=4)) as worker:
        looks: list[int] = []

        def look() -> None:
            looks.append(1)
            if len(looks) == 2:
                worker.beside(2)

        grown = answer(worker, 0, Task(1, MIDDLEGAME, limits=Limits(movetime_ms=2_000)), look)
        after = answer(worker, 1, Task(2, MIDDLEGAME, limits=NODES))
        timed = Task(3, MIDDLEGAME, limits=Limits(movetime_ms=500))
        assert 0.4 < least(lambda: answer(worker, 2, timed).time_s, 0.9) < 0.9
    assert (grown.threads, after.threads) == (2, 2)
    assert 1.9 < grown.time_s < 3.0
    assert grown.notes == ()
    assert grown.lines[0].depth > 8


def test_a_node_limit_holds_when_more_join() -> None:
    with PositionWorker(WorkerSettings(hash_mb=4)) as worker:
        alone = answer(worker, 0, Task(1, MIDDLEGAME, limits=Limits(nodes=400_000)))
        worker.forget()
        # ten looks a second: it must not be over before the first of them
        grown = answer(worker, 0, Task(1, MIDDLEGAME, limits=Limits(nodes=1_500_000)), lambda: worker.beside(2))
    assert alone.nodes == 400_000
    assert grown.threads == 2
    assert 1_500_000 <= grown.nodes < 1_540_000


def test_threads_between_searches() -> None:
    with PositionWorker(WorkerSettings(hash_mb=1)) as worker:
        worker.beside(2)
        assert answer(worker, 0, Task(1, MIDDLEGAME, limits=NODES)).threads == 2


BEFORE_MATE = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 3 3"
"""3... Nf6 is mated at once, 3... g6 is not"""
LIMIT = Limits(nodes=40_000)


def played(id: str, fen: str, *moves: str, line: str = "", limits: Limits = LIMIT) -> Task:
    return Task(id, fen, moves, limits, line=tuple(line.split()))


def one_list(*tasks: Task) -> Batch:
    return [Part(0, True, list(enumerate(tasks)))]


def test_a_move_that_may_be_a_mistake_is_compared_with_the_best_one(worker: PositionWorker) -> None:
    behind = played("b", BEFORE_MATE, "g8f6")
    _, found = (outcome.answer for outcome in worker.work(one_list(behind, played("a", BEFORE_MATE, line="g8f6 h5f7"))))
    assert found is not None and found.compared is not None
    compared = found.compared
    assert compared.played_score == Mate(-1)
    assert Cp(-300) < compared.best_score < Cp(300)
    assert compared.best == compared.pv[0] != "g8f6"
    board = behind.board()
    board.pop()
    assert sure_scores(board, compared).seeming_loss(board) > 0.15


def test_nothing_is_compared_where_nothing_was_lost(worker: PositionWorker) -> None:
    """Nor in a position where nobody asks."""
    for line in ("g7g6 h5f3", ""):
        tasks = [played("b", BEFORE_MATE, *line.split()[:1]), played("a", BEFORE_MATE, line=line)]
        found = [outcome.answer for outcome in worker.work(one_list(*tasks))][-1]
        assert found is not None and found.compared is None


@pytest.mark.parametrize("is_suspect", [True, False])
def test_a_blunder_is_found_whatever_the_two_scores_say(is_suspect: bool) -> None:
    board = chess.Board(BEFORE_MATE)
    comparer = Comparer(SearchOptions())
    for words, loses in (("g8f6 h5f7", True), ("g7g6 h5f3", False)):
        line = [chess.Move.from_uci(word) for word in words.split()]
        found = comparer.compare(board, line, LIMIT, None, is_suspect)
        if loses or is_suspect:
            assert found is not None and (sure_scores(board, found).seeming_loss(board) > 0.15) == loses
        else:
            assert found is None
    comparer.close()


SMALL, WHOLE, DEEPER = (2_000, 4_000), (8_000, 32_000), (32_000, 128_000)
"""Nodes for a position that followed, and for the position, of 64,000."""


@pytest.mark.parametrize(
    ("is_suspect", "losses", "efforts"),
    [
        (True, [300], [WHOLE]),  # a mark
        (True, [0], [WHOLE]),  # none
        (True, [85], [WHOLE, DEEPER]),  # so much is noise, in part
        (False, [0], [SMALL]),
        (False, [300, 0], [SMALL, WHOLE]),
        (False, [300, 300], [SMALL, WHOLE, DEEPER]),
        (False, [300, 100], [SMALL, WHOLE, DEEPER]),
    ],
)
def test_what_leaves_a_doubt_is_compared_again(
    is_suspect: bool, losses: list[int], efforts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[int | None, int | None]] = []

    def canned(
        self: Comparer, board: chess.Board, line: object, behind: Limits, limits: Limits, on_live: object
    ) -> list[Comparison]:
        made.append((behind.nodes, limits.nodes))
        lost = [*losses, 200][len(made) - 1]
        return [Comparison(depth, 1, "d2d4", Cp(lost), Cp(0), ["d2d4"]) for depth in (12, 11, 10)]

    monkeypatch.setattr(Comparer, "_compare", canned)
    board = chess.Board("r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 20")
    found = Comparer(SearchOptions()).compare(
        board, [chess.Move.from_uci("e2e4")], Limits(nodes=64_000), None, is_suspect
    )
    assert made == efforts
    if efforts == [SMALL]:
        assert found is None
    else:
        assert found is not None and found.best_score == Cp([*losses, 200][len(efforts) - 1])


@pytest.mark.parametrize(
    ("limits", "small", "deeper"),
    [
        (Limits(depth=10), Limits(7), Limits(12)),
        (Limits(depth=2), Limits(1), Limits(4)),
        (Limits(depth=100), Limits(97), Limits(100)),
        (Limits(movetime_ms=100), Limits(nodes=3125), Limits(nodes=100_000)),
        (Limits(nodes=1), Limits(nodes=1), Limits(nodes=20_000)),
        (Limits(nodes=2**62), Limits(nodes=2**58), Limits(nodes=2**62)),
    ],
)
def test_limits_of_comparisons(limits: Limits, small: Limits, deeper: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Limits] = []

    def canned(
        self: Comparer, board: chess.Board, line: object, behind: Limits, limits: Limits, on_live: object
    ) -> list[Comparison]:
        made.append(limits)
        return [Comparison(12, 1, "d2d4", Cp(300), Cp(0), ["d2d4"])]

    monkeypatch.setattr(Comparer, "_compare", canned)
    Comparer(SearchOptions()).compare(chess.Board(), [chess.Move.from_uci("e2e4")], limits, None, False)
    assert (made[0], made[2]) == (small, deeper)


def test_what_was_searched_before_changes_nothing_in_a_comparison(worker: PositionWorker) -> None:
    """Another table, and other limits of the searches that lead to it: as with a limit of time."""
    alone = [played("b", BEFORE_MATE, "g8f6"), played("a", BEFORE_MATE, line="g8f6 h5f7")]
    others = [Task(str(number), MIDDLEGAME, (), Limits(nodes=30_000 * number)) for number in (1, 2)]
    first, second = (
        [outcome.answer for outcome in worker.work(one_list(*before, *alone))][-1] for before in ([], others)
    )
    assert first.nodes != second.nodes or first.lines != second.lines
    assert first.compared == second.compared is not None


def test_behind_an_interruption_the_comparison_is_the_same(worker: PositionWorker) -> None:
    """The score behind the move is in the journal and not here."""
    behind, before = played("b", BEFORE_MATE, "g8f6"), played("a", BEFORE_MATE, line="g8f6 h5f7")
    whole = [outcome.answer for outcome in worker.work(one_list(behind, before))][-1]
    assert whole is not None and whole.compared is not None
    for others in ([], [played("x", "startpos", "e2e4")]):
        rest = [outcome.answer for outcome in worker.work(one_list(*others, before))][-1]
        assert rest is not None and rest.compared == whole.compared


def test_a_comparison_counts_nodes_and_no_time(worker: PositionWorker) -> None:
    """It is the same on a slower machine."""
    limits = Limits(movetime_ms=20)
    tasks = [
        [played("b", BEFORE_MATE, "g8f6", limits=limits), played("a", BEFORE_MATE, line="g8f6 h5f7", limits=limits)]
        for _ in range(3)
    ]
    found = [[outcome.answer for outcome in worker.work(one_list(*some))][-1] for some in tasks]
    assert found[0] is not None and found[0].compared is not None
    assert [one.compared for one in found if one is not None] == [found[0].compared] * 3
