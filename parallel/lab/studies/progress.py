"""How a study says how far it is."""

from __future__ import annotations

from typing import Protocol


class StudyProgress(Protocol):
    """What a study calls after every step."""

    def __call__(self, text: str, done: float = 0, total: float = 0) -> None:
        """text: a line on what was done last; done, total: work in any unit, both 0 while the total is not known."""
