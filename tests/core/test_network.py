"""The evaluation by a network: equal to its definition, kept up to date, the same for both colours."""

from __future__ import annotations

import random
from collections.abc import Iterator

import chess
import numpy as np
import pytest
from inspect_node import (
    NodeProbe,
    bytes_that_differ,
    dot_of_squares,
    move_rows,
    sum_rows,
    value_by_network,
)
from positions import sample

from psearch_core.chess.board.bridge import set_position, to_chess_move
from psearch_core.chess.chess_entries import evaluate_position, evaluate_position_by_network
from psearch_core.chess.evaluation.network_file import default_network
from psearch_core.records import NETWORK_HIDDEN, OUT_ONE, ROW_ONE, evaluation_dtype, position_dtype

_CODES = [chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN, chess.KING]


def codes_of(board: chess.Board) -> np.ndarray:
    """Return what stands on the squares, as `position_dtype` has it: 0, else colour * 8 + piece type + 1."""
    codes = np.zeros(64, np.int64)
    for square, piece in board.piece_map().items():
        codes[square] = (0 if piece.color else 8) + _CODES.index(piece.piece_type) + 1
    return codes


def sums_of(network: np.void, codes: np.ndarray, side: int) -> np.ndarray:
    """Return a side's sums of (n, 64) boards, (n, hidden units)."""
    kings = np.argmax(codes == side * 8 + 6, axis=1)
    flips = 56 * side ^ np.where(kings & 4, 7, 0)
    sums = np.tile(network["bias"].astype(np.int32), (len(codes), 1))
    rows = network["rows"].astype(np.int32)
    for square in range(64):
        code = codes[:, square]
        there = code > 0
        feature = 384 * ((code >> 3) ^ side) + 64 * ((code & 7) - 1) + (square ^ flips)
        sums[there] += rows[feature[there]]
    return sums


def values_of(network: np.void, codes: np.ndarray, movers: np.ndarray) -> np.ndarray:
    """Return the values of (n, 64) boards in centipawns for the side to move, 0 White or 1 Black."""
    both = np.stack([sums_of(network, codes, side) for side in (0, 1)])
    units = np.clip(both, 0, ROW_ONE).astype(np.int64) ** 2
    places = np.arange(len(codes))
    bucket = ((codes > 0).sum(axis=1) - 1) // 4
    out = network["out"].astype(np.int64)[bucket]
    total = (units[movers, places] * out[:, 0]).sum(axis=1) + (units[1 - movers, places] * out[:, 1]).sum(axis=1)
    total += network["out_bias"][bucket]
    return np.clip(total * int(network["unit"]) // (ROW_ONE * ROW_ONE * OUT_ONE), -20_000, 20_000)


CODES = [*range(1, 7), *range(9, 15)]
SQUARES = np.uint64(1) << np.arange(64, dtype=np.uint64)
LARGE = np.iinfo(np.int16).max


def random_rows(dice: np.random.Generator, count: int, least: int = -LARGE, most: int = LARGE) -> np.ndarray:
    return dice.integers(least, most, (count, NETWORK_HIDDEN)).astype(np.int16)


class Evaluator:
    """Evaluates boards with sums of its own."""

    def __init__(self, tables: np.ndarray) -> None:
        self.tables = tables
        self.scratch = np.zeros(1, evaluation_dtype)
        self.position = np.zeros(1, position_dtype)

    def __call__(self, board: chess.Board, ply: int = 0) -> int:
        set_position(self.tables, self.position, board)
        addresses = (array.ctypes.data for array in (self.tables, self.scratch, self.position))
        return int(value_by_network(*addresses, ply))


@pytest.fixture
def fresh(tables: np.ndarray) -> Evaluator:
    return Evaluator(tables)


def by_definition(boards: list[chess.Board]) -> list[int]:
    codes = np.stack([codes_of(board) for board in boards])
    movers = np.array([0 if board.turn else 1 for board in boards])
    return [int(value) for value in values_of(default_network().record[0], codes, movers)]


def random_game(dice: random.Random, plies: int) -> Iterator[chess.Board]:
    """A game of random moves that goes back now and then, as a search does."""
    board = chess.Board(chess960=True)
    for _ in range(plies):
        moves = list(board.legal_moves)
        if not moves or (board.move_stack and dice.random() < 0.3):
            for _ in range(min(len(board.move_stack), dice.randint(1, 4))):
                board.pop()
        else:
            board.push(dice.choice(moves))
        yield board


# -- vectors against numpy -------------------------------------------------------------------------------------------


def test_rows_are_added_and_taken_off(kernels: None) -> None:
    dice = np.random.default_rng(1)
    rows = random_rows(dice, 40)
    for added, removed in ((0, 0), (1, 0), (0, 1), (2, 1), (32, 0), (3, 32)):
        places = [
            np.array([rows[i].ctypes.data for i in dice.integers(1, 40, count)] or [0], np.int64)
            for count in (added, removed)
        ]
        numbers = [(place - rows.ctypes.data) // rows[0].nbytes for place in places]
        target = np.zeros(NETWORK_HIDDEN, np.int16)
        sum_rows(target.ctypes.data, rows[0].ctypes.data, places[0].ctypes.data, added, places[1].ctypes.data, removed)
        wanted = rows[0].astype(np.int64)
        wanted = wanted + rows[numbers[0][:added]].astype(np.int64).sum(axis=0)
        wanted = wanted - rows[numbers[1][:removed]].astype(np.int64).sum(axis=0)
        assert (target == wanted.astype(np.int16)).all(), (added, removed)


def test_a_row_comes_and_one_or_two_go(kernels: None) -> None:
    rows = random_rows(np.random.default_rng(4), 4, -LARGE, LARGE)
    source, added, removed, taken = (row.ctypes.data for row in rows)
    sums = rows[0].copy()
    move_rows(sums.ctypes.data, source, added, removed, 0)
    assert (sums == rows[0] + rows[1] - rows[2]).all()
    move_rows(sums.ctypes.data, sums.ctypes.data, removed, added, taken)
    assert (sums == rows[0] - rows[3]).all()


def test_squares_are_cut_off_and_weighed(kernels: None) -> None:
    dice = np.random.default_rng(2)
    for most in (300, LARGE):
        units = random_rows(dice, 1, -most, most)[0]
        weights = random_rows(dice, 1, -127, 128)[0]
        wanted = int((np.clip(units.astype(np.int64), 0, 255) ** 2 * weights).sum())
        assert dot_of_squares(units.ctypes.data, weights.ctypes.data) == wanted


def test_every_byte_that_differs_is_found(kernels: None) -> None:
    first = np.random.default_rng(3).integers(0, 256, 64).astype(np.uint8)
    for byte in range(64):
        second = first.copy()
        second[byte] ^= 128
        assert bytes_that_differ(first.ctypes.data, second.ctypes.data) & (1 << 64) - 1 == 1 << byte
    assert bytes_that_differ(first.ctypes.data, first.ctypes.data) == 0


# -- the value -------------------------------------------------------------------------------------------------------


def test_twins_agree(fresh: Evaluator) -> None:
    boards = sample(1, 400) + sample(2, 100, chess960=True)
    assert [fresh(board) for board in boards] == by_definition(boards)
    assert len({fresh(board) for board in boards}) > 100


@pytest.mark.slow
def test_twins_agree_on_a_million_positions(kernels: None, tables: np.ndarray) -> None:
    from netdata.manifest import FOLDER, SAMPLES
    from netdata.reader import Filter, board_codes, read

    samples = read([FOLDER / SAMPLES], Filter(noisy=True), every=10**6).training
    assert len(samples) > 50_000
    every = board_codes(samples)
    kings = np.isin(every & 7, 6)
    dice = np.random.default_rng(1)
    evaluator = Evaluator(tables)
    positions = np.zeros(2_000, position_dtype)
    network = default_network().record[0]
    for begin in range(0, 1_000_000, len(positions)):
        # those of games, again and again, but for men that are taken away at random
        chosen = np.arange(begin, begin + len(positions)) % len(samples)
        stay = dice.random((len(positions), 64)) < dice.uniform(0.3, 1.0, (len(positions), 1))
        codes = np.where(stay | kings[chosen], every[chosen], np.uint8(0))
        positions["board"] = codes
        bits = [np.bitwise_or.reduce(np.where(codes == code, SQUARES, np.uint64(0)), axis=1) for code in CODES]
        for piece in range(6):
            positions["piece_bb"][:, piece] = bits[piece] | bits[piece + 6]
        for color in range(2):
            positions["color_bb"][:, color] = np.bitwise_or.reduce(bits[6 * color : 6 * color + 6])
        first, tables_at, scratch_at = (array.ctypes.data for array in (positions, tables, evaluator.scratch))
        found = [
            value_by_network(tables_at, scratch_at, first + i * positions.itemsize, i) for i in range(len(positions))
        ]
        assert found == values_of(network, codes.astype(np.int64), np.zeros(len(codes), np.int64)).tolist()


def test_sums_are_kept_up_to_date(tables: np.ndarray) -> None:
    """One set of sums through whole games, forwards and back, at the plies of a search, against sums from nothing."""
    kept = Evaluator(tables)
    dice = random.Random(5)
    crossings = 0
    for _ in range(12):
        before = None
        for board in random_game(dice, 120):
            king = board.king(board.turn)
            assert king is not None
            crossings += before is not None and (king ^ before) & 4 != 0
            before = king
            value = Evaluator(tables)(board)
            assert kept(board, len(board.move_stack)) == value, board.fen()
            assert kept(board, dice.randrange(130)) == value, board.fen()
    assert crossings > 10


def test_a_position_has_one_value_however_it_is_turned(fresh: Evaluator) -> None:
    for board in sample(7, 300):
        bare = chess.Board(None)
        bare.set_piece_map(board.piece_map())
        bare.turn = board.turn
        value = fresh(bare)
        assert fresh(bare.mirror()) == value, board.fen()
        assert fresh(bare.transform(chess.flip_horizontal)) == value, board.fen()
        assert fresh(bare.mirror().transform(chess.flip_horizontal)) == value, board.fen()


def test_the_side_to_move_matters(fresh: Evaluator) -> None:
    different = 0
    for board in sample(8, 100):
        value = fresh(board)
        board.turn = not board.turn
        different += fresh(board) != -value
    assert different > 90


# -- what is known of endings ----------------------------------------------------------------------------------------

DRAWN = [
    "8/8/4k3/8/8/3NK3/8/8 w - - 0 1",  # a knight alone
    "8/8/4k3/8/8/2NNK3/8/8 w - - 0 1",  # two knights against a bare king
    "k7/8/1K6/P7/8/8/8/2B5 w - - 0 1",  # the bishop does not attack the corner
    "8/8/8/4k3/8/4K3/4P3/8 w - - 0 1",  # king and pawn, stopped
]


@pytest.mark.parametrize("fen", DRAWN)
def test_known_draws_are_draws(tables: np.ndarray, fen: str) -> None:
    board = chess.Board(fen)
    for turned in (board, board.mirror()):
        evaluator = Evaluator(tables)
        set_position(tables, evaluator.position, turned)
        addresses = [array.ctypes.data for array in (tables, evaluator.scratch, evaluator.position)]
        assert evaluate_position(*addresses) == 0
        assert evaluate_position_by_network(*addresses) == 0


def test_a_bare_king_is_driven_by_hand(tables: np.ndarray) -> None:
    evaluator = Evaluator(tables)
    for fen in ("8/8/4k3/8/8/3RK3/8/8 w - - 0 1", "8/8/4k3/8/8/3BKN2/8/8 b - - 0 1", "8/4P3/8/8/8/k3K3/8/8 w - - 0 1"):
        set_position(tables, evaluator.position, chess.Board(fen))
        addresses = [array.ctypes.data for array in (tables, evaluator.scratch, evaluator.position)]
        assert evaluate_position_by_network(*addresses) == evaluate_position(*addresses) != 0


def test_special_moves_are_seen(tables: np.ndarray) -> None:
    """Castling moves two pieces, en passant takes off a square beside the target, a promotion changes the piece."""
    for fen, word in (
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1c1"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6"),
        ("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7b8n"),
    ):
        board = chess.Board(fen)
        kept = Evaluator(tables)
        kept(board, 3)
        board.push_uci(word)
        assert kept(board, 4) == Evaluator(tables)(board)


def test_positions_that_moves_lead_to(tables: np.ndarray) -> None:
    """Made by `make_move`, not set up from a board, with one set of sums."""
    scratch = np.zeros(1, evaluation_dtype)
    dice = random.Random(11)
    for _ in range(10):
        board = chess.Board()
        probe = NodeProbe(tables, board)
        for ply in range(80):
            moves = probe.legal_moves()
            if not moves:
                break
            code = dice.choice(moves)
            board.push(to_chess_move(code, board))
            probe.play(code)
            position = probe.record["board"].ctypes.data - position_dtype.fields["board"][1]
            assert value_by_network(tables.ctypes.data, scratch.ctypes.data, position, ply) == by_definition([board])[0]
