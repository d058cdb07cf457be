"""Parts of made-up search reports."""

from __future__ import annotations

import chess
import chess.engine

from psearch.results import WorkerStats


def cp(value: int, turn: chess.Color = chess.WHITE) -> chess.engine.PovScore:
    """A score in centipawns, seen from `turn`."""
    return chess.engine.PovScore(chess.engine.Cp(value), turn)


def moves(*words: str) -> list[chess.Move]:
    """Moves by their UCI names."""
    return [chess.Move.from_uci(word) for word in words]


def workers(count: int) -> list[WorkerStats]:
    """Workers of different load."""
    return [WorkerStats(1000 + n, 10, 20, 5, n / (2 * count)) for n in range(count)]
