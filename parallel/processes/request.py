"""What a caller wants of a search, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.results import Info, Limits, PsearchError, Result

if TYPE_CHECKING:
    import chess

OnInfo = Callable[[Info], None]


@dataclass(frozen=True)
class SearchRequest:
    """What to search and how: a valid position until the first limit, or until `control` stops it.

    Raises PsearchError when no line is wanted.
    """

    board: chess.Board
    limits: Limits
    options: SearchOptions = field(default_factory=SearchOptions)
    only: Sequence[chess.Move] | None = None
    """legal root moves to choose from; None: all"""
    multipv: int = 1
    """lines to find, if there are so many moves"""
    on_info: OnInfo | None = None
    """called in the searching thread after every iteration, and about ten times a second with present counters"""
    control: SearchControl = field(default_factory=SearchControl)
    on_answer: Callable[[Result], None] | None = None
    """called with the answer, once, if workers are slow to stop: they may be waiting for a core. What the search
    returns later may differ"""

    def __post_init__(self) -> None:
        if self.multipv < 1:
            raise PsearchError(f"multipv must be at least 1, not {self.multipv}")
