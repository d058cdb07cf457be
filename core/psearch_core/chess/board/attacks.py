"""Squares, bitboards, moves and attack tables.

Attacks of sliders are looked up by pext if the processor has it, else by magic multiplication (`magics`). The choice is
made when the kernels are compiled.
"""

import numpy as np

from psearch_core.chess.board.magics import BISHOP_MAGICS, ROOK_MAGICS
from psearch_core.constants import (
    BISHOP,
    BLACK,
    FILE_A_BB,
    KING,
    KNIGHT,
    NOT_FILE_A_BB,
    NOT_FILE_H_BB,
    PAWN,
    QUEEN,
    ROOK,
    U0,
    U1,
    WHITE,
)
from psearch_core.toolchain.intrinsics import HAS_PEXT, lowest_bit, pext
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Position, Tables, boolean, i64, u64, void


@kernel(u64(i64))
def bit(square):
    return U1 << np.uint64(square)


@kernel(i64(i64, i64, i64))
def make_code(origin, target, kind):
    return origin | (target << 6) | (kind << 12)


@kernel(i64(i64))
def move_from(move):
    return move & 63


@kernel(i64(i64))
def move_to(move):
    return (move >> 6) & 63


@kernel(i64(i64))
def move_kind(move):
    return (move >> 12) & 15


@kernel(u64(u64, i64))
def forward(squares_bb, side):
    """Return squares shifted by one rank towards the opponent."""
    return squares_bb << np.uint64(8) if side == 0 else squares_bb >> np.uint64(8)


@kernel(u64(u64, i64))
def pawn_attacks_west(pawns_bb, side):
    """Return the squares that pawns of a side attack towards the a-file."""
    west = pawns_bb & NOT_FILE_A_BB
    return west << np.uint64(7) if side == 0 else west >> np.uint64(9)


@kernel(u64(u64, i64))
def pawn_attacks_east(pawns_bb, side):
    """Return the squares that pawns of a side attack towards the h-file."""
    east = pawns_bb & NOT_FILE_H_BB
    return east << np.uint64(9) if side == 0 else east >> np.uint64(7)


@kernel(i64(i64, i64))
def distance(a, b):
    """Return the number of king steps between two squares."""
    return max(abs((a & 7) - (b & 7)), abs((a >> 3) - (b >> 3)))


_ROOK_MAGICS = np.array(ROOK_MAGICS, dtype=np.uint64)
_BISHOP_MAGICS = np.array(BISHOP_MAGICS, dtype=np.uint64)

if HAS_PEXT:

    @kernel(i64(u64, u64, i64, i64))
    def _slot(occupied_bb, mask_bb, square, is_rook):
        return pext(occupied_bb, mask_bb)

else:
    from psearch_core.toolchain.intrinsics import popcount

    @kernel(i64(u64, u64, i64, i64))
    def _slot(occupied_bb, mask_bb, square, is_rook):
        magic = _ROOK_MAGICS[square] if is_rook else _BISHOP_MAGICS[square]
        shift = np.uint64(64 - popcount(mask_bb))
        return np.int64(((occupied_bb & mask_bb) * magic) >> shift)


@kernel(u64(Tables, i64, u64))
def rook_attacks(tb, square, occupied_bb):
    slot = _slot(occupied_bb, tb.rook_mask[square], square, 1)
    return tb.slider[tb.rook_offset[square] + slot]


@kernel(u64(Tables, i64, u64))
def bishop_attacks(tb, square, occupied_bb):
    slot = _slot(occupied_bb, tb.bishop_mask[square], square, 0)
    return tb.slider[tb.bishop_offset[square] + slot]


@kernel(u64(Tables, i64, i64, u64))
def piece_attacks(tb, piece, square, occupied_bb):
    """Return the attacks of a knight, bishop, rook, queen or king."""
    if piece == KNIGHT:
        return tb.knight[square]
    if piece == BISHOP:
        return bishop_attacks(tb, square, occupied_bb)
    if piece == ROOK:
        return rook_attacks(tb, square, occupied_bb)
    if piece == QUEEN:
        return rook_attacks(tb, square, occupied_bb) | bishop_attacks(tb, square, occupied_bb)
    return tb.king[square]


@kernel(u64(Tables, Position, i64))
def attacks_of(tb, pos, side):
    """Return the squares that a side attacks."""
    own_bb = pos.color_bb[side]
    occupied_bb = own_bb | pos.color_bb[1 - side]
    pawns_bb = pos.piece_bb[PAWN] & own_bb
    attacks_bb = pawn_attacks_west(pawns_bb, side) | pawn_attacks_east(pawns_bb, side)
    # one loop for each type of piece: its branches are predictable
    left_bb = pos.piece_bb[KNIGHT] & own_bb
    while left_bb != U0:
        attacks_bb |= tb.knight[lowest_bit(left_bb)]
        left_bb &= left_bb - U1
    left_bb = (pos.piece_bb[BISHOP] | pos.piece_bb[QUEEN]) & own_bb
    while left_bb != U0:
        attacks_bb |= bishop_attacks(tb, lowest_bit(left_bb), occupied_bb)
        left_bb &= left_bb - U1
    left_bb = (pos.piece_bb[ROOK] | pos.piece_bb[QUEEN]) & own_bb
    while left_bb != U0:
        attacks_bb |= rook_attacks(tb, lowest_bit(left_bb), occupied_bb)
        left_bb &= left_bb - U1
    return attacks_bb | tb.king[lowest_bit(pos.piece_bb[KING] & own_bb)]


@kernel(u64(Tables, Position, i64, u64))
def attackers_to(tb, pos, square, occupied_bb):
    """Return the pieces of both colours that attack a square on a board occupied like this."""
    queens_bb = pos.piece_bb[QUEEN]
    return (
        (tb.pawn[BLACK, square] & pos.piece_bb[PAWN] & pos.color_bb[WHITE])
        | (tb.pawn[WHITE, square] & pos.piece_bb[PAWN] & pos.color_bb[BLACK])
        | (tb.knight[square] & pos.piece_bb[KNIGHT])
        | (tb.king[square] & pos.piece_bb[KING])
        | (rook_attacks(tb, square, occupied_bb) & (pos.piece_bb[ROOK] | queens_bb))
        | (bishop_attacks(tb, square, occupied_bb) & (pos.piece_bb[BISHOP] | queens_bb))
    )


@kernel(boolean(Tables, Position, i64, i64, u64))
def is_attacked(tb, pos, square, by_side, occupied_bb):
    """Tell whether a side attacks a square on a board occupied like this."""
    them_bb = pos.color_bb[by_side] & occupied_bb
    if tb.pawn[1 - by_side, square] & pos.piece_bb[PAWN] & them_bb != U0:
        return True
    if tb.knight[square] & pos.piece_bb[KNIGHT] & them_bb != U0:
        return True
    if tb.king[square] & pos.piece_bb[KING] & them_bb != U0:
        return True
    queens_bb = pos.piece_bb[QUEEN]
    if bishop_attacks(tb, square, occupied_bb) & (pos.piece_bb[BISHOP] | queens_bb) & them_bb != U0:
        return True
    return rook_attacks(tb, square, occupied_bb) & (pos.piece_bb[ROOK] | queens_bb) & them_bb != U0


# -- filling the tables, once for each program -----------------------------------------------------------------------


@kernel(u64(i64, u64, i64, i64, i64))
def _ray(square, occupied_bb, file_step, rank_step, stop_before_edge):
    """Return the squares in one direction from a square, up to and including the first occupied one."""
    ray_bb = U0
    file = (square & 7) + file_step
    rank = (square >> 3) + rank_step
    while 0 <= file < 8 and 0 <= rank < 8:
        if stop_before_edge:
            next_file = file + file_step
            next_rank = rank + rank_step
            if next_file < 0 or next_file > 7 or next_rank < 0 or next_rank > 7:
                break
        target_bb = U1 << np.uint64(rank * 8 + file)
        ray_bb |= target_bb
        if occupied_bb & target_bb != U0:
            break
        file += file_step
        rank += rank_step
    return ray_bb


@kernel(u64(i64, u64, i64, i64))
def slow_slider(square, occupied_bb, is_rook, stop_before_edge):
    """Return rook or bishop attacks by walking the rays; with `stop_before_edge` only squares that can block."""
    if is_rook:
        return (
            _ray(square, occupied_bb, 1, 0, stop_before_edge)
            | _ray(square, occupied_bb, -1, 0, stop_before_edge)
            | _ray(square, occupied_bb, 0, 1, stop_before_edge)
            | _ray(square, occupied_bb, 0, -1, stop_before_edge)
        )
    return (
        _ray(square, occupied_bb, 1, 1, stop_before_edge)
        | _ray(square, occupied_bb, -1, 1, stop_before_edge)
        | _ray(square, occupied_bb, 1, -1, stop_before_edge)
        | _ray(square, occupied_bb, -1, -1, stop_before_edge)
    )


@kernel(i64(Tables, i64, i64, i64))
def _fill_slider(tb, square, is_rook, offset):
    """Fill one square's part of the slider table; return the offset of the next part."""
    mask_bb = slow_slider(square, U0, is_rook, 1)
    if is_rook:
        tb.rook_mask[square] = mask_bb
        tb.rook_offset[square] = offset
    else:
        tb.bishop_mask[square] = mask_bb
        tb.bishop_offset[square] = offset
    size = 0
    subset_bb = U0
    while True:  # the carry-rippler walks all subsets of the mask
        tb.slider[offset + _slot(subset_bb, mask_bb, square, is_rook)] = slow_slider(square, subset_bb, is_rook, 0)
        size += 1
        subset_bb = (subset_bb - mask_bb) & mask_bb
        if subset_bb == U0:
            break
    return offset + size


@kernel(u64(i64, i64, i64))
def _step_bb(square, file_step, rank_step):
    file = (square & 7) + file_step
    rank = (square >> 3) + rank_step
    if 0 <= file < 8 and 0 <= rank < 8:
        return U1 << np.uint64(rank * 8 + file)
    return U0


@kernel(void(Tables, i64))
def _fill_leapers(tb, square):
    knight_bb = U0
    king_bb = U0
    for a in range(-2, 3):
        for b in range(-2, 3):
            if abs(a) + abs(b) == 3:
                knight_bb |= _step_bb(square, a, b)
            if max(abs(a), abs(b)) == 1:
                king_bb |= _step_bb(square, a, b)
    tb.knight[square] = knight_bb
    tb.king[square] = king_bb
    tb.pawn[WHITE, square] = _step_bb(square, -1, 1) | _step_bb(square, 1, 1)
    tb.pawn[BLACK, square] = _step_bb(square, -1, -1) | _step_bb(square, 1, -1)


@kernel(void(Tables, i64))
def _fill_lines(tb, a):
    a_bb = U1 << np.uint64(a)
    for b in range(64):
        b_bb = U1 << np.uint64(b)
        tb.line[a * 64 + b] = U0
        tb.between[a * 64 + b] = U0
        for is_rook in range(2):
            if a != b and slow_slider(a, U0, is_rook, 0) & b_bb != U0:
                whole_bb = slow_slider(a, U0, is_rook, 0) & slow_slider(b, U0, is_rook, 0)
                tb.line[a * 64 + b] = whole_bb | a_bb | b_bb
                tb.between[a * 64 + b] = slow_slider(a, b_bb, is_rook, 0) & slow_slider(b, a_bb, is_rook, 0)


@kernel(void(Tables, i64))
def _fill_pawn_masks(tb, square):
    file = square & 7
    neighbours_bb = U0
    if file > 0:
        neighbours_bb |= FILE_A_BB << np.uint64(file - 1)
    if file < 7:
        neighbours_bb |= FILE_A_BB << np.uint64(file + 1)
    tb.neighbours[file] = neighbours_bb
    front_bb = _ray(square, U0, 0, 1, 0)
    back_bb = _ray(square, U0, 0, -1, 0)
    higher_bb = U0
    lower_bb = U0
    for other in range(64):
        if other >> 3 > square >> 3:
            higher_bb |= U1 << np.uint64(other)
        if other >> 3 < square >> 3:
            lower_bb |= U1 << np.uint64(other)
    tb.front[WHITE, square] = front_bb
    tb.front[BLACK, square] = back_bb
    tb.passed[WHITE, square] = front_bb | (neighbours_bb & higher_bb)
    tb.passed[BLACK, square] = back_bb | (neighbours_bb & lower_bb)


@kernel(void(Tables))
def fill_attack_tables(tb):
    offset = 0
    for square in range(64):
        offset = _fill_slider(tb, square, 1, offset)
    for square in range(64):
        offset = _fill_slider(tb, square, 0, offset)
    for square in range(64):
        _fill_leapers(tb, square)
        _fill_lines(tb, square)
        _fill_pawn_masks(tb, square)
