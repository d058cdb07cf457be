"""Checks numbers and texts from callers and users. The message about an invalid one is always one short line."""

from __future__ import annotations

import numbers
import re
from decimal import Decimal
from typing import TypeGuard

_WHOLE = re.compile("[+-]?[0-9]{1,30}")
"""Pattern of a whole number, without the underscores and digits of other scripts that `int` accepts."""
_SHORT = re.compile("([0-9]{1,12}(?:[.][0-9]{1,12})?)(?:e([0-9]{1,2})|([kmg]))", re.IGNORECASE)
_GROUPED = re.compile("[0-9]{1,3}(?:([_,])[0-9]{3})(?:\\1[0-9]{3}){0,8}")
_LONGEST_SHOWN = 40
"""Most characters of an invalid value in a message."""


def escaped(text: str, kept: str = "") -> str:
    r"""Replace characters that do not print by escape sequences. kept: characters to leave unchanged.

    >>> print(escaped("é\x1b[31m\\"))
    é\x1b[31m\
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or mark in kept else ascii(mark)[1:-1] for mark in text)


def quoted(text: str, most: int = 80) -> str:
    """Quote a text from a user or a program on one line, cut to `most` characters.

    >>> quoted("a" * 1000)[-9:]
    "aaaaa...'"
    """
    mark = '"' if "'" in text else "'"
    return mark + escaped(text if len(text) <= most else text[: most - 3] + "...") + mark


def shown(value: object) -> str:
    """Return an invalid value as one short line for a message."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python does not convert whole numbers of more than 4,300 digits
        text = "a number of thousands of digits"
    except RecursionError:
        text = "lists inside lists without end"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def whole_number(text: str) -> int | None:
    """Convert the text of a user or a program to a whole number; None if it is not one.

    >>> whole_number("-30"), whole_number("1_000"), whole_number("1.5"), whole_number("")
    (-30, None, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


def without_short_forms(text: str) -> str:
    """Spell out a number that people write in a short form; return any other text unchanged.

    >>> without_short_forms("1.5M"), without_short_forms("1e6"), without_short_forms("100_000")
    ('1500000', '1000000', '100000')
    """
    if _GROUPED.fullmatch(text):
        return re.sub("[_,]", "", text)
    if not (match := _SHORT.fullmatch(text)):
        return text
    value = Decimal(match[1]).scaleb(int(match[2] or {"k": 3, "m": 6, "g": 9}[match[3].lower()]))
    return str(int(value)) if value == int(value) else text


def is_real(value: object) -> TypeGuard[float]:
    """Tell whether a value is a real number, of Python or numpy, or a fraction; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def whole(name: str, value: object, low: int, high: int) -> int:
    """Convert an argument to an int; it may be numpy's or a float such as 1e6. Raises PsearchError."""
    # in this order: comparisons with NaN are false, and `int` would raise
    if is_real(value) and low <= value <= high and value == int(value):
        return int(value)
    raise _refusal(f"{name} must be a whole number from {low} to {high}, not {shown(value)}")


def number(name: str, value: object, low: int, high: int) -> float:
    """Convert an argument to a float. Raises PsearchError."""
    if is_real(value) and low <= value <= high:
        return float(value)
    raise _refusal(f"{name} must be a number from {low} to {high}, not {shown(value)}")


def text_of(name: str, value: object) -> str:
    """Return an argument if it is a string. Raises PsearchError for anything else."""
    if not isinstance(value, str):
        raise _refusal(f"{name} must be a string, not {shown(value)}")
    return value


def _refusal(text: str) -> Exception:
    from psearch.results import PsearchError  # not at the top: `psearch --help` does not need it

    return PsearchError(text)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if necessary.

    >>> counted(1, "game"), counted(1200, "game")
    ('1 game', '1,200 games')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
