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


class SameRoot:
    """All machines search the root, and vote in the end."""

    def __init__(self) -> None:
        self.voters: dict[int, Voter] = {}

    def begin(self, machines: Iterable[int]) -> Mapping[int, Job]:
        return {machine: Job(machine) for machine in machines}

    def report(self, report: Report) -> Mapping[int, Job]:
        if report.pv:
            before = self.voters.get(report.machine)
            finished = before.finished if before else 0
            if report.bound == BOUND_EXACT:
                finished = max(finished, report.depth)
            if report.bound != BOUND_UPPER or before is None:
                self.voters[report.machine] = Voter(report, finished)
        return {}

    def lost(self, machine: int) -> Mapping[int, Job]:
        """What it has said still counts."""
        return {}

    def answer(self) -> Answer | None:
        machine = elected(self.voters)
        if machine is None:
            return None
        report = self.voters[machine].report
        return Answer(machine, report.score, report.depth, report.pv)
