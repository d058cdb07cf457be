"""`--trace FILE`: what each worker did, written for a picture."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.faces.cli.output import complain, say

if TYPE_CHECKING:
    from psearch.games.own_game import GamePosition
    from psearch.processes.supervisor import Supervisor


def add_trace(parser: argparse.ArgumentParser, which: str = "") -> None:
    """Add `--trace FILE`; which: words for the help on the search that is recorded."""
    help_text = "record what each worker does, for https://ui.perfetto.dev (Trace Event format)"
    parser.add_argument("--trace", type=Path, metavar="FILE", help=help_text + which)


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

    if path is None:
        yield
        return
    try:
        yield
    except WorkerDied:
        try:
            _write_trace(engine, path, facts, position)
        except OSError as error:
            complain(f"cannot write the trace {path}: {error.strerror}")
        raise
    _write_trace(engine, path, facts, position)


def _write_trace(engine: Supervisor, path: Path, facts: dict[str, Any], position: GamePosition | None) -> None:
    engine.settle()  # nobody writes to the logs any more
    recorder = engine.recorder
    if recorder is None:
        raise AssertionError("a trace of an engine that records none")
    recorder.write(path, facts, move_name=None if position is None else position.name_of)
    report_trace(recorder.dropped, path)
