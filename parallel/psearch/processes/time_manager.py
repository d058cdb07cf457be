"""Time management: budgets from a game clock, and the decision to stop. Nothing here reads a clock.

Times are seconds. A budget has two limits. The *soft* limit, which depends on the course of the search, ends it unless
the score has left its window in the present iteration. The *hard* limit always holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import chess

DEFAULT_OVERHEAD_S = 0.03
"""Seconds that a move takes beyond its search: the answer is sent, and workers may wait for a core before they stop."""

FIRST_ITERATION_S = 0.01
"""Extra seconds in which a search that has to stop may finish its first iteration, since an answer needs a score."""
_FIRST_ITERATION_SHARE = 0.1
"""Share of the clock that `FIRST_ITERATION_S` must not exceed."""
_LEAST_FIRST_ITERATION_S = 0.002
"""Least extra seconds for the first iteration: a move without a search loses the game as well."""
_INSTANT_S = 0.005
"""Longest seconds of a search for which other processes are not woken."""

_MOST_OF_CLOCK = 0.5
"""Largest share of the clock for one move that others must follow."""
_LAST_MOVE_SHARE = 0.9
"""Largest share of the clock for the last move before the clock is reset."""
_LEAST_S = 0.001
_GAME_MOVES = 200
"""Moves for which the clock of a game without increment must last, even if each answer has a lag."""
_LATE_MOVES = 50
"""Moves that are still expected when most of `_GAME_MOVES` have been played."""
_LAG_MARGIN = 1.25
"""Expected lag of future moves over the measured mean, since the machine may become busier."""
_LONG_LAG_S = 0.05
"""Largest lag that one move counts for, unless the overhead is larger: one delay shall not spoil the game."""
_ROUNDING_S = 0.002
"""Rounding error of a clock that is given in milliseconds."""
_LATE_FACTOR = 2.0
"""Time that a fixed time keeps back for its answer, as a multiple of the delay of recent answers."""
_LATE_EXTRA_S = 0.005
"""Seconds that a fixed time keeps back beyond that, since the next answer may take longer."""
_LATE_KEPT = 0.95
"""Share of a delay that still counts one answer later."""

# each number of the distribution was measured in games (docs/decisions/trials.md)
_MOVES_AHEAD = 30
"""Moves to which the rest of the clock is distributed, unless the rules say how many are left."""
_INCREMENT_SHARE = 0.75
"""Share of the increment that a move may spend."""
_HARD_OVER_SOFT = 4
"""Ratio of the hard limit to the soft limit."""
_DROP_CP = 60
"""Drop of the score, in centipawns, that doubles the time."""
_MOST_FOR_DROP = 1.0
_CHANGE_SHARE = 0.6
"""Share of the time that is added when the best move changed in the last iteration."""
_KEPT_SHARE = 0.6
"""Share of that addition which remains after each further iteration."""
_MOST_FOR_CHANGES = 1.2
_SETTLED_ITERATIONS = 6
"""Iterations with the same move and a steady score after which a move is settled."""
_SETTLED_CP = 15
"""Largest change of a steady score between two iterations, in centipawns."""
_SETTLED_SCALE = 0.55
"""Share of the time for a settled move."""
_USUAL_SHARE = 0.8
"""Share of the root's nodes below the best move that does not change the time; with it moves take as long on average
as without shares (48 positions of games, 100,000 to 200,000 nodes)."""
_SHARE_SLOPE = 1.6
"""Part of the time added for each unit by which the share is less; 0: shares change nothing."""
_MOST_FOR_SHARE = 1.8
_MATE_SCALE = 0.15
_MATE_CP = 10_000


@dataclass(frozen=True)
class GameClock:
    """The clock of the side to move, in seconds."""

    time_s: float
    increment_s: float = 0.0
    moves_to_go: int | None = None
    """Moves until the clock is reset, this one included; None: the time is for the rest of the game."""
    lag_s: float | None = None
    """Mean time that earlier moves took beyond their budgets; None: unknown, so that the overhead is expected."""
    moves_played: int = 0
    """Number of known earlier moves of this game."""


@dataclass(frozen=True)
class Budget:
    """Time limits of one search in seconds; infinite without a limit."""

    soft_s: float = math.inf
    hard_s: float = math.inf
    left_s: float = math.inf
    """Time on the clock."""

    @property
    def first_s(self) -> float:
        """Extra seconds in which the first iteration may finish after the limit."""
        return min(FIRST_ITERATION_S, max(_LEAST_FIRST_ITERATION_S, _FIRST_ITERATION_SHARE * self.left_s))

    @property
    def is_tight(self) -> bool:
        """Whether the clock is nearly empty, so that any move at once is better than a good one later."""
        return self.first_s < FIRST_ITERATION_S


def allot(clock: GameClock, overhead_s: float = DEFAULT_OVERHEAD_S) -> Budget:
    """Return the budget for this move: 0 < soft <= hard, and hard plus overhead fit on the clock if possible.

    The lag of future moves is reserved, as far as increments do not cover it, so that the clock lasts for 200 moves if
    it can, even when each takes its hard limit. On an overdrawn clock the search ends after its first iteration.
    """
    left = max(clock.time_s - overhead_s, _LEAST_S)
    lag_s = overhead_s if clock.lag_s is None else _LAG_MARGIN * clock.lag_s
    moves = _MOVES_AHEAD if clock.moves_to_go is None else max(1, min(clock.moves_to_go, _MOVES_AHEAD))
    most = left * (_LAST_MOVE_SHARE if moves == 1 and clock.moves_to_go is not None else _MOST_OF_CLOCK)
    if clock.moves_to_go is None:
        to_come = max(_LATE_MOVES, _GAME_MOVES - clock.moves_played) - 1
    else:
        to_come = min(max(1, clock.moves_to_go), _GAME_MOVES) - 1  # these moves share this clock
    most = min(most, left - to_come * max(0.0, lag_s + _LEAST_S - clock.increment_s))
    free = max(0.0, left - to_come * max(0.0, lag_s - clock.increment_s))
    # of the increment, only the part beyond the lag can be spent on every move
    base = free / moves + _INCREMENT_SHARE * max(clock.increment_s - lag_s, 0.0)
    soft = max(_LEAST_S, min(base, most))
    return Budget(soft, max(soft, min(_HARD_OVER_SOFT * base, most)), clock.time_s)


def fixed_time(movetime_s: float, overhead_s: float = DEFAULT_OVERHEAD_S, late_s: float = DEFAULT_OVERHEAD_S) -> Budget:
    """Return the budget for a move that must be answered within `movetime_s` seconds, but at least 1 ms.

    The overhead is subtracted, but at most half of the time. late_s: delay of recent answers (`LagMeter.late_s`); the
    default part of the overhead is for such delays, and no more of it is subtracted than they ask for.
    """
    within_s = max(_LEAST_S, movetime_s)
    usual_s = min(overhead_s, DEFAULT_OVERHEAD_S)
    kept_s = overhead_s - usual_s + min(usual_s, _LATE_FACTOR * late_s + _LATE_EXTRA_S)
    return Budget(math.inf, max(within_s / 2, within_s - kept_s))


def time_manager(
    clock: GameClock | None,
    fixed: Budget | None,
    root_moves: int,
    overhead_s: float = DEFAULT_OVERHEAD_S,
    stretch: float = 1.0,
    pondering: bool = False,
) -> TimeManager:
    """Return a time manager for a game clock, a fixed time (`fixed_time`), both, or neither.

    stretch: factor of the soft limit that the clock gives.
    """
    budget = Budget() if clock is None else allot(clock, overhead_s)
    hard_s = budget.hard_s if fixed is None else min(budget.hard_s, fixed.hard_s)
    soft_s = min(stretch * budget.soft_s, budget.hard_s)
    return TimeManager(Budget(soft_s, hard_s, budget.left_s), root_moves, pondering)


@dataclass
class TimeManager:
    """Decides from the reports of a search when it should stop.

    root_moves: number of legal moves to choose from (with one, no time is needed). While `pondering` no limit holds.
    All times passed are seconds since the search began.
    """

    budget: Budget
    root_moves: int = 2
    pondering: bool = False
    meant_s: float | None = None
    """Time on our clock after which the search should have stopped; None: the clock has not ended the search."""
    _due_s: float = math.inf
    """Due time as known at the last check."""
    _since: float = 0.0
    _scores: list[int] = field(default_factory=list)
    _best: chess.Move | None = None
    _changes: float = 0.0
    _settled: int = 0
    _share: float | None = None
    _may_end: bool = False

    def ponderhit(self, elapsed_s: float) -> None:
        """Start our clock: the opponent has played the expected move.

        Time spent pondering counts for the soft limit, so the answer may be due at once.
        """
        self.pondering = False
        self._since = elapsed_s

    def iteration(self, best: chess.Move, score_cp: int, share: float | None = None) -> None:
        """Note that an iteration has ended with this move; mates count as +-10,000 or more.

        share: share of the root's nodes that were searched below the move; None: unknown, or too few for a conclusion.
        """
        changed = self._best is not None and best != self._best
        self._changes = self._changes * _KEPT_SHARE + changed
        near = bool(self._scores) and abs(score_cp - self._scores[-1]) <= _SETTLED_CP
        self._settled = self._settled + 1 if near and not changed else 0
        self._best = best
        self._share = share
        self._scores.append(score_cp)
        self._may_end = True

    def trouble(self) -> None:
        """Note that the score has left its window, so that this iteration should be finished."""
        self._may_end = False

    @property
    def is_instant(self) -> bool:
        """Whether the game clock requires a move at once."""
        return self.budget.soft_s <= self.budget.hard_s <= _INSTANT_S and not self.pondering

    @property
    def scale(self) -> float:
        """Factor of the soft limit: more for a falling score, an unstable best move, or one with few of the root's
        nodes; less for a settled one, and for one with most of the nodes."""
        if self.root_moves <= 1:
            return 0.0
        if not self._scores:
            return 1.0
        last = self._scores[-1]
        if last >= _MATE_CP:
            return _MATE_SCALE
        before = max(self._scores[-4:-1], default=last)
        drop = min(_MOST_FOR_DROP, max(0, before - last) / _DROP_CP)
        unrest = min(_MOST_FOR_CHANGES, _CHANGE_SHARE * self._changes)
        if self._settled >= _SETTLED_ITERATIONS and drop == 0 and unrest < 0.1:
            return _SETTLED_SCALE * self._share_scale
        return (1.0 + drop + unrest) * self._share_scale

    @property
    def _share_scale(self) -> float:
        if self._share is None:
            return 1.0
        return min(1.0 + _SHARE_SLOPE * (_USUAL_SHARE - self._share), _MOST_FOR_SHARE)

    def deadline_s(self) -> float:
        """Return when the search must stop in any case; infinite while pondering or without a limit."""
        return math.inf if self.pondering else self._since + self.budget.hard_s

    def due_s(self) -> float:
        """Return when to stop if there is no other report before; infinite while pondering or without a limit."""
        deadline_s = self.deadline_s()
        if self.pondering or not self._may_end or math.isinf(self.budget.soft_s):
            return deadline_s
        return min(deadline_s, self.budget.soft_s * self.scale)

    def is_due(self, elapsed_s: float) -> bool:
        """Tell whether to stop now."""
        due_s = self.due_s()
        if elapsed_s < due_s:
            self._due_s = due_s
            return False
        if self.meant_s is None:
            # a sleeping thread may wake up late, which is not part of the intended time; a report comes in time
            self.meant_s = max(0.0, min(elapsed_s, self._due_s, self.deadline_s()) - self._since)
        return True


class LagMeter:
    """Measures the lag of a game's moves: time that the clock has lost beyond the budget between two of our moves.

    Its part on this side is known without a clock: `late_s`. lag_s: expected lag before the first measurement; None:
    the overhead.
    """

    def __init__(self, lag_s: float | None = None) -> None:
        self._expected_s = lag_s
        self._now: GameClock | None = None
        """Clock at the present move."""
        self._before: GameClock | None = None
        """Clock at the last move that was played."""
        self._meant_s = 0.0
        self._sum_s = 0.0
        self._moves = 0
        self.late_s = DEFAULT_OVERHEAD_S / _LATE_FACTOR
        """Longest delay of recent answers, in seconds after the search should have stopped."""

    def read(self, clock: GameClock | None, overhead_s: float = DEFAULT_OVERHEAD_S) -> GameClock | None:
        """Take the clock at a move, if there is one, and return it with lag and number of the moves before."""
        before, self._before, self._now = self._before, None, clock
        if clock is None:
            return None
        if before is not None:
            beyond_s = before.time_s + clock.increment_s - clock.time_s - self._meant_s
            if beyond_s < -_ROUNDING_S:  # a new game, or the next time control
                self._sum_s, self._moves = 0.0, 0
            else:
                self._sum_s += min(max(0.0, beyond_s), max(overhead_s, _LONG_LAG_S))
                self._moves += 1
        lag_s = self._sum_s / self._moves if self._moves else self._expected_s
        return replace(clock, lag_s=lag_s, moves_played=self._moves)

    def played(self, manager: TimeManager | None, ran_s: float, waited_s: float = 0.0) -> None:
        """Note that the move is made, unless it was only pondered on. ran_s: seconds that our clock has run; waited_s:
        the part of them before the manager's time began."""
        if manager is None or manager.pondering:
            return
        self._before = self._now
        self._meant_s = ran_s if manager.meant_s is None else min(ran_s, waited_s + manager.meant_s)
        if manager.meant_s is not None:
            self.late_s = max(ran_s - self._meant_s, _LATE_KEPT * self.late_s)
