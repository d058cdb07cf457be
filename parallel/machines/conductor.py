"""Who says what each machine is to search, and whose answer is taken: the interface, and the simplest of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import chess

from psearch.core.constants import BOUND_EXACT, BOUND_UPPER
from psearch.machines.messages import Job, Report
from psearch.machines.vote import Voter, elected


@dataclass(frozen=True)
class Answer:
    """What the machines have found together."""

    machine: int
    """that has searched the line"""
    score: int
    """for the side to move at the root"""
    depth: int
    pv: tuple[chess.Move, ...]
    lines: tuple[Report, ...] = ()
    """where all machines have searched the root: what this one has said of the line, and of those after it"""


class Conductor(Protocol):
    """One search. Its calls may come in any order once it has begun; none of them waits for anything."""

    def begin(self, machines: Iterable[int]) -> Mapping[int, Job]:
        """The search begins with these machines: what each of them is to search."""

    def report(self, report: Report) -> Mapping[int, Job]:
        """News: what machines are to search now in place of what they are at."""

    def lost(self, machine: int) -> Mapping[int, Job]:
        """A machine is not there any more: the same."""

    def answer(self) -> Answer | None:
        """As things stand; None: nothing is known."""


_BEHIND = 2
"""Plies by which a machine may be behind the first and still vote: slow ones, and those that have come late, have
scores of another kind, of which the greatest would win. A mate is one at any depth."""


class SameRoot:
    """All machines search the root, and vote in the end. depth: the limit, if there is one; whoever has finished it has
    the answer."""

    def __init__(self, depth: int | None = None) -> None:
        self._depth = depth
        self._voters: dict[int, Voter] = {}

    def begin(self, machines: Iterable[int]) -> Mapping[int, Job]:
        return {machine: Job(machine) for machine in machines}

    def report(self, report: Report) -> Mapping[int, Job]:
        if report.pv:
            before = self._voters.get(report.machine)
            finished = before.finished if before else 0
            if report.bound == BOUND_EXACT:
                finished = max(finished, report.depth)
            if report.bound != BOUND_UPPER or before is None:
                self._voters[report.machine] = Voter(report, finished)
        return {}

    def lost(self, machine: int) -> Mapping[int, Job]:
        """What it has said still counts."""
        return {}

    def answer(self) -> Answer | None:
        deepest = max((voter.finished for voter in self._voters.values()), default=0)
        least = deepest if deepest == self._depth else deepest - _BEHIND
        voters = {number: one for number, one in self._voters.items() if one.finished >= least or one.mate}
        machine = elected(voters)
        if machine is None:
            return None
        report = voters[machine].report
        return Answer(machine, report.score, report.depth, report.pv, (report,))


class SameRootLines:
    """All machines search several lines of the root; those of the deepest depth are taken, all from one machine.

    lines: how many there are of each depth, at least 2.
    """

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._new: dict[int, list[Report]] = {}
        """by machine: of the depth that is being told"""
        self._last: dict[int, tuple[Report, ...]] = {}
        """by machine: of the last depth of which all are known, the best first"""

    def begin(self, machines: Iterable[int]) -> Mapping[int, Job]:
        return {machine: Job(machine) for machine in machines}

    def report(self, report: Report) -> Mapping[int, Job]:
        """Exact ones count, which come from the best line to the last."""
        if report.pv and report.bound == BOUND_EXACT:
            new = self._new.setdefault(report.machine, [])
            if report.line == 1:
                new.clear()
            new.append(report)
            if len(new) == self._lines:
                self._last[report.machine] = tuple(new)
                new.clear()
        return {}

    def lost(self, machine: int) -> Mapping[int, Job]:
        """What it has said still counts."""
        return {}

    def answer(self) -> Answer | None:
        if not self._last:
            return None
        machine = max(sorted(self._last), key=lambda number: self._last[number][0].depth)
        lines = self._last[machine]
        return Answer(machine, lines[0].score, lines[0].depth, lines[0].pv, lines)
