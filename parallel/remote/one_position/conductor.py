"""What machines that search the same root have found together: whose answer is taken, of one line or of several."""

from __future__ import annotations

from dataclasses import dataclass

import chess

from psearch.core.constants import BOUND_EXACT, BOUND_UPPER
from psearch.remote.one_position.machine_messages import MachineReport
from psearch.remote.one_position.machine_vote import Voter, elected


@dataclass(frozen=True)
class Answer:
    """What the machines have found together."""

    machine: int
    """that has searched the line"""
    score: int
    """for the side to move at the root"""
    depth: int
    pv: tuple[chess.Move, ...]
    lines: tuple[MachineReport, ...] = ()
    """where all machines have searched the root: what this one has said of the line, and of those after it"""


_BEHIND = 2
"""Plies by which a machine may be behind the first and still vote: slow ones, and those that have come late, have
scores of another kind, of which the greatest would win. A mate is one at any depth."""


class SameRoot:
    """All machines search the root, and vote in the end; what a machine has said counts when it is lost as well.

    depth: the limit, if there is one; whoever has finished it has the answer.
    """

    def __init__(self, depth: int | None = None) -> None:
        self._depth = depth
        self._voters: dict[int, Voter] = {}

    def report(self, report: MachineReport) -> None:
        """Take in what a machine has found."""
        if report.pv:
            before = self._voters.get(report.machine)
            finished = before.finished if before else 0
            if report.bound == BOUND_EXACT:
                finished = max(finished, report.depth)
            if report.bound != BOUND_UPPER or before is None:
                self._voters[report.machine] = Voter(report, finished)

    def answer(self) -> Answer | None:
        """Return the answer as things stand; None: nothing is known."""
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
        self._new: dict[int, list[MachineReport]] = {}
        """by machine: of the depth that is being told"""
        self._last: dict[int, tuple[MachineReport, ...]] = {}
        """by machine: of the last depth of which all are known, the best first"""

    def report(self, report: MachineReport) -> None:
        """Take in what a machine has found: exact reports count, which come from the best line to the last."""
        if report.pv and report.bound == BOUND_EXACT:
            new = self._new.setdefault(report.machine, [])
            if report.line == 1:
                new.clear()
            new.append(report)
            if len(new) == self._lines:
                self._last[report.machine] = tuple(new)
                new.clear()

    def answer(self) -> Answer | None:
        """Return the answer as things stand; None: no depth is whole."""
        if not self._last:
            return None
        machine = max(sorted(self._last), key=lambda number: self._last[number][0].depth)
        lines = self._last[machine]
        return Answer(machine, lines[0].score, lines[0].depth, lines[0].pv, lines)
