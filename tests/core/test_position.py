"""Positions against python-chess and against themselves from scratch, in games and random placements."""

from __future__ import annotations

import csv
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inspect_position import Probe
from paths import DATA as ALL_DATA

from psearch_core.chess.board.bridge import from_chess_move, to_chess_move
from psearch_core.constants import KIND_CASTLE, KIND_EP, KIND_PROMOTE, NO_SQUARE
from psearch_core.records import position_dtype

DATA = ALL_DATA / "special"
VARIANTS = ("standard", "chess960", "dfrc")
MAX_PLIES = 150
DERIVED = [name for name in position_dtype.names or () if name not in ("rule50", "reversible", "pad")]
"""what `complete` computes from the rest"""


def start_board(variant: str, dice: random.Random) -> chess.Board:
    if variant == "standard":
        return chess.Board()
    white = chess.Board.from_chess960_pos(dice.randrange(960))
    if variant == "chess960":
        return white
    black = chess.Board.from_chess960_pos(dice.randrange(960))
    # both sides drawn by themselves: the kings and rooks need not face each other
    board = chess.Board(None, chess960=True)
    for side, source in ((chess.WHITE, white), (chess.BLACK, black)):
        for square in chess.SquareSet(source.occupied_co[side]):
            board.set_piece_at(square, source.piece_at(square))
    board.castling_rights = (white.rooks & chess.BB_RANK_1) | (black.rooks & chess.BB_RANK_8)
    return board


def is_double_push(move: chess.Move, board: chess.Board) -> bool:
    is_pawn = board.piece_type_at(move.from_square) == chess.PAWN
    return is_pawn and abs(move.from_square - move.to_square) == 16


def choose(board: chess.Board, dice: random.Random) -> chess.Move:
    """A random legal move; castling, en passant, promotions and double pushes more often than by chance."""
    moves = list(board.legal_moves)
    rare = [
        move
        for move in moves
        if move.promotion or board.is_castling(move) or board.is_en_passant(move) or is_double_push(move, board)
    ]
    return dice.choice(rare if rare and dice.random() < 0.3 else moves)


def play_games(tables: np.ndarray, variant: str, games: int = 10) -> Iterator[tuple[chess.Board, Probe]]:
    """Every position of some random games, with a probe that was led there move by move."""
    for number in range(games):
        dice = random.Random(f"{variant} {number}")
        board = start_board(variant, dice)
        probe = Probe(tables, board)
        yield board, probe
        while any(board.legal_moves) and board.ply() < MAX_PLIES:
            move = choose(board, dice)
            probe.play(from_chess_move(move, board))
            board.push(move)
            yield board, probe


def identity(board: chess.Board) -> tuple[Any, ...]:
    """Return what makes two positions the same under the repetition rule."""
    ep = board.ep_square if board.has_legal_en_passant() else None
    return board.board_fen(), board.turn, board.clean_castling_rights(), ep


def check_moves(board: chess.Board, probe: Probe) -> None:
    """Compare all ways to list the legal moves with python-chess."""
    codes = probe.legal_moves()
    expected = set(board.legal_moves)
    assert {to_chess_move(code, board) for code in codes} == expected, board.fen()
    assert len(codes) == len(set(codes)) == len(expected), board.fen()
    assert probe.count_moves() == len(expected), board.fen()
    assert probe.accepted_codes() == sorted(codes), board.fen()
    assert {from_chess_move(move, board) for move in expected} == set(codes), board.fen()
    captures = {code for code in codes if is_tactical(code, board)}
    assert set(probe.captures()) == captures, board.fen()


def is_tactical(code: int, board: chess.Board) -> bool:
    """A capture or a queen promotion; a capture that promotes to less does not count as one."""
    kind = code >> 12
    if kind >= KIND_PROMOTE:
        return kind == KIND_PROMOTE + 3
    return kind == KIND_EP or (kind != KIND_CASTLE and board.piece_type_at(code >> 6 & 63) is not None)


def check_state(board: chess.Board, probe: Probe) -> None:
    """Compare a position with python-chess, and with the same position computed from scratch."""
    record = probe.record
    fen = board.fen()
    for color in chess.COLORS:
        assert int(record["color_bb"][0 if color else 1]) == board.occupied_co[color], fen
    for piece_type in chess.PIECE_TYPES:
        both = board.pieces_mask(piece_type, chess.WHITE) | board.pieces_mask(piece_type, chess.BLACK)
        assert int(record["piece_bb"][piece_type - 1]) == both, fen
    assert record["side"] == (0 if board.turn else 1), fen
    assert int(record["castling_bb"]) == board.clean_castling_rights(), fen
    assert record["ep"] == (board.ep_square if board.has_legal_en_passant() else NO_SQUARE), fen
    assert record["rule50"] == board.halfmove_clock, fen
    assert probe.in_check == board.is_check(), fen
    assert int(record["checkers"]) == board.checkers_mask(), fen
    assert probe.has_insufficient_material() == board.is_insufficient_material(), fen
    probe.count_moves()  # sets the pins
    scratch = probe.from_scratch()
    for name in DERIVED:
        assert np.array_equal(record[name], scratch[name]), f"{name}: {fen}"


@pytest.mark.parametrize("variant", VARIANTS)
def test_games(tables, variant):
    seen = set()
    for board, probe in play_games(tables, variant, games=40):
        check_state(board, probe)
        check_moves(board, probe)
        seen.update(code >> 12 for code in probe.legal_moves())
    assert seen == set(range(8)), "a kind of move never came up"


@pytest.mark.parametrize("variant", VARIANTS)
def test_reversible_counts_plies_since_what_cannot_be_undone(tables, variant):
    expected = 0
    last: chess.Board | None = None
    for board, probe in play_games(tables, variant):
        lost = last and board.clean_castling_rights() != last.clean_castling_rights()
        starts_anew = not board.move_stack or board.halfmove_clock == 0 or lost
        expected = 0 if starts_anew else expected + 1
        assert probe.record["reversible"] == expected, board.fen()
        last = board.copy(stack=False)


@pytest.mark.parametrize("variant", VARIANTS)
def test_null_move(tables, variant):
    for board, probe in play_games(tables, variant):
        if board.is_check():
            continue
        passed = probe.copy()
        passed.play_null()
        after = board.copy(stack=False)
        after.push(chess.Move.null())
        check_state(after, passed)
        assert passed.record["reversible"] == 0
        passed.play_null()
        # twice gives the position back, but for an en passant right
        if not board.has_legal_en_passant():
            assert passed.key == probe.key, board.fen()


@st.composite
def placements(draw: st.DrawFn) -> chess.Board:
    """Valid positions with up to ten random pieces, perhaps just after a double push."""
    squares = draw(st.lists(st.integers(0, 63), min_size=2, max_size=12, unique=True))
    pieces = "PPPNBRQpppnbrq"
    board = chess.Board(None)
    board.set_piece_at(squares[0], chess.Piece.from_symbol("K"))
    board.set_piece_at(squares[1], chess.Piece.from_symbol("k"))
    for square in squares[2:]:
        piece = chess.Piece.from_symbol(draw(st.sampled_from(pieces)))
        if piece.piece_type == chess.PAWN and not 1 <= chess.square_rank(square) <= 6:
            continue
        board.set_piece_at(square, piece)
    board.turn = draw(st.booleans())
    if draw(st.booleans()):
        board.castling_rights = chess.BB_CORNERS
        board.castling_rights = board.clean_castling_rights()
    if not board.is_valid():
        board.turn = not board.turn
        board.castling_rights = board.clean_castling_rights()
    if board.is_valid():
        doubles = [move for move in board.legal_moves if is_double_push(move, board)]
        if doubles and draw(st.booleans()):
            board.push(draw(st.sampled_from(doubles)))
            board.clear_stack()
    return board


@pytest.fixture(scope="module")
def probe_on(tables: np.ndarray) -> Callable[[chess.Board], Probe]:
    """Return a function: hypothesis would print the tables when an example fails."""
    return lambda board: Probe(tables, board)


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(board=placements())
def test_placements(probe_on, board):
    if not board.is_valid():
        return
    probe = probe_on(board)
    check_state(board, probe)
    check_moves(board, probe)
    for code in probe.legal_moves():
        child = probe.copy()
        child.play(code)
        after = board.copy(stack=False)
        after.push(to_chess_move(code, board))
        check_state(after, child)
        assert child.count_moves() == after.legal_moves.count(), after.fen()


def read_rows(name: str) -> list[dict[str, str]]:
    with open(DATA / name, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("row", read_rows("ep_legality.tsv"), ids=lambda row: row["fen"])
def test_en_passant_legality(tables, row):
    board = chess.Board(row["fen"], chess960=True)
    probe = Probe(tables, board)
    move = chess.Move.from_uci(row["ep_move"])
    code = move.from_square | move.to_square << 6 | KIND_EP << 12
    legal = row["legal"] == "1"
    assert probe.is_legal(code) == legal
    assert (code in probe.legal_moves()) == legal
    assert (probe.record["ep"] != NO_SQUARE) == board.has_legal_en_passant()


@pytest.mark.parametrize("row", read_rows("insufficient_material.tsv"), ids=lambda row: row["fen"])
def test_insufficient_material(tables, row):
    assert Probe(tables, chess.Board(row["fen"])).has_insufficient_material() == (row["insufficient_both"] == "1")


def test_one_key_per_position(tables):
    """No two positions share a key, no position has two; transpositions within the games included."""
    keys: dict[tuple[Any, ...], int] = {}
    for variant in VARIANTS:
        for board, probe in play_games(tables, variant, games=5):
            assert keys.setdefault(identity(board), probe.key) == probe.key, board.fen()
            for code in probe.legal_moves():
                child = probe.copy()
                child.play(code)
                move = to_chess_move(code, board)
                board.push(move)
                assert keys.setdefault(identity(board), child.key) == child.key, board.fen()
                board.pop()
    assert len(keys) > 50_000
    assert len(set(keys.values())) == len(keys)
    # either half must be as good as 32 random bits: one chooses the place in the transposition table
    for shift in (0, 32):
        halves = {key >> shift & 0xFFFFFFFF for key in keys.values()}
        by_chance = len(keys) ** 2 / 2**33
        assert len(keys) - len(halves) < 10 + 2 * by_chance


def test_keys_tell_side_castling_and_en_passant_apart(tables):
    fens = [
        *(f"r3k2r/8/8/8/8/8/8/R3K2R {side} {rights} - 0 1" for side in "wb" for rights in _subsets("KQkq")),
        "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
        "4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1",
    ]
    assert len({Probe(tables, chess.Board(fen)).key for fen in fens}) == len(fens)


def test_an_en_passant_square_that_nobody_can_use_is_not_in_the_key(tables):
    for fen in ("4k3/8/8/3p4/8/8/8/4K3 w - d6 0 1", "8/8/8/K1Pp3r/8/8/8/4k3 w - d6 0 1"):
        board = chess.Board(fen)
        without = board.copy()
        without.ep_square = None
        assert Probe(tables, board).key == Probe(tables, without).key


def test_keys_are_the_same_on_every_machine(tables):
    """The seed and the order of the numbers are fixed: logs and stored tables stay readable."""
    assert hex(Probe(tables, chess.Board()).key) == "0xe006a5525aa213ff"


def _subsets(rights: str) -> list[str]:
    sizes = range(len(rights) + 1)
    return ["".join(chosen) or "-" for size in sizes for chosen in itertools.combinations(rights, size)]
