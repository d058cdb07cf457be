"""Where the games begin: a book of EPD, FEN or PGN, or ten short lines of the project's own choice."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import chess
import chess.pgn

from .errors import MatchError

_LINES = (
    "e2e4 e7e5 g1f3 b8c6",
    "d2d4 d7d5 c2c4 e7e6",
    "e2e4 c7c5 g1f3 d7d6",
    "d2d4 g8f6 c2c4 g7g6",
    "c2c4 e7e5 b1c3 g8f6",
    "e2e4 e7e6 d2d4 d7d5",
    "g1f3 d7d5 g2g3 g8f6",
    "e2e4 c7c6 d2d4 d7d5",
    "d2d4 f7f5 g2g3 g8f6",
    "e2e4 d7d6 d2d4 g8f6",
)


@dataclass(frozen=True)
class Opening:
    """A start position and the moves of the book."""

    fen: str
    moves: tuple[str, ...] = ()
    chess960: bool = False

    def board(self) -> chess.Board:
        board = chess.Board(self.fen, chess960=self.chess960)
        for move in self.moves:
            board.push(chess.Move.from_uci(move))
        return board


def _checked(board: chess.Board, where: str) -> Opening:
    if not board.is_valid():
        raise MatchError(f"{where}: not a legal position: {board.fen()}")
    if board.is_game_over():
        raise MatchError(f"{where}: the game is over: {board.fen()}")
    root = board.root()
    return Opening(root.fen(shredder=board.chess960), tuple(move.uci() for move in board.move_stack), board.chess960)


def _read_positions(path: Path, text: str, chess960: bool) -> list[Opening]:
    openings = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        board = chess.Board(chess960=chess960)
        try:
            if len(fields) == 6 and fields[4].isdigit() and fields[5].isdigit():
                board.set_fen(line)
            else:
                board.set_epd(line)
        except ValueError as error:
            raise MatchError(f"{path}, line {number}: {error}") from None
        openings.append(_checked(board, f"{path}, line {number}"))
    return openings


def _read_games(path: Path, chess960: bool) -> list[Opening]:
    openings: list[Opening] = []
    logging.getLogger("chess.pgn").setLevel(logging.CRITICAL)  # its errors are reported below
    with path.open(encoding="utf-8", errors="replace") as file:
        while (game := chess.pgn.read_game(file)) is not None:
            where = f"{path}, game {len(openings) + 1}"
            if game.errors:
                raise MatchError(f"{where}: {game.errors[0]}")
            board = game.end().board()
            board.chess960 = board.chess960 or chess960
            openings.append(_checked(board, where))
    return openings


def read_book(path: Path | None, chess960: bool = False) -> list[Opening]:
    """Every opening of a file, in its order; None is the built-in ten. Raises MatchError naming the line."""
    if path is None:
        return [Opening(chess.STARTING_FEN, tuple(line.split()), chess960) for line in _LINES]
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise MatchError(f"cannot read {path}: {error.strerror}") from None
    openings = _read_games(path, chess960) if path.suffix.lower() == ".pgn" else _read_positions(path, text, chess960)
    if not openings:
        raise MatchError(f"{path}: no opening in it")
    return openings


def read_books(paths: Iterable[Path]) -> list[Opening]:
    """The openings of several files, each once, in their order. Raises MatchError."""
    return list({opening: None for path in paths for opening in read_book(path)})
