"""Terms that depend on pawns and kings only: pawn structure and king shelter, kept in a pawn hash.

Each side is evaluated as if it were White; one instruction flips Black's bitboards.
"""

import numpy as np

from psearch_core.chess.board.attacks import bit, distance, pawn_attacks_east, pawn_attacks_west
from psearch_core.constants import ALL_BB, FILE_A_BB, KING, NOT_FILE_A_BB, NOT_FILE_H_BB, PAWN, RANK_1_BB, U0, U1
from psearch_core.records import PAWN_ENTRIES
from psearch_core.terms import (
    BACKWARD,
    CANDIDATE,
    DANGER_OPEN_FILE,
    DOUBLED,
    ISOLATED,
    PASSED,
    PASSED_ENEMY_KING,
    PASSED_OWN_KING,
    PHALANX,
    SHELTER,
    STORM,
    SUPPORTED,
)
from psearch_core.toolchain.intrinsics import byte_swap, lowest_bit, popcount
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Evaluation, PawnEntry, Position, Tables, i64, u64, void

_SLOT_MASK = np.uint64(PAWN_ENTRIES - 1)
_FAR = 5
"""Greatest distance of a king from a passed pawn that is counted, in king steps."""


@kernel(u64(u64))
def fill_up(squares_bb):
    """Return these squares and all squares in front of them (White's view)."""
    filled_bb = squares_bb | (squares_bb << np.uint64(8))
    filled_bb |= filled_bb << np.uint64(16)
    return filled_bb | (filled_bb << np.uint64(32))


@kernel(u64(u64))
def fill_down(squares_bb):
    """Return these squares and all squares behind them (White's view)."""
    filled_bb = squares_bb | (squares_bb >> np.uint64(8))
    filled_bb |= filled_bb >> np.uint64(16)
    return filled_bb | (filled_bb >> np.uint64(32))


@kernel(u64(u64))
def _attack_span(own_bb):
    """Return the squares that pawns attack, or may attack after advancing."""
    filled_bb = fill_up(own_bb)
    return pawn_attacks_west(filled_bb, 0) | pawn_attacks_east(filled_bb, 0)


@kernel(u64(u64, u64))
def _passed(own_bb, enemy_bb):
    """Return the passed pawns: the foremost of each file that no enemy pawn can stop or capture."""
    guarded_bb = fill_down(enemy_bb) >> np.uint64(8)
    guarded_bb |= ((guarded_bb & NOT_FILE_H_BB) << U1) | ((guarded_bb & NOT_FILE_A_BB) >> U1)
    return own_bb & ~guarded_bb & ~(fill_down(own_bb) >> np.uint64(8))


@kernel(i64(Tables, i64, i64, i64))
def _passed_terms(tb, square, king, enemy_king):
    rank = square >> 3
    sum = tb.terms[PASSED + rank - 1]
    if rank >= 3:
        sum += min(distance(king, square + 8), _FAR) * tb.terms[PASSED_OWN_KING + rank - 3]
        sum += min(distance(enemy_king, square + 8), _FAR) * tb.terms[PASSED_ENEMY_KING + rank - 3]
    return sum


@kernel(i64(Tables, u64, u64, i64, i64, u64))
def _pawn_terms(tb, own_bb, enemy_bb, king, enemy_king, passed_bb):
    sum = 0
    pawns_bb = own_bb
    while pawns_bb != U0:
        square = lowest_bit(pawns_bb)
        pawns_bb &= pawns_bb - U1
        rank = square >> 3
        ahead_bb = tb.passed[0, square]
        front_bb = tb.front[0, square]
        beside_bb = tb.neighbours[square & 7] & own_bb
        opposed = 1 if front_bb & enemy_bb != U0 else 0
        if front_bb & own_bb != U0:
            sum += tb.terms[DOUBLED]
        if beside_bb == U0:
            sum += tb.terms[ISOLATED + opposed]
        elif beside_bb & ~ahead_bb == U0 and tb.pawn[0, square + 8] & enemy_bb != U0:
            sum += tb.terms[BACKWARD + opposed]
        if beside_bb & (RANK_1_BB << np.uint64(square & 56)) != U0:
            sum += tb.terms[PHALANX + rank - 1]
        if tb.pawn[1, square] & own_bb != U0:
            sum += tb.terms[SUPPORTED + rank - 1]
        if passed_bb & bit(square) != U0:
            sum += _passed_terms(tb, square, king, enemy_king)
        elif opposed == 0 and popcount(beside_bb & ~ahead_bb) >= popcount(ahead_bb & enemy_bb):
            sum += tb.terms[CANDIDATE + rank - 1]
    return sum


@kernel(i64(Tables, u64, u64, i64))
def _shelter(tb, own_bb, enemy_bb, king):
    """Return the terms for own and enemy pawns, not behind the king, on the three files at a king."""
    ahead_bb = ALL_BB << np.uint64(king & 56)
    centre = min(max(king & 7, 1), 6)
    sum = 0
    for file in range(centre - 1, centre + 2):
        file_bb = (FILE_A_BB << np.uint64(file)) & ahead_bb
        own_file_bb = file_bb & own_bb
        enemy_file_bb = file_bb & enemy_bb
        own_rank = lowest_bit(own_file_bb) >> 3 if own_file_bb != U0 else 0
        enemy_rank = lowest_bit(enemy_file_bb) >> 3 if enemy_file_bb != U0 else 0
        blocked = 1 if own_rank > 0 and enemy_rank == own_rank + 1 else 0
        sum += tb.terms[SHELTER + min(file, 7 - file) * 7 + own_rank]
        sum += tb.terms[STORM + blocked * 7 + enemy_rank]
    return sum


@kernel(i64(Tables, u64, i64))
def _open_files(tb, own_bb, king):
    """Return the units of danger for files at a king without an own pawn in front."""
    ahead_bb = ALL_BB << np.uint64(king & 56)
    centre = min(max(king & 7, 1), 6)
    files_bb = np.uint64(7) << np.uint64(centre - 1)
    closed_bb = fill_down(own_bb & ahead_bb) & RANK_1_BB
    return popcount(files_bb & ~closed_bb) * tb.units[DANGER_OPEN_FILE]


@kernel(void(Tables, PawnEntry, Position))
def fill_pawn_entry(tb, entry, pos):
    """Fill an entry of the pawn hash."""
    white_bb = pos.piece_bb[PAWN] & pos.color_bb[0]
    black_bb = pos.piece_bb[PAWN] & pos.color_bb[1]
    white_king = lowest_bit(pos.piece_bb[KING] & pos.color_bb[0])
    black_king = lowest_bit(pos.piece_bb[KING] & pos.color_bb[1])
    turned_white_bb = byte_swap(white_bb)
    turned_black_bb = byte_swap(black_bb)
    white_passed_bb = _passed(white_bb, black_bb)
    black_passed_bb = _passed(turned_black_bb, turned_white_bb)
    entry.key = pos.pawn_key
    entry.passed = white_passed_bb | byte_swap(black_passed_bb)
    entry.spans[0] = _attack_span(white_bb)
    entry.spans[1] = byte_swap(_attack_span(turned_black_bb))
    entry.score = (
        _pawn_terms(tb, white_bb, black_bb, white_king, black_king, white_passed_bb)
        - _pawn_terms(tb, turned_black_bb, turned_white_bb, black_king ^ 56, white_king ^ 56, black_passed_bb)
        + _shelter(tb, white_bb, black_bb, white_king)
        - _shelter(tb, turned_black_bb, turned_white_bb, black_king ^ 56)
    )
    entry.units[0] = _open_files(tb, white_bb, white_king)
    entry.units[1] = _open_files(tb, turned_black_bb, black_king ^ 56)


@kernel(i64(Tables, Evaluation, Position))
def pawn_slot(tb, ev, pos):
    """Return the index of the position's entry in the pawn hash; fill it if it is missing."""
    slot = np.int64(pos.pawn_key & _SLOT_MASK)
    if ev.pawns[slot].key != pos.pawn_key:
        fill_pawn_entry(tb, ev.pawns[slot], pos)
    return slot
