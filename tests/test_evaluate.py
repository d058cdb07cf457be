"""Evaluation: the same for both colours, bounded where the proofs need it, equal to its naive twin."""

from __future__ import annotations

import random

import chess
import naive
import pytest
from positions import absurd, sample

from psearch.core.boards import to_chess_move
from psearch.core.constants import INFINITE, MATE_IN_MAX_PLY
from psearch.core.evaluate import PHASE_MAX, REST_BOUND
from psearch.core.inspect_nodes import NodeProbe, tapered
from psearch.core.tables import make_tables
from psearch.kernels import load_kernels


@pytest.fixture(scope="module")
def probe() -> NodeProbe:
    load_kernels()
    return NodeProbe(make_tables())


@pytest.fixture(scope="module")
def boards() -> list[chess.Board]:
    return sample(1, 400) + sample(2, 100, chess960=True) + absurd(3, 600)


def test_twins_agree(probe: NodeProbe, boards: list[chess.Board]) -> None:
    clamped = 0
    for board in boards:
        probe.set(board)
        assert probe.evaluate() == naive.evaluation(board), board.fen()
        clamped += abs(naive.rest_of(board)) > REST_BOUND
    assert 10 < clamped < len(boards) // 2, "both sides of the clamp must be seen"


def test_material_is_the_exact_tapered_sum(probe: NodeProbe, boards: list[chess.Board]) -> None:
    for board in boards:
        probe.set(board)
        expected = naive.psq_sum(board)
        assert probe.material() == (expected if board.turn else -expected), board.fen()


def test_material_stays_exact_along_a_game(probe: NodeProbe) -> None:
    """M from sums kept up move by move, captures, promotions and castling included."""
    dice = random.Random(11)
    for start in (chess.STARTING_FEN, "4k3/PPPPPPPP/8/8/8/8/pppppppp/4K3 w - - 0 1"):
        board = chess.Board(start)
        probe.set(board)
        while not board.is_game_over() and board.ply() < 120:
            code = dice.choice(probe.legal_moves())
            probe.play(code)
            board.push(to_chess_move(code, board))
            expected = naive.psq_sum(board)
            assert probe.material() == (expected if board.turn else -expected), board.fen()


def test_rest_is_bounded(probe: NodeProbe, boards: list[chess.Board]) -> None:
    """E = M + R with |R| <= B: sound futility rests on it."""
    widest = 0
    for board in boards:
        probe.set(board)
        rest = probe.evaluate() - probe.material()
        assert abs(rest) <= REST_BOUND, board.fen()
        widest = max(widest, abs(rest))
    assert widest == REST_BOUND


def test_colours_are_alike(probe: NodeProbe, boards: list[chess.Board]) -> None:
    for board in boards:
        probe.set(board)
        value = probe.evaluate()
        probe.set(board.mirror())
        assert probe.evaluate() == value, board.fen()


def test_passing_the_move_turns_the_sign(probe: NodeProbe, boards: list[chess.Board]) -> None:
    turned = 0
    for board in boards:
        if board.is_check():
            continue
        probe.set(board)
        value = probe.evaluate()
        probe.play_null()
        assert probe.evaluate() == -value, board.fen()
        turned += 1
    assert turned > 300


def test_value_fits_below_mates(probe: NodeProbe) -> None:
    """The most that a legal number of men can be worth is no mate score."""
    probe.set(chess.Board("QQQQ1Q2/2Q2Q2/QQ6/8/R6R/1N1B1N1B/8/K6k b - - 0 1"))
    assert 9_000 < -probe.evaluate() < MATE_IN_MAX_PLY - 1 < INFINITE
    probe.set(chess.Board("QQQQQQQQ/QQQQQQQQ/QQQQ4/8/8/8/8/K6k b - - 0 1"))
    assert -probe.evaluate() < MATE_IN_MAX_PLY - 1


def test_taper_rounds_towards_zero(probe: NodeProbe) -> None:
    dice = random.Random(5)
    assert int(tapered(1, 0, 12)) == 0
    assert int(tapered(-1, 0, 12)) == 0
    assert int(tapered(-25, -25, 7)) == -25
    for _ in range(2000):
        middle_game, end_game = dice.randint(-9000, 9000), dice.randint(-9000, 9000)
        phase = dice.randint(0, PHASE_MAX)
        value = int(tapered(middle_game, end_game, phase))
        assert value == naive.taper(middle_game, end_game, phase)
        assert int(tapered(-middle_game, -end_game, phase)) == -value
        assert min(middle_game, end_game) <= value <= max(middle_game, end_game)


def test_promoted_queens_do_not_leave_the_phase(probe: NodeProbe) -> None:
    """With more pieces than at the start the middle game values count, not more than those."""
    board = chess.Board("QQQQQQQQ/8/8/k7/8/7K/8/8 b - - 0 1")
    probe.set(board)
    assert int(probe.record["phase"]) == 32
    middle_game = int(probe.record["psq_mg"])
    assert probe.material() == -middle_game
