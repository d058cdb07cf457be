"""Endings: values that are hard or impossible to win are scaled towards zero, and a bare king is driven to the edge.

Scaling brings a value nearer to zero and never changes its sign. Driving is part of the rest R of the evaluation and
bounded with it. King and pawn against king is looked up in a table of won positions, which each program computes in
about a millisecond. There White has the pawn, on files a to d; other positions are mirrored. A slot of `tb.kpk` is the
side to move, the square of the pawn and that of White's king; its bits are the squares of Black's king.
"""

import numpy as np

from psearch_core.chess.board.attacks import bit, distance, move_from, move_kind, move_to
from psearch_core.chess.board.position import king_square
from psearch_core.constants import (
    BISHOP,
    FILE_A_BB,
    KIND_EP,
    KING,
    KNIGHT,
    LIGHT_BB,
    NOT_FILE_A_BB,
    NOT_FILE_H_BB,
    PAWN,
    QUEEN,
    ROOK,
    U0,
    U1,
)
from psearch_core.records import KPK_WORDS
from psearch_core.toolchain.intrinsics import lowest_bit, popcount
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Position, Tables, boolean, i64, u64, void


@kernel(i64(i64, i64, i64))
def _slot(side, pawn, king):
    return (side * 24 + ((pawn >> 3) - 1) * 4 + (pawn & 7)) * 64 + king


@kernel(u64(u64))
def _beside(squares_bb):
    """Return the squares that are a king's move away from any of these."""
    row_bb = ((squares_bb & NOT_FILE_H_BB) << U1) | ((squares_bb & NOT_FILE_A_BB) >> U1)
    wide_bb = squares_bb | row_bb
    return row_bb | (wide_bb << np.uint64(8)) | (wide_bb >> np.uint64(8))


@kernel(u64(Tables, i64, i64))
def _won_black_to_move(tb, pawn, king):
    """Return the squares of Black's king, to move, at which all its moves lead to won positions or it is mated."""
    pawn_bb = bit(pawn)
    near_bb = tb.king[king] | bit(king)
    hit_bb = tb.pawn[0, pawn]
    flights_bb = ~near_bb & ~hit_bb  # includes the pawn's square: capturing it draws
    escapes_bb = flights_bb & ~tb.kpk[_slot(0, pawn, king)]
    can_move_bb = _beside(flights_bb)
    return ~(near_bb | pawn_bb) & ~_beside(escapes_bb) & (can_move_bb | hit_bb)


@kernel(u64(Tables, i64, i64))
def _won_white_to_move(tb, pawn, king):
    """Return the squares of Black's king at which a move of White leads to a won position or promotes safely."""
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
    """Fill the table: start without won positions, and add positions until nothing changes."""
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
    """Tell whether the side with the pawn wins. Squares are given as if it were White."""
    turn = 7 if pawn & 7 > 3 else 0
    return tb.kpk[_slot(0 if strong_to_move else 1, pawn ^ turn, king ^ turn)] & bit(enemy_king ^ turn) != U0


SCALE_FULL = 64
"""Scale of a value that is not reduced; 0 makes it a draw."""
SCALING_PHASE = 16
"""Greatest game phase at which values are scaled. With more on the board either side can play for a win."""

# Centipawns, against a bare king. Their sum stays below REST_BOUND.
DRIVE_NEAR = 30
"""Centipawns for each step of the king nearer to the bare king."""
DRIVE_EDGE = 40
"""Centipawns for each step of the bare king away from the four central squares, in each direction."""
DRIVE_CORNER = 70
"""Centipawns for each step of the bare king towards a corner of the bishop's colour, with bishop and knight."""
PAWN_WINS = 350
PAWN_WINS_STEP = 20
"""Centipawns for each rank of the pawn, added to `PAWN_WINS`, if king and pawn against king is won."""

_FILE_H_BB = np.uint64(0x8080808080808080)
_QUEEN_SIDE_BB = np.uint64(0x0F0F0F0F0F0F0F0F)


@kernel(i64(i64, i64))
def scaled(value, factor):
    """Return factor / 64 of a value, rounded towards zero."""
    return value * factor // SCALE_FULL if value >= 0 else -(-value * factor // SCALE_FULL)


@kernel(i64(Position, u64))
def _strength(pos, side_bb):
    """Return the sum of a side's pieces, which count 3, 3, 5 and 9."""
    minors_bb = (pos.piece_bb[KNIGHT] | pos.piece_bb[BISHOP]) & side_bb
    return (
        3 * popcount(minors_bb)
        + 5 * popcount(pos.piece_bb[ROOK] & side_bb)
        + 9 * popcount(pos.piece_bb[QUEEN] & side_bb)
    )


@kernel(boolean(Position, u64))
def _has_bishops_of_one_colour(pos, own_bb):
    bishops_bb = own_bb & ~pos.piece_bb[KING]
    return bishops_bb & ~pos.piece_bb[BISHOP] == U0 and (bishops_bb & LIGHT_BB == U0 or bishops_bb & ~LIGHT_BB == U0)


@kernel(i64(Position, u64, i64, i64))
def _without_pawns(pos, own_bb, own_strength, enemy_strength):
    """Return the scale for a side without pawns, which must be well ahead to mate."""
    knights_only = pos.piece_bb[KNIGHT] & own_bb == own_bb & ~pos.piece_bb[KING]
    if own_strength <= 3 or (knights_only and own_strength == 6) or _has_bishops_of_one_colour(pos, own_bb):
        return 0
    if own_strength - enemy_strength > 3:
        return SCALE_FULL
    return 6 if enemy_strength <= 3 else 14


@kernel(boolean(Position, i64, u64, i64))
def _rook_pawn_draw(pos, strong, own_bb, enemy_king):
    """Tell whether a side has only pawns on a rook file and wrong bishops, and the enemy king holds the corner."""
    own_pawns_bb = pos.piece_bb[PAWN] & own_bb
    if own_pawns_bb & ~FILE_A_BB != U0 and own_pawns_bb & ~_FILE_H_BB != U0:
        return False
    bishops_bb = pos.piece_bb[BISHOP] & own_bb
    if own_bb & ~(bishops_bb | own_pawns_bb | pos.piece_bb[KING]) != U0:
        return False
    corner = (lowest_bit(own_pawns_bb) & 7) + (56 if strong == 0 else 0)
    colour_bb = LIGHT_BB if bit(corner) & LIGHT_BB != U0 else ~LIGHT_BB
    return bishops_bb & colour_bb == U0 and distance(enemy_king, corner) <= 1


@kernel(boolean(u64, u64))
def _is_kpk(own_pawns_bb, men_bb):
    """Tell whether the board has only kings and one pawn of this side."""
    return own_pawns_bb != U0 and popcount(men_bb) == 3


@kernel(boolean(Position))
def _opposite_bishops(pos):
    bishops_bb = pos.piece_bb[BISHOP]
    return (
        popcount(bishops_bb) == 2
        and popcount(bishops_bb & pos.color_bb[0]) == 1
        and popcount(bishops_bb & LIGHT_BB) == 1
    )


@kernel(i64(Tables, Position, i64, u64, u64, i64, boolean))
def _known_scale(tb, pos, strong, own_bb, enemy_bb, enemy_king, is_to_move):
    """Return `known_scale` for these pieces of both sides, with the weaker side's king on this square."""
    own_pawns_bb = pos.piece_bb[PAWN] & own_bb
    if own_pawns_bb == U0:
        return _without_pawns(pos, own_bb, _strength(pos, own_bb), _strength(pos, enemy_bb))
    if _is_kpk(own_pawns_bb, own_bb | enemy_bb):
        turn = 0 if strong == 0 else 56
        pawn, king = lowest_bit(own_pawns_bb) ^ turn, king_square(pos, strong) ^ turn
        return SCALE_FULL if kpk_is_won(tb, is_to_move, pawn, king, enemy_king ^ turn) else 0
    return 0 if _rook_pawn_draw(pos, strong, own_bb, enemy_king) else SCALE_FULL


@kernel(i64(Tables, Position, i64))
def known_scale(tb, pos, strong):
    """Return the scale for the side that is ahead, 0 to SCALE_FULL, as far as the theory of endings is certain."""
    weak = 1 - strong
    is_to_move = pos.side == strong
    return _known_scale(tb, pos, strong, pos.color_bb[strong], pos.color_bb[weak], king_square(pos, weak), is_to_move)


@kernel(i64(Tables, Position, i64))
def known_scale_of(tb, pos, value):
    """Return `known_scale` for the side that is ahead by a value for the side to move; for 0 the lesser of both."""
    if pos.phase > SCALING_PHASE:
        return SCALE_FULL
    side = np.int64(pos.side)
    if value > 0:
        return known_scale(tb, pos, side)
    if value < 0:
        return known_scale(tb, pos, 1 - side)
    return min(known_scale(tb, pos, side), known_scale(tb, pos, 1 - side))


@kernel(boolean(Tables, Position, i64))
def leaves_no_win(tb, pos, move):
    """Tell whether after a legal move, usually a capture, the other side cannot win by the theory of endings."""
    if pos.phase > SCALING_PHASE:
        return False
    side = np.int64(pos.side)
    to = move_to(move)
    king = king_square(pos, side)
    victim = to ^ 8 if move_kind(move) == KIND_EP else to
    own_bb = pos.color_bb[1 - side] & ~bit(victim)
    return (
        _known_scale(tb, pos, 1 - side, own_bb, pos.color_bb[side], to if move_from(move) == king else king, True) == 0
    )


@kernel(boolean(Position))
def has_bare_king(pos):
    """Tell whether a side has only its king."""
    kings_bb = pos.piece_bb[KING]
    return pos.color_bb[0] & ~kings_bb == U0 or pos.color_bb[1] & ~kings_bb == U0


@kernel(i64(Tables, Position, i64, u64))
def scale(tb, pos, strong, passed_bb):
    """Return the scale for the side that is ahead, 0 to SCALE_FULL."""
    weak = 1 - strong
    own_bb = pos.color_bb[strong]
    enemy_bb = pos.color_bb[weak]
    own_pawns_bb = pos.piece_bb[PAWN] & own_bb
    enemy_pawns_bb = pos.piece_bb[PAWN] & enemy_bb
    known = known_scale(tb, pos, strong)
    if own_pawns_bb == U0 or known == 0 or _is_kpk(own_pawns_bb, own_bb | enemy_bb):
        return known
    own_pawns = popcount(own_pawns_bb)
    own_strength = _strength(pos, own_bb)
    enemy_strength = _strength(pos, enemy_bb)
    if _opposite_bishops(pos):
        if own_strength == 3 and enemy_strength == 3:
            return 18 + 4 * popcount(passed_bb & own_bb)
        return min(44 + 2 * own_pawns, SCALE_FULL)
    lead = own_pawns - popcount(enemy_pawns_bb)
    if own_strength == 5 and enemy_strength == 5 and pos.piece_bb[ROOK] & own_bb != U0 and lead <= 1:
        one_wing = own_pawns_bb & _QUEEN_SIDE_BB == U0 or own_pawns_bb & ~_QUEEN_SIDE_BB == U0
        return 40 if one_wing else 54
    if own_pawns == 1 and own_strength <= enemy_strength + 1 and enemy_strength >= 3:
        return 40
    return min(52 + 4 * own_pawns, SCALE_FULL)


@kernel(i64(Tables, Position, i64))
def _pawn_wins(tb, pos, strong):
    """Return centipawns for a pawn that queens against a bare king, more the nearer it is to promotion; else 0."""
    pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[strong]
    if not _is_kpk(pawns_bb, pos.color_bb[0] | pos.color_bb[1]) or known_scale(tb, pos, strong) == 0:
        return 0
    rank = lowest_bit(pawns_bb) >> 3
    return PAWN_WINS + PAWN_WINS_STEP * (rank if strong == 0 else 7 - rank)


@kernel(boolean(Position, u64))
def _can_mate(pos, own_bb):
    """Tell whether a side can mate a bare king: with rook, queen, two bishops, bishop and knight, or three knights."""
    if (pos.piece_bb[ROOK] | pos.piece_bb[QUEEN]) & own_bb != U0:
        return True
    bishops_bb = pos.piece_bb[BISHOP] & own_bb
    knights = popcount(pos.piece_bb[KNIGHT] & own_bb)
    if bishops_bb & LIGHT_BB != U0 and bishops_bb & ~LIGHT_BB != U0:
        return True
    return knights > 2 or (knights > 0 and bishops_bb != U0)


@kernel(i64(Tables, Position, i64))
def drive(tb, pos, strong):
    """Return centipawns for driving a bare king to the edge and coming near, if the side can win; else 0. They replace
    R, since nothing else matters then."""
    weak = 1 - strong
    if pos.color_bb[weak] & ~pos.piece_bb[KING] != U0:
        return 0
    own_bb = pos.color_bb[strong]
    if not _can_mate(pos, own_bb):
        return _pawn_wins(tb, pos, strong)
    bishops_bb = pos.piece_bb[BISHOP] & own_bb
    enemy_king = king_square(pos, weak)
    file = enemy_king & 7
    rank = enemy_king >> 3
    edge = max(3 - min(file, 7 - file), 0) + max(3 - min(rank, 7 - rank), 0)
    near = DRIVE_NEAR * (7 - distance(king_square(pos, strong), enemy_king))
    knights_bb = pos.piece_bb[KNIGHT] & own_bb
    if popcount(own_bb) == 3 and popcount(bishops_bb) == 1 and knights_bb != U0:
        # only a corner that the bishop attacks counts: the long diagonal of the other colour is worth nothing
        corner = abs(rank - file) if bishops_bb & LIGHT_BB != U0 else abs(7 - rank - file)
        near += DRIVE_NEAR * (7 - distance(lowest_bit(knights_bb), enemy_king)) // 2
        return near + DRIVE_CORNER * corner + DRIVE_EDGE * edge // 2
    return near + DRIVE_EDGE * edge
