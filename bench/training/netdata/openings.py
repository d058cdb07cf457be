"""Where games begin: random moves, from the start position, Chess960, books, and positions that lack a piece or two."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import chess
from matchplay.openings import read_book
from matchplay.scripts import MatchError as MatchError

from psearch.text.fen import check_position

_KINDS = (("start", 50), ("book", 25), ("unbalanced", 15), ("chess960", 10))
"""Kinds of starts, and how many of a hundred games begin so."""
_FEWEST_PLIES, _MOST_PLIES = 8, 12
_BOOK_PLIES = (0, 5)
"""Random moves behind a position of a book, which has left the start position already."""


class Start(NamedTuple):
    """A position and the random moves that are made from it."""

    fen: str
    """Shredder's castling rights in Chess960; empty for the start position"""
    moves: tuple[chess.Move, ...]

    def root(self) -> chess.Board:
        """Return the position before the moves."""
        return board_of(self.fen)

    def board(self) -> chess.Board:
        """Return the position behind the moves."""
        board = self.root()
        for move in self.moves:
            board.push(move)
        return board


def board_of(fen: str) -> chess.Board:
    """Return the board of a start's FEN. Castling is king takes rook everywhere, so one kind of board serves all.

    Raises ValueError and PsearchError for what is no legal position: kernels look at nothing.
    """
    board = chess.Board(fen or chess.STARTING_FEN, chess960=True)
    check_position(board)
    return board


class Book(NamedTuple):
    """Positions to begin from."""

    fens: tuple[str, ...]
    digest: str
    """of the files; empty without any"""


def read_books(paths: Sequence[Path]) -> Book:
    """Read files of FEN, EPD or PGN. Raises OSError, and MatchError for a position that is none."""
    digest = hashlib.sha256()
    fens = []
    for path in paths:
        digest.update(path.read_bytes())
        for opening in read_book(path, chess960=True):
            board = opening.board()
            board.halfmove_clock, board.fullmove_number = 0, 1
            fens.append(board.fen(shredder=True))
    return Book(tuple(fens), digest.hexdigest()[:16] if paths else "")


def _walk(board: chess.Board, plies: int, dice: random.Random) -> tuple[chess.Move, ...] | None:
    """Make random moves; None where the game ends before there are so many, or with them."""
    moves = []
    for _ in range(plies):
        legal = sorted(board.legal_moves, key=lambda move: (move.from_square, move.to_square, move.promotion or 0))
        if not legal:
            return None
        moves.append(dice.choice(legal))
        board.push(moves[-1])
    return None if board.is_game_over() else tuple(moves)


def _without_pieces(board: chess.Board, dice: random.Random) -> chess.Board | None:
    """Return the position without one or two of its pieces; None where that is no position."""
    board = board.copy(stack=False)
    squares = [square for square, piece in sorted(board.piece_map().items()) if piece.piece_type != chess.KING]
    for square in dice.sample(squares, dice.choice((1, 1, 2))):
        board.remove_piece_at(square)
    board.castling_rights = board.clean_castling_rights()
    board.ep_square = None
    board.halfmove_clock = 0
    return board if board.is_valid() and not board.is_game_over() else None


def draw_start(book: Book, dice: random.Random) -> Start:
    """Draw a start: of a kind, then its position and moves. Without a book the start position takes its place."""
    kind = dice.choices([name for name, _ in _KINDS], [share for _, share in _KINDS])[0]
    while True:
        fen = ""
        plies = dice.randint(_FEWEST_PLIES, _MOST_PLIES)
        if kind == "chess960":
            fen = chess.Board.from_chess960_pos(dice.randrange(960)).fen(shredder=True)
        elif kind == "book" and book.fens:
            fen = dice.choice(book.fens)
            plies = dice.randint(*_BOOK_PLIES)
        if kind == "unbalanced":
            board = board_of("")
            lessened = None if _walk(board, plies, dice) is None else _without_pieces(board, dice)
            if lessened is None:
                continue
            fen, plies = lessened.fen(shredder=True), dice.randint(*_BOOK_PLIES)
        moves = _walk(board_of(fen), plies, dice)
        if moves is not None:
            return Start(fen, moves)
