"""From boards to what tasks have of them, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import chess

from psearch.batch.positions.jobs import Task
from psearch.core.records import MAX_HISTORY
from psearch.results import PsearchError
from psearch.text.fen import drop_impossible, parse_position


def board_of(task: Task) -> chess.Board:
    """Return the position of a task, with the moves that led to it. Raises PsearchError for what is no legal
    position."""
    board = parse_position(task.fen)
    board.chess960 = board.chess960 or task.chess960
    for move in task.moves:
        try:
            board.push_uci(move)
        except ValueError:
            raise PsearchError(f"{move} is not a legal move in {board.fen()}") from None
    return board


def from_board(board: chess.Board) -> tuple[str, tuple[str, ...]]:
    """Return a FEN, and the moves from there to the board: as many of the last ones as a search looks at."""
    count = min(len(board.move_stack), board.halfmove_clock, MAX_HISTORY)
    if not count:
        return _fen(board), ()
    before = board.copy(stack=count)
    for _ in range(count):
        before.pop()
    drop_impossible(before)
    if not before.is_valid():  # a null move, or a game that began with what is no position
        return _fen(board), ()
    return _fen(before), tuple(_words(before, board.move_stack[-count:]))


def _words(before: chess.Board, moves: Sequence[chess.Move]) -> Iterator[str]:
    walk = before.copy(stack=False)
    for move in moves:
        yield walk.uci(move)
        walk.push(move)


def _fen(board: chess.Board) -> str:
    return board.shredder_fen() if board.chess960 else board.fen()
