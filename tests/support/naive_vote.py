"""The vote among workers with roots of their own, from its definition in `parallel/scheduler/thread_vote.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psearch.arena.arena import Arena
from psearch.core.constants import BOUND_LOWER, BOUND_UPPER, MATE_IN_MAX_PLY


@dataclass(frozen=True)
class Voter:
    """A worker's answer."""

    move: int
    score: int
    depth: int
    """the last that it has finished; 0 none"""
    bound: int

    @property
    def gives_mate(self) -> bool:
        return self.score >= MATE_IN_MAX_PLY and self.bound != BOUND_UPPER

    @property
    def is_mated(self) -> bool:
        return self.score <= -MATE_IN_MAX_PLY and self.bound != BOUND_LOWER


def voters_of(arena: Arena) -> list[Voter]:
    """All workers, as the last search left them."""
    return [
        Voter(int(answer["pv"][0]), int(answer["score"]), int(depth), int(answer["bound"]))
        for answer, depth in zip(arena.worker["answer"], arena.worker["finished_depth"], strict=True)
    ]


def naive_election(voters: list[Voter]) -> int:
    """The number of the first of those that come before all others."""
    known = [voter for voter in voters if voter.depth]
    if not known:
        return 0
    if any(voter.gives_mate for voter in known):
        return voters.index(max((voter for voter in known if voter.gives_mate), key=lambda voter: voter.score))
    if any(voter.is_mated for voter in known):
        return voters.index(max((voter for voter in known if voter.is_mated), key=lambda voter: voter.depth))
    lowest = min(voter.score for voter in known)
    weights = [(voter.score - lowest + 6) * voter.depth for voter in known]
    votes = {
        voter.move: sum(weight for weight, other in zip(weights, known, strict=True) if other.move == voter.move)
        for voter in known
    }
    places = [(votes[voter.move], weight) for voter, weight in zip(known, weights, strict=True)]
    return voters.index(known[int(np.lexsort([[-w for _, w in places], [-v for v, _ in places]])[0])])
