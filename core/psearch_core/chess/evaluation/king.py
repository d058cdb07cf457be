"""King safety: units of danger from attackers, weak squares and checks, looked up in a table that is not linear."""

from __future__ import annotations

import numpy as np

from psearch_core.chess.board.attacks import bishop_attacks, rook_attacks
from psearch_core.chess.board.position import king_square, occupied
from psearch_core.constants import BISHOP, KING, KNIGHT, QUEEN, ROOK, U0
from psearch_core.terms import (
    DANGER,
    DANGER_CHECK,
    DANGER_FLANK,
    DANGER_FLANK_DEFENCE,
    DANGER_KNIGHT_DEFENCE,
    DANGER_STEP,
    DANGER_STEPS,
    DANGER_UNSAFE_CHECK,
    DANGER_WEAK,
)
from psearch_core.toolchain.intrinsics import popcount
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Evaluation, PawnEntry, Position, Tables, i64, u64

_FILES_A_TO_D_BB = np.uint64(0x0F0F0F0F0F0F0F0F)
_FILES_C_TO_F_BB = np.uint64(0x3C3C3C3C3C3C3C3C)
_FILES_E_TO_H_BB = np.uint64(0xF0F0F0F0F0F0F0F0)
_RANKS_1_TO_5_BB = np.uint64(0x000000FFFFFFFFFF)
_RANKS_4_TO_8_BB = np.uint64(0xFFFFFFFFFF000000)


@kernel(u64(i64))
def _flank(king):
    """The half of the board a king lives in, or the middle."""
    file = king & 7
    if file < 3:
        return _FILES_A_TO_D_BB
    return _FILES_C_TO_F_BB if file < 5 else _FILES_E_TO_H_BB


@kernel(i64(Tables, i64, u64, u64))
def _checks(tb, piece, squares_bb, safe_bb):
    """Units for the squares from which a kind of piece can give check."""
    safe = min(popcount(squares_bb & safe_bb), 2)
    unsafe = popcount(squares_bb & ~safe_bb)
    return safe * tb.units[DANGER_CHECK + piece - KNIGHT] + unsafe * tb.units[DANGER_UNSAFE_CHECK]


@kernel(i64(Tables, Evaluation, PawnEntry, Position, i64))
def danger_units(tb, ev, entry, pos, side):
    """How dangerous a side is to the enemy king, after `piece_terms` of both."""
    them = 1 - side
    king = king_square(pos, them)
    occupied_bb = occupied(pos)
    attacked_bb = ev.attacked[side]
    defended_bb = ev.attacked[them]
    by_king_or_queen_bb = ev.by_piece[them, KING] | ev.by_piece[them, QUEEN]
    weak_bb = attacked_bb & ~ev.twice[them] & (~defended_bb | by_king_or_queen_bb)
    safe_bb = ~pos.color_bb[side] & (~defended_bb | (weak_bb & ev.twice[side]))
    straight_bb = rook_attacks(tb, king, occupied_bb)
    diagonal_bb = bishop_attacks(tb, king, occupied_bb)
    reach_bb = ~pos.color_bb[side]
    units = ev.units[side] + entry.units[them]
    units += _checks(tb, KNIGHT, tb.knight[king] & ev.by_piece[side, KNIGHT] & reach_bb, safe_bb)
    units += _checks(tb, BISHOP, diagonal_bb & ev.by_piece[side, BISHOP] & reach_bb, safe_bb)
    units += _checks(tb, ROOK, straight_bb & ev.by_piece[side, ROOK] & reach_bb, safe_bb)
    queen_bb = (straight_bb | diagonal_bb) & ev.by_piece[side, QUEEN] & ~ev.by_piece[them, QUEEN] & reach_bb
    units += _checks(tb, QUEEN, queen_bb, safe_bb)
    units += popcount(ev.ring[them] & weak_bb) * tb.units[DANGER_WEAK]
    camp_bb = _flank(king) & (_RANKS_4_TO_8_BB if side == 0 else _RANKS_1_TO_5_BB)
    units += popcount(camp_bb & attacked_bb) * tb.units[DANGER_FLANK]
    units += popcount(camp_bb & defended_bb) * tb.units[DANGER_FLANK_DEFENCE]
    if ev.by_piece[them, KNIGHT] & ev.ring[them] != U0:
        units += tb.units[DANGER_KNIGHT_DEFENCE]
    return units


@kernel(i64(Tables, i64))
def danger_term(tb, units):
    """The pair for so many units."""
    return tb.terms[DANGER + min(max(units, 0) // DANGER_STEP, DANGER_STEPS - 1)]
