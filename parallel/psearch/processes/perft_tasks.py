"""Perft by several processes: each root move is a task for the next free process."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial

import chess
import numpy as np

from psearch.defaults import MAX_DEPTH
from psearch.processes.patience import TASK_TRIES
from psearch.processes.task_processes import TaskProcesses, share_out_to
from psearch.processes.tasks import unwatched
from psearch.results import PsearchError
from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.chess_entries import CHESS, PERFT, perft
from psearch_core.chess.tables import make_tables
from psearch_core.records import MAX_PLY, frame_dtype, position_dtype
from psearch_core.toolchain import groups

Task = tuple[int, np.ndarray]
"""Remaining plies and position."""


def count_leaves(
    board: chess.Board, depth: int, threads: int, is_stopped: Callable[[], bool] = lambda: False
) -> tuple[dict[chess.Move, int], float]:
    """Count the leaves of a perft of `depth` plies below each legal move; return the counts and the seconds taken.

    threads: number of processes; where the system grants none, this one counts. The task of a lost process is done
    again. is_stopped: called five times a second. Raises PsearchError for a depth outside 0 to MAX_DEPTH, and when the
    count is stopped; WorkerDied when several processes are lost with the same move.
    """
    if not 0 <= depth <= MAX_DEPTH:
        raise PsearchError(f"the depth of perft must be between 0 and {MAX_DEPTH}, not {depth}")
    moves = list(board.legal_moves) if depth else []
    if not moves:
        return {}, 0.0
    tables = _tables()  # kernels are compiled here if necessary, not in each process
    tasks: list[Task] = []
    for move in moves:
        child, position = board.copy(stack=False), np.zeros(1, position_dtype)
        child.push(move)
        set_position(tables, position, child)
        tasks.append((depth - 1, position))
    start = time.perf_counter()
    try:
        processes = TaskProcesses(partial(unwatched, _counter), min(threads, len(tasks)), what="count")
    except PsearchError:
        found = dict(enumerate(map(_count, tasks)))
    else:
        with processes:
            found = dict(share_out_to(processes, tasks, TASK_TRIES, is_stopped=is_stopped))
    if len(found) < len(moves):
        raise PsearchError("the count was stopped")
    return {move: found[place] for place, move in enumerate(moves)}, time.perf_counter() - start


def _counter() -> Callable[[Task], int]:
    _tables()
    return _count


@cache
def _tables() -> np.ndarray:
    groups.load(CHESS)
    groups.load(PERFT)
    return make_tables()


def _count(task: Task) -> int:
    depth, position = task
    frames = np.zeros(MAX_PLY, frame_dtype)
    frames["position"][0] = position[0]
    return int(perft(_tables().ctypes.data, frames.ctypes.data, depth))
