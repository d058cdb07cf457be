"""Ends another thread's wait from outside."""

from __future__ import annotations

import os

from psearch.arena.system_calls import refusal
from psearch.results import PsearchError


class Wake:
    """A descriptor that is readable from `set` on until `clear`. From any thread, and from signal handlers.

    A pipe to the process itself: not every Python has `os.eventfd`, and this does as well. Raises PsearchError.
    """

    def __init__(self) -> None:
        try:
            self._reader, self._writer = os.pipe()
        except OSError as error:
            raise PsearchError(f"cannot wait for workers: {refusal(error)}") from error
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        """Set it; without effect if it is set already."""
        try:
            os.write(self._writer, b".")
        except BlockingIOError:  # full
            return

    def clear(self) -> None:
        """Undo all calls of `set`."""
        try:
            while os.read(self._reader, 4096):
                continue
        except BlockingIOError:
            return

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self._reader)
        os.close(self._writer)
