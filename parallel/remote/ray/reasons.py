"""Why something failed, in one line."""

from __future__ import annotations

_LONGEST = 200
"""characters; Ray writes paragraphs"""


def one_line(error: BaseException) -> str:
    """The first line of what an exception says, or the name of its type where it says nothing."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip()[:_LONGEST]
