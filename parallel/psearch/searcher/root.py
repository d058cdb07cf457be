"""What is done at the root beside the search of the workers: endgame tables are looked up, the strength is limited."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import chess

from psearch.closing import Closing
from psearch.processes.request import SearchRequest
from psearch.results import Info, Result
from psearch.strength import MOST_LINES, choose_line, node_limit, noise_cp

if TYPE_CHECKING:
    from psearch.text.chess_files import RootProbe, RootProber


@dataclass(frozen=True)
class Prepared:
    """A search after the look-up at its root."""

    request: SearchRequest
    """Request for the workers, with the root moves, nodes and lines that the look-up leaves or adds."""
    probe: RootProbe | None
    """The tables' verdict on the position; None if they do not have it."""
    finished: Callable[[Result], Result]
    """Makes the result for the caller from that of the workers."""


def prepared(request: SearchRequest, probe: RootProbe | None) -> Prepared:
    """Prepare a search of chess. probe: the tables' verdict, which a limited strength does not use.

    A weaker move is drawn by the position, the nodes of the search and the request's seed alone.
    """
    board, wanted, show = cast(chess.Board, request.board), request.multipv, request.on_info
    elo = request.options.strength
    if elo is not None:

        def chosen(result: Result) -> Result:
            if not result.lines:
                return result
            drawn = choose_line(result.lines, elo, random.Random(f"{request.seed} {board.fen()} {result.info.nodes}"))
            lines = [drawn, *(line for line in result.lines if line is not drawn)][:wanted]
            lines = [replace(line, multipv=number) for number, line in enumerate(lines, start=1)]
            info = replace(lines[0], workers=result.info.workers)
            return replace(result, bestmove=drawn.pv[0], info=info, lines=lines)

        def show_wanted(info: Info) -> None:
            if show is not None and info.multipv <= wanted:
                show(info)

        nodes = min(request.limits.nodes or 1 << 62, node_limit(elo))
        lines = max(wanted, MOST_LINES) if noise_cp(elo) > 0 else wanted
        limits = replace(request.limits, nodes=nodes)
        return Prepared(replace(request, limits=limits, multipv=lines, on_info=show_wanted), None, chosen)
    if probe is None:
        return Prepared(request, None, lambda result: result)

    def scored(result: Result) -> Result:
        return replace(result, info=probe.scored(result.info), lines=[probe.scored(line) for line in result.lines])

    only = [move for move in probe.best if request.only is None or move in request.only]
    on_info = None if show is None else lambda info: show(probe.scored(info))
    return Prepared(replace(request, only=only or request.only, on_info=on_info), probe, scored)


class Root(Closing):
    """Endgame tables of the searches of one engine; a context manager.

    syzygy: folders of tables; empty: none. tell: takes a line about each unusable table. Raises PsearchError when no
    folder has a table.
    """

    def __init__(self, syzygy: str, tell: Callable[[str], None]) -> None:
        self._prober: RootProber | None = None
        if syzygy:
            from psearch.text.chess_files import RootProber

            self._prober = RootProber(syzygy)
            for problem in self._prober.problems:
                tell(problem)

    def close(self) -> None:
        """Close the tables."""
        if self._prober is not None:
            self._prober.close()

    def prepared(self, request: SearchRequest) -> Prepared:
        """Look the position up and prepare its search. Raises PsearchError for damaged tables."""
        probe = None
        if self._prober is not None and request.options.strength is None:
            probe = self._prober.probe(cast(chess.Board, request.board))
        return prepared(request, probe)
