"""Where the games of a script are played: in processes of this machine, or on a cluster (docs/guides/cluster.md)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

from psearch.faces.cli.arguments import add_on
from psearch.processes.task_processes import share_out
from psearch.remote.cluster_processes import share_out_on

HAND_MB = 400
"""MiB of memory for each process of a cluster"""


def add_where(parser: argparse.ArgumentParser) -> None:
    """`--on CLUSTER`."""
    add_on(parser, "play")


def share(
    options: argparse.Namespace, make: Callable[[], Callable[[Any], Any]], tasks: Sequence[Any]
) -> Generator[tuple[int, Any], None, None]:
    """As `share_out`, in `options.jobs` processes, or where `options.on` says. The scripts' own modules go along, so a
    node needs no checkout; what is sent must not be defined in `__main__`."""
    if options.on is None:
        return share_out(make, tasks, options.jobs)
    return share_on(options.on, make, tasks)


def share_on(
    address: str,
    make: Callable[[], Callable[[Any], Any]],
    tasks: Iterable[Any],
    most: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[tuple[int, Any], None, None]:
    """On a cluster, by at most so many processes."""
    return share_out_on(
        address,
        make,
        tasks,
        stopped,
        most=most,
        memory=HAND_MB * 2**20,
        on_note=lambda note: print(note, file=sys.stderr),
        sources=_sources(Path(__file__).parents[1]),
    )


def _sources(folder: Path) -> dict[str, str]:
    """The text of the modules in a folder, and of those in packages there."""
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts): path.read_text("utf-8")
        for path in folder.rglob("*.py")
    }
