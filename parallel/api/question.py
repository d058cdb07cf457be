"""One search as a caller of an engine asks for it, checked before anything is started."""

from __future__ import annotations

from dataclasses import dataclass, replace

import chess
import chess.engine

from psearch.api.api_log import LOG
from psearch.api.checked_arguments import Place, RootMoves, board_of, moves_of
from psearch.api.limits import bounded, time_manager, to_limits
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.request import OnInfo, SearchRequest
from psearch.processes.time_manager import LagMeter
from psearch.results import Limits, PsearchError
from psearch.settings import MULTIPV
from psearch.text.values import shown


@dataclass(frozen=True)
class Question:
    """What to search, how, and what of it is told; `ask` makes it."""

    board: chess.Board
    """the caller's may change"""
    limit: chess.engine.Limit
    limits: Limits
    only: list[chess.Move] | None
    multipv: int
    options: SearchOptions
    game: object
    selector: int
    """which infos are wanted: `chess.engine.Info`"""

    def request(self, control: SearchControl, on_info: OnInfo | None, lag: LagMeter | None = None) -> SearchRequest:
        """Return the request for the workers. The time of the clock is counted from when they begin. lag: of the moves
        before, None: no lag."""
        moves = len(self.only) if self.only else self.board.legal_moves.count()
        control.clock = time_manager(self.board, self.limit, moves, lag)
        return SearchRequest(
            self.board, self.limits, self.options, self.only, self.multipv, on_info, control, on_note=LOG.warning
        )


def ask(
    board: Place,
    limit: chess.engine.Limit | None,
    options: SearchOptions,
    *,
    multipv: int | None,
    game: object,
    info: int,
    root_moves: RootMoves | None,
    is_endless: bool = False,
) -> Question:
    """Return a question. is_endless: without a limit it is searched until it is stopped, and not for 5 seconds. Raises
    PsearchError for anything in it that makes no sense."""
    own = board_of(board)
    if limit is None:
        limit = chess.engine.Limit()
    limits = to_limits(limit)
    if not is_endless:
        limit = bounded(limit, own.turn)
    time_manager(own, limit, 1)  # so that bad clocks are told here
    if not isinstance(info, int):
        raise PsearchError(f"info must be of chess.engine.Info, not {shown(info)}")
    lines = 1 if multipv is None else MULTIPV.of_value(multipv, "multipv")
    return Question(own, replace(limit), limits, moves_of(own, root_moves), lines, options, game, int(info))
