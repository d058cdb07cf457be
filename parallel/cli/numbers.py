"""Numbers as arguments: converters for argparse.

int() and float() alone would take `1_000`, digits of any script, `nan` and `1e9`.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable

from psearch.defaults import MAX_THREADS

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12}")


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """A converter for whole numbers from `low` to `high`."""

    def convert(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise ArgumentTypeError(f"must be a whole number from {low} to {high}, not {text[:40]!a}")
        return int(text)

    return convert


def decimal_number(low: float, high: float) -> Callable[[str], float]:
    """A converter for decimal numbers from `low` to `high`."""

    def convert(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not low <= float(text) <= high:
            raise ArgumentTypeError(f"must be a number from {low:g} to {high:g}, not {text[:40]!a}")
        return float(text)

    return convert


def worker_counts(text: str) -> list[int]:
    """`1,2,4,...,64` as rising numbers; dots between two numbers mean doubling."""
    count = whole_number(1, MAX_THREADS)
    misplaced_dots = ArgumentTypeError(f"the dots stand between two numbers, not as in {text[:40]!a}")
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
            raise ArgumentTypeError(f"doubling does not lead to {number} in {text[:40]!a}")
        doubling = False
        counts.append(number)
    if doubling:
        raise misplaced_dots
    return sorted(set(counts))
