"""The slow and obvious version of what is clever, to compare with."""

from __future__ import annotations

import math
from fractions import Fraction

import chess
import numba
import numpy as np

from psearch.arena.setup import history_keys
from psearch.core.chess.board.bridge import set_position
from psearch.core.chess.board.movegen import generate_captures, generate_quiets
from psearch.core.chess.board.position import find_pins, insufficient_material, make_move
from psearch.core.chess.evaluation import weights
from psearch.core.chess.evaluation.evaluate import evaluate
from psearch.core.chess.ordering.see import SEE_VALUES
from psearch.core.constants import INFINITE, MATE
from psearch.core.records import FRAME_SIZE, MAX_PLY, evaluation_dtype, frame_dtype
from psearch.core.views import evaluation_at, frame_at, tables_at

# -- chess ---------------------------------------------------------------------------------------------------

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


# -- search --------------------------------------------------------------------------------------------------


class NaiveSearch:
    """Negamax by recursion, straight from the definition: the value that plain mode must find.

    Full width, check extension up to twice the nominal depth, quiescence over captures and queen promotions (all
    evasions in check), draws by repetition, fifty moves and insufficient material. Moves are made, and positions
    evaluated, by compiled functions that have tests of their own.

    prune: plain alpha-beta, which cannot change the value at the root; without it every line is searched.
    """

    def __init__(self, tables: np.ndarray, prune: bool = True, max_nodes: int = 1 << 60) -> None:
        self.tables = tables
        self.prune = prune
        self.max_nodes = max_nodes
        self.nodes = 0
        self.evaluation = np.zeros(1, evaluation_dtype)
        self.frames = np.zeros(MAX_PLY, frame_dtype)
        self.keys = np.zeros(MAX_PLY, np.uint64)

    def value(self, board: chess.Board, depth: int) -> int | None:
        """Value of the root for the side to move; None if it takes more than `max_nodes`."""
        self.nodes = 0
        set_position(self.tables, self.frames["position"][:1], board)
        history = [int(key) for key in history_keys(self.tables, board)]
        games = np.array(history or [0], np.uint64)
        value = naive_negamax(
            self.tables.ctypes.data,
            self.evaluation.ctypes.data,
            self.frames.ctypes.data,
            self.keys,
            games,
            len(history),
            depth,
            self.prune,
            self.max_nodes,
        )
        return None if value == TOO_MANY else value


TOO_MANY = 1 << 40


@numba.njit
def naive_repetition(keys, games, game_count, ply, reversible):
    """Seen before in the search, below the root; or twice before, the game included."""
    seen = 0
    for back in range(1, reversible + 1):
        if back <= ply:
            earlier = keys[ply - back]
        elif back - ply <= game_count:
            earlier = games[back - ply - 1]
        else:
            break
        if earlier == keys[ply]:
            seen += 1
            if back < ply or seen == 2:
                return True
    return False


@numba.njit
def negamax(tables, evaluation, frames, keys, games, game_count, root_depth, ply, depth, alpha, beta, prune, budget):
    budget[0] -= 1
    if budget[0] < 0:
        return TOO_MANY
    tb = tables_at(tables)
    frame = frame_at(frames + ply * FRAME_SIZE)
    pos = frame.position
    keys[ply] = pos.key
    in_check = pos.checkers != np.uint64(0)
    find_pins(tb, pos)
    captures = generate_captures(tb, pos, frame.node, 0)
    count = generate_quiets(tb, pos, frame.node, captures)
    if ply > 0:
        if pos.rule50 >= 100 and not (in_check and count == 0):
            return 0
        if insufficient_material(pos) or naive_repetition(keys, games, game_count, ply, pos.reversible):
            return 0
        if ply >= MAX_PLY - 1:
            return 0 if in_check else evaluate(tb, evaluation_at(evaluation), pos)
    best = -INFINITE
    if depth <= 0 and not in_check:
        best = evaluate(tb, evaluation_at(evaluation), pos)
        count = captures
    elif count == 0:
        return ply - MATE if in_check else 0
    for i in range(count):
        if prune and max(best, alpha) >= beta:
            break
        child = frame_at(frames + (ply + 1) * FRAME_SIZE)
        make_move(tb, pos, child.position, frame.node.moves[i] & 0xFFFF)
        deeper = 0
        if depth > 0:
            gives_check = child.position.checkers != np.uint64(0)
            deeper = depth if gives_check and ply < 2 * root_depth else depth - 1
        below = negamax(
            tables,
            evaluation,
            frames,
            keys,
            games,
            game_count,
            root_depth,
            ply + 1,
            deeper,
            -beta,
            -max(alpha, best),
            prune,
            budget,
        )
        if below == TOO_MANY:
            return TOO_MANY
        best = max(best, -below)
    return best


@numba.njit
def naive_negamax(tables, evaluation, frames, keys, games, game_count, root_depth, prune, max_nodes):
    budget = np.array([max_nodes])
    return negamax(
        tables,
        evaluation,
        frames,
        keys,
        games,
        game_count,
        root_depth,
        0,
        root_depth,
        -INFINITE,
        INFINITE,
        prune,
        budget,
    )


# -- evaluation ----------------------------------------------------------------------------------------------


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


# -- exchanges -----------------------------------------------------------------------------------------------


def exchange_value(board: chess.Board, move: chess.Move) -> int:
    """What the exchange that a legal move starts is worth to the mover, both sides free to stop at any time.

    The conventions of `core/see.py`: fixed piece values, no pins, no promotions on the way, the least valuable piece
    takes first (of two alike the one on the lower square), a king takes only what nothing defends.
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
    """What a side can win by taking a piece worth `prize` on a square, 0 if it rather leaves it."""
    attackers = _attackers(board, color, square, occupied)
    if not attackers:
        return 0
    piece, origin = attackers[0]
    if piece == chess.KING and _attackers(board, not color, square, occupied):
        return 0
    after = occupied & ~chess.BB_SQUARES[origin]
    return max(0, prize - _best_reply(board, not color, square, after, SEE_VALUES[piece - 1]))
