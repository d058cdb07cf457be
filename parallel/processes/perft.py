"""Counting leaves with all workers: each root move is a task for whichever worker is free."""

from __future__ import annotations

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.core.board.bridge import set_position
from psearch.core.records import position_dtype
from psearch.processes.pool import WorkerPool
from psearch.processes.worker import PERFT


def divide(pool: WorkerPool, board: chess.Board, depth: int) -> dict[chess.Move, int]:
    """Leaves at `depth` plies, at least 1, below each legal move. Raises WorkerDied.

    After any exception workers may still be counting: the pool can only be closed.
    """
    counts: dict[chess.Move, int] = {}
    todo = list(board.legal_moves)
    busy: dict[int, chess.Move] = {}
    free = list(range(len(pool.workers)))
    while todo or busy:
        while todo and free:
            index, move = free.pop(), todo.pop()
            pool.send(index, PERFT + _task(pool.arena, board, move, depth - 1))
            busy[index] = move
        for index in pool.wait():
            counts[busy.pop(index)] = int.from_bytes(pool.receive(index, None), "little")
            free.append(index)
    return counts


def _task(arena: Arena, board: chess.Board, move: chess.Move, depth: int) -> bytes:
    """Depth and position, as the worker reads them."""
    child = board.copy(stack=False)
    child.push(move)
    position = np.zeros(1, position_dtype)
    set_position(arena.tables, position, child)
    return depth.to_bytes(8, "little") + position.tobytes()
