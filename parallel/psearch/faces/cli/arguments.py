"""Declares the arguments that several commands share, and converts their values.

Numbers have converters of their own because int() and float() accept digits of any script and `nan`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from psearch.arena.control_groups import usable_cores, usable_memory_mb
from psearch.defaults import DEFAULT_HASH_MB, MAX_THREADS
from psearch.settings import DEPTH, HASH, MOVETIME, NODES, SEARCH_SETTINGS, THREADS, Face, Option
from psearch.text import values
from psearch.text.values import quoted

if TYPE_CHECKING:
    from psearch.options import SearchOptions
    from psearch.results import Limits

_MOST_SEED = 2**63 - 1
_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12}")
_TIME = re.compile(rf"(?P<number>{_DECIMAL.pattern})(?P<unit>ms|s|min|m|h)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000}


class Duration(NamedTuple):
    """Duration as the user gave it."""

    milliseconds: int
    has_unit: bool


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a converter for whole numbers from `low` to `high`."""
    return cast(Callable[[str], int], Option("", "spin", None, low, high).of_argument)


def decimal_number(low: float, high: float) -> Callable[[str], float]:
    """Return a converter for decimal numbers from `low` to `high`."""

    def convert(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not low <= float(text) <= high:
            raise argparse.ArgumentTypeError(f"must be a number from {low:g} to {high:g}, not {quoted(text, 40)}")
        return float(text)

    return convert


def _with_unit(text: str) -> float | None:
    """Return the milliseconds of a time such as `1.5s`, `1500ms`, `2m` (minutes) or `1h`; None for other texts."""
    match = _TIME.fullmatch(text)
    return None if match is None else float(match["number"]) * _MILLISECONDS[match["unit"]]


def duration(low_ms: int, high_ms: int) -> Callable[[str], Duration]:
    """Return a converter for durations: `1500` (milliseconds), or with a unit."""

    def convert(text: str) -> Duration:
        measured = _with_unit(text)
        number = values.whole_number(text) if measured is None else round(measured)
        if number is None:
            wanted = "a time like 1500 (milliseconds), 1.5s or 2m"
            raise argparse.ArgumentTypeError(f"must be {wanted}, not {quoted(text, 40)}")
        if not low_ms <= number <= high_ms:
            wanted = f"from {low_ms} to {high_ms} milliseconds"
            raise argparse.ArgumentTypeError(f"must be {wanted}, not {quoted(text, 40)}")
        return Duration(number, measured is not None)

    return convert


def seconds(low: float, high: float) -> Callable[[str], float]:
    """Return a converter for durations in which a number without a unit means seconds: `0.5`, `500ms`, `2m`."""

    def convert(text: str) -> float:
        measured = _with_unit(text)
        if measured is None:
            return decimal_number(low, high)(text)
        if not low <= measured / 1000 <= high:
            raise argparse.ArgumentTypeError(f"must be from {low:g} to {high:g} seconds, not {quoted(text, 40)}")
        return measured / 1000

    return convert


def worker_counts(text: str) -> list[int]:
    """Convert `1,2,4,...,64` to increasing numbers; dots between two numbers mean doubling."""
    counts: list[int] = []
    for part in re.split(r",\s*(?:\.\.\.|…)\s*,", text):
        words = [word.strip() for word in part.split(",")]
        if "..." in words or "…" in words:
            raise argparse.ArgumentTypeError(f"dots must stand between two numbers, not as in {quoted(text, 40)}")
        numbers = list(map(whole_number(1, MAX_THREADS), words))
        while counts and counts[-1] < numbers[0]:
            counts.append(2 * counts[-1])
        if counts and counts[-1] != numbers[0]:
            raise argparse.ArgumentTypeError(f"doubling does not lead to {numbers[0]} in {quoted(text, 40)}")
        counts += numbers
    return sorted(set(counts))


def add_settings(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add settings of the search for `search_options`: the named fields of `SearchSettings`, or all by default."""
    for option in SEARCH_SETTINGS:
        if option.field in names if names else Face.COMMAND_LINE in option.faces:
            option.add_to(parser, dest=option.field, default=option.default)


def search_options(options: argparse.Namespace, **changes: Any) -> SearchOptions:
    """Return the options of a search from the arguments of `add_settings` and the changes. Raises PsearchError."""
    from psearch.options import SearchOptions

    given = {option.field: getattr(options, option.field, None) for option in SEARCH_SETTINGS} | changes
    return SearchOptions(**{name: value for name, value in given.items() if value is not None})


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add `--threads N`."""
    cores = min(MAX_THREADS, usable_cores())
    THREADS.add_to(parser, f"{THREADS.words} (default: the usable cores, here {cores})", default=cores)


def add_limits(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """Add `--depth D`, `--movetime TIME` and `--nodes N`; the first limit reached ends the search. scope: words for the
    help, such as `for each position`."""
    after = f" {scope}" if scope else ""
    DEPTH.add_to(parser, f"{DEPTH.words}{after}, {DEPTH.low} to {DEPTH.high}")
    words = f"{MOVETIME.words}{after}, or a time like 5s, 500ms, 2m"
    MOVETIME.add_to(parser, words, type=duration(MOVETIME.low, MOVETIME.high))
    NODES.add_to(parser, f"{NODES.words}{after}")


def limits_of(options: argparse.Namespace, default_movetime_ms: float | None) -> Limits:
    """Return the given limits, or the default time if there are none; None: no time."""
    from psearch.results import Limits

    movetime_ms = None if options.movetime is None else options.movetime.milliseconds
    limits = Limits(options.depth, movetime_ms, options.nodes, getattr(options, "mate", None))
    return limits if limits != Limits() else Limits(movetime_ms=default_movetime_ms)


def add_hash(parser: argparse.ArgumentParser, default: int = DEFAULT_HASH_MB) -> None:
    """Add `--hash MB`, for `check_hash`."""
    HASH.add_to(parser, f"{HASH.words} (default: {default})", default=default)


def check_hash(hash_mb: int, tables: int = 1) -> None:
    """Raise PsearchError early for tables that cannot fit in memory; the supervisor checks more precisely. tables: most
    at the same time."""
    from psearch.results import PsearchError

    memory_mb = usable_memory_mb()
    if hash_mb * tables >= memory_mb:
        times = f", {tables} times," if tables > 1 else ""
        raise PsearchError(
            f"--hash {hash_mb}{times} does not fit in the {memory_mb} MiB of memory that may be used here"
        )


def add_number(
    parser: argparse._ActionsContainer, flag: str, low: int, high: int, words: str, metavar: str = "N", **details: Any
) -> None:
    """Add an argument for a whole number. details: other keywords of argparse, such as the default."""
    parser.add_argument(flag, type=whole_number(low, high), metavar=metavar, help=words, **details)


def add_seed(parser: argparse.ArgumentParser, words: str, default: int, metavar: str) -> None:
    """Add `--seed`."""
    add_number(parser, "--seed", 0, _MOST_SEED, f"{words} (default {default})", metavar, default=default)


def add_on(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--on CLUSTER`. what: first words of the help, which name a Ray cluster."""
    words = f"{what}: auto (the one running on this machine), HOST:PORT, ray://HOST[:PORT], or local"
    parser.add_argument("--on", metavar="CLUSTER", help=words)


def add_flag(parser: argparse.ArgumentParser, flag: str, words: str) -> None:
    """Add an argument without a value: True if it is given, else False. words: for the help."""
    parser.add_argument(flag, action="store_true", help=words)


def add_json(parser: argparse.ArgumentParser, instead_of: str = "text") -> None:
    """Add `--json`."""
    add_flag(parser, "--json", f"print one JSON object instead of {instead_of}")
