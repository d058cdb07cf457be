"""The whole numbers of the protocol."""

from __future__ import annotations

import re

_WHOLE_NUMBER = re.compile("[+-]?[0-9]{1,18}")
"""No underscores, which `int` takes, and no more digits than 64 bits hold."""


def whole_number(text: str) -> int | None:
    """The number that a GUI wrote; None if it is none.

    >>> whole_number("-30"), whole_number("1_000"), whole_number("1.5"), whole_number("")
    (-30, None, None, None)
    """
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None
