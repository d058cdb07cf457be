"""Perft and the static evaluation: what needs no search."""

from __future__ import annotations

from functools import cache

import chess
import chess.engine
import numpy as np

from psearch.api.question import Place, board_of
from psearch.processes.perft_tasks import count_leaves
from psearch.settings import DEPTH, THREADS
from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.chess_entries import CHESS, evaluate_position, evaluate_position_by_network
from psearch_core.chess.tables import make_tables
from psearch_core.records import evaluation_dtype, position_dtype
from psearch_core.toolchain import groups


def perft(position: Place, depth: int, threads: int = 1) -> dict[chess.Move, int]:
    """Count the positions reached after exactly `depth` plies, by first move; their sum is the perft number.

    A position that several lines reach counts once for each of them. Raises PsearchError for a bad argument.

    >>> import psearch
    >>> sum(psearch.perft("startpos", 3).values())
    8902
    """
    board = board_of(position)
    depth = DEPTH.of_value(depth)
    return count_leaves(board, depth, THREADS.of_value(threads, "threads"))[0]


def evaluate(position: Place) -> chess.engine.PovScore | None:
    """Return the static evaluation of a position by the network, without a search; None in check, where there is none.

    Raises PsearchError for a bad position.

    >>> import psearch
    >>> psearch.evaluate("4k3/8/8/8/8/8/8/Q3K3 w - - 0 1").white().score() > 500
    True
    """
    board = board_of(position)
    value = static_evaluation(_tables(), board)
    return None if value is None else chess.engine.PovScore(chess.engine.Cp(value), board.turn)


def static_evaluation(tables: np.ndarray, board: chess.Board, by_network: bool = True) -> int | None:
    """Return the static evaluation in centipawns for the side to move, None in check.

    tables: tables of the kernels; by_network: use the network, not the handcrafted evaluation.
    """
    if board.is_check():
        return None
    position, scratch = np.zeros(1, position_dtype), np.zeros(1, evaluation_dtype)
    set_position(tables, position, board)
    evaluation = evaluate_position_by_network if by_network else evaluate_position
    return int(evaluation(*(array.ctypes.data for array in (tables, scratch, position))))


@cache
def _tables() -> np.ndarray:
    groups.load(CHESS)
    return make_tables()
