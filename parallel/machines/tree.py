"""The tree near the root, shared out to machines: each searches one part of it, with all its workers.

After P-GPP (Yokoyama, Kaneko and Tanaka 2015). A *part* is a position and some of its moves. At first there is one, the
root with all its moves. The likeliest part is divided until there are as many parts as machines: into the position
behind its best move, and the rest of its moves; moves of which none is known to be the best are dealt out in two
halves. What is likely is a product along the way: half of what a position needs falls to its best move. So the parts
lie along the best line, and more of them near the root.

Unlike there, a machine that searches the rest of a position's moves may be told what the best one is worth, from
whatever part that value comes: its *floor*. It need only show that none of the rest is worth more, which takes a small
part of the time that a value does. If one is, the line is another one from there on, and what is not part of it any
more is searched no longer.

No clock, no messages of its own: `Conductor` says how it is told and asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import chess

from psearch.core.constants import BOUND_EXACT, BOUND_UPPER
from psearch.machines.conductor import Answer
from psearch.machines.messages import Job, Report
from psearch.machines.vote import Voter, elected

Path = tuple[chess.Move, ...]
_FIRST_DEPTH = 4
"""Of the root, by one machine, before it is divided."""
_MUST_MOVE = 10
"""Centipawns by which a floor must change to be told anew."""
_BEHIND = 2
"""Plies by which a report may be behind the line that it is to replace."""


@dataclass(frozen=True)
class Part:
    """What one machine searches."""

    path: Path
    moves: tuple[chess.Move, ...] | None
    """None: all of the position"""
    is_rest: bool
    """the best move is not among them"""


@dataclass(frozen=True)
class _Value:
    """What a position is worth, as far as is known."""

    machine: int
    """that has searched it, or the end of its line"""
    score: int
    """for the side to move there"""
    depth: int
    line: Path


class Tree:
    """A conductor. share: of what a position needs, the part of its best move, 0 to 1; floors: see above."""

    def __init__(self, board: chess.Board, share: float = 0.5, *, floors: bool = True) -> None:
        self._board = board
        self._share = share
        self._floors = floors
        self._machines: list[int] = []
        self._numbers = 0
        self._jobs: dict[int, Job] = {}
        """by machine"""
        self._parts: dict[int, Part] = {}
        """by machine"""
        self._values: dict[Path, _Value] = {}
        self._rivals: dict[int, _Value] = {}
        """by machine that searches a rest: the best it has, if the last iteration that it finished has any"""
        self._voters: dict[int, Voter] = {}
        """of the whole root, before it was divided"""
        self._is_divided = False

    # -- what a conductor is asked -----------------------------------------------------------------------------------

    def begin(self, machines: Iterable[int]) -> Mapping[int, Job]:
        self._machines = list(machines)
        whole = Part((), None, False)
        return {machine: self._give(machine, whole, None) for machine in self._machines}

    def report(self, report: Report) -> Mapping[int, Job]:
        job = self._jobs.get(report.machine)
        if job is None or job.number != report.job or not report.pv:
            return {}
        if not self._is_divided:
            return self._before(report)
        part = self._parts[report.machine]
        value = _Value(report.machine, report.score, report.depth, report.pv)
        if part.is_rest and report.bound == BOUND_UPPER:
            self._rivals.pop(report.machine, None)  # nothing is better than the floor
            return {}
        if part.is_rest:
            self._rivals[report.machine] = value
        elif report.bound == BOUND_UPPER:
            self._lower(part.path, value)
        else:
            self._take(part.path, value)
        before = self._best_moves()
        for length in range(len(part.path), -1, -1):
            self._settle(part.path[:length])
        return self._divide() if before != self._best_moves() else self._new_floors()

    def lost(self, machine: int) -> Mapping[int, Job]:
        if machine in self._machines:
            self._machines.remove(machine)
        self._jobs.pop(machine, None)
        self._parts.pop(machine, None)
        self._rivals.pop(machine, None)
        return self._divide() if self._is_divided else {}

    def answer(self) -> Answer | None:
        if self._is_divided:
            value = self._values[()]
            return Answer(value.machine, value.score, value.depth, value.line)
        machine = elected(self._voters)
        if machine is None:
            return None
        report = self._voters[machine].report
        return Answer(machine, report.score, report.depth, report.pv)

    # -- before the root is divided ----------------------------------------------------------------------------------

    def _before(self, report: Report) -> Mapping[int, Job]:
        if report.bound == BOUND_UPPER:
            return {}
        finished = report.depth if report.bound == BOUND_EXACT else 0
        before = self._voters.get(report.machine)
        self._voters[report.machine] = Voter(report, max(finished, before.finished if before else 0))
        if len(self._machines) == 1 or finished < _FIRST_DEPTH or report.machine != self._machines[0]:
            return {}
        self._take((), _Value(report.machine, report.score, report.depth, report.pv))
        self._is_divided = True
        return self._divide()

    # -- the line ----------------------------------------------------------------------------------------------------

    def _take(self, path: Path, value: _Value) -> None:
        """A value of a position, and with it one of each position of its line; where what is known is not deeper."""
        while value.line and value.depth > 0:
            known = self._values.get(path)
            if known is not None and known.depth > value.depth:
                return
            self._values[path] = value
            path = (*path, value.line[0])
            value = _Value(value.machine, -value.score, value.depth - 1, value.line[1:])

    def _lower(self, path: Path, value: _Value) -> None:
        """A position is worth less than was thought: its value follows, but the others should know by now."""
        known = self._values.get(path)
        if known is not None and value.depth >= known.depth and value.score < known.score:
            self._values[path] = replace(known, score=value.score)

    def _settle(self, path: Path) -> None:
        """Let a position's value follow from what is known of its best move, and of the others."""
        known = self._values.get(path)
        if known is None:
            return
        best = known.line[0]
        behind = self._values.get((*path, best))
        if behind is not None and behind.depth + 1 >= known.depth:
            known = _Value(behind.machine, -behind.score, behind.depth + 1, (best, *behind.line))
            self._values[path] = known
        rivals = [
            self._rivals[machine]
            for machine, part in self._parts.items()
            if part.path == path and machine in self._rivals
        ]
        for rival in rivals:
            if rival.score > known.score and rival.depth + _BEHIND >= known.depth and rival.line[0] != best:
                known = self._values[path] = rival
                self._take((*path, rival.line[0]), _Value(rival.machine, -rival.score, rival.depth - 1, rival.line[1:]))

    def _best(self, path: Path) -> chess.Move | None:
        known = self._values.get(path)
        return None if known is None else known.line[0]

    def _best_moves(self) -> list[chess.Move | None]:
        """Of the positions that are divided."""
        return [self._best(part.path) for part in self._parts.values() if part.is_rest]

    # -- the parts ---------------------------------------------------------------------------------------------------

    def _divide(self) -> Mapping[int, Job]:
        """Parts for all machines; new jobs for those whose part is not among them."""
        wanted = self._wanted(len(self._machines))
        jobs: dict[int, Job] = {}
        free = []
        for machine in self._machines:
            if self._parts.get(machine) in wanted:
                wanted.remove(self._parts[machine])
            else:
                free.append(machine)
        for part in wanted:
            if not free:
                break
            machine = max(free, key=lambda machine: _common(self._parts.get(machine), part))
            free.remove(machine)
            jobs[machine] = self._give(machine, part, self._floor(part))
        return {**self._new_floors(), **jobs}

    def _wanted(self, count: int) -> list[Part]:
        """So many parts, if there are so many."""
        parts: list[tuple[float, Part]] = [(1.0, Part((), None, False))]
        while len(parts) < count:
            parts.sort(key=lambda weighed: -weighed[0])
            for number, (weight, part) in enumerate(parts):
                halves = self._halves(part)
                if halves is not None:
                    share = 0.5 if part.is_rest else self._share
                    parts[number : number + 1] = [(weight * share, halves[0]), (weight * (1 - share), halves[1])]
                    break
            else:
                break
        return [part for _, part in parts]

    def _halves(self, part: Part) -> tuple[Part, Part] | None:
        """None: it cannot be divided."""
        if part.is_rest:
            moves = part.moves or ()
            if len(moves) < 2:
                return None
            return Part(part.path, moves[::2], True), Part(part.path, moves[1::2], True)
        best = self._best(part.path)
        if best is None:
            return None
        board = self._at(part.path)
        rest = tuple(move for move in board.legal_moves if move != best)
        board.push(best)
        if not rest or not any(board.legal_moves) or board.can_claim_draw():
            return None
        return Part((*part.path, best), None, False), Part(part.path, rest, True)

    def _at(self, path: Path) -> chess.Board:
        board = self._board.copy()
        for move in path:
            board.push(move)
        return board

    def _give(self, machine: int, part: Part, floor: int | None) -> Job:
        job = Job(self._numbers, part.path, part.moves, floor)
        self._numbers += 1
        self._jobs[machine] = job
        self._parts[machine] = part
        self._rivals.pop(machine, None)
        return job

    # -- floors ------------------------------------------------------------------------------------------------------

    def _floor(self, part: Part) -> int | None:
        """What the best move of a position is worth there, if it is known."""
        known = self._values.get(part.path)
        return known.score if self._floors and part.is_rest and known is not None else None

    def _new_floors(self) -> dict[int, Job]:
        jobs = {}
        for machine, part in self._parts.items():
            floor, told = self._floor(part), self._jobs[machine].floor
            if floor is not None and (told is None or abs(floor - told) >= _MUST_MOVE):
                jobs[machine] = self._jobs[machine] = replace(self._jobs[machine], floor=floor)
        return jobs


def _common(part: Part | None, other: Part) -> int:
    """How much of the way to two parts is the same; more where some of their moves are."""
    if part is None:
        return -1
    length = 0
    for here, there in zip(part.path, other.path, strict=False):
        if here != there:
            break
        length += 1
    same = part.path == other.path and set(part.moves or ()) & set(other.moves or ())
    return 2 * length - len(part.path) + (2 if same else 0)
