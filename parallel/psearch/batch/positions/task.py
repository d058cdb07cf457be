"""Positions to search, as plain data for messages between processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

import chess

from psearch.batch.positions.answer import Answer
from psearch.results import Limits, PsearchError
from psearch.text.fen import drop_impossible, parse_position
from psearch_core.records import MAX_HISTORY


@dataclass(frozen=True)
class Task:
    """One position to search. The first limit that is reached ends the search; one must be set."""

    id: str | int
    """the caller's name for it"""
    fen: str
    """where the game begins whose moves follow"""
    moves: tuple[str, ...] = ()
    """played from there to the position that is searched, UCI"""
    limits: Limits = field(default_factory=Limits)
    multipv: int = 1
    """lines to find, if there are so many moves"""
    root_moves: tuple[str, ...] | None = None
    """the moves to choose from, UCI; None: all"""
    line: tuple[str, ...] = ()
    """the first few moves that were played from there, UCI, in a game whose positions are searched from the last to the
    first: where the first of them may be a mistake it is compared with the best one. Empty: nothing is compared"""
    chess960: bool = False
    """how castling is written in moves: king takes rook, also where it is of normal chess"""

    @classmethod
    def of_board(
        cls, id: str | int, board: chess.Board, limits: Limits, line: Sequence[chess.Move] = (), multipv: int = 1
    ) -> Task:
        """Return a position with as many of the moves before it as a search looks at. line: see above."""
        fen, moves = from_board(board)
        return cls(id, fen, moves, limits, multipv, line=tuple(uci_words(board, line)), chess960=board.chess960)

    def board(self) -> chess.Board:
        """Return the position, with the moves that led to it. Raises PsearchError for what is no legal position."""
        board = parse_position(self.fen)
        board.chess960 = board.chess960 or self.chess960
        for move in self.moves:
            try:
                board.push_uci(move)
            except ValueError:
                raise PsearchError(f"{move} is not a legal move in {board.fen()}") from None
        return board


@dataclass(frozen=True)
class TaskList:
    """Tasks that one worker does one after the other, with the table kept between them, as in a game. Between two lists
    a worker forgets everything. tasks: read once, as they are needed."""

    tasks: Iterable[Task]


class Pause(Enum):
    """In place of a list of tasks: there is none now, and may be more later."""

    ROUND = "once outcomes have been given out"
    OUTCOME = "once something more is searched"
    INPUT = "once more has come in"


@dataclass(frozen=True)
class Part:
    """Tasks of one list, one after the other, with their numbers."""

    list_number: int
    begins: bool
    """whether the worker is to forget what it knows first: the list begins, or comes from a worker that was lost"""
    tasks: list[tuple[int, Task]]


@dataclass(frozen=True)
class Batch:
    """What a worker is sent at once: about a second of work."""

    parts: list[Part]

    @property
    def size(self) -> int:
        """Number of tasks."""
        return sum(len(part.tasks) for part in self.parts)


@dataclass(frozen=True)
class Outcome:
    """What became of a task: an answer, or why there is none."""

    number: int
    """of the task; numbers begin at 0, in the order in which tasks are read"""
    id: str | int
    answer: Answer | None
    error: str | None = None
    """one line; None where there is an answer"""
    worker: str = ""
    """which worker searched it: its machine, or the number of its process"""


def from_board(board: chess.Board) -> tuple[str, tuple[str, ...]]:
    """Return a FEN, and the moves from there to the board: as many of the last ones as a search looks at."""
    count = min(len(board.move_stack), board.halfmove_clock, MAX_HISTORY)
    if count:
        before = board.copy(stack=count)
        for _ in range(count):
            before.pop()
        drop_impossible(before)
        if before.is_valid():  # else a null move, or a game that began with what is no position
            return _fen(before), tuple(uci_words(before, board.move_stack[-count:]))
    return _fen(board), ()


def uci_words(board: chess.Board, moves: Iterable[chess.Move]) -> Iterator[str]:
    """Yield moves that follow each other in UCI notation, as the board writes castling."""
    walk = board.copy(stack=False)
    for move in moves:
        yield walk.uci(move)
        walk.push(move)


def _fen(board: chess.Board) -> str:
    return board.shredder_fen() if board.chess960 else board.fen()
