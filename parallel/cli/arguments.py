"""Options that several commands have, each declared once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from psearch.cli.common import usable_cores, whole_number
from psearch.defaults import (
    DEFAULT_HASH_MB,
    DEFAULT_POLICY,
    DEFAULT_PRUNING,
    MAX_DEPTH,
    MAX_HASH_MB,
    MAX_THREADS,
    POLICY_NAMES,
    PRUNING_MODES,
)

if TYPE_CHECKING:
    from psearch.results import Limits

MAX_NODES = 2**62
_MAX_MOVETIME_MS = 1_000_000_000


def add_threads(parser: argparse.ArgumentParser) -> None:
    """`--threads N`."""
    cores = usable_cores()
    parser.add_argument(
        "--threads",
        type=whole_number(1, MAX_THREADS),
        default=cores,
        metavar="N",
        help=f"worker processes, 1 to {MAX_THREADS} (default: the usable cores, here {cores})",
    )


def add_limits(parser: argparse.ArgumentParser, scope: str = "") -> None:
    """`--depth D`, `--movetime MS` or `--nodes N`; scope: words for the help, such as `for each position`."""
    limit = parser.add_mutually_exclusive_group()
    depth, milliseconds, nodes = (whole_number(1, high) for high in (MAX_DEPTH, _MAX_MOVETIME_MS, MAX_NODES))
    after = f" {scope}" if scope else ""
    limit.add_argument("--depth", type=depth, metavar="D", help=f"plies{after}, 1 to {MAX_DEPTH}")
    limit.add_argument("--movetime", type=milliseconds, metavar="MS", help=f"milliseconds{after}")
    limit.add_argument("--nodes", type=nodes, metavar="N", help=f"nodes of all workers together{after}")


def limits_of(options: argparse.Namespace, default_movetime_ms: int) -> Limits:
    """The limit that was given, else the default time."""
    from psearch.results import Limits

    limits = Limits(options.depth, options.movetime, options.nodes)
    return limits if limits != Limits() else Limits(movetime_ms=default_movetime_ms)


def add_hash(parser: argparse.ArgumentParser) -> None:
    """`--hash MB`."""
    parser.add_argument(
        "--hash",
        type=whole_number(1, MAX_HASH_MB),
        default=DEFAULT_HASH_MB,
        metavar="MB",
        help=f"size of the transposition table in MiB (default {DEFAULT_HASH_MB})",
    )


def add_pruning(parser: argparse.ArgumentParser) -> None:
    """`--pruning MODE[,NAME=VALUE...]`; checked when the kernels are there."""
    parser.add_argument(
        "--pruning",
        default=DEFAULT_PRUNING,
        metavar="MODE[,NAME=VALUE...]",
        help=f"what is left out: {', '.join(PRUNING_MODES)} (default {DEFAULT_PRUNING}), and changes to its parameters",
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    """`--policy NAME`."""
    parser.add_argument(
        "--policy",
        choices=POLICY_NAMES,
        default=DEFAULT_POLICY,
        metavar="NAME",
        help=f"how work is split: {', '.join(POLICY_NAMES)} (default {DEFAULT_POLICY})",
    )
