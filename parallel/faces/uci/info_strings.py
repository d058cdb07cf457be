"""`info string` lines: what the engine has to say beside the protocol. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from psearch.text.values import escaped

Say = Callable[[str], None]
"""Prints whole lines, given without the last line's end; may be called from any thread."""

_LONGEST = 1000
"""characters of a line"""


def info_string(text: str) -> str:
    """Write the text as one line of the protocol, whatever it holds.

    >>> info_string("no file a\\rbestmove e2e4")
    'info string no file a\\\\rbestmove e2e4'
    """
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return "info string " + escaped(text)
