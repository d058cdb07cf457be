"""From python-chess's `Limit` to what the search takes: limits without a clock, and a clock."""

from __future__ import annotations

import math
from dataclasses import replace

import chess
import chess.engine

from psearch.defaults import DEFAULT_MOVETIME_MS, MAX_NODES
from psearch.processes import time_manager as times
from psearch.processes.time_manager import GameClock, LagMeter, TimeManager
from psearch.results import Limits, PsearchError
from psearch.settings import DEPTH, MATE, NODES
from psearch.text.values import is_real, shown, whole


def to_limits(limit: chess.engine.Limit) -> Limits:
    """Return the limits that do not depend on time. Raises PsearchError for numbers that make no sense."""
    if not isinstance(limit, chess.engine.Limit):
        raise PsearchError(f"limit must be a chess.engine.Limit, as Limit(time=1.0), not {shown(limit)}")
    if limit.time is not None and not _seconds(limit, "time") > 0:
        raise PsearchError(f"time must be more than 0 seconds, not {shown(limit.time)}")
    depth = limit.depth
    if is_real(depth) and depth > DEPTH.high:
        depth = DEPTH.high
    given = {DEPTH: depth, NODES: limit.nodes, MATE: limit.mate}
    return Limits(**{option.name: option.of_value(value) for option, value in given.items() if value is not None})


def bounded(limit: chess.engine.Limit, turn: chess.Color) -> chess.engine.Limit:
    """Return a limit that has been checked, with 5 seconds where it says nothing for the side to move."""
    clock = limit.white_clock if turn == chess.WHITE else limit.black_clock
    if (limit.time, clock, limit.depth, limit.nodes, limit.mate) != (None,) * 5:
        return limit
    return replace(limit, time=DEFAULT_MOVETIME_MS / 1000)


def _seconds(limit: chess.engine.Limit, name: str) -> float:
    """A time of a limit, 0 if it is not set. Raises PsearchError when it is not a number."""
    value = getattr(limit, name)
    if value is None:
        return 0.0
    seconds = math.nan
    if is_real(value):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.nan
    if math.isnan(seconds):
        raise PsearchError(f"{name} must be a number of seconds, not {shown(value)}")
    return seconds


def time_manager(board: chess.Board, limit: chess.engine.Limit, moves: int, lag: LagMeter | None = None) -> TimeManager:
    """Return what decides about time: the clock of the side to move if there is one, and the fixed time if there is
    one.

    moves: how many there are to choose from; lag: of the moves before, None: no lag. Raises PsearchError for numbers
    that make no sense.
    """
    side = "white" if board.turn == chess.WHITE else "black"
    clock = None
    if getattr(limit, f"{side}_clock") is not None:
        left = limit.remaining_moves
        moves_to_go = None if left is None else whole("remaining_moves", left, 0, MAX_NODES)
        clock = GameClock(_seconds(limit, f"{side}_clock"), _seconds(limit, f"{side}_inc"), moves_to_go)
    fixed = None if limit.time is None else times.fixed_time(_seconds(limit, "time"), 0.0)
    return times.time_manager((lag or LagMeter(0.0)).read(clock), fixed, moves)
