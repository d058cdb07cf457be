"""The description of a search, as plain data."""

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
    """Description of one search: a position, and limits of which the first ends it, unless `control` does. It can be
    pickled. Raises PsearchError for `multipv` below 1."""

    board: chess.Board | Subject
    """Valid position of chess, or one of another game."""
    limits: Limits
    options: SearchOptions = field(default_factory=SearchOptions)
    only: Sequence[chess.Move] | None = None
    """Legal root moves to choose from; None: all."""
    multipv: int = 1
    """Number of lines to find, at most one for each move."""
    on_info: OnInfo | None = None
    """Function called in the searching thread after every iteration, and at intervals with live counters."""
    control: SearchControl = field(default_factory=SearchControl)
    on_note: Callable[[str], None] | None = None
    """Function called in the searching thread with a line about each problem that was repaired (`Result.notes`)."""
    patience_s: float = 0.02
    """Seconds that the answer waits at a limit for busy workers, which may have no core or be stopped."""
    live_from_s: float = 0.0
    """Seconds from the start until `on_info` first gets live counters."""
    live_interval_s: float = 0.1
    """Seconds between two reports of live counters; infinite: none are made. Each one wakes the program."""
    seed: str = ""
    """Seed of the game, with which a limited strength draws its moves."""

    def __post_init__(self) -> None:
        if self.multipv < 1:
            raise PsearchError(f"multipv must be at least 1, not {self.multipv}")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out control and callbacks, which only this process can use; a copy gets a new control."""
        return {**vars(self), "control": None, "on_info": None, "on_note": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, control=SearchControl())

    def clock(self) -> TimeManager:
        """Return the control's clock, or else a new one for the time limit, if there is one."""
        milliseconds = self.limits.movetime_ms
        return self.control.clock or TimeManager(
            Budget() if milliseconds is None else Budget(hard_s=milliseconds / 1000)
        )
