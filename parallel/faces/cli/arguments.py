"""Arguments that several commands have, each declared once, and what is made of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psearch.arena.control_groups import usable_cores, usable_memory
from psearch.defaults import DEFAULT_HASH_MB, MAX_THREADS
from psearch.faces.cli.numbers import Duration, duration
from psearch.searcher.declared import (
    DEPTH,
    DRIVER,
    EVAL_FILE,
    EVALUATION,
    HASH,
    MOVETIME,
    NODES,
    POLICY,
    PRUNING,
    RULES,
    THREADS,
)
from psearch.terminal.streams import is_terminal

if TYPE_CHECKING:
    from psearch.core.chess.pruning.modes import Pruning
    from psearch.options import SearchOptions
    from psearch.results import Limits

_MOST_SECONDS = 60
"""A number of milliseconds up to this may have been meant as seconds."""


def add_position(parser: argparse.ArgumentParser) -> None:
    """`FEN`, as one argument or as several words."""
    parser.add_argument("fen", nargs="*", metavar="FEN", help="the position, or `startpos`")


def add_search_options(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """Everything that decides about a search; scope: words for the help on limits, such as `for each position`."""
    add_threads(parser)
    add_limits(parser, scope)
    add_hash(parser)
    POLICY.add_to(parser)
    add_pruning(parser)
    add_net(parser)
    add_with(parser)
    DRIVER.add_to(parser)


def search_options(options: argparse.Namespace) -> SearchOptions:
    """Return what `--policy`, `--pruning`, `--evaluation`, `--net`, `--with` and `--driver` say. Raises PsearchError
    for what no search can be told."""
    from psearch.options import SearchOptions

    pruning = chosen_pruning(options)
    return SearchOptions(
        policy=options.policy, pruning=pruning, network=options.net, with_=options.with_, driver=options.driver
    )


def add_pruning(parser: argparse._ActionsContainer) -> None:
    """Add `--pruning` and `--evaluation`, for `chosen_pruning`."""
    PRUNING.add_to(parser)
    EVALUATION.add_to(parser)


def add_net(parser: argparse.ArgumentParser) -> None:
    """Add `--net FILE`."""
    EVAL_FILE.add_to(parser, default="")


def add_with(parser: argparse.ArgumentParser) -> None:
    """Add `--with FILE`."""
    RULES.add_to(parser, dest="with_", default="")


def chosen_pruning(options: argparse.Namespace) -> Pruning:
    """Return what `--pruning` and `--evaluation` say. Raises PsearchError."""
    from psearch.options import pruning_named

    return pruning_named(options.pruning, options.evaluation)


def add_threads(parser: argparse.ArgumentParser) -> None:
    """`--threads N`."""
    cores = min(MAX_THREADS, usable_cores())
    words = f"{THREADS.words} (default: the usable cores, here {cores})"
    THREADS.add_to(parser, words, default=cores)


def add_limits(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """`--depth D`, `--movetime TIME` and `--nodes N`; the first that is reached ends the search."""
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
    """The limits that were given, else the default time."""
    from psearch.results import Limits

    limits = Limits(options.depth, options.movetime, options.nodes)
    return limits if limits != Limits() else Limits(movetime_ms=default_movetime_ms)


def add_hash(parser: argparse.ArgumentParser, default: int = DEFAULT_HASH_MB) -> None:
    """`--hash MB`; see `check_hash`."""
    HASH.add_to(parser, f"{HASH.words} (default: {default})", default=default)


def check_hash(hash_mb: int) -> None:
    """Raise PsearchError for what cannot fit, before kernels are compiled for it; the supervisor looks closer."""
    from psearch.results import PsearchError

    memory_mb = usable_memory() // 2**20
    if hash_mb >= memory_mb:
        raise PsearchError(f"--hash {hash_mb} does not fit in the {memory_mb} MiB of memory that may be used here")


def add_on(parser: argparse.ArgumentParser, what: str) -> None:
    """`--on CLUSTER`; what: what is done there, in words that name a Ray cluster."""
    words = f"{what}: auto (that of this machine), HOST:PORT, ray://HOST[:PORT], or local"
    parser.add_argument("--on", metavar="CLUSTER", help=words)


def add_json(parser: argparse.ArgumentParser, instead_of: str = "text") -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help=f"print one JSON object instead of {instead_of}")
