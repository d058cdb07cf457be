"""What callers of `analyse_many` give, made into tasks: positions, with or without a name and wishes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import chess
import chess.engine

from psearch.api.checked_arguments import Place, RootMoves, board_of, moves_of
from psearch.api.limits import bounded, to_limits
from psearch.batch.positions.boards import from_board
from psearch.batch.positions.jobs import Task
from psearch.results import Limits, PsearchError
from psearch.settings import MULTIPV


@dataclass(frozen=True)
class Position:
    """A position for `psearch.analyse_many` with an id, or with wishes of its own; what is None is as for all."""

    position: Place
    id: Any = None
    """None: its number"""
    limit: chess.engine.Limit | None = None
    multipv: int | None = None
    root_moves: RootMoves | None = None
    """moves to choose from, UCI notation, SAN or moves; None: all"""


Entry: TypeAlias = "Place | Position | tuple[Any, Place]"


def limits_of(limit: chess.engine.Limit | None) -> Limits:
    """Return the limits of each search; 5 seconds where there is none. Raises PsearchError."""
    if limit is None:
        limit = chess.engine.Limit()
    limits = to_limits(limit)
    if limit.white_clock is not None or limit.black_clock is not None:
        raise PsearchError("a limit of analyse_many has no clock: give time, depth, nodes or mate")
    time_s = bounded(limit, chess.WHITE).time
    return Limits(limits.depth, None if time_s is None else time_s * 1000, limits.nodes, limits.mate)


def read_entry(number: int, entry: object, limits: Limits, multipv: int) -> tuple[Any, Task, str | None]:
    """Return its id, what is to be searched, and what is wrong with it; limits, multipv: where it has none of its
    own."""
    if isinstance(entry, Position):
        asked, id = entry, number if entry.id is None else entry.id
    elif isinstance(entry, (tuple, list)) and len(entry) == 2:
        asked, id = Position(entry[1]), entry[0]
    else:
        asked, id = Position(entry), number  # type: ignore[arg-type]  # it is looked at here
    try:
        return id, _task(number, asked, limits, multipv), None
    except PsearchError as error:
        return id, Task(number, _text(asked.position)), str(error)


def _task(number: int, asked: Position, limits: Limits, multipv: int) -> Task:
    """Raises PsearchError. What is only text is looked at where it is searched."""
    if asked.limit is not None:
        limits = limits_of(asked.limit)
    if asked.multipv is not None:
        multipv = MULTIPV.of_value(asked.multipv, "multipv")
    place = asked.position
    if isinstance(place, str) and asked.root_moves is None:
        return Task(number, place, (), limits, multipv)
    board = board_of(place)
    only = moves_of(board, asked.root_moves)
    words = None if only is None else tuple(board.uci(move) for move in only)
    fen, moves = from_board(board)
    return Task(number, fen, moves, limits, multipv, words, chess960=board.chess960)


def _text(place: object) -> str:
    """A position that is wrong, as far as it can be shown."""
    if isinstance(place, str):
        return place
    return place.fen() if isinstance(place, chess.Board) else ""
