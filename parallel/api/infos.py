"""What a search finds, as python-chess's engines report it: dictionaries, with chances by our own model."""

from __future__ import annotations

from dataclasses import replace

import chess
import chess.engine

from psearch.results import Info, Result
from psearch.text.wdl import pov_wdl


def info_dict(board: chess.Board, info: Info, selector: int) -> chess.engine.InfoDict:
    """Return an info with `wdl`. board: what was searched; selector: what is wanted, of `chess.engine.Info`."""
    if not selector:
        return {}
    found = replace(info, wdl=pov_wdl(info.score, board)).as_dict()
    if not selector & chess.engine.INFO_SCORE:
        for key in ("score", "lowerbound", "upperbound"):
            found.pop(key, None)  # type: ignore[misc]  # python-chess sets the bounds without declaring them
    if not selector & chess.engine.INFO_PV:
        del found["pv"]
    return found


def result_dicts(board: chess.Board, result: Result, selector: int) -> list[chess.engine.InfoDict]:
    """Return the lines of a result, best first; what went wrong on the way is the `string` of the first."""
    found = [info_dict(board, line, selector) for line in result.lines or [result.info]]
    if result.notes and selector:
        found[0]["string"] = "; ".join(result.notes)
    return found
