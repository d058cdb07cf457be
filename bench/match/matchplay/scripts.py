"""Parts that scripts of matches share: bad input is one line, and games are played here or on a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from psearch.faces.cli.arguments import add_on
from psearch.processes.task_processes import TaskProcesses, share_out_to
from psearch.processes.tasks import unwatched
from psearch.remote.cluster_processes import share_out_on
from psearch.results import PsearchError

EXIT_BAD_INPUT, EXIT_INTERRUPTED = 2, 130
_PROCESS_MB = 400
"""MiB of memory for each process of a cluster"""


class MatchError(Exception):
    """Bad input, or an engine that cannot be started."""


class Parser(argparse.ArgumentParser):
    """Raises MatchError instead of printing the usage; keeps the line breaks of the description."""

    def __init__(self, description: str | None) -> None:
        super().__init__(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )

    def error(self, message: str) -> NoReturn:
        raise MatchError(message)

    def add_where(self) -> None:
        add_on(self, "play")


def run_script(name: str) -> int:
    """Call `run` of a script, imported under its own name, by which other processes know its functions.

    Returns the exit status; bad input is one line.
    """
    try:
        return int(import_module(name).run())
    except (OSError, ValueError, MatchError, PsearchError) as error:
        print(f"{name}.py: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def share(
    make: Callable[[], Callable[[Any], Any]],
    tasks: Sequence[Any],
    jobs: int | None,
    on: str | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[tuple[int, Any], None, None]:
    """Yield place and answer of each task as it is done, by `jobs` processes of this machine or of the cluster `on`.

    `make` gives what is called with each task. It may not be defined in `__main__`, and nor may the tasks; the scripts'
    own modules go along to a cluster (docs/guides/cluster.md), so a node needs no checkout.
    """
    if on is None:
        with TaskProcesses(partial(unwatched, make), min(jobs or 1, len(tasks))) as processes:
            yield from share_out_to(processes, tasks, is_stopped=stopped)
        return
    folder = Path(__file__).parents[1]
    yield from share_out_on(
        on,
        make,
        tasks,
        stopped,
        most=jobs,
        memory=_PROCESS_MB * 2**20,
        on_note=lambda note: print(note, file=sys.stderr),
        sources={
            ".".join(path.relative_to(folder).with_suffix("").parts): path.read_text("utf-8")
            for path in folder.rglob("*.py")
        },
    )
