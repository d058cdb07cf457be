"""Numbers as arguments: converters for argparse.

int() and float() alone would take `1_000`, digits of any script, `nan` and `1e9`.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import NamedTuple, cast

from psearch.defaults import MAX_THREADS
from psearch.settings import Option
from psearch.text import values
from psearch.text.values import quoted

_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12}")
_TIME = re.compile(rf"({_DECIMAL.pattern})(ms|s|min|m|h)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}


class Duration(NamedTuple):
    """A time as it was given."""

    milliseconds: int
    has_unit: bool


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a converter for whole numbers from `low` to `high`."""
    return cast(Callable[[str], int], Option("", "spin", None, low, high).of_argument)


def decimal_number(low: float, high: float) -> Callable[[str], float]:
    """Return a converter for decimal numbers from `low` to `high`."""

    def convert(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not low <= float(text) <= high:
            raise ArgumentTypeError(f"must be a number from {low:g} to {high:g}, not {quoted(text, 40)}")
        return float(text)

    return convert


def duration(low_ms: int, high_ms: int) -> Callable[[str], Duration]:
    """Return a converter for times: `1500` milliseconds, or `1.5s`, `1500ms`, `2m` (minutes), `1h`."""

    def convert(text: str) -> Duration:
        match = _TIME.fullmatch(text)
        number = values.whole_number(text)
        if match is not None:
            number = round(float(match[1]) * _MILLISECONDS[text.lstrip("0123456789.")])
        elif number is None:
            raise ArgumentTypeError(f"must be a time like 1500 (milliseconds), 1.5s or 2m, not {quoted(text, 40)}")
        if not low_ms <= number <= high_ms:
            raise ArgumentTypeError(f"must be from {low_ms} to {high_ms} milliseconds, not {quoted(text, 40)}")
        return Duration(number, match is not None)

    return convert


def seconds(low: float, high: float) -> Callable[[str], float]:
    """Return a converter for times whose number alone is in seconds: `0.5`, `500ms`, `2m`."""

    def convert(text: str) -> float:
        match = _TIME.fullmatch(text)
        if match is None:
            return decimal_number(low, high)(text)
        number = float(match[1]) * _MILLISECONDS[text.lstrip("0123456789.")] / 1000
        if not low <= number <= high:
            raise ArgumentTypeError(f"must be from {low:g} to {high:g} seconds, not {quoted(text, 40)}")
        return number

    return convert


def worker_counts(text: str) -> list[int]:
    """Convert `1,2,4,...,64` to rising numbers; dots between two numbers mean doubling."""
    count = whole_number(1, MAX_THREADS)
    misplaced_dots = ArgumentTypeError(f"the dots stand between two numbers, not as in {quoted(text, 40)}")
    counts: list[int] = []
    doubling = False
    for word in (word.strip() for word in text.split(",")):
        if word in ("...", "…"):
            if not counts or doubling:
                raise misplaced_dots
            doubling = True
            continue
        number = count(word)
        while doubling and counts[-1] < number:
            counts.append(2 * counts[-1])
        if doubling and counts[-1] != number:
            raise ArgumentTypeError(f"doubling does not lead to {number} in {quoted(text, 40)}")
        doubling = False
        counts.append(number)
    if doubling:
        raise misplaced_dots
    return sorted(set(counts))
