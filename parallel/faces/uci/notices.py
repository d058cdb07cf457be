"""`info string` lines: what the engine has to say beside the protocol. Imports nothing heavy."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable

Say = Callable[[str], None]
"""Prints whole lines, given without the last line's end; may be called from any thread."""

_LONGEST = 1000
"""characters of a line"""
_LONGEST_QUOTE = 80


def info_string(text: str) -> str:
    """The text as one line of the protocol, whatever it holds.

    >>> info_string("no file a\\rbestmove e2e4")
    'info string no file a\\\\rbestmove e2e4'
    """
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return "info string " + "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)


def quoted(text: str) -> str:
    """What a GUI wrote, for a message: in ASCII, and not endless.

    >>> quoted("a" * 1000)[-9:]
    "aaaaa...'"
    """
    return ascii(text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + "...")


class Notices:
    """Tells of failures, each once: again only when the thing has worked, or was changed, in between."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._failing: set[str] = set()

    def tell(self, text: str) -> None:
        """Say it, each time."""
        self._say(info_string(text))

    def fails(self, subject: str, text: str) -> None:
        """Say what fails, unless that has been said."""
        if subject not in self._failing:
            self._failing.add(subject)
            self.tell(text)

    def works(self, subject: str) -> bool:
        """If it fails from now on, that is news. Whether it has failed before."""
        had_failed = subject in self._failing
        self._failing.discard(subject)
        return had_failed

    def internal_error(self, error: Exception) -> None:
        """Something that should not happen: each kind is told once, the traceback goes to stderr."""
        text = f"internal error: {type(error).__name__}: {error}"
        if text not in self._failing and sys.stderr is not None:
            with contextlib.suppress(OSError):  # nobody reads it
                traceback.print_exception(error, file=sys.stderr)
        self.fails(text, text)
