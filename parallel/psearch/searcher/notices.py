"""Reports of failures, each made only once. Imports nothing heavy."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable


class Notices:
    """Reports each failure once, and again only if its subject has worked, or was changed, in between.

    tell: prints or logs a line; may be called from any thread.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self._failing: set[str] = set()

    def fails(self, subject: str, text: str) -> None:
        """Report that a subject fails, unless that has been reported."""
        if subject not in self._failing:
            self._failing.add(subject)
            self.tell(text)

    def works(self, subject: str) -> bool:
        """Note that a subject works, so that its next failure is reported. Returns whether it had failed."""
        had_failed = subject in self._failing
        self._failing.discard(subject)
        return had_failed

    def internal_error(self, error: Exception) -> None:
        """Report an unexpected exception, each kind once, with its traceback on stderr."""
        text = f"internal error: {type(error).__name__}: {error}"
        if text not in self._failing and sys.stderr is not None:
            with contextlib.suppress(OSError):  # a closed pipe
                traceback.print_exception(error, file=sys.stderr)
        self.fails(text, text)
