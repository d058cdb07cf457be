"""Parallel chess search over several processes.

`psearch.search(fen, threads=8)` searches once, `psearch.Engine` and, on asyncio, `psearch.AsyncEngine` again and again,
`psearch.analyse_many` any number of positions at a time; the command line is `psearch.faces.cli`, the UCI engine
`psearch.faces.uci`, what is underneath `psearch.processes`. Importing this package loads neither numba nor any kernel.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from psearch.defaults import (
    DEFAULT_EVALUATION,
    DEFAULT_MOVETIME_MS,
    DEFAULT_POLICY,
    DEFAULT_PRUNING,
    EVALUATIONS,
    MAX_DEPTH,
    MAX_THREADS,
    POLICY_NAMES,
    PRUNING_MODES,
)
from psearch.version import __version__

if TYPE_CHECKING:
    from psearch.api.analysis_result import Analysis
    from psearch.api.asynchronous import AsyncAnalysis, AsyncEngine
    from psearch.api.blocking import Engine
    from psearch.api.checked_arguments import Place, RootMoves
    from psearch.api.counting import evaluate, perft
    from psearch.batch.positions.answers import PositionResult
    from psearch.batch.positions.given_positions import Position
    from psearch.batch.positions.many import AsyncManyResults, ManyResults, analyse_many, analyse_many_async
    from psearch.results import Info, Limits, PsearchError, Result, WorkerDied, WorkerStats
    from psearch.text.wdl import pov_wdl as wdl

__all__ = [
    "DEFAULT_MOVETIME_MS",
    "DEFAULT_POLICY",
    "DEFAULT_PRUNING",
    "EVALUATIONS",
    "MAX_DEPTH",
    "MAX_THREADS",
    "POLICY_NAMES",
    "PRUNING_MODES",
    "Analysis",
    "AsyncAnalysis",
    "AsyncEngine",
    "AsyncManyResults",
    "Engine",
    "Info",
    "Limits",
    "ManyResults",
    "Position",
    "PositionResult",
    "PsearchError",
    "Result",
    "WorkerDied",
    "WorkerStats",
    "__version__",
    "analyse_many",
    "analyse_many_async",
    "evaluate",
    "perft",
    "search",
    "wdl",
]

_LAZY = {
    **dict.fromkeys(("Info", "Limits", "PsearchError", "Result", "WorkerDied", "WorkerStats"), "psearch.results"),
    "Analysis": "psearch.api.analysis_result",
    **dict.fromkeys(("AsyncAnalysis", "AsyncEngine"), "psearch.api.asynchronous"),
    "Engine": "psearch.api.blocking",
    **dict.fromkeys(("evaluate", "perft"), "psearch.api.counting"),
    "Position": "psearch.batch.positions.given_positions",
    "PositionResult": "psearch.batch.positions.answers",
    **dict.fromkeys(
        ("AsyncManyResults", "ManyResults", "analyse_many", "analyse_many_async"), "psearch.batch.positions.many"
    ),
}
"""Where the names are that need python-chess, or numba."""


def search(
    position: Place,
    threads: int = 1,
    depth: int | None = None,
    movetime_ms: float | None = None,
    nodes: int | None = None,
    hash_mb: int | None = None,
    mate: int | None = None,
    multipv: int = 1,
    root_moves: RootMoves | None = None,
    policy: str = DEFAULT_POLICY,
    pruning: str = DEFAULT_PRUNING,
    evaluation: str = DEFAULT_EVALUATION,
    net: str | PathLike[str] | None = None,
    with_: str | PathLike[str] | None = None,
) -> Result:
    """Search one position and return the best move found.

    `position` is `startpos`, a FEN (X-FEN and Shredder castling too) or a `chess.Board`, whose move stack
    counts as the game's history. Every limit that is given applies, the first one reached ends the search;
    with none the search takes 5 seconds. `mate`: stop when a mate in so many moves is found. `hash_mb` is the
    size of the transposition table in MiB (None: 256), `multipv` the number of lines wanted (`Result.lines`),
    `root_moves` the moves to choose from (None: all), `policy` how work is split (`POLICY_NAMES`), `pruning` what
    is left out (`PRUNING_MODES`, docs/design/search.md), `evaluation` what evaluates positions (`EVALUATIONS`), `net`
    the file of another network than the one that psearch comes with, `with_` a file of pruning rules or an evaluation
    of your own (docs/guides/own-rule.md).

    Worker processes are started for this one call; to search more than once, keep an `Engine`. Raises
    `psearch.PsearchError` for an illegal position or a bad argument, `psearch.WorkerDied` when a worker ends.

    >>> import psearch
    >>> result = psearch.search("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1", threads=2, depth=4, hash_mb=1)
    >>> result.bestmove, result.score
    (Move.from_uci('e1e8'), PovScore(Mate(+1), WHITE))
    """
    from psearch.api.api_log import LOG
    from psearch.api.checked_arguments import board_of, moves_of
    from psearch.processes.request import SearchRequest
    from psearch.results import Limits
    from psearch.searcher.declared import DEPTH, MATE, MOVETIME, MULTIPV, NODES
    from psearch.searcher.notices import Notices
    from psearch.searcher.settings import Settings
    from psearch.text.report import finished_result
    from psearch.text.values import number
    from psearch.text.wdl import pov_wdl

    board = board_of(position)
    limits = Limits(
        depth=None if depth is None else DEPTH.of_value(depth),
        movetime_ms=None if movetime_ms is None else number("movetime_ms", movetime_ms, MOVETIME.low, MOVETIME.high),
        nodes=None if nodes is None else NODES.of_value(nodes),
        mate=None if mate is None else MATE.of_value(mate),
    )
    if limits == Limits():
        limits = Limits(movetime_ms=DEFAULT_MOVETIME_MS)
    settings = Settings.of(threads, hash_mb, policy, pruning, evaluation=evaluation, net=net, with_=with_)
    lines = MULTIPV.of_value(multipv, "multipv")
    request = SearchRequest(board, limits, settings.search, moves_of(board, root_moves), lines)
    result = finished_result(board)
    if result is None:
        from psearch.searcher.searcher import Searcher, Size

        size = Size(settings.threads, settings.hash_mb, kernels=settings.search.kernels)
        with Searcher(Notices(LOG.warning)).start(size) as searcher:
            result = searcher.supervisor.search(request)
    best, *others = (replace(line, wdl=pov_wdl(line.score, board)) for line in (result.info, *result.lines))
    return replace(result, board=board, info=best, lines=others)


def __dir__() -> list[str]:
    """The API, for Tab and `help`: most of it is imported when it is asked for."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    """What takes long to import, on demand: `psearch --help` should not wait for it."""
    if name == "wdl":
        from psearch.text.wdl import pov_wdl

        return pov_wdl
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
