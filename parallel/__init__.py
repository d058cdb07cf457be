"""Parallel chess search over several processes.

`psearch.search(fen, threads=8)` searches once, `psearch.Engine` again and again; the command line is `psearch.cli`,
the UCI engine `psearch.uci`, what is underneath `psearch.processes`. Importing this package loads neither numba nor any
kernel.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from psearch.defaults import (
    DEFAULT_MOVETIME_MS,
    DEFAULT_POLICY,
    DEFAULT_PRUNING,
    MAX_DEPTH,
    MAX_THREADS,
    POLICY_NAMES,
    PRUNING_MODES,
)
from psearch.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    import chess

    from psearch.engine import Analysis, Engine
    from psearch.results import Info, Limits, PsearchError, Result, WorkerDied, WorkerStats

__all__ = [
    "DEFAULT_MOVETIME_MS",
    "DEFAULT_POLICY",
    "DEFAULT_PRUNING",
    "MAX_DEPTH",
    "MAX_THREADS",
    "POLICY_NAMES",
    "PRUNING_MODES",
    "Analysis",
    "Engine",
    "Info",
    "Limits",
    "PsearchError",
    "Result",
    "WorkerDied",
    "WorkerStats",
    "__version__",
    "search",
]

_LAZY = {
    **dict.fromkeys(("Info", "Limits", "PsearchError", "Result", "WorkerDied", "WorkerStats"), "psearch.results"),
    **dict.fromkeys(("Analysis", "Engine"), "psearch.engine"),
}
"""Where the names are that need python-chess, or numba."""


def search(
    position: str | chess.Board,
    threads: int = 1,
    depth: int | None = None,
    movetime_ms: int | None = None,
    nodes: int | None = None,
    hash_mb: int = 64,
    mate: int | None = None,
    multipv: int = 1,
    root_moves: Sequence[chess.Move] | None = None,
    policy: str = DEFAULT_POLICY,
    pruning: str = DEFAULT_PRUNING,
) -> Result:
    """Search one position and return the best move found.

    `position` is `startpos`, a FEN (X-FEN and Shredder castling too) or a `chess.Board`, whose move stack
    counts as the game's history. Every limit that is given applies, the first one reached ends the search;
    with none the search takes 5 seconds. `mate`: stop when a mate in so many moves is found. `hash_mb` is the
    size of the transposition table in MiB, `multipv` the number of lines wanted (`Result.lines`), `root_moves`
    the moves to choose from (None: all), `policy` how work is split (`POLICY_NAMES`), `pruning` what is left out
    (`PRUNING_MODES`, docs/design/search.md).

    Worker processes are started for this one call; to search more than once, keep an `Engine`. Raises
    `psearch.PsearchError` for an illegal position or a bad argument, `psearch.WorkerDied` when a worker ends.

    >>> import psearch
    >>> result = psearch.search("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1", threads=2, depth=4, hash_mb=1)
    >>> result.bestmove, result.info.score
    (Move.from_uci('e1e8'), PovScore(Mate(+1), WHITE))
    """
    from psearch.notation.fen import check_position, checked_moves, parse_position
    from psearch.notation.report import finished_result
    from psearch.options import SearchOptions, check_limits, pruning_named
    from psearch.processes.request import SearchRequest
    from psearch.results import Limits

    if isinstance(position, str):
        board = parse_position(position)
    else:
        board = position
        check_position(board)
    limits = Limits(depth, movetime_ms, nodes, mate)
    check_limits(limits)
    if limits == Limits():
        limits = Limits(movetime_ms=DEFAULT_MOVETIME_MS)
    options = SearchOptions(policy=policy, pruning=pruning_named(pruning))
    request = SearchRequest(board, limits, options, checked_moves(board, root_moves), multipv)
    finished = finished_result(board)
    if finished is not None:
        return finished

    from psearch.processes.supervisor import Supervisor

    with Supervisor(threads=threads, hash_mb=hash_mb) as supervisor:
        return supervisor.search(request)


def __getattr__(name: str) -> Any:
    """What takes long to import, on demand: `psearch --help` should not wait for it."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
