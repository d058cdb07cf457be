"""What is done at the root beside the search of the workers: endgame tables are looked up, the strength is limited."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import chess

from psearch.processes.request import SearchRequest
from psearch.results import Result
from psearch.strength import MOST_LINES, choose_line, node_limit, noise_cp

if TYPE_CHECKING:
    from psearch.text.chess_files import RootProbe, RootProber


class Root:
    """Endgame tables and strength of the searches of one engine; a context manager.

    syzygy: folders of tables; empty: none. elo: strength; None: full strength. With a strength the tables are not used.
    tell: takes a line about each unusable table. Raises PsearchError when no folder has a table.
    """

    def __init__(self, syzygy: str, elo: int | None, tell: Callable[[str], None]) -> None:
        self._elo = elo
        self._prober: RootProber | None = None
        if syzygy:
            from psearch.text.chess_files import RootProber

            self._prober = RootProber(syzygy)
        for problem in self._prober.problems if self._prober is not None else ():
            tell(problem)

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the tables."""
        if self._prober is not None:
            self._prober.close()

    def prepared(self, request: SearchRequest) -> tuple[SearchRequest, RootProbe | None]:
        """Return the request to search, and what the tables say about its position. Raises PsearchError for damaged
        tables."""
        board = request.board
        assert isinstance(board, chess.Board)
        if self._elo is not None:
            nodes = min(request.limits.nodes or 1 << 62, node_limit(self._elo))
            lines = max(request.multipv, MOST_LINES) if noise_cp(self._elo) > 0 else request.multipv
            return replace(request, limits=replace(request.limits, nodes=nodes), multipv=lines), None
        probe = None if self._prober is None else self._prober.probe(board)
        if probe is None:
            return request, None
        only = [move for move in probe.best if request.only is None or move in request.only]
        show = request.on_info
        on_info = None if show is None else lambda info: show(probe.scored(info))
        return replace(request, only=only or request.only, on_info=on_info), probe

    def finished(self, result: Result, probe: RootProbe | None, board: chess.Board, multipv: int) -> Result:
        """Return the result for the caller: with the tables' score, or with a move of the wanted strength. The same
        search of a position gives the same move. multipv: number of lines that the caller wants."""
        if probe is not None:
            scored = probe.scored_result(result)
            infos = [replace(info, tbhits=probe.hits) for info in (scored.info, *scored.lines)]
            return replace(scored, info=infos[0], lines=infos[1:])
        if self._elo is None or not result.lines:
            return result
        chosen = choose_line(result.lines, self._elo, random.Random(f"{board.fen()} {result.info.nodes}"))
        lines = [chosen, *(line for line in result.lines if line is not chosen)][:multipv]
        lines = [replace(line, multipv=number) for number, line in enumerate(lines, start=1)]
        return replace(result, bestmove=chosen.pv[0], info=replace(chosen, workers=result.info.workers), lines=lines)
