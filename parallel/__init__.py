"""Parallel chess search over several processes.

`psearch.search(fen, threads=8)` is the Python face; the command line is `psearch.cli`, the engine underneath
is `psearch.supervisor.Supervisor`. Importing this package loads neither numba nor any kernel.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import chess

    from psearch.results import Info, Limits, PsearchError, Result, WorkerDied, WorkerStats

__version__ = "0.1.0.dev0"

__all__ = [
    "DEFAULT_MOVETIME_MS",
    "DEFAULT_POLICY",
    "MAX_DEPTH",
    "MAX_THREADS",
    "POLICY_NAMES",
    "Info",
    "Limits",
    "PsearchError",
    "Result",
    "WorkerDied",
    "WorkerStats",
    "__version__",
    "search",
]

MAX_THREADS = 1024
MAX_DEPTH = 100
"""Plies of nominal depth, for a search and for perft."""
DEFAULT_MOVETIME_MS = 5_000
"""How long a search without any limit takes."""

POLICY_NAMES = (
    "serial",
    "root",
    "ybw",
    "knuth",
    "garms",
    "kannan",
    "felten",
    "calibrated",
    "lazy",
    "abdada",
)
"""How work can be split; see `psearch.policy`."""
DEFAULT_POLICY = "calibrated"

_RESULT_TYPES = {"Info", "Limits", "PsearchError", "Result", "WorkerDied", "WorkerStats"}


def search(
    position: str | chess.Board,
    threads: int = 1,
    depth: int | None = None,
    movetime_ms: int | None = None,
    nodes: int | None = None,
    hash_mb: int = 64,
) -> Result:
    """Search one position and return the best move found.

    `position` is `startpos`, a FEN (X-FEN and Shredder castling too) or a `chess.Board`, whose move stack
    counts as the game's history. Every limit that is given applies, the first one reached ends the search;
    with none the search takes 5 seconds. `hash_mb` is the size of the transposition table in MiB.

    Worker processes are started for this one call; to search more than once, keep a
    `psearch.supervisor.Supervisor`. Raises `psearch.PsearchError` for an illegal position or a bad argument,
    `psearch.WorkerDied` when a worker ends.
    """
    from psearch.fen import check_position, parse_position
    from psearch.report import finished_result
    from psearch.results import Limits

    if isinstance(position, str):
        board = parse_position(position)
    else:
        board = position
        check_position(board)
    limits = Limits(depth, movetime_ms, nodes)
    _check_limits(limits)
    finished = finished_result(board)
    if finished is not None:
        return finished
    if limits == Limits():
        limits = Limits(movetime_ms=DEFAULT_MOVETIME_MS)

    from psearch.supervisor import Supervisor

    with Supervisor(threads=threads, hash_mb=hash_mb) as engine:
        result: Result = engine.search(board, limits)
    return result


def _check_limits(limits: Limits) -> None:
    from psearch.results import PsearchError

    for name, value in vars(limits).items():
        if value is not None and value < 1:
            raise PsearchError(f"{name} must be at least 1, not {value}")
    if limits.depth is not None and limits.depth > MAX_DEPTH:
        raise PsearchError(f"depth must be at most {MAX_DEPTH}, not {limits.depth}")


def __getattr__(name: str) -> Any:
    """The result types on demand: they need python-chess, which `psearch --help` should not wait for."""
    if name in _RESULT_TYPES:
        return getattr(importlib.import_module("psearch.results"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
