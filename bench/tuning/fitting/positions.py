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

from psearch_core.chess.board.movegen import generate_captures
from psearch_core.chess.board.position import complete_position, find_pins, make_move
from psearch_core.chess.chess_entries import complete
from psearch_core.chess.evaluation.evaluate import evaluate
from psearch_core.chess.ordering.see import see_at_least
from psearch_core.constants import U0
from psearch_core.records import FRAME_SIZE, evaluation_dtype, frame_dtype, position_dtype
from psearch_core.views import evaluation_at, frame_at, position_at, tables_at

from .columns import Array

SCORE_MAX = 1500  # cp; beyond this a position is decided and teaches nothing
POSITION_SIZE = position_dtype.itemsize
_QUIESCENCE_PLIES = 16
_PAWN, _KING, _BLACK = 1, 6, 8
"""Codes of White's men, and what Black's have more."""
_MOST_MEN = 16


@numba.njit
def _parse_board(text: Array, start: int, board: Array) -> int:
    """Fill board codes from the FEN at text[start]; the side to move, 0 or 1. Text of another kind makes other boards,
    which `_check` refuses, and writes nowhere else."""
    board[:] = 0
    square = 56
    at = start
    while at + 2 < len(text) and text[at] != 32:
        c = text[at]
        if c == 47:  # "/"
            square -= 16
        elif 49 <= c <= 56:  # "1".."8"
            square += c - 48
        else:
            lower = c | 32
            code = 1  # p
            if lower == 110:
                code = 2  # n
            elif lower == 98:
                code = 3  # b
            elif lower == 114:
                code = 4  # r
            elif lower == 113:
                code = 5  # q
            elif lower == 107:
                code = 6  # k
            if 0 <= square < 64:
                board[square] = code if c < 97 else code + 8
            square += 1
        at += 1
    if square != 8:  # there are other than eight ranks, or squares in the last
        board[:] = 0
    return 0 if text[at + 1] == 119 else 1


@numba.njit
def _parse_boards(text: Array, starts: Array, positions: Array) -> None:
    """Parse the FEN at each start; castling and en passant are left out."""
    for i in range(len(starts)):
        positions[i].side = _parse_board(text, starts[i], positions[i].board)
        positions[i].ep = -1


@numba.njit
def _quiesce(tables, evaluation, frames, ply, alpha, beta, leaf):  # type: ignore[no-untyped-def]  # numba finds the types
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
        if pos.checkers != U0:
            keep[i] = False
            continue
        root = frame_at(frames)
        root.position.board[:] = pos.board
        root.position.side = pos.side
        root.position.castling_bb = U0
        root.position.ep = -1
        complete_position(tb, root.position)
        _quiesce(tables, evaluation, frames, 0, -32000, 32000, leaf)
        pos.board[:] = leaf[0, :64]
        pos.side = np.int32(leaf[0, 64])
        pos.castling_bb = U0
        complete_position(tb, pos)


def _read_games(path: Path) -> tuple[Array, Array]:
    """As `_read_positions`, of a file of games; each from its mover's side, which is White then."""
    found = read([path])
    samples = np.concatenate([found.training, found.test])
    positions = np.zeros(len(samples), position_dtype)
    positions["board"], positions["ep"] = board_codes(samples), -1
    return positions, np.stack([samples["score"], samples["result"] / 2], axis=1).astype(np.float64)


def _read_positions(path: Path) -> tuple[Array, Array]:
    """Positions as `position_dtype` (not completed), and (score, result) of each."""
    if path.suffix == ".games":
        return _read_games(path)
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        lines = [line for line in file.read().splitlines() if line.count(b";") == 2]
    text = np.frombuffer(b"\n".join(lines), dtype=np.uint8)
    starts = np.concatenate(([0], np.cumsum([len(line) + 1 for line in lines])[:-1]))
    positions = np.zeros(len(lines), position_dtype)
    _parse_boards(text, starts, positions)
    return positions, np.array([line.split(b";")[1:] for line in lines]).astype(np.float64)


def _check(path: Path, tables: Array, positions: Array) -> None:
    """Complete the positions. Raises ValueError for one that is not legal, which kernels would not notice."""
    boards, ends = positions["board"], np.r_[0:8, 56:64]
    kings = [(boards == code).sum(axis=1) == 1 for code in (_KING, _KING + _BLACK)]
    is_legal = kings[0] & kings[1] & ~np.isin(boards[:, ends], (_PAWN, _PAWN + _BLACK)).any(axis=1)
    is_legal &= (((boards > 0) & (boards < _BLACK)).sum(axis=1) <= _MOST_MEN) & (
        (boards > _BLACK).sum(axis=1) <= _MOST_MEN
    )
    for i in np.flatnonzero(is_legal):
        address = positions.ctypes.data + int(i) * POSITION_SIZE
        positions[i]["side"] ^= 1
        complete(tables.ctypes.data, address)
        is_legal[i] = positions[i]["checkers"] == 0
        positions[i]["side"] ^= 1
        complete(tables.ctypes.data, address)
    if not is_legal.all():
        raise ValueError(f"{path}: position {int(np.argmin(is_legal)) + 1:,} is not legal")


def quiet_positions(path: Path, tables: Array) -> tuple[Array, Array]:
    """Resolved and completed positions, and (score, result) of each. In check or beyond SCORE_MAX: left out.

    Raises ValueError for a position that is not legal.
    """
    positions, outcome = _read_positions(path)
    _check(path, tables, positions)
    keep = np.abs(outcome[:, 0]) <= SCORE_MAX
    evaluation, frames = np.zeros(1, evaluation_dtype), np.zeros(_QUIESCENCE_PLIES + 1, frame_dtype)
    addresses = tables.ctypes.data, evaluation.ctypes.data, frames.ctypes.data, positions.ctypes.data
    _resolve_all(*addresses, len(positions), keep)
    return positions[keep], outcome[keep]
