"""One search that a caller wants of an engine: its arguments, checked before anything starts, and its result."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import chess
import chess.engine

from psearch.api import LOG
from psearch.defaults import DEFAULT_MOVETIME_MS, MAX_NODES
from psearch.options import SearchOptions
from psearch.processes import time_manager as times
from psearch.processes.control import SearchControl
from psearch.processes.request import OnInfo, SearchRequest
from psearch.processes.time_manager import GameClock, LagMeter, TimeManager
from psearch.results import Info, Limits, PsearchError, Result
from psearch.settings import DEPTH, MATE, MULTIPV, NODES
from psearch.text.fen import check_position, checked_moves, drop_impossible, parse_position
from psearch.text.moves import read_move
from psearch.text.values import is_real, shown, whole
from psearch.text.wdl import pov_wdl

if TYPE_CHECKING:
    import chess.pgn  # slow to import

Place: TypeAlias = "str | chess.Board | chess.pgn.GameNode"
"""A position: a FEN or `startpos`, a board, whose move stack counts as history, or a node of a game."""
RootMoves = Iterable[chess.Move | str]


def board_of(position: Place) -> chess.Board:
    """Return a new board for a position, with the game's history. Raises PsearchError for any other object, and for an
    illegal position."""
    if isinstance(position, str):
        return parse_position(position)
    pgn = sys.modules.get("chess.pgn")  # slow to import, and a caller with a node has imported it
    if pgn is not None and isinstance(position, pgn.GameNode):
        try:
            position = position.board()
        except ValueError as error:
            raise PsearchError(f"the game has no legal first position: {error}") from None
    if not isinstance(position, chess.Board):
        raise PsearchError(f"a position must be a chess.Board, a FEN or 'startpos', not {shown(position)}")
    board = position.copy()
    drop_impossible(board)
    check_position(board)
    return board


def moves_of(board: chess.Board, root_moves: RootMoves | str | chess.Move | None) -> list[chess.Move] | None:
    """Return the root moves, given as moves or as text in UCI notation or SAN; None: all. Raises PsearchError for an
    illegal move, and for an empty list."""
    if root_moves is None:
        return None
    try:
        listed = [root_moves] if isinstance(root_moves, (str, chess.Move)) else list(root_moves)
    except TypeError:
        raise PsearchError(f"root_moves must be a list of moves, not {shown(root_moves)}") from None
    moves = []
    for move in listed:
        if not isinstance(move, (str, chess.Move)):
            raise PsearchError(f"a root move must be a chess.Move, or a text in UCI notation or SAN, not {shown(move)}")
        try:
            moves.append(read_move(board, move) if isinstance(move, str) else move)
        except ValueError:
            raise PsearchError(f"{shown(move)} is not a legal move in {board.fen()}") from None
    return checked_moves(board, moves)


@dataclass(frozen=True)
class Question:
    """A checked search: position, limits, options, and which figures the caller wants. `ask` makes one."""

    board: chess.Board
    """A copy, since the caller's board may change."""
    limit: chess.engine.Limit
    limits: Limits
    only: list[chess.Move] | None
    multipv: int | None
    """Number of lines; None: one line, returned without a list."""
    options: SearchOptions
    game: object
    selector: int
    """Figures that the caller wants: `chess.engine.Info`."""

    def request(self, control: SearchControl, on_info: OnInfo | None, lag: LagMeter | None = None) -> SearchRequest:
        """Return the request for the workers; the clock runs from their start. lag: lag of the earlier moves; None: no
        lag."""
        moves = len(self.only) if self.only else self.board.legal_moves.count()
        control.clock = time_manager(self.board, self.limit, moves, lag)
        return SearchRequest(
            self.board, self.limits, self.options, self.only, self.multipv or 1, on_info, control, on_note=LOG.warning
        )

    def info_dict(self, info: Info) -> chess.engine.InfoDict:
        """Return an info as a dictionary like those of python-chess's engines, with chances by psearch's own model."""
        if not self.selector:
            return {}
        found = replace(info, wdl=pov_wdl(info.score, self.board)).as_dict()
        if not self.selector & chess.engine.INFO_SCORE:
            for key in ("score", "lowerbound", "upperbound"):
                found.pop(key, None)  # type: ignore[misc]  # python-chess sets the bounds without declaring them
        if not self.selector & chess.engine.INFO_PV:
            del found["pv"]
        return found

    def result_dicts(self, result: Result) -> list[chess.engine.InfoDict]:
        """Return the lines of a result as dictionaries, best first; the first has the result's notes as `string`."""
        found = [self.info_dict(line) for line in result.lines or [result.info]]
        if result.notes and self.selector:
            found[0]["string"] = "; ".join(result.notes)
        return found


def ask(
    board: Place,
    limit: chess.engine.Limit | None,
    options: SearchOptions,
    *,
    multipv: int | None = None,
    game: object = None,
    info: int = chess.engine.INFO_ALL,
    root_moves: RootMoves | None = None,
    is_endless: bool = False,
) -> Question:
    """Return a checked question. is_endless: without a limit, search until stopped instead of 5 seconds. Raises
    PsearchError for a bad argument."""
    own = board_of(board)
    if limit is None:
        limit = chess.engine.Limit()
    limits = to_limits(limit)
    if not is_endless:
        limit = bounded(limit, own.turn)
    time_manager(own, limit, 1)  # refuses bad clocks here, before the workers start
    if not isinstance(info, int):
        raise PsearchError(f"info must be a chess.engine.Info, not {shown(info)}")
    lines = None if multipv is None else MULTIPV.of_value(multipv, "multipv")
    return Question(own, replace(limit), limits, moves_of(own, root_moves), lines, options, game, int(info))


def to_limits(limit: chess.engine.Limit) -> Limits:
    """Return the limits that do not depend on time. Raises PsearchError for invalid numbers."""
    if not isinstance(limit, chess.engine.Limit):
        raise PsearchError(f"limit must be a chess.engine.Limit, such as Limit(time=1.0), not {shown(limit)}")
    if limit.time is not None and not _seconds(limit, "time") > 0:
        raise PsearchError(f"time must be more than 0 seconds, not {shown(limit.time)}")
    depth = limit.depth
    if is_real(depth) and depth > DEPTH.high:
        depth = DEPTH.high
    given = {DEPTH: depth, NODES: limit.nodes, MATE: limit.mate}
    return Limits(**{option.name: option.of_value(value) for option, value in given.items() if value is not None})


def bounded(limit: chess.engine.Limit, turn: chess.Color) -> chess.engine.Limit:
    """Return a limit with a time of 5 seconds if it has none of its own for the side to move."""
    clock = limit.white_clock if turn == chess.WHITE else limit.black_clock
    if (limit.time, clock, limit.depth, limit.nodes, limit.mate) != (None,) * 5:
        return limit
    return replace(limit, time=DEFAULT_MOVETIME_MS / 1000)


def _seconds(limit: chess.engine.Limit, name: str) -> float:
    """Return a time of a limit, 0 if it is not set. Raises PsearchError when it is not a number."""
    value = getattr(limit, name)
    if value is None:
        return 0.0
    try:
        seconds = float(value) if is_real(value) else math.nan
    except OverflowError:
        seconds = math.nan
    if math.isnan(seconds):
        raise PsearchError(f"{name} must be a number of seconds, not {shown(value)}")
    return seconds


def time_manager(board: chess.Board, limit: chess.engine.Limit, moves: int, lag: LagMeter | None = None) -> TimeManager:
    """Return the time manager for a limit: by the clock of the side to move and by the fixed time, if given.

    moves: number of moves to choose from; lag: lag of the earlier moves; None: no lag. Raises PsearchError for invalid
    numbers.
    """
    side = "white" if board.turn == chess.WHITE else "black"
    clock = None
    if getattr(limit, f"{side}_clock") is not None:
        left = limit.remaining_moves
        moves_to_go = None if left is None else whole("remaining_moves", left, 0, MAX_NODES) or None
        clock = GameClock(_seconds(limit, f"{side}_clock"), _seconds(limit, f"{side}_inc"), moves_to_go)
    fixed = None if limit.time is None else times.fixed_time(_seconds(limit, "time"), 0.0)
    return times.time_manager((lag or LagMeter(0.0)).read(clock), fixed, moves)
