"""The compiled search, for the commands that need it, and `--trace FILE`: what each worker did, for a picture."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.faces.cli.output import complain, say

if TYPE_CHECKING:
    from psearch.games.own_game import Game, GamePosition
    from psearch.processes.supervisor import Supervisor
    from psearch_core.toolchain.groups import Group


def prepare_kernels(*groups: Group) -> None:
    """Load the kernels of every search, and of these groups; compile them on the first run, with the progress on
    stderr. Raises PsearchError when they cannot be had."""
    from psearch.scheduler.scheduler_entries import load_kernels
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        load_kernels(*groups, progress=status)


def loaded_game(file: str) -> Game:
    """Return the game of a file, compiled if need be. Raises PsearchError for a file that is none of a game."""
    from psearch.games.own_game import Game
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        return Game(file, status)


def add_trace(parser: argparse.ArgumentParser, which: str = "") -> None:
    """Add `--trace FILE`; which: words for the help on the search that is recorded."""
    help_text = "record what each worker does, for https://ui.perfetto.dev (Trace Event format)"
    parser.add_argument("--trace", type=Path, metavar="FILE", help=help_text + which)


def check_trace(path: Path | None) -> None:
    """Raise PsearchError for a file of `--trace` that cannot be written."""
    if path is not None:
        from psearch.trace import trace_file

        trace_file.check_trace(path)


def report_trace(dropped: dict[int, int], path: Path) -> None:
    """Say that a trace has been written, and whether all of it; dropped: events, by worker."""
    say(f"trace: {path}")
    if dropped:
        workers = f"worker {next(iter(dropped))}" if len(dropped) == 1 else f"{len(dropped)} workers"
        complain(f"the trace is not complete: {sum(dropped.values()):,} events of {workers} found no room")


@contextmanager
def traced(
    engine: Supervisor, path: Path | None, facts: dict[str, Any], position: GamePosition | None = None
) -> Iterator[None]:
    """Write the trace of what happens inside when it is over, also when workers died.

    position: what is searched, if it is none of chess. Nothing without a path. Raises OSError when the trace cannot be
    written.
    """
    from psearch.results import WorkerDied

    died: WorkerDied | None = None
    try:
        yield
    except WorkerDied as error:
        died = error
    if path is not None:
        engine.settle()  # no worker writes to the logs any more
        assert engine.recorder is not None
        try:
            engine.recorder.write(path, facts, move_name=None if position is None else position.name_of)
            report_trace(engine.recorder.dropped, path)
        except OSError as error:
            if died is None:
                raise
            complain(f"cannot write the trace {path}: {error.strerror}")
    if died is not None:
        raise died
