"""Terms that need the attack maps of both sides: danger to a king, threats, passed pawns, space."""

import numpy as np

from psearch_core.chess.board.attacks import (
    bishop_attacks,
    distance,
    forward,
    pawn_attacks_east,
    pawn_attacks_west,
    rook_attacks,
)
from psearch_core.chess.board.position import has_pieces, king_square, occupied
from psearch_core.constants import BISHOP, KING, KNIGHT, PAWN, QUEEN, RANK_3_BB, RANK_6_BB, ROOK, U0, U1
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
    HANGING,
    PASSED_BLOCKED,
    PASSED_DEFENDED,
    PASSED_FREE,
    PASSED_ROOK_BEHIND,
    PASSED_SAFE,
    QUEEN_THREAT,
    RESTRICTED,
    SPACE,
    THREAT_BY_KING,
    THREAT_BY_MINOR,
    THREAT_BY_PAWN,
    THREAT_BY_PUSH,
    THREAT_BY_ROOK,
    UNSTOPPABLE,
)
from psearch_core.toolchain.intrinsics import lowest_bit, popcount
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Evaluation, PawnEntry, Position, Tables, boolean, i64, u64

_FILES_A_TO_D_BB = np.uint64(0x0F0F0F0F0F0F0F0F)
_FILES_C_TO_F_BB = np.uint64(0x3C3C3C3C3C3C3C3C)
_FILES_E_TO_H_BB = np.uint64(0xF0F0F0F0F0F0F0F0)
_RANKS_1_TO_5_BB = np.uint64(0x000000FFFFFFFFFF)
_RANKS_4_TO_8_BB = np.uint64(0xFFFFFFFFFF000000)


@kernel(u64(i64))
def _flank(king):
    """Return the half of the board in which a king is, or the middle files."""
    file = king & 7
    if file < 3:
        return _FILES_A_TO_D_BB
    return _FILES_C_TO_F_BB if file < 5 else _FILES_E_TO_H_BB


@kernel(i64(Tables, i64, u64, u64))
def _checks(tb, piece, squares_bb, safe_bb):
    """Return the units of danger for the squares from which pieces of a type can give check."""
    safe = min(popcount(squares_bb & safe_bb), 2)
    unsafe = popcount(squares_bb & ~safe_bb)
    return safe * tb.units[DANGER_CHECK + piece - KNIGHT] + unsafe * tb.units[DANGER_UNSAFE_CHECK]


@kernel(i64(Tables, Evaluation, PawnEntry, Position, i64))
def danger_units(tb, ev, entry, pos, side):
    """Return a side's units of danger to the enemy king. `piece_terms` must be done for both sides."""
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
    """Return the pair for this number of units of danger."""
    return tb.terms[DANGER + min(max(units, 0) // DANGER_STEP, DANGER_STEPS - 1)]


_CENTRE_WHITE_BB = np.uint64(0x000000003C3C3C00)
_CENTRE_BLACK_BB = np.uint64(0x003C3C3C00000000)


@kernel(i64(Tables, Position, i64, u64))
def _by_kind(tb, pos, first, targets_bb):
    """Return the weighted count of target pieces. first: index of the weight for pawns, the first of five."""
    sum = 0
    if targets_bb != U0:
        for piece in range(5):
            sum += popcount(targets_bb & pos.piece_bb[piece]) * tb.terms[first + piece]
    return sum


@kernel(i64(Tables, Evaluation, Position, i64, u64))
def _pawn_threats(tb, ev, pos, side, safe_bb):
    """Return the terms for attacks on pieces by safe pawns, and by pawns after a safe move."""
    them = 1 - side
    pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[side]
    targets_bb = pos.color_bb[them] & ~pos.piece_bb[PAWN]
    safe_pawns_bb = pawns_bb & safe_bb
    hit_bb = (pawn_attacks_west(safe_pawns_bb, side) | pawn_attacks_east(safe_pawns_bb, side)) & targets_bb
    sum = 0
    if hit_bb != U0:
        for piece in range(KNIGHT, KING):
            sum += popcount(hit_bb & pos.piece_bb[piece]) * tb.terms[THREAT_BY_PAWN + piece - KNIGHT]
    empty_bb = ~occupied(pos)
    pushes_bb = forward(pawns_bb, side) & empty_bb
    pushes_bb |= forward(pushes_bb & (RANK_3_BB if side == 0 else RANK_6_BB), side) & empty_bb
    pushes_bb &= safe_bb & ~ev.by_piece[them, PAWN]
    hit_bb = (pawn_attacks_west(pushes_bb, side) | pawn_attacks_east(pushes_bb, side)) & targets_bb
    return sum + popcount(hit_bb & ~ev.by_piece[side, PAWN]) * tb.terms[THREAT_BY_PUSH]


@kernel(i64(Tables, Evaluation, Position, i64, u64))
def _queen_threats(tb, ev, pos, side, safe_bb):
    """Return the term for safe squares from which a lesser piece would attack the enemy queen, if there is only one."""
    queen_bb = pos.piece_bb[QUEEN] & pos.color_bb[1 - side]
    if queen_bb == U0 or queen_bb & (queen_bb - U1) != U0:
        return 0
    square = lowest_bit(queen_bb)
    safe_bb &= ev.mobility_area[side]
    knight_bb = ev.by_piece[side, KNIGHT] & tb.knight[square] & safe_bb
    slider_bb = (ev.by_piece[side, BISHOP] & ev.queen_diagonal[1 - side]) | (
        ev.by_piece[side, ROOK] & ev.queen_straight[1 - side]
    )
    return (
        popcount(knight_bb) * tb.terms[QUEEN_THREAT]
        + popcount(slider_bb & safe_bb & ev.twice[side]) * tb.terms[QUEEN_THREAT + 1]
    )


@kernel(i64(Tables, Evaluation, Position, i64))
def threat_terms(tb, ev, pos, side):
    """Return the terms for a side's threats."""
    them = 1 - side
    attacked_bb = ev.attacked[side]
    defended_bb = ev.attacked[them]
    enemies_bb = pos.color_bb[them] & ~pos.piece_bb[KING]
    pieces_bb = enemies_bb & ~pos.piece_bb[PAWN]
    firm_bb = ev.by_piece[them, PAWN] | (ev.twice[them] & ~ev.twice[side])
    weak_bb = enemies_bb & ~firm_bb & attacked_bb
    by_minor_bb = ev.by_piece[side, KNIGHT] | ev.by_piece[side, BISHOP]
    sum = _by_kind(tb, pos, THREAT_BY_MINOR, (weak_bb | (pieces_bb & firm_bb)) & by_minor_bb)
    by_rook_bb = ev.by_piece[side, ROOK] & (weak_bb | (pieces_bb & pos.piece_bb[QUEEN]))
    sum += _by_kind(tb, pos, THREAT_BY_ROOK, by_rook_bb)
    if weak_bb & ev.by_piece[side, KING] != U0:
        sum += tb.terms[THREAT_BY_KING]
    sum += popcount(weak_bb & (~defended_bb | (pieces_bb & ev.twice[side]))) * tb.terms[HANGING]
    sum += popcount(attacked_bb & defended_bb & ~firm_bb) * tb.terms[RESTRICTED]
    sum += _pawn_threats(tb, ev, pos, side, ~defended_bb | attacked_bb)
    return sum + _queen_threats(tb, ev, pos, side, ~firm_bb & ~pos.color_bb[side])


@kernel(boolean(Position, i64, i64, i64))
def _outruns_king(pos, side, square, front_steps):
    """Tell whether a free pawn promotes before the king of an enemy without pieces can catch it."""
    goal = (square & 7) + (56 if side == 0 else 0)
    steps = min(front_steps, 5)  # a pawn on its first square moves two
    king_steps = distance(king_square(pos, 1 - side), goal)
    return king_steps - (0 if pos.side == side else 1) > steps


@kernel(i64(Tables, Evaluation, Position, i64, i64))
def _passed_pawn(tb, ev, pos, side, square):
    rank = square >> 3 if side == 0 else 7 - (square >> 3)
    if rank < 3:
        return 0
    them = 1 - side
    step = rank - 3
    occupied_bb = occupied(pos)
    front_bb = tb.front[side, square]
    rooks_bb = pos.piece_bb[ROOK] & tb.front[them, square]
    next_bb = forward(U1 << np.uint64(square), side)
    sum = 0
    if rooks_bb != U0:
        if rooks_bb & pos.color_bb[side] != U0:
            sum += tb.terms[PASSED_ROOK_BEHIND]
        if rooks_bb & pos.color_bb[them] != U0:
            sum += tb.terms[PASSED_ROOK_BEHIND + 1]
    if next_bb & occupied_bb != U0:
        return sum + tb.terms[PASSED_BLOCKED + step + (4 if next_bb & pos.color_bb[them] != U0 else 0)]
    if front_bb & (occupied_bb | ev.attacked[them]) == U0:
        sum += tb.terms[PASSED_FREE + step]
    elif next_bb & ev.attacked[them] == U0:
        sum += tb.terms[PASSED_SAFE + step]
    if next_bb & ev.attacked[side] != U0:
        sum += tb.terms[PASSED_DEFENDED + step]
    return sum


@kernel(i64(Tables, Evaluation, Position, i64, u64))
def passed_terms(tb, ev, pos, side, passed_bb):
    """Return the terms for a side's passed pawns that depend on more than pawns and kings."""
    pawns_bb = passed_bb & pos.color_bb[side]
    if pawns_bb == U0:
        return 0
    bare = not has_pieces(pos, 1 - side)
    occupied_bb = occupied(pos)
    outruns = False
    sum = 0
    while pawns_bb != U0:
        square = lowest_bit(pawns_bb)
        pawns_bb &= pawns_bb - U1
        sum += _passed_pawn(tb, ev, pos, side, square)
        front_bb = tb.front[side, square]
        if bare and front_bb & occupied_bb == U0 and _outruns_king(pos, side, square, popcount(front_bb)):
            outruns = True
    return sum + (tb.terms[UNSTOPPABLE] if outruns else 0)


@kernel(i64(Tables, Evaluation, Position, i64))
def space_terms(tb, ev, pos, side):
    """Return the terms for safe squares in the centre of the own half."""
    them = 1 - side
    pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[side]
    centre_bb = _CENTRE_WHITE_BB if side == 0 else _CENTRE_BLACK_BB
    safe_bb = centre_bb & ~pawns_bb & ~ev.by_piece[them, PAWN]
    behind_bb = forward(pawns_bb, them)
    behind_bb |= forward(behind_bb, them)
    behind_bb |= forward(behind_bb, them)
    kept_bb = safe_bb & behind_bb & ~ev.attacked[them]
    return popcount(safe_bb) * tb.terms[SPACE] + popcount(kept_bb) * tb.terms[SPACE + 1]
