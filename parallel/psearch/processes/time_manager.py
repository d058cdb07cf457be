"""How long to think: budgets from a game clock, and the decision to stop, as pure functions of what they are given.

Times are seconds. A budget has two limits. The *soft* one, stretched or shrunk by how the search goes, ends a search
unless the iteration under way has met trouble: a score that left its window. The *hard* one is kept in any case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import chess

DEFAULT_OVERHEAD_S = 0.03
"""What a move costs beyond the search: the way of the answer, and workers that wait for a core before they stop."""

FIRST_ITERATION_S = 0.01
"""What a search that has to stop may take on top to finish its first iteration: an answer wants a score."""
_FIRST_ITERATION_SHARE = 0.1
"""Share of the clock that `FIRST_ITERATION_S` must not exceed."""
_LEAST_FIRST_ITERATION_S = 0.002
"""The least that the first iteration may take on top: a made-up move loses the game as well."""
_INSTANT_S = 0.005
"""A search this short is not worth to wake other processes."""

_MOST_OF_CLOCK = 0.5
"""Share of the clock that one move may take at most, while others must follow it."""
_LAST_MOVE_SHARE = 0.9
"""Share of the clock that one move may take when the clock is reset after it."""
_LEAST_S = 0.001
_GAME_MOVES = 200
"""Moves of a game without increment that the clock must last for, however long the way of each answer is."""
_LATE_MOVES = 50
"""Moves that are still expected when most of those have been played."""
_LAG_MARGIN = 1.25
"""The lag of moves to come over the mean that was measured: the machine may become busier."""
_LONG_LAG_S = 0.05
"""What one move counts for at most, unless the overhead is more: a single delay shall not spoil the game."""
_ROUNDING_S = 0.002
"""Error of a clock, which is given in milliseconds."""

# how time is shared out: games measured each number (docs/decisions/023-time-use.md)
_MOVES_AHEAD = 30
"""Moves that the rest of the clock is shared out to, when the rules do not say how many are to come."""
_INCREMENT_SHARE = 0.75
"""Share of the increment that a move may spend."""
_HARD_OVER_SOFT = 4
"""The hard limit over the soft one."""
_DROP_CP = 60
"""A score that falls by so much doubles the time."""
_MOST_FOR_DROP = 1.0
_CHANGE_SHARE = 0.6
"""Share of the time that a move which changed in the last iteration has more."""
_KEPT_SHARE = 0.6
"""Share of `_CHANGE_SHARE` that is left after each further iteration."""
_MOST_FOR_CHANGES = 1.2
_SETTLED_ITERATIONS = 6
"""Iterations with the same move and a score that hardly moves, after which a move is settled."""
_SETTLED_CP = 15
"""Centipawns by which a score may move meanwhile, each time."""
_SETTLED_SCALE = 0.55
"""Share of the time that a settled move takes."""
_MATE_SCALE = 0.15
_MATE_CP = 10_000


@dataclass(frozen=True)
class GameClock:
    """The clock of the side to move, in seconds."""

    time_s: float
    increment_s: float = 0.0
    moves_to_go: int | None = None
    """moves until the clock is reset, this one included; None: the time is for the rest of the game"""
    lag_s: float | None = None
    """mean time that earlier moves cost beyond their budgets; None: not known, the overhead is expected"""
    moves_played: int = 0
    """moves of this game that are known of"""


@dataclass(frozen=True)
class Budget:
    """Limits of one search in seconds; infinite: none."""

    soft_s: float = math.inf
    hard_s: float = math.inf
    left_s: float = math.inf
    """what the clock has"""

    @property
    def first_s(self) -> float:
        """How long beyond the limit the first iteration may go on."""
        return min(FIRST_ITERATION_S, max(_LEAST_FIRST_ITERATION_S, _FIRST_ITERATION_SHARE * self.left_s))

    @property
    def is_tight(self) -> bool:
        """Whether the clock is nearly empty: any move at once is better than a good one later."""
        return self.first_s < FIRST_ITERATION_S


def allot(clock: GameClock, overhead_s: float = DEFAULT_OVERHEAD_S) -> Budget:
    """Return the share of the clock for this move. 0 < soft <= hard, and hard plus overhead fit on the clock if
    anything does.

    The lag of each move to come is kept back, as far as increments do not pay for it: a clock that can last for a game
    of 200 moves does, even if each takes its hard limit. An overdrawn clock gives the least budget there is: the search
    then ends after its first iteration.
    """
    left = max(clock.time_s - overhead_s, _LEAST_S)
    lag_s = overhead_s if clock.lag_s is None else _LAG_MARGIN * clock.lag_s
    moves = _MOVES_AHEAD if clock.moves_to_go is None else max(1, min(clock.moves_to_go, _MOVES_AHEAD))
    most = left * (_LAST_MOVE_SHARE if moves == 1 and clock.moves_to_go is not None else _MOST_OF_CLOCK)
    if clock.moves_to_go is None:
        to_come = max(_LATE_MOVES, _GAME_MOVES - clock.moves_played) - 1
    else:
        to_come = min(max(1, clock.moves_to_go), _GAME_MOVES) - 1  # they must be paid for from this clock
    most = min(most, left - to_come * max(0.0, lag_s + _LEAST_S - clock.increment_s))
    free = max(0.0, left - to_come * max(0.0, lag_s - clock.increment_s))
    # only what is left of the increment can be spent each time: the rest of the clock stays as a reserve
    base = free / moves + _INCREMENT_SHARE * max(clock.increment_s - overhead_s, 0.0)
    soft = max(_LEAST_S, min(base, most))
    return Budget(soft, max(soft, min(_HARD_OVER_SOFT * base, most)), clock.time_s)


def fixed_time(movetime_s: float, overhead_s: float = DEFAULT_OVERHEAD_S) -> Budget:
    """Return the budget for a move that must be answered within `movetime_s`, or within 1 ms if that is more.

    At least half of it is used; overhead of up to half of it is left free.
    """
    within_s = max(_LEAST_S, movetime_s)
    return Budget(math.inf, max(within_s / 2, within_s - overhead_s))


def time_manager(
    clock: GameClock | None,
    fixed: Budget | None,
    root_moves: int,
    overhead_s: float = DEFAULT_OVERHEAD_S,
    stretch: float = 1.0,
    pondering: bool = False,
) -> TimeManager:
    """Make what decides about time, from a game clock, a fixed time (`fixed_time`), both, or neither.

    stretch: the soft limit of the clock's share is so many times as long.
    """
    budget = Budget() if clock is None else allot(clock, overhead_s)
    hard_s = budget.hard_s if fixed is None else min(budget.hard_s, fixed.hard_s)
    soft_s = min(stretch * budget.soft_s, budget.hard_s)
    return TimeManager(Budget(soft_s, hard_s, budget.left_s), root_moves, pondering)


@dataclass
class TimeManager:
    """Decides when a search should stop; fed with what the search reports.

    root_moves: legal moves to choose from (with one there is nothing to think about). While `pondering` nothing is due.
    All times given are seconds since the search began.
    """

    budget: Budget
    root_moves: int = 2
    pondering: bool = False
    meant_s: float | None = None
    """what of our clock the move was meant to take, without what came too late to stop in time; None: the clock has not
    ended the search"""
    _due_s: float = math.inf
    """when it was to stop, as far as was known at the last look"""
    _since: float = 0.0
    _scores: list[int] = field(default_factory=list)
    _best: chess.Move | None = None
    _changes: float = 0.0
    _settled: int = 0
    _may_end: bool = False

    def ponderhit(self, elapsed_s: float) -> None:
        """Run our clock from now on: the opponent has played the expected move.

        What was thought before counts for the soft limit, so the answer may be due at once.
        """
        self.pondering = False
        self._since = elapsed_s

    def iteration(self, best: chess.Move, score_cp: int) -> None:
        """Note that an iteration has ended with this move; mates count as +-10,000 or more."""
        changed = self._best is not None and best != self._best
        self._changes = self._changes * _KEPT_SHARE + changed
        near = bool(self._scores) and abs(score_cp - self._scores[-1]) <= _SETTLED_CP
        self._settled = self._settled + 1 if near and not changed else 0
        self._best = best
        self._scores.append(score_cp)
        self._may_end = True

    def trouble(self) -> None:
        """Note that the score has left its window: this iteration is worth its end."""
        self._may_end = False

    @property
    def is_instant(self) -> bool:
        """Whether the clock of a game asks for a move at once."""
        return self.budget.soft_s <= self.budget.hard_s <= _INSTANT_S and not self.pondering

    @property
    def scale(self) -> float:
        """What the soft limit is multiplied by: more on a falling score or an unstable move, less on a settled one."""
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
            return _SETTLED_SCALE
        return 1.0 + drop + unrest

    def deadline_s(self) -> float:
        """Return when the search must stop, whatever it is at; infinite while pondering or without a limit."""
        return math.inf if self.pondering else self._since + self.budget.hard_s

    def due_s(self) -> float:
        """Return when to stop if nothing more is reported until then; infinite while pondering or without a limit."""
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
            # who sleeps may wake up late; news that ends the search come in time
            self.meant_s = max(0.0, min(elapsed_s, self._due_s, self.deadline_s()) - self._since)
        return True


class LagMeter:
    """Measures what moves of a game cost beyond their budgets, by what the clock has lost from one to the next.

    lag_s: what is expected before the first has been measured; None: the overhead.
    """

    def __init__(self, lag_s: float | None = None) -> None:
        self._expected_s = lag_s
        self._now: GameClock | None = None
        """at the move that is thought about"""
        self._before: GameClock | None = None
        """at the last one that was played"""
        self._meant_s = 0.0
        self._sum_s = 0.0
        self._moves = 0

    def read(self, clock: GameClock | None, overhead_s: float = DEFAULT_OVERHEAD_S) -> GameClock | None:
        """Take the clock as it is at a move, if there is one, and return it with what is known of the moves before."""
        before, self._before, self._now = self._before, None, clock
        if clock is None:
            return None
        if before is not None:
            beyond_s = before.time_s + clock.increment_s - clock.time_s - self._meant_s
            if beyond_s < -_ROUNDING_S:  # another game, or the next time control
                self._sum_s, self._moves = 0.0, 0
            else:
                self._sum_s += min(max(0.0, beyond_s), max(overhead_s, _LONG_LAG_S))
                self._moves += 1
        lag_s = self._sum_s / self._moves if self._moves else self._expected_s
        return replace(clock, lag_s=lag_s, moves_played=self._moves)

    def played(self, manager: TimeManager | None, ran_s: float, waited_s: float = 0.0) -> None:
        """Note that the move is made, unless it was only pondered on. ran_s: how long our clock has run; waited_s: how
        much of that it ran before the manager's did."""
        if manager is None or manager.pondering:
            return
        self._before = self._now
        self._meant_s = ran_s if manager.meant_s is None else min(ran_s, waited_s + manager.meant_s)
