"""Loads compiled kernels for the commands, and handles `--trace FILE` and `--record FILE`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psearch.faces.cli.output import complain, refuse, say

if TYPE_CHECKING:
    from psearch.games.own_game import Game, GamePosition
    from psearch.processes.supervisor import Supervisor
    from psearch.trace.recorder import Recorder
    from psearch_core.toolchain.groups import Group


def prepare_kernels(*groups: Group) -> None:
    """Load or compile the standard kernels and these groups, with the progress on stderr. Raises PsearchError."""
    from psearch.scheduler.scheduler_entries import load_kernels
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        load_kernels(*groups, progress=status)


def loaded_game(file: str) -> Game:
    """Return the game that a file defines, compiled if needed. Raises PsearchError for a file without a valid game."""
    from psearch.games.own_game import Game
    from psearch.terminal.status import StatusLine

    with StatusLine() as status:
        return Game(file, status)


def add_trace(parser: argparse.ArgumentParser, which: str = "") -> None:
    """Add `--trace FILE`. which: words for the help that say which search is recorded."""
    help_text = "record what each worker does, for https://ui.perfetto.dev (Trace Event format)"
    parser.add_argument("--trace", type=Path, metavar="FILE", help=help_text + which)


def add_record(parser: argparse.ArgumentParser, which: str = "") -> None:
    """Add `--record FILE`. which: words for the help that say what is recorded."""
    help_text = "record tracks, open nodes and lines, to be opened in the page of psearch serve"
    parser.add_argument("--record", type=Path, metavar="FILE", help=help_text + which)


def check_written(options: argparse.Namespace) -> None:
    """Raise PsearchError if the file of `--trace` or `--record` cannot be written, or is that of another output."""
    from psearch.trace.trace_file import check_trace

    places: dict[str, str] = {}
    for name, what in (("log", ""), ("trace", "trace"), ("record", "recording")):
        path = getattr(options, name, None)
        if path is not None:
            if what:
                check_trace(path, what)
            is_file = path.is_file() or not path.exists()
            if is_file and (first := places.setdefault(os.path.realpath(path), name)) != name:
                refuse(f"--{first} and --{name} name the same file")


def report_trace(dropped: dict[int, int], path: Path) -> None:
    """Report that a trace was written. dropped: number of lost events by worker."""
    say(f"trace: {path}")
    if dropped:
        workers = f"worker {next(iter(dropped))}" if len(dropped) == 1 else f"{len(dropped)} workers"
        complain(f"the trace is incomplete: {sum(dropped.values()):,} events of {workers} did not fit")


class _Workers:
    """Makes a group of workers a `psearch.lab.watching.watcher.Watched`."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def _recorder(self) -> Recorder | None:
        return self._supervisor.recorder


@contextmanager
def recorded(engine: Supervisor, path: Path | None, facts: dict[str, Any]) -> Iterator[None]:
    """Write a recording of the search inside the block when it ends; do nothing without a path. Raises OSError."""
    if path is None:
        yield
        return
    from psearch.lab.watching import recordings

    facts |= {"clock": "real", "workers": engine.arena.workers}
    with recordings.recorded(_Workers(engine)) as looks:
        yield
    recordings.write_recording(path, facts, looks)
    say(f"recording: {path}")


@contextmanager
def traced(
    engine: Supervisor, path: Path | None, facts: dict[str, Any], position: GamePosition | None = None
) -> Iterator[None]:
    """Write a trace of the search inside the block when it ends, even if workers died. Do nothing without a path.

    position: the position of a user's game; None for chess. Raises OSError if the trace cannot be written.
    """
    from psearch.results import WorkerDied

    died: WorkerDied | None = None
    try:
        yield
    except WorkerDied as error:
        died = error
    if path is not None:
        engine.settle()  # from here on no worker writes to the logs
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
