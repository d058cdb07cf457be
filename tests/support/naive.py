"""The slow and obvious version of what is clever, to compare with."""

from __future__ import annotations

import math
from fractions import Fraction

import chess
import numba
import numpy as np
from inspect_entries import INSPECT

from psearch.arena.setup import history_keys
from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.board.movegen import generate_captures, generate_quiets
from psearch_core.chess.board.position import find_pins, insufficient_material, is_crowded, make_move
from psearch_core.chess.evaluation import weights
from psearch_core.chess.evaluation.evaluate import evaluate
from psearch_core.chess.ordering.see import SEE_VALUES
from psearch_core.constants import INFINITE, MATE, QUIESCENCE_BUDGET, UNLIMITED
from psearch_core.records import FRAME_SIZE, MAX_PLY, evaluation_dtype, frame_dtype
from psearch_core.toolchain.intrinsics import view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import boolean, evaluation_at, frame_at, i64, tables_at

naive_dtype = np.dtype(
    [
        ("tables", "<i8"),
        ("evaluation", "<i8"),
        ("frames", "<i8"),
        ("prune", "<i8"),
        ("budget", "<i8"),
        ("root_depth", "<i8"),
        ("game_count", "<i8"),
        ("games", "<u8", (1024,)),
    ]
)
"""Addresses of the records it works on; nodes that it may still take; keys of the game so far, the latest first."""
Naive = numba.from_dtype(naive_dtype)
naive_at = view(Naive)
TOO_MANY = 1 << 40


@kernel(boolean(Naive, i64))
def naive_repetition(naive, ply):
    """Seen before in the search, below the root; or twice before, the game included."""
    pos = frame_at(naive.frames + ply * FRAME_SIZE).position
    seen = 0
    for back in range(1, pos.reversible + 1):
        if back <= ply:
            earlier = frame_at(naive.frames + (ply - back) * FRAME_SIZE).position.key
        elif back - ply <= naive.game_count:
            earlier = naive.games[back - ply - 1]
        else:
            break
        if earlier == pos.key:
            seen += 1
            if back < ply or seen == 2:
                return True
    return False


@kernel(i64(Naive, i64, i64, i64, i64, i64))
def negamax(naive, ply, depth, credit, alpha, beta):
    """credit: what quiescence may look at below here."""
    naive.budget -= 1
    if naive.budget < 0:
        return TOO_MANY
    tb = tables_at(naive.tables)
    frame = frame_at(naive.frames + ply * FRAME_SIZE)
    pos = frame.position
    in_check = pos.checkers != np.uint64(0)
    find_pins(tb, pos)
    captures = generate_captures(tb, pos, frame.node, 0)
    count = generate_quiets(tb, pos, frame.node, captures)
    if ply > 0:
        if pos.rule50 >= 100 and not (in_check and count == 0):
            return 0
        if insufficient_material(pos) or naive_repetition(naive, ply):
            return 0
        if ply >= MAX_PLY - 1:
            return 0 if in_check else evaluate(tb, evaluation_at(naive.evaluation), pos)
    best = -INFINITE
    if credit == UNLIMITED and is_crowded(pos):
        credit = QUIESCENCE_BUDGET
    if depth <= 0 and in_check and credit == 0:
        return 0
    if depth <= 0 and not in_check:
        best = evaluate(tb, evaluation_at(naive.evaluation), pos)
        count = captures if captures <= credit else 0
    elif count == 0:
        return ply - MATE if in_check else 0
    for i in range(count):
        if naive.prune != 0 and max(best, alpha) >= beta:
            break
        share = UNLIMITED if depth > 0 or credit == UNLIMITED else credit // count
        if share == QUIESCENCE_BUDGET:
            share = UNLIMITED  # the only move has it all, and begins anew
        below = naive_child(naive, ply, depth, share, i, max(alpha, best), beta)
        if below == TOO_MANY:
            return TOO_MANY
        best = max(best, -below)
    return best


@kernel(i64(Naive, i64, i64, i64, i64, i64, i64))
def naive_child(naive, ply, depth, credit, index, alpha, beta):
    """Play one of the moves, and return the value for the other side."""
    frame = frame_at(naive.frames + ply * FRAME_SIZE)
    child = frame_at(naive.frames + (ply + 1) * FRAME_SIZE)
    make_move(tables_at(naive.tables), frame.position, child.position, frame.node.moves[index] & 0xFFFF)
    deeper = 0
    if depth > 0:
        gives_check = child.position.checkers != np.uint64(0)
        deeper = depth if gives_check and ply < 2 * naive.root_depth else depth - 1
    return negamax(naive, ply + 1, deeper, credit, -beta, -alpha)


@entry(i64(i64, i64, i64), INSPECT)
def naive_value(naive, ply, depth):
    """Value of the position in the frame at a ply, for the side to move; TOO_MANY if the budget did not suffice."""
    return negamax(naive_at(naive), ply, depth, UNLIMITED, -INFINITE, INFINITE)


_ROOK_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))
_BISHOP_STEPS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_SLIDER_STEPS = {
    chess.BISHOP - 1: _BISHOP_STEPS,
    chess.ROOK - 1: _ROOK_STEPS,
    chess.QUEEN - 1: _ROOK_STEPS + _BISHOP_STEPS,
}


def ray_attacks(piece: int, square: int, occupied_bb: int) -> int:
    """Squares that a BISHOP, ROOK or QUEEN (`core.constants`) attacks, one step at a time."""
    attacked_bb = 0
    for file_step, rank_step in _SLIDER_STEPS[piece]:
        file, rank = chess.square_file(square) + file_step, chess.square_rank(square) + rank_step
        while 0 <= file < 8 and 0 <= rank < 8:
            step_bb = chess.BB_SQUARES[chess.square(file, rank)]
            attacked_bb |= step_bb
            if occupied_bb & step_bb:
                break
            file += file_step
            rank += rank_step
    return attacked_bb


class NaiveSearch:
    """Negamax by recursion, straight from the definition: the value that plain mode must find.

    Full width, check extension up to twice the nominal depth, quiescence over captures and queen promotions (all
    evasions in check), draws by repetition, fifty moves and insufficient material. Moves are made, and positions
    evaluated, by compiled functions that have tests of their own.

    prune: plain alpha-beta, which cannot change the value at the root; without it every line is searched.
    """

    def __init__(self, tables: np.ndarray, prune: bool = True, max_nodes: int = 1 << 60) -> None:
        self.tables = tables
        self.max_nodes = max_nodes
        self.frames = np.zeros(MAX_PLY, frame_dtype)
        self._evaluation = np.zeros(1, evaluation_dtype)
        self._record = np.zeros(1, naive_dtype)
        self._record["prune"] = prune
        for name, memory in (("tables", tables), ("evaluation", self._evaluation), ("frames", self.frames)):
            self._record[name] = memory.ctypes.data

    def value(self, board: chess.Board, depth: int) -> int | None:
        """Value of the root for the side to move; None if it takes more than `max_nodes`."""
        set_position(self.tables, self.frames["position"][:1], board)
        history = [int(key) for key in history_keys(self.tables, board)]
        self._record["game_count"] = len(history)
        self._record["games"][0, : len(history)] = history
        value = self.value_at(0, depth, depth)
        return None if value == TOO_MANY else value

    def value_at(self, ply: int, depth: int, root_depth: int) -> int:
        """Value of the position in the frame at a ply; the frames above hold what came before."""
        self._record["budget"] = self.max_nodes
        self._record["root_depth"] = root_depth
        return naive_value(self._record.ctypes.data, ply, depth)


def taper(middle_game: int, end_game: int, phase: int) -> int:
    """The blend of two values by phase, the part behind the point cut off."""
    return math.trunc(Fraction(middle_game * phase + end_game * (24 - phase), 24))


def game_phase(board: chess.Board) -> int:
    """24 with all pieces on the board, 0 with pawns only; promotions do not count above 24."""
    return min(sum(weights.PHASE[piece.piece_type - 1] for piece in board.piece_map().values()), 24)


def psq_sum(board: chess.Board, phase: int | None = None) -> int:
    """Material and piece-square tables, White minus Black, tapered by the board's phase or another one."""
    sums = [0, 0]
    for square, piece in board.piece_map().items():
        for part, tables in enumerate((weights.PSQT_MG, weights.PSQT_EG)):
            if piece.color:
                sums[part] += tables[piece.piece_type - 1][square]
            else:
                sums[part] -= tables[piece.piece_type - 1][square ^ 56]
    return taper(sums[0], sums[1], game_phase(board) if phase is None else phase)


def exchange_value(board: chess.Board, move: chess.Move) -> int:
    """Return what the exchange that a legal move starts is worth to the mover, both sides free to stop at any time.

    The conventions of `see.py`: fixed piece values, no pins, no promotions on the way, the least
    valuable piece takes first (of two alike the one on the lower square), a king takes only what nothing defends.
    """
    if board.is_castling(move):
        return 0
    piece = board.piece_type_at(move.from_square)
    victim = board.piece_type_at(move.to_square)
    assert piece is not None
    gain = SEE_VALUES[victim - 1] if victim else 0
    occupied = (board.occupied & ~chess.BB_SQUARES[move.from_square]) | chess.BB_SQUARES[move.to_square]
    if board.is_en_passant(move):
        gain = SEE_VALUES[chess.PAWN - 1]
        occupied &= ~chess.BB_SQUARES[move.to_square ^ 8]
    if move.promotion:
        piece = move.promotion
        gain += SEE_VALUES[piece - 1] - SEE_VALUES[chess.PAWN - 1]
    return gain - _best_reply(board, not board.turn, move.to_square, occupied, SEE_VALUES[piece - 1])


def _attackers(board: chess.Board, color: chess.Color, square: int, occupied: int) -> list[tuple[int, int]]:
    """Pieces of a side that attack a square past everything taken off the board: (piece type, square), sorted."""
    found = chess.SquareSet(board.attackers_mask(color, square, occupied) & occupied)
    return sorted((board.piece_type_at(other) or 0, other) for other in found if other != square)


def _best_reply(board: chess.Board, color: chess.Color, square: int, occupied: int, prize: int) -> int:
    """Return what a side can win by taking a piece worth `prize` on a square, 0 if it rather leaves it."""
    attackers = _attackers(board, color, square, occupied)
    if not attackers:
        return 0
    piece, origin = attackers[0]
    if piece == chess.KING and _attackers(board, not color, square, occupied):
        return 0
    after = occupied & ~chess.BB_SQUARES[origin]
    return max(0, prize - _best_reply(board, not color, square, after, SEE_VALUES[piece - 1]))
