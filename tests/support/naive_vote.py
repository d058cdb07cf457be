"""The vote of several roots, from its definition in `psearch/scheduler/thread_vote.py`."""

from __future__ import annotations

from dataclasses import dataclass

from psearch.arena.arena import Arena
from psearch_core.constants import BOUND_LOWER, BOUND_UPPER, MATE_IN_MAX_PLY


@dataclass(frozen=True)
class Voter:
    """A root's answer."""

    move: int
    score: int
    depth: int
    """the last that it has finished; 0 none"""
    bound: int
    length: int = 1
    """of the line"""

    @property
    def gives_mate(self) -> bool:
        return self.score >= MATE_IN_MAX_PLY and self.bound != BOUND_UPPER

    @property
    def is_mated(self) -> bool:
        return self.score <= -MATE_IN_MAX_PLY and self.bound != BOUND_LOWER


def voters_of(arena: Arena) -> list[Voter]:
    """Return all roots, as the last search left them."""
    roots = arena.stack[: int(arena.header[0]["first_roots"])]
    return [
        Voter(*(int(answer["pv"][0]), int(answer["score"]), int(depth), int(answer["bound"]), int(answer["pv_length"])))
        for answer, depth in zip(roots["answer"], roots["finished_depth"], strict=True)
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
    votes = {
        voter.move: sum(other.score - lowest + 6 for other in known if other.move == voter.move) for voter in known
    }
    return voters.index(max(known, key=lambda voter: (votes[voter.move], voter.length)))
