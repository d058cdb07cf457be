"""The switches of a search, as plain data: what a caller chooses before any kernel is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from psearch.core.chess.pruning.modes import DEFAULT_MODE, MODES, Pruning, parse_pruning
from psearch.defaults import DEFAULT_POLICY, DEFAULT_SPLIT_DEPTH, POLICY_NAMES
from psearch.results import PsearchError
from psearch.text.values import shown

DEFAULT_OPEN_BUSY = 25
DEFAULT_OPEN_IDLE = 10
"""Percent of P(needed) from which `calibrated` opens a node, while all workers are busy and while one is idle."""
ABDADA_DEFER_DEPTH = 3
"""Remaining depth of a child from which `abdada` defers its move while another worker searches the position."""
DEFAULT_ASPIRATION = 25
_MOST = 2**31 - 1


def pruning_named(text: str) -> Pruning:
    """The parameters of a mode and changes to it, as a user writes them (`parse_pruning`). Raises PsearchError."""
    try:
        return parse_pruning(text)
    except ValueError as error:
        raise PsearchError(str(error)) from None


@dataclass(frozen=True)
class SearchOptions:
    """Switches of the search. The defaults play; `plain()` is the search whose value is pure minimax.

    Raises PsearchError for a policy that is not one of `POLICY_NAMES`, and for a number that its field cannot hold.
    """

    tt: bool = True
    pruning: Pruning = MODES[DEFAULT_MODE]
    see_pruning: bool = True
    mate_distance: bool = True
    aspiration: int = DEFAULT_ASPIRATION
    policy: str = DEFAULT_POLICY
    split_depth: int = DEFAULT_SPLIT_DEPTH
    wait: bool = False
    """nothing opens before its first move is done: young brothers wait, under every policy"""
    open_busy: int = DEFAULT_OPEN_BUSY
    open_idle: int = DEFAULT_OPEN_IDLE
    join_cost: int = 0
    """nodes; 0: as measured while searching"""
    defer_depth: int | None = None
    """as `ABDADA_DEFER_DEPTH`, for any policy but lazy; 0 never; None: with abdada only"""
    record: bool = True

    def __post_init__(self) -> None:
        if self.policy not in POLICY_NAMES:
            raise PsearchError(f"policy must be one of {', '.join(POLICY_NAMES)}, not {self.policy!r}")
        for name in ("aspiration", "split_depth", "open_busy", "open_idle", "join_cost", "defer_depth"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= _MOST:
                raise PsearchError(f"{name} must be from 0 to {_MOST}, not {shown(value)}")

    @classmethod
    def plain(cls, policy: str = DEFAULT_POLICY, split_depth: int = DEFAULT_SPLIT_DEPTH) -> SearchOptions:
        """No table, nothing selective: any number of workers in any order must find the negamax value."""
        return cls(
            tt=False,
            pruning=MODES["plain"],
            see_pruning=False,
            mate_distance=False,
            aspiration=0,
            policy=policy,
            split_depth=split_depth,
        )
