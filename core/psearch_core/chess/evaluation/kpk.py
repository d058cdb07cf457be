"""King and pawn against king: which positions are won, worked out once per program in about a millisecond.

White has the pawn, on files a to d; everything else is mirrored into that. A bit of `tb.kpk[slot]` is the square of
Black's king; a slot is the side to move, the square of the pawn and that of White's king.
"""

from __future__ import annotations

import numpy as np

from psearch_core.chess.board.bits import bit
from psearch_core.constants import NOT_FILE_A_BB, NOT_FILE_H_BB, U0, U1
from psearch_core.records import KPK_WORDS
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Tables, boolean, i64, u64, void


@kernel(i64(i64, i64, i64))
def _slot(side, pawn, king):
    return (side * 24 + ((pawn >> 3) - 1) * 4 + (pawn & 7)) * 64 + king


@kernel(u64(u64))
def _beside(squares_bb):
    """Squares a king's move away from any of these."""
    row_bb = ((squares_bb & NOT_FILE_H_BB) << U1) | ((squares_bb & NOT_FILE_A_BB) >> U1)
    wide_bb = squares_bb | row_bb
    return row_bb | (wide_bb << np.uint64(8)) | (wide_bb >> np.uint64(8))


@kernel(u64(Tables, i64, i64))
def _won_black_to_move(tb, pawn, king):
    """All moves of Black's king lead to won positions, and there is one, or it is mate."""
    pawn_bb = bit(pawn)
    near_bb = tb.king[king] | bit(king)
    hit_bb = tb.pawn[0, pawn]
    flights_bb = ~near_bb & ~hit_bb  # the pawn's own square among them: taking it draws
    escapes_bb = flights_bb & ~tb.kpk[_slot(0, pawn, king)]
    can_move_bb = _beside(flights_bb)
    return ~(near_bb | pawn_bb) & ~_beside(escapes_bb) & (can_move_bb | hit_bb)


@kernel(u64(Tables, i64, i64))
def _won_white_to_move(tb, pawn, king):
    """Some move of king or pawn leads to a won position, or the pawn promotes and is not taken."""
    won_bb = U0
    steps_bb = tb.king[king] & ~bit(pawn)
    for square in range(64):
        if steps_bb & bit(square) != U0:
            won_bb |= tb.kpk[_slot(1, pawn, square)]
    ahead = pawn + 8
    if ahead != king:
        if ahead >= 56:
            guarded = tb.king[king] & bit(ahead) != U0
            won_bb |= ~bit(ahead) if guarded else ~(bit(ahead) | tb.king[ahead])
        else:
            won_bb |= tb.kpk[_slot(1, ahead, king)] & ~bit(ahead)
            if ahead < 24 and ahead + 8 != king:
                won_bb |= tb.kpk[_slot(1, ahead + 8, king)] & ~bit(ahead)
    return won_bb & ~(tb.king[king] | bit(king) | bit(pawn) | tb.pawn[0, pawn])


@kernel(void(Tables))
def fill_kpk(tb):
    """Begin with nothing won, and add what is won until nothing changes."""
    for slot in range(KPK_WORDS):
        tb.kpk[slot] = U0
    changed = True
    while changed:
        changed = False
        for pawn in range(8, 56):
            if pawn & 7 > 3:
                continue
            for king in range(64):
                if king == pawn:
                    continue
                white_bb = _won_white_to_move(tb, pawn, king)
                if white_bb != tb.kpk[_slot(0, pawn, king)]:
                    tb.kpk[_slot(0, pawn, king)] = white_bb
                    changed = True
                black_bb = _won_black_to_move(tb, pawn, king)
                if black_bb != tb.kpk[_slot(1, pawn, king)]:
                    tb.kpk[_slot(1, pawn, king)] = black_bb
                    changed = True


@kernel(boolean(Tables, i64, i64, i64, i64))
def kpk_is_won(tb, strong_to_move, pawn, king, enemy_king):
    """Whether the side with the pawn wins; squares as if it were White."""
    turn = 7 if pawn & 7 > 3 else 0
    return tb.kpk[_slot(0 if strong_to_move else 1, pawn ^ turn, king ^ turn)] & bit(enemy_king ^ turn) != U0
