"""Tells of failures, each once. Imports nothing heavy."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable


class Notices:
    """Tells of failures, each once: again only when the thing has worked, or was changed, in between.

    tell: prints or logs a line; may be called from any thread.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self._failing: set[str] = set()

    def fails(self, subject: str, text: str) -> None:
        """Say what fails, unless that has been said."""
        if subject not in self._failing:
            self._failing.add(subject)
            self.tell(text)

    def works(self, subject: str) -> bool:
        """Note that it works: if it fails from now on, that is news. Returns whether it has failed before."""
        had_failed = subject in self._failing
        self._failing.discard(subject)
        return had_failed

    def internal_error(self, error: Exception) -> None:
        """Tell of what should not happen, each kind once; the traceback goes to stderr."""
        text = f"internal error: {type(error).__name__}: {error}"
        if text not in self._failing and sys.stderr is not None:
            with contextlib.suppress(OSError):  # a closed pipe
                traceback.print_exception(error, file=sys.stderr)
        self.fails(text, text)
