"""Arguments that several commands have, each declared once, and what is made of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psearch.arena.control_groups import usable_cores, usable_memory_mb
from psearch.defaults import DEFAULT_HASH_MB, MAX_THREADS
from psearch.faces.cli.numbers import Duration, duration
from psearch.settings import DEPTH, HASH, MOVETIME, NODES, SEARCH_SETTINGS, THREADS, Face
from psearch.terminal.streams import is_terminal

if TYPE_CHECKING:
    from psearch.options import SearchOptions
    from psearch.results import Limits

_MOST_SECONDS = 60
"""A number of milliseconds up to this may have been meant as seconds."""


def add_position(parser: argparse.ArgumentParser) -> None:
    """Add `FEN`, as one argument or as several words."""
    parser.add_argument("fen", nargs="*", metavar="FEN", help="the position, or `startpos`")


def add_search_options(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """Add everything that decides about a search; scope: words for the help on limits, such as `for each position`."""
    add_threads(parser)
    add_limits(parser, scope)
    add_hash(parser)
    add_settings(parser)


def add_settings(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add settings of the search, for `search_options`: fields of `SearchSettings`, or all that a command line has."""
    for option in SEARCH_SETTINGS:
        if option.field in names if names else Face.COMMAND_LINE in option.faces:
            option.add_to(parser, dest=option.field, default=option.default)


def search_options(options: argparse.Namespace, **changes: Any) -> SearchOptions:
    """Return how to search: what the arguments of `add_settings` say, but for the changes. Raises PsearchError for what
    no search can be told."""
    from psearch.options import SearchOptions, pruning_named

    given = {option.field: getattr(options, option.field, None) for option in SEARCH_SETTINGS} | changes
    if given["pruning"] is not None:
        given["pruning"] = pruning_named(given["pruning"])
    return SearchOptions(**{name: value for name, value in given.items() if value is not None})


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add `--threads N`."""
    cores = min(MAX_THREADS, usable_cores())
    words = f"{THREADS.words} (default: the usable cores, here {cores})"
    THREADS.add_to(parser, words, default=cores)


def add_limits(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """Add `--depth D`, `--movetime TIME` and `--nodes N`; the first that is reached ends the search."""
    after = f" {scope}" if scope else ""
    DEPTH.add_to(parser, f"{DEPTH.words}{after}, {DEPTH.low} to {DEPTH.high}")
    words = f"{MOVETIME.words}{after}, or a time like 5s, 500ms, 2m"
    MOVETIME.add_to(parser, words, action=_MoveTime, type=duration(MOVETIME.low, MOVETIME.high))
    NODES.add_to(parser, f"{NODES.words}{after}")


class _MoveTime(argparse.Action):
    """Keeps milliseconds, with a hint where seconds may have been meant."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(values, Duration)
        setattr(namespace, self.dest, values.milliseconds)
        if not values.has_unit and values.milliseconds <= _MOST_SECONDS and is_terminal(sys.stderr):
            number = values.milliseconds
            namespace.hint = f"{option_string} {number} is {number} milliseconds; {number}s would be seconds"


def limits_of(options: argparse.Namespace, default_movetime_ms: int) -> Limits:
    """Return the limits that were given, else the default time."""
    from psearch.results import Limits

    limits = Limits(options.depth, options.movetime, options.nodes)
    return limits if limits != Limits() else Limits(movetime_ms=default_movetime_ms)


def add_hash(parser: argparse.ArgumentParser, default: int = DEFAULT_HASH_MB) -> None:
    """Add `--hash MB`, for `check_hash`."""
    HASH.add_to(parser, f"{HASH.words} (default: {default})", default=default)


def check_hash(hash_mb: int) -> None:
    """Raise PsearchError for what cannot fit, before kernels are compiled for it; the supervisor looks closer."""
    from psearch.results import PsearchError

    memory_mb = usable_memory_mb()
    if hash_mb >= memory_mb:
        raise PsearchError(f"--hash {hash_mb} does not fit in the {memory_mb} MiB of memory that may be used here")


def add_on(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--on CLUSTER`; what: what is done there, in words that name a Ray cluster."""
    words = f"{what}: auto (that of this machine), HOST:PORT, ray://HOST[:PORT], or local"
    parser.add_argument("--on", metavar="CLUSTER", help=words)


def add_json(parser: argparse.ArgumentParser, instead_of: str = "text") -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help=f"print one JSON object instead of {instead_of}")
