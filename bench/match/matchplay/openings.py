"""Openings of games: a book of EPD, FEN or PGN, or ten short lines of the project's own choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import chess

from psearch.results import PsearchError
from psearch.text.epd_text import read_positions
from psearch.text.pgn_text import read_games
from psearch.text.source import Source, read_source

from .scripts import MatchError

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


def _read_games(source: Source, chess960: bool) -> Iterator[Opening]:
    for work in read_games(source):
        where = f"{source.name}, game {work.number}"
        if work.problem is not None:
            raise MatchError(f"{where}, line {work.problem.line}: {work.problem.text}")
        board = work.game.end().board()
        board.chess960 = board.chess960 or chess960
        yield _checked(board, where)


def _read_positions(source: Source, chess960: bool) -> Iterator[Opening]:
    for position in read_positions(source):
        position.board.chess960 = position.board.chess960 or chess960
        yield _checked(position.board, f"{source.name}, line {position.line}")


def read_book(path: Path | None, chess960: bool = False) -> list[Opening]:
    """Every opening of a file, in its order; None is the built-in ten. Raises MatchError naming the line."""
    if path is None:
        return [Opening(chess.STARTING_FEN, tuple(line.split()), chess960) for line in _LINES]
    read = _read_games if path.suffix.lower() == ".pgn" else _read_positions
    try:
        openings = list(read(read_source(str(path)), chess960))
    except PsearchError as error:
        raise MatchError(str(error)) from None
    if not openings:
        raise MatchError(f"{path}: no opening in it")
    return openings


def read_books(paths: Iterable[Path]) -> list[Opening]:
    """The openings of several files, each once, in their order. Raises MatchError."""
    return list({opening: None for path in paths for opening in read_book(path)})
