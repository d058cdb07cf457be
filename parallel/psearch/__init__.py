"""A chess engine whose worker processes search one tree in parallel.

- `psearch.search(fen, threads=8)` runs one search.
- `psearch.Engine` keeps its workers and its table for many searches; `psearch.AsyncEngine` does so on asyncio.
- `psearch.analyse_many` and `psearch.analyse_many_async` search any number of positions, several at a time.
- `psearch.review` and `psearch.review_many` judge the moves of games; their twins for asyncio end in `_async`.
- `psearch.evaluate` and `psearch.perft` need no search.

Importing this package loads neither numba nor any kernel.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from psearch.defaults import DEFAULT_MOVETIME_MS, DEFAULT_POLICY, EVALUATIONS, MAX_DEPTH, MAX_THREADS, POLICY_NAMES
from psearch.settings import SearchKeywords, lists_settings
from psearch.version import __version__
from psearch_core import DEFAULT_PRUNING, PRUNING_MODES

if TYPE_CHECKING:
    import chess.engine

    from psearch.api.asynchronous import AsyncAnalysis, AsyncEngine
    from psearch.api.blocking import Analysis, Engine
    from psearch.api.counting import evaluate, perft
    from psearch.api.question import Place, RootMoves
    from psearch.batch.analysis.games import GameReview, ReviewedMove
    from psearch.batch.analysis.reviews import (
        AsyncReviews,
        Reviews,
        review,
        review_async,
        review_many,
        review_many_async,
    )
    from psearch.batch.positions.many import (
        AsyncManyResults,
        ManyResults,
        Position,
        PositionResult,
        analyse_many,
        analyse_many_async,
    )
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
    "AsyncReviews",
    "Engine",
    "GameReview",
    "Info",
    "Limits",
    "ManyResults",
    "Position",
    "PositionResult",
    "PsearchError",
    "Result",
    "ReviewedMove",
    "Reviews",
    "WorkerDied",
    "WorkerStats",
    "__version__",
    "analyse_many",
    "analyse_many_async",
    "evaluate",
    "perft",
    "review",
    "review_async",
    "review_many",
    "review_many_async",
    "search",
    "wdl",
]

_LAZY = {
    name: module
    for module, names in {
        "psearch.api.asynchronous": "AsyncAnalysis AsyncEngine",
        "psearch.api.blocking": "Analysis Engine",
        "psearch.api.counting": "evaluate perft",
        "psearch.batch.analysis.games": "GameReview ReviewedMove",
        "psearch.batch.analysis.reviews": "AsyncReviews Reviews review review_async review_many review_many_async",
        "psearch.batch.positions.many": (
            "AsyncManyResults ManyResults Position PositionResult analyse_many analyse_many_async"
        ),
        "psearch.results": "Info Limits PsearchError Result WorkerDied WorkerStats",
    }.items()
    for name in names.split()
}
"""Module of each name whose import needs python-chess or numba."""


@lists_settings
def search(
    position: Place,
    limit: chess.engine.Limit | None = None,
    threads: int = 1,
    depth: int | None = None,
    movetime_ms: float | None = None,
    nodes: int | None = None,
    hash_mb: int | None = None,
    mate: int | None = None,
    multipv: int = 1,
    root_moves: RootMoves | None = None,
    **settings: Unpack[SearchKeywords],
) -> Result:
    """Search one position and return its `Result`.

    - position: `startpos`, a FEN (X-FEN and Shredder castling too), a `chess.Board` or a node of a `chess.pgn` game;
      earlier moves count as its history.
    - limit: limits as python-chess has them: time, depth, nodes, mate, or a clock, of which the search takes a suitable
      part. Give either this, or depth, movetime_ms, nodes and mate.
    - threads: number of worker processes.
    - depth, movetime_ms, nodes: limits in plies, milliseconds and nodes of all workers. The first one reached ends the
      search; without any limit the search takes 5 seconds.
    - mate: stop when a mate in at most this many moves has been found.
    - hash_mb: size of the transposition table in MiB (None: 256).
    - multipv: number of best lines to find (`Result.lines`).
    - root_moves: moves to choose from, as moves or text in UCI notation or SAN (None: all).

    The settings of the search are keywords, too:

    SETTINGS

    Each call starts its own worker processes; to search more than once, keep an `Engine`. Raises
    `psearch.PsearchError` for an illegal position or a bad argument, and `psearch.WorkerDied` when workers die
    repeatedly before the search has a result.

    >>> import psearch
    >>> result = psearch.search("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1", threads=2, depth=4, hash_mb=1)
    >>> result.bestmove, result.score
    (Move.from_uci('e1e8'), PovScore(Mate(+1), WHITE))
    """
    from psearch.api import LOG
    from psearch.api.question import board_of, bounded, moves_of, time_manager, to_limits
    from psearch.options import Settings
    from psearch.processes.control import SearchControl
    from psearch.processes.request import SearchRequest
    from psearch.results import Limits, PsearchError
    from psearch.searcher.notices import Notices
    from psearch.settings import MULTIPV, checked_limits
    from psearch.text.report import finished_result
    from psearch.text.wdl import pov_wdl

    board = board_of(position)
    limits = checked_limits(depth, movetime_ms, nodes, mate)
    control, only = SearchControl(), moves_of(board, root_moves)
    if limit is not None:
        if limits != Limits():
            raise PsearchError("give either limit, or depth, movetime_ms, nodes and mate")
        limits = to_limits(limit)
        moves = len(only) if only else board.legal_moves.count()
        control.clock = time_manager(board, bounded(limit, board.turn), moves)
    elif limits == Limits():
        limits = Limits(movetime_ms=DEFAULT_MOVETIME_MS)
    chosen = Settings.of(threads=threads, hash_mb=hash_mb, **settings)
    lines = MULTIPV.of_value(multipv, "multipv")
    request = SearchRequest(board, limits, chosen.search, only, lines, control=control)
    result = finished_result(board)
    if result is None:
        from psearch.searcher.root import Root
        from psearch.searcher.searcher import Searcher, Size

        size = Size(chosen.threads, chosen.hash_mb, kernels=chosen.search.kernels)
        with Root(chosen.syzygy, LOG.warning) as root, Searcher(Notices(LOG.warning)).start(size) as searcher:
            asked = root.prepared(request)
            result = asked.finished(searcher.supervisor.search(asked.request))
    best, *others = (replace(line, wdl=pov_wdl(line.score, board)) for line in (result.info, *result.lines))
    return replace(result, board=board, info=best, lines=others)


def __dir__() -> list[str]:
    """Return the names of the API, for completion and `help`; most of them are imported on first use."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that `psearch --help` does not wait for slow imports."""
    if name == "wdl":
        from psearch.text.wdl import pov_wdl

        return pov_wdl
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
