"""Terms of pieces: mobility, outposts, rooks, and danger to the enemy king; fills the attack maps.

The attacks of each piece are looked up once and go into the maps of its side (`evaluation_dtype`), which king safety
and threats use afterwards.
"""

import numpy as np

from psearch_core.chess.board.attacks import (
    bishop_attacks,
    bit,
    distance,
    forward,
    pawn_attacks_east,
    pawn_attacks_west,
    rook_attacks,
)
from psearch_core.chess.board.position import king_square, occupied
from psearch_core.constants import (
    BISHOP,
    FILE_A_BB,
    KING,
    KNIGHT,
    LIGHT_BB,
    PAWN,
    QUEEN,
    RANK_1_BB,
    RANK_8_BB,
    ROOK,
    U0,
    U1,
)
from psearch_core.terms import (
    BISHOP_PAIR,
    BISHOP_PAWNS,
    DANGER_ATTACKER,
    DANGER_BASE,
    DANGER_NO_QUEEN,
    DANGER_PAWN_RING,
    DANGER_RING,
    KING_DISTANCE,
    MINOR_BEHIND_PAWN,
    MOBILITY_BISHOP,
    MOBILITY_KNIGHT,
    MOBILITY_QUEEN,
    MOBILITY_ROOK,
    OUTPOST_BISHOP,
    OUTPOST_KNIGHT,
    OUTPOST_REACHABLE,
    ROOK_OPEN,
    ROOK_SEMI_OPEN,
    ROOK_SEVENTH,
    ROOK_TRAPPED,
)
from psearch_core.toolchain.intrinsics import lowest_bit, popcount
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Evaluation, Position, Tables, i64, u64, void

_RANKS_2_3_BB = np.uint64(0x0000000000FFFF00)
_RANKS_6_7_BB = np.uint64(0x00FFFF0000000000)
_RANK_2_BB = np.uint64(0x000000000000FF00)
_RANK_7_BB = np.uint64(0x00FF000000000000)
_OUTPOST_RANKS_WHITE_BB = np.uint64(0x0000FFFFFF000000)
_OUTPOST_RANKS_BLACK_BB = np.uint64(0x000000FFFFFF0000)


@kernel(void(Tables, Evaluation, Position, i64))
def begin_attacks(tb, ev, pos, side):
    """Begin the maps of a side with king and pawns; set its king's ring and mobility area."""
    king = king_square(pos, side)
    pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[side]
    enemy_pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[1 - side]
    west_bb = pawn_attacks_west(pawns_bb, side)
    east_bb = pawn_attacks_east(pawns_bb, side)
    king_bb = tb.king[king]
    ev.by_piece[side, PAWN] = west_bb | east_bb
    ev.by_piece[side, KING] = king_bb
    ev.attacked[side] = west_bb | east_bb | king_bb
    ev.twice[side] = (west_bb & east_bb) | (king_bb & (west_bb | east_bb))
    enemy_west_bb = pawn_attacks_west(enemy_pawns_bb, 1 - side)
    enemy_east_bb = pawn_attacks_east(enemy_pawns_bb, 1 - side)
    low_bb = _RANKS_2_3_BB if side == 0 else _RANKS_6_7_BB
    blocked_bb = pawns_bb & forward(occupied(pos), 1 - side)
    ev.mobility_area[side] = ~(enemy_west_bb | enemy_east_bb | (pawns_bb & low_bb) | blocked_bb | bit(king))
    # three by three squares, all on the board
    centre = min(max(king & 7, 1), 6) + 8 * min(max(king >> 3, 1), 6)
    ev.ring[side] = tb.king[centre] | bit(centre)


@kernel(void(Evaluation, i64, i64, u64, u64))
def _add_maps(ev, side, piece, attacks_bb, twice_bb):
    """Add to the maps the squares that pieces of a type attack, and those that two of them attack."""
    ev.twice[side] |= twice_bb | (ev.attacked[side] & attacks_bb)
    ev.attacked[side] |= attacks_bb
    ev.by_piece[side, piece] = attacks_bb


@kernel(i64(Tables, Evaluation, i64, i64, u64, u64))
def _danger_of(tb, ev, side, piece, attacks_bb, enemy_king_bb):
    """Return the units of danger of a piece. enemy_king_bb: squares beside the enemy king."""
    units = popcount(attacks_bb & enemy_king_bb) * tb.units[DANGER_RING]
    return units + (tb.units[DANGER_ATTACKER + piece - KNIGHT] if attacks_bb & ev.ring[1 - side] != U0 else 0)


@kernel(i64(Tables, Evaluation, Position, i64, u64, u64))
def _knights(tb, ev, pos, side, outposts_bb, enemy_king_bb):
    own_bb = pos.color_bb[side]
    king = king_square(pos, side)
    area_bb = ev.mobility_area[side]
    supported_bb = ev.by_piece[side, PAWN]
    behind_bb = forward(pos.piece_bb[PAWN], 1 - side)
    all_bb = U0
    twice_bb = U0
    units = 0
    sum = 0
    pieces_bb = pos.piece_bb[KNIGHT] & own_bb
    while pieces_bb != U0:
        square = lowest_bit(pieces_bb)
        pieces_bb &= pieces_bb - U1
        square_bb = bit(square)
        attacks_bb = tb.knight[square]
        twice_bb |= all_bb & attacks_bb
        all_bb |= attacks_bb
        units += _danger_of(tb, ev, side, KNIGHT, attacks_bb, enemy_king_bb)
        sum += tb.terms[MOBILITY_KNIGHT + popcount(attacks_bb & area_bb)]
        sum += distance(square, king) * tb.terms[KING_DISTANCE]
        if square_bb & outposts_bb != U0:
            sum += tb.terms[OUTPOST_KNIGHT + (1 if square_bb & supported_bb != U0 else 0)]
        elif attacks_bb & outposts_bb & supported_bb & ~own_bb != U0:
            sum += tb.terms[OUTPOST_REACHABLE]
        if square_bb & behind_bb != U0:
            sum += tb.terms[MINOR_BEHIND_PAWN]
    _add_maps(ev, side, KNIGHT, all_bb, twice_bb)
    ev.units[side] += units
    return sum


@kernel(i64(Tables, Evaluation, Position, i64, u64, u64))
def _bishops(tb, ev, pos, side, outposts_bb, enemy_king_bb):
    own_bb = pos.color_bb[side]
    king = king_square(pos, side)
    area_bb = ev.mobility_area[side]
    supported_bb = ev.by_piece[side, PAWN]
    occupied_bb = occupied(pos)
    through_bb = occupied_bb ^ pos.piece_bb[QUEEN]
    pawns_bb = pos.piece_bb[PAWN] & own_bb
    blocked_bb = pawns_bb & forward(occupied_bb, 1 - side)
    behind_bb = forward(pos.piece_bb[PAWN], 1 - side)
    all_bb = U0
    twice_bb = U0
    units = 0
    sum = 0
    pieces_bb = pos.piece_bb[BISHOP] & own_bb
    if popcount(pieces_bb) >= 2:
        sum += tb.terms[BISHOP_PAIR]
    while pieces_bb != U0:
        square = lowest_bit(pieces_bb)
        pieces_bb &= pieces_bb - U1
        square_bb = bit(square)
        attacks_bb = bishop_attacks(tb, square, through_bb)
        twice_bb |= all_bb & attacks_bb
        all_bb |= attacks_bb
        units += _danger_of(tb, ev, side, BISHOP, attacks_bb, enemy_king_bb)
        sum += tb.terms[MOBILITY_BISHOP + popcount(attacks_bb & area_bb)]
        sum += distance(square, king) * tb.terms[KING_DISTANCE + 1]
        colour_bb = LIGHT_BB if square_bb & LIGHT_BB != U0 else ~LIGHT_BB
        sum += popcount(colour_bb & pawns_bb & ~blocked_bb) * tb.terms[BISHOP_PAWNS]
        sum += popcount(colour_bb & blocked_bb) * tb.terms[BISHOP_PAWNS + 1]
        if square_bb & outposts_bb != U0:
            sum += tb.terms[OUTPOST_BISHOP + (1 if square_bb & supported_bb != U0 else 0)]
        if square_bb & behind_bb != U0:
            sum += tb.terms[MINOR_BEHIND_PAWN]
    _add_maps(ev, side, BISHOP, all_bb, twice_bb)
    ev.units[side] += units
    return sum


@kernel(i64(Tables, Evaluation, Position, i64, u64))
def _rooks(tb, ev, pos, side, enemy_king_bb):
    own_bb = pos.color_bb[side]
    king = king_square(pos, side)
    area_bb = ev.mobility_area[side]
    pawns_bb = pos.piece_bb[PAWN]
    through_bb = occupied(pos) ^ pos.piece_bb[QUEEN] ^ (pos.piece_bb[ROOK] & own_bb)
    seventh_bb = _RANK_7_BB if side == 0 else _RANK_2_BB
    eighth_bb = RANK_8_BB if side == 0 else RANK_1_BB
    targets_bb = pos.color_bb[1 - side] & ((pawns_bb & seventh_bb) | (pos.piece_bb[KING] & eighth_bb))
    all_bb = U0
    twice_bb = U0
    units = 0
    sum = 0
    pieces_bb = pos.piece_bb[ROOK] & own_bb
    while pieces_bb != U0:
        square = lowest_bit(pieces_bb)
        pieces_bb &= pieces_bb - U1
        attacks_bb = rook_attacks(tb, square, through_bb)
        twice_bb |= all_bb & attacks_bb
        all_bb |= attacks_bb
        units += _danger_of(tb, ev, side, ROOK, attacks_bb, enemy_king_bb)
        reach = popcount(attacks_bb & area_bb)
        sum += tb.terms[MOBILITY_ROOK + reach]
        file_bb = (FILE_A_BB << np.uint64(square & 7)) & pawns_bb
        if file_bb == U0:
            sum += tb.terms[ROOK_OPEN]
        elif file_bb & own_bb == U0:
            sum += tb.terms[ROOK_SEMI_OPEN]
        elif reach <= 3 and (king & 7 >= 4) == (square & 7 > king & 7) and (king ^ square) & 56 == 0:
            sum += tb.terms[ROOK_TRAPPED]
        if bit(square) & seventh_bb != U0 and targets_bb != U0:
            sum += tb.terms[ROOK_SEVENTH]
    _add_maps(ev, side, ROOK, all_bb, twice_bb)
    ev.units[side] += units
    return sum


@kernel(i64(Tables, Evaluation, Position, i64, u64))
def _queens(tb, ev, pos, side, enemy_king_bb):
    area_bb = ev.mobility_area[side]
    occupied_bb = occupied(pos)
    all_bb = U0
    twice_bb = U0
    units = 0
    sum = 0
    pieces_bb = pos.piece_bb[QUEEN] & pos.color_bb[side]
    if pieces_bb == U0:
        units += tb.units[DANGER_NO_QUEEN]
    while pieces_bb != U0:
        square = lowest_bit(pieces_bb)
        pieces_bb &= pieces_bb - U1
        diagonal_bb = bishop_attacks(tb, square, occupied_bb)
        straight_bb = rook_attacks(tb, square, occupied_bb)
        ev.queen_diagonal[side] = diagonal_bb
        ev.queen_straight[side] = straight_bb
        attacks_bb = diagonal_bb | straight_bb
        twice_bb |= all_bb & attacks_bb
        all_bb |= attacks_bb
        units += _danger_of(tb, ev, side, QUEEN, attacks_bb, enemy_king_bb)
        sum += tb.terms[MOBILITY_QUEEN + popcount(attacks_bb & area_bb)]
    _add_maps(ev, side, QUEEN, all_bb, twice_bb)
    ev.units[side] += units
    return sum


@kernel(i64(Tables, Evaluation, Position, i64, u64))
def piece_terms(tb, ev, pos, side, enemy_span_bb):
    """Return the terms of a side's pieces, and fill its maps and units. `begin_attacks` must be done for both sides.

    enemy_span_bb: squares that enemy pawns attack, or may attack after advancing.
    """
    ranks_bb = _OUTPOST_RANKS_WHITE_BB if side == 0 else _OUTPOST_RANKS_BLACK_BB
    outposts_bb = ranks_bb & ~enemy_span_bb
    enemy_king_bb = ev.by_piece[1 - side, KING]
    ev.units[side] = tb.units[DANGER_BASE] + (
        popcount(ev.by_piece[side, PAWN] & ev.ring[1 - side]) * tb.units[DANGER_PAWN_RING]
    )
    sum = _knights(tb, ev, pos, side, outposts_bb, enemy_king_bb)
    sum += _bishops(tb, ev, pos, side, outposts_bb, enemy_king_bb)
    sum += _rooks(tb, ev, pos, side, enemy_king_bb)
    return sum + _queens(tb, ev, pos, side, enemy_king_bb)
