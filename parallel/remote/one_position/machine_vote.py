"""Whose answer is taken of machines that have all searched the same position: the rule of `scheduler/thread_vote.py`,
for machines in place of workers.

Every machine votes for its move with what its score is above the lowest of all; of the machines for the move with the
most votes the one with the longest line is elected. A mate that is proved decides without votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import chess

from psearch.core.constants import BOUND_LOWER, BOUND_UPPER, MATE_IN_MAX_PLY
from psearch.remote.one_position.machine_messages import MachineReport

_LEAST_WEIGHT = 6
"""Centipawns: as in `scheduler/thread_vote.py`."""


@dataclass(frozen=True)
class Voter:
    """A machine's answer."""

    report: MachineReport
    """the last with a line"""
    finished: int
    """the last depth with an exact score; 0 none"""

    @property
    def move(self) -> chess.Move:
        return self.report.pv[0]

    @property
    def mate(self) -> int:
        """1: it has proved a mate for the side to move, -1: one against it, 0: neither."""
        if self.report.score >= MATE_IN_MAX_PLY and self.report.bound != BOUND_UPPER:
            return 1
        if self.report.score <= -MATE_IN_MAX_PLY and self.report.bound != BOUND_LOWER:
            return -1
        return 0


def elected(voters: Mapping[int, Voter]) -> int | None:
    """Return the machine whose answer is taken; of equal ones the lowest number. None: no machine has finished a
    depth."""
    known = {number: voter for number, voter in sorted(voters.items()) if voter.finished > 0}
    if not known:
        return None
    mates = {number: voter for number, voter in known.items() if voter.mate > 0}
    if mates:
        return max(mates, key=lambda number: mates[number].report.score)
    mated = {number: voter for number, voter in known.items() if voter.mate < 0}
    if mated:
        return max(mated, key=lambda number: mated[number].finished)
    lowest = min(voter.report.score for voter in known.values())
    votes: dict[chess.Move, int] = {}
    for voter in known.values():
        votes[voter.move] = votes.get(voter.move, 0) + voter.report.score - lowest + _LEAST_WEIGHT
    return max(known, key=lambda number: (votes[known[number].move], len(known[number].report.pv)))
