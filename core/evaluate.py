"""Static evaluation: E = M + clamp(R, -B, +B), in centipawns for the side to move.

M is the exact, incremental, tapered piece-square sum; R is everything else and bounded by construction, so that
`M + B` bounds what a quiet position can be worth (sound futility rests on it). E is the same for both colours:
mirrored positions get mirrored values, so division rounds towards zero.
"""

from __future__ import annotations

import numpy as np

from psearch.core.attacks import piece_attacks
from psearch.core.bits import bit, pawn_attacks_east, pawn_attacks_west
from psearch.core.constants import BISHOP, FILE_A_BB, KNIGHT, PAWN, RANK_1_BB, ROOK, U0, U1
from psearch.core.intrinsics import lowest_bit, popcount
from psearch.core.jit import kernel
from psearch.core.position import king_square, occupied
from psearch.core.records import Position, Tables, i64

REST_BOUND = 400
"""B: the most that terms other than material and piece-square tables may add up to."""
PHASE_MAX = 24
# Middle game and end game values travel as one integer: mg in the high part, eg, which may be negative, below.
_HALF = 1 << 20


@kernel(i64(i64, i64))
def _pair(middle_game, end_game):
    return middle_game * _HALF + end_game


@kernel(i64(i64))
def _end_game(pair):
    low = pair & (_HALF - 1)
    return low - _HALF if low >= _HALF // 2 else low


@kernel(i64(i64, i64, i64))
def taper(middle_game, end_game, phase):
    """Blend by phase (0 .. 24), rounding towards zero."""
    total = middle_game * phase + end_game * (PHASE_MAX - phase)
    return total // PHASE_MAX if total >= 0 else -(-total // PHASE_MAX)


@kernel(i64(Position))
def material(pos):
    """M: the tapered piece-square sum for the side to move."""
    value = taper(np.int64(pos.psq_mg), np.int64(pos.psq_eg), min(np.int64(pos.phase), PHASE_MAX))
    return -value if pos.side else value


@kernel(i64(Tables, Position, i64))
def _pawn_terms(tb, pos, side):
    """Doubled, isolated and passed pawns of a side."""
    own_bb = pos.piece_bb[PAWN] & pos.color_bb[side]
    enemy_bb = pos.piece_bb[PAWN] & pos.color_bb[1 - side]
    sum = 0
    pawns_bb = own_bb
    while pawns_bb != U0:
        square = lowest_bit(pawns_bb)
        pawns_bb &= pawns_bb - U1
        blocked = tb.front[side, square] & own_bb != U0
        if blocked:
            sum += _pair(tb.doubled[0], tb.doubled[1])
        elif tb.passed[side, square] & enemy_bb == U0:
            rank = square >> 3 if side == 0 else 7 - (square >> 3)
            sum += _pair(tb.passed_bonus[rank, 0], tb.passed_bonus[rank, 1])
        if tb.neighbours[square & 7] & own_bb == U0:
            sum += _pair(tb.isolated[0], tb.isolated[1])
    return sum


@kernel(i64(Tables, Position, i64))
def _piece_terms(tb, pos, side):
    """Mobility, attacks on the enemy king's ring, and rook files of a side."""
    own_bb = pos.color_bb[side]
    occupied_bb = occupied(pos)
    enemy_pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[1 - side]
    denied_bb = own_bb | pawn_attacks_west(enemy_pawns_bb, 1 - side) | pawn_attacks_east(enemy_pawns_bb, 1 - side)
    enemy_king = king_square(pos, 1 - side)
    ring_bb = tb.king[enemy_king] | bit(enemy_king)
    sum = 0
    for kind in range(4):
        pieces_bb = pos.piece_bb[KNIGHT + kind] & own_bb
        while pieces_bb != U0:
            square = lowest_bit(pieces_bb)
            pieces_bb &= pieces_bb - U1
            attacks_bb = piece_attacks(tb, KNIGHT + kind, square, occupied_bb)
            reach = popcount(attacks_bb & ~denied_bb) - tb.mobility_centre[kind]
            hits = popcount(attacks_bb & ring_bb)
            sum += reach * _pair(tb.mobility[kind, 0], tb.mobility[kind, 1])
            sum += hits * _pair(tb.king_ring[kind, 0], tb.king_ring[kind, 1])
    rooks_bb = pos.piece_bb[ROOK] & own_bb
    while rooks_bb != U0:
        file_bb = FILE_A_BB << np.uint64(lowest_bit(rooks_bb) & 7)
        rooks_bb &= rooks_bb - U1
        if file_bb & pos.piece_bb[PAWN] == U0:
            sum += _pair(tb.rook_open[0], tb.rook_open[1])
        elif file_bb & pos.piece_bb[PAWN] & own_bb == U0:
            sum += _pair(tb.rook_semi_open[0], tb.rook_semi_open[1])
    return sum


@kernel(i64(Tables, Position, i64))
def _side_terms(tb, pos, side):
    """R of one side."""
    own_bb = pos.color_bb[side]
    sum = _pawn_terms(tb, pos, side) + _piece_terms(tb, pos, side)
    if popcount(pos.piece_bb[BISHOP] & own_bb) >= 2:
        sum += _pair(tb.bishop_pair[0], tb.bishop_pair[1])
    king = king_square(pos, side)
    files_bb = tb.neighbours[king & 7] | (FILE_A_BB << np.uint64(king & 7))
    rank = king >> 3
    shield_bb = U0
    for step in range(1, 3):
        shield_rank = rank + step if side == 0 else rank - step
        if 0 <= shield_rank < 8:
            shield_bb |= RANK_1_BB << np.uint64(8 * shield_rank)
    count = popcount(shield_bb & files_bb & pos.piece_bb[PAWN] & own_bb)
    return sum + count * _pair(tb.shield[0], tb.shield[1])


@kernel(i64(Tables, Position))
def evaluate(tb, pos):
    """E for the side to move."""
    phase = min(np.int64(pos.phase), PHASE_MAX)
    pair = _side_terms(tb, pos, 0) - _side_terms(tb, pos, 1)
    end_game = _end_game(pair)
    rest = taper((pair - end_game) // _HALF, end_game, phase)
    rest = min(max(rest, -REST_BOUND), REST_BOUND)
    return material(pos) + (-rest if pos.side else rest)
