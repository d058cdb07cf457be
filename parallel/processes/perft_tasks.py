"""Counting leaves with all workers: each root move is a task for whichever worker is free."""

from __future__ import annotations

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.core.chess.board.bridge import set_position
from psearch.core.records import position_dtype
from psearch.processes.heartbeat import Heartbeat
from psearch.processes.inline import InlinePool
from psearch.processes.pool import WorkerPool
from psearch.processes.search_workers import Workers
from psearch.processes.worker_main import PERFT, READY, count_leaves
from psearch.results import WorkerDied

_LOOK_INTERVAL_S = 0.1
_MOST_DEATHS = 3
"""without any count in between"""


def divide(workers: Workers, board: chess.Board, depth: int) -> dict[chess.Move, int]:
    """Leaves at `depth` plies, at least 1, below each legal move. When a worker dies others count again what it did.

    The workers must be complete. Raises WorkerDied when that happens again and again. After any exception workers may
    still be counting.
    """
    counts: dict[chess.Move, int] = {}
    deaths = 0
    while len(counts) < board.legal_moves.count():
        before = len(counts)
        try:
            _count_rest(workers.pool, board, depth, counts)
        except WorkerDied as error:
            deaths = 1 if len(counts) > before else deaths + 1
            if deaths >= _MOST_DEATHS:
                raise WorkerDied(f"{error}, as those before it; the count was stopped") from error
            workers.restore()
    return counts


def _count_rest(pool: WorkerPool | InlinePool, board: chess.Board, depth: int, counts: dict[chess.Move, int]) -> None:
    """Count below the moves that are not in `counts` yet. Raises WorkerDied."""
    todo = [move for move in board.legal_moves if move not in counts]
    if isinstance(pool, InlinePool):
        for move in todo:
            counts[move] = int.from_bytes(count_leaves(pool.arena, _task(pool.arena, board, move, depth - 1)), "little")
        return
    counted: dict[int, chess.Move] = {}
    free = list(range(len(pool.workers)))
    heartbeat = Heartbeat(pool, only_halts=True)
    while todo or pool.busy:
        while todo and free:
            index, move = free.pop(), todo.pop()
            pool.busy.add(index)
            pool.send(index, PERFT + _task(pool.arena, board, move, depth - 1))
            counted[index] = move
        for index in pool.wait(_LOOK_INTERVAL_S):
            answer = pool.receive(index)
            if answer != READY:
                counts[counted.pop(index)] = int.from_bytes(answer, "little")
                pool.busy.discard(index)
                free.append(index)
        heartbeat.check()


def _task(arena: Arena, board: chess.Board, move: chess.Move, depth: int) -> bytes:
    """Depth and position, as the worker reads them."""
    child = board.copy(stack=False)
    child.push(move)
    position = np.zeros(1, position_dtype)
    set_position(arena.tables, position, child)
    return depth.to_bytes(8, "little") + position.tobytes()
