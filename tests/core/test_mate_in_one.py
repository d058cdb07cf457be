"""Mates in one, seen from the king without making a move: compared with python-chess, move by move."""

from __future__ import annotations

from collections import Counter

import chess
import pytest
from inspect_pruning import PruningProbe
from positions import absurd, games

from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.chess.tables import make_tables
from psearch_core.constants import NO_MOVE
from psearch_core.records.pruning_record import PLAIN


@pytest.fixture(scope="module")
def probe() -> PruningProbe:
    return PruningProbe(make_tables(), PLAIN)


def mates(board: chess.Board) -> set[chess.Move]:
    """Return the side to move's mating moves."""
    found = set()
    for move in list(board.legal_moves):
        board.push(move)
        if board.is_checkmate():
            found.add(move)
        board.pop()
    return found


def is_left_out(board: chess.Board, move: chess.Move) -> bool:
    """Kinds of moves that are not looked at."""
    return (
        board.is_castling(move)
        or board.is_en_passant(move)
        or move.promotion in (chess.ROOK, chess.BISHOP)
        or (move.promotion is not None and chess.square_distance(move.from_square, board.king(not board.turn) or 0) < 3)
    )


def compare(board: chess.Board, probe: PruningProbe) -> str:
    """For both sides; returns how a mate was given, or an empty text."""
    if board.is_check() or board.is_game_over():
        return ""
    kind = ""
    for turn in (board.turn, not board.turn):
        moved = board.copy(stack=False)
        if turn != board.turn:
            moved.push(chess.Move.null())
        probe.set(board)
        code = probe.mate_in_one(turn)
        expected = mates(moved)
        if code == NO_MOVE:
            assert all(is_left_out(moved, move) for move in expected), (board.fen(), turn, expected)
            continue
        move = to_chess_move(code, moved)
        assert move in expected, (board.fen(), turn, move)
        after = moved.copy(stack=False)
        after.push(move)
        checkers = after.checkers()
        direct = move.to_square in checkers
        name = chess.piece_name(moved.piece_type_at(move.from_square) or 0)
        kind = "promotion" if move.promotion else name if direct else "discovered"
        if len(checkers) > 1:
            kind = "double"
    return kind


RARE = {
    "kbK5/p7/pP6/8/8/8/8/8 w - - 0 1": "pawn",
    "6rk/6p1/6bN/8/8/8/8/K6R w - - 0 1": "double",
    "k7/2P5/1K6/8/8/8/8/8 w - - 0 1": "promotion",
}


@pytest.mark.parametrize("fen", RARE)
def test_what_random_games_seldom_have(probe: PruningProbe, fen: str) -> None:
    for board in (chess.Board(fen), chess.Board(fen).mirror()):
        assert compare(board, probe) == RARE[fen]


def test_both_sides_of_many_positions(probe: PruningProbe) -> None:
    kinds = Counter(compare(board, probe) for board in games(81, 50))
    for board in absurd(900, 500):
        kinds[compare(board, probe)] += 1
    kinds_of_mate = ("queen", "rook", "bishop", "knight", "discovered")
    assert all(kinds[kind] > 0 for kind in kinds_of_mate) and kinds["queen"] > 50, kinds
