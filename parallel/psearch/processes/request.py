"""What a caller wants of a search, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from psearch.arena.setup import Subject
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.time_manager import Budget, TimeManager
from psearch.results import Info, Limits, PsearchError

if TYPE_CHECKING:
    import chess

OnInfo = Callable[[Info], None]


@dataclass(frozen=True)
class SearchRequest:
    """What to search and how: a valid position until the first limit, or until `control` stops it. It can be pickled.

    Raises PsearchError when no line is wanted.
    """

    board: chess.Board | Subject
    """of chess, or a position of another game"""
    limits: Limits
    options: SearchOptions = field(default_factory=SearchOptions)
    only: Sequence[chess.Move] | None = None
    """legal root moves to choose from; None: all"""
    multipv: int = 1
    """lines to find, if there are so many moves"""
    on_info: OnInfo | None = None
    """called in the searching thread after every iteration, and from time to time with present counters"""
    control: SearchControl = field(default_factory=SearchControl)
    on_note: Callable[[str], None] | None = None
    """called in the searching thread with a line about what went wrong and is mended: `Result.notes`"""
    patience_s: float = 0.02
    """how long workers may take to stop at a limit before the answer is given without them, in seconds: they may be
    waiting for a core, or halted"""
    live_from_s: float = 0.0
    live_interval_s: float = 0.1
    """when `on_info` is given counters first, and how often; infinite: never. Each time costs a wake-up."""

    def __post_init__(self) -> None:
        if self.multipv < 1:
            raise PsearchError(f"multipv must be at least 1, not {self.multipv}")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only this process can use: in another one the copy has another control."""
        return {**vars(self), "control": None, "on_info": None, "on_note": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, control=SearchControl())

    def clock(self) -> TimeManager:
        """Return the clock of the control; else another for the limit of time, or without end."""
        milliseconds = self.limits.movetime_ms
        return self.control.clock or TimeManager(
            Budget() if milliseconds is None else Budget(hard_s=milliseconds / 1000)
        )
