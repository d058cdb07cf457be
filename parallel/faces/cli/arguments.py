"""Arguments that several commands have, each declared once, and what is made of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psearch.arena.control_groups import default_hash_mb, usable_cores
from psearch.defaults import (
    DEFAULT_HASH_MB,
    DEFAULT_POLICY,
    DEFAULT_PRUNING,
    MAX_DEPTH,
    MAX_HASH_MB,
    MAX_MOVETIME_MS,
    MAX_NODES,
    MAX_THREADS,
    POLICY_NAMES,
    PRUNING_MODES,
)
from psearch.faces.cli.numbers import Duration, duration, whole_number
from psearch.terminal.streams import is_terminal

if TYPE_CHECKING:
    from psearch.options import SearchOptions
    from psearch.results import Limits

_MOST_SECONDS = 60
"""A number of milliseconds up to this may have been meant as seconds."""


def add_position(parser: argparse.ArgumentParser) -> None:
    """`FEN`, as one argument or as several words; `position_words` gives them."""
    parser.add_argument("fen", nargs="*", metavar="FEN", help="the position, or `startpos`")


def position_words(options: argparse.Namespace) -> list[str]:
    """The words of `FEN`."""
    return without_dashes(options.fen)


def without_dashes(words: list[str]) -> list[str]:
    """The words without `--`, which some versions of argparse leave in."""
    return [word for word in words if word != "--"]


def add_search_options(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """Everything that decides about a search; scope: words for the help on limits, such as `for each position`."""
    add_threads(parser)
    add_limits(parser, scope)
    add_hash(parser, None)
    add_policy(parser)
    add_pruning(parser)


def search_options(options: argparse.Namespace) -> SearchOptions:
    """`--policy` and `--pruning`. Raises PsearchError for what no search can be told."""
    from psearch.options import SearchOptions, pruning_named

    return SearchOptions(policy=options.policy, pruning=pruning_named(options.pruning))


def add_threads(parser: argparse.ArgumentParser) -> None:
    """`--threads N`."""
    cores = min(MAX_THREADS, usable_cores())
    parser.set_defaults(threads_given=False)
    parser.add_argument(
        "--threads",
        action=_Threads,
        type=whole_number(1, MAX_THREADS),
        default=cores,
        metavar="N",
        help=f"worker processes, 1 to {MAX_THREADS} (default: the usable cores, here {cores})",
    )


class _Threads(argparse.Action):
    """Keeps the number, and that it was given: other machines have other cores."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)
        namespace.threads_given = True


def add_limits(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """`--depth D`, `--movetime TIME` and `--nodes N`; the first that is reached ends the search."""
    depth, nodes = (whole_number(1, high) for high in (MAX_DEPTH, MAX_NODES))
    after = f" {scope}" if scope else ""
    parser.add_argument("--depth", type=depth, metavar="D", help=f"plies{after}, 1 to {MAX_DEPTH}")
    parser.add_argument(
        "--movetime",
        action=_MoveTime,
        type=duration(1, MAX_MOVETIME_MS),
        metavar="TIME",
        help=f"milliseconds{after}, or a time like 5s, 500ms, 2m",
    )
    parser.add_argument("--nodes", type=nodes, metavar="N", help=f"nodes of all workers together{after}")


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
    """The limits that were given, else the default time."""
    from psearch.results import Limits

    limits = Limits(options.depth, options.movetime, options.nodes)
    return limits if limits != Limits() else Limits(movetime_ms=default_movetime_ms)


def add_hash(parser: argparse.ArgumentParser, default: int | None) -> None:
    """`--hash MB`; None: a share of the free memory, for `hash_or_default`."""
    share = f"1/16 of the free memory, here {default_hash_mb()}; {DEFAULT_HASH_MB} with --depth or --nodes"
    parser.add_argument(
        "--hash",
        type=whole_number(1, MAX_HASH_MB),
        default=default,
        metavar="MB",
        help=f"size of the transposition table in MiB (default: {default or share})",
    )


def hash_or_default(options: argparse.Namespace) -> int:
    """`--hash`, or its default: to a depth or node count the same everywhere, else what the memory gives.

    Raises PsearchError for what cannot fit.
    """
    if options.hash is not None:
        check_hash(options.hash)
        return int(options.hash)
    is_counted = options.depth is not None or options.nodes is not None
    return DEFAULT_HASH_MB if is_counted else default_hash_mb()


def check_hash(hash_mb: int) -> None:
    """Raise PsearchError for what cannot fit, before kernels are compiled for it; the supervisor looks closer."""
    from psearch.results import PsearchError

    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    if hash_mb >= memory_mb:
        raise PsearchError(f"--hash {hash_mb} does not fit in this machine's {memory_mb} MiB of memory")


def add_policy(parser: argparse.ArgumentParser) -> None:
    """`--policy NAME`."""
    parser.add_argument(
        "--policy",
        choices=POLICY_NAMES,
        default=DEFAULT_POLICY,
        metavar="NAME",
        help=f"how work is split: {', '.join(POLICY_NAMES)} (default {DEFAULT_POLICY})",
    )


def add_pruning(parser: argparse.ArgumentParser) -> None:
    """`--pruning MODE[,NAME=VALUE...]`; checked when the search is set up."""
    parser.add_argument(
        "--pruning",
        default=DEFAULT_PRUNING,
        metavar="MODE[,NAME=VALUE...]",
        help=f"what is left out: {', '.join(PRUNING_MODES)} (default {DEFAULT_PRUNING}), and changes to its parameters",
    )


def add_on(parser: argparse.ArgumentParser, what: str) -> None:
    """`--on CLUSTER`; what: what is done there, in words that name a Ray cluster."""
    parser.add_argument(
        "--on",
        metavar="CLUSTER",
        help=f"{what}: auto (that of this machine), HOST:PORT, ray://HOST[:PORT], or local",
    )


def add_json(parser: argparse.ArgumentParser, instead_of: str = "text") -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help=f"print one JSON object instead of {instead_of}")
