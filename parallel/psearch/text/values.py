"""Numbers and texts that callers and users give, checked; whatever a wrong one is, the message is one short line."""

from __future__ import annotations

import numbers
import re
from typing import TypeGuard

_WHOLE = re.compile("[+-]?[0-9]{1,30}")
"""No underscores and no digits of other scripts, which `int` takes."""
_LONGEST_SHOWN = 40
"""characters"""


def escaped(text: str, kept: str = "") -> str:
    r"""Write out what does not print, and leave the rest as it is; kept: other characters to leave.

    >>> print(escaped("é\x1b[31m\\"))
    é\x1b[31m\
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or mark in kept else ascii(mark)[1:-1] for mark in text)


def quoted(text: str, most: int = 80) -> str:
    """Quote what a user or a program wrote, on one line, as it was written, in at most so many characters.

    >>> quoted("a" * 1000)[-9:]
    "aaaaa...'"
    """
    mark = '"' if "'" in text else "'"
    return mark + escaped(text if len(text) <= most else text[: most - 3] + "...") + mark


def shown(value: object) -> str:
    """Shorten a wrong argument to one line for a message."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python does not write whole numbers of more than 4,300 digits
        text = "a number of thousands of digits"
    except RecursionError:
        text = "lists inside lists without end"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def whole_number(text: str) -> int | None:
    """Read a whole number as a user or a program writes it; None if it is none.

    >>> whole_number("-30"), whole_number("1_000"), whole_number("1.5"), whole_number("")
    (-30, None, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


def is_real(value: object) -> TypeGuard[float]:
    """Tell whether it is a number that can be compared: Python's, numpy's, a fraction; not true or false."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def whole(name: str, value: object, low: int, high: int) -> int:
    """Convert an argument to a whole number of Python; takes numpy's and floats such as 1e6. Raises PsearchError."""
    # no other order: a comparison with NaN is false
    if is_real(value) and low <= value <= high and value == int(value):
        return int(value)
    raise _refusal(f"{name} must be a whole number from {low} to {high}, not {shown(value)}")


def number(name: str, value: object, low: int, high: int) -> float:
    """Convert an argument to a number of Python, not necessarily a whole one. Raises PsearchError."""
    if is_real(value) and low <= value <= high:
        return float(value)
    raise _refusal(f"{name} must be a number from {low} to {high}, not {shown(value)}")


def text_of(name: str, value: object) -> str:
    """Check that an argument is a text. Raises PsearchError."""
    if not isinstance(value, str):
        raise _refusal(f"{name} must be a string, not {shown(value)}")
    return value


def _refusal(text: str) -> Exception:
    from psearch.results import PsearchError  # late: `psearch --help` does without

    return PsearchError(text)


def counted(number: int, noun: str) -> str:
    """Return a number with what it counts.

    >>> counted(1, "game"), counted(1200, "game")
    ('1 game', '1,200 games')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
