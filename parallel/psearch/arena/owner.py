"""Tells a process from a fork of it, which must not use what was made before: its shared memory, pipes and processes
are still the parent's."""

from __future__ import annotations

import os

from psearch.results import PsearchError


class Owner:
    """The process that makes something, the only one that may use it. what: its name in messages."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is that process."""
        return os.getpid() == self._pid

    def check(self) -> None:
        """Raise PsearchError in any other process."""
        if not self.is_here:
            raise PsearchError(f"this {self._what} belongs to another process: make one in each")
