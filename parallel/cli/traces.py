"""`--trace FILE`: what each worker did, written for a picture."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.cli.output import complain, say

if TYPE_CHECKING:
    from psearch.trace.recorder import Recorder


def add_trace(parser: argparse.ArgumentParser, which: str = "") -> None:
    """`--trace FILE`; which: words for the help on the search that is recorded."""
    help_text = "record what each worker does, for https://ui.perfetto.dev (Trace Event format)"
    parser.add_argument("--trace", type=Path, metavar="FILE", help=help_text + which)


def report_trace(dropped: dict[int, int], path: Path) -> None:
    """Say that a trace has been written, and whether all of it; dropped: events, by worker."""
    say(f"trace: {path}")
    if dropped:
        workers = f"worker {next(iter(dropped))}" if len(dropped) == 1 else f"{len(dropped)} workers"
        complain(f"the trace is not complete: {sum(dropped.values()):,} events of {workers} found no room")


@contextmanager
def traced(recorder: Recorder | None, path: Path | None, facts: dict[str, Any]) -> Iterator[None]:
    """Write the trace of what happens inside when it is over, also when a worker died.

    Nothing without a recorder. Raises OSError when the trace cannot be written.
    """
    from psearch.results import WorkerDied

    if recorder is None or path is None:
        yield
        return
    try:
        yield
    except WorkerDied:
        try:
            recorder.write(path, facts)
            report_trace(recorder.dropped, path)
        except OSError as error:
            complain(f"cannot write the trace {path}: {error.strerror}")
        raise
    recorder.write(path, facts)
    report_trace(recorder.dropped, path)
