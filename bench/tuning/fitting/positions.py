"""Positions out of a file, captures first.

A position is replaced by the one at the end of the engine's own quiescence search: the static evaluation is for
quiet positions only.
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

import numba
import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "training"))  # it reads games

from netdata.reader import board_codes, read

from psearch.results import PsearchError
from psearch.text.fen import parse_position
from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.board.movegen import generate_captures
from psearch_core.chess.board.position import complete_position, find_pins, make_move
from psearch_core.chess.evaluation.evaluate import evaluate
from psearch_core.chess.ordering.see import see_at_least
from psearch_core.constants import U0
from psearch_core.records import FRAME_SIZE, evaluation_dtype, frame_dtype, position_dtype
from psearch_core.views import evaluation_at, frame_at, position_at, tables_at

from .weights import Array

SCORE_MAX = 1500  # cp; beyond this a position is decided and teaches nothing
POSITION_SIZE = position_dtype.itemsize
_QUIESCENCE_PLIES = 16


@numba.njit
def _quiesce(tables: int, evaluation: int, frames: int, ply: int, alpha: int, beta: int, leaf: Array) -> int:
    """The engine's quiescence as far as it has no check to answer; the line's last position goes to leaf[ply]."""
    tb = tables_at(tables)
    frame = frame_at(frames + ply * FRAME_SIZE)
    pos = frame.position
    best = evaluate(tb, evaluation_at(evaluation), pos)
    leaf[ply, :64] = pos.board
    leaf[ply, 64] = pos.side
    if best >= beta or ply + 1 == _QUIESCENCE_PLIES:
        return best
    alpha = max(alpha, best)
    find_pins(tb, pos)
    count = generate_captures(tb, pos, frame.node, 0)
    for i in range(count):
        move = np.int64(frame.node.moves[i]) & 0xFFFF
        if not see_at_least(tb, pos, move, 0):
            continue
        child = frame_at(frames + (ply + 1) * FRAME_SIZE)
        make_move(tb, pos, child.position, move)
        if child.position.checkers != U0:
            continue
        value = -_quiesce(tables, evaluation, frames, ply + 1, -beta, -alpha, leaf)
        if value > best:
            best = value
            if value > alpha:
                alpha = value
                leaf[ply] = leaf[ply + 1]
                if value >= beta:
                    break
    return best


@numba.njit
def _resolve_all(tables: int, evaluation: int, frames: int, positions: int, count: int, keep: Array) -> None:
    """Replace each position by the end of its quiescence line; keep becomes false in check."""
    leaf = np.zeros((_QUIESCENCE_PLIES, 65), np.uint8)
    tb = tables_at(tables)
    for i in range(count):
        pos = position_at(positions + i * POSITION_SIZE)
        root = frame_at(frames)
        root.position.board[:] = pos.board
        root.position.side = pos.side
        root.position.castling_bb = U0
        root.position.ep = -1
        complete_position(tb, root.position)
        if root.position.checkers != U0:
            keep[i] = False
            continue
        _quiesce(tables, evaluation, frames, 0, -32000, 32000, leaf)
        pos.board[:] = leaf[0, :64]
        pos.side = np.int32(leaf[0, 64])
        pos.castling_bb = U0
        pos.ep = -1
        complete_position(tb, pos)


def _read_games(path: Path) -> tuple[Array, Array]:
    """Return the same of a file of games; each from its mover's side, which is White then."""
    found = read([path])
    samples = np.concatenate([found.training, found.test])
    positions = np.zeros(len(samples), position_dtype)
    positions["board"] = board_codes(samples)
    return positions, np.stack([samples["score"], samples["result"] / 2], axis=1).astype(np.float64)


def _read_lines(path: Path, tables: Array) -> tuple[Array, Array]:
    """Return positions as `position_dtype`, and (score, result) of each. Raises ValueError for one that is not legal,
    which kernels would not notice."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
        rows = [row for line in file if len(row := line.split(";")) == 3]
    positions = np.zeros(len(rows), position_dtype)
    for number, (fen, *_) in enumerate(rows):
        try:
            set_position(tables, positions[number : number + 1], parse_position(fen))
        except PsearchError:
            raise ValueError(f"{path}: position {number + 1:,} is not legal") from None
    return positions, np.array([row[1:] for row in rows], np.float64)


def quiet_positions(path: Path, tables: Array) -> tuple[Array, Array]:
    """Resolved and completed positions, and (score, result) of each. In check or beyond SCORE_MAX: left out.

    Raises ValueError for a position that is not legal.
    """
    positions, outcome = _read_games(path) if path.suffix == ".games" else _read_lines(path, tables)
    keep = np.abs(outcome[:, 0]) <= SCORE_MAX
    evaluation, frames = np.zeros(1, evaluation_dtype), np.zeros(_QUIESCENCE_PLIES + 1, frame_dtype)
    addresses = tables.ctypes.data, evaluation.ctypes.data, frames.ctypes.data, positions.ctypes.data
    _resolve_all(*addresses, len(positions), keep)
    return positions[keep], outcome[keep]
