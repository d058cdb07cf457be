"""Static exchange evaluation: the value of a sequence of captures on one square.

Pins are ignored; a king captures only if nothing can recapture.
"""

from psearch_core.chess.board.attacks import (
    attackers_to,
    bishop_attacks,
    bit,
    move_from,
    move_kind,
    move_to,
    rook_attacks,
)
from psearch_core.chess.board.position import code_on, occupied, piece_on
from psearch_core.constants import BISHOP, KIND_CASTLE, KIND_EP, KIND_PROMOTE, KING, KNIGHT, PAWN, QUEEN, ROOK, U0
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Position, Tables, boolean, i64, u64

SEE_VALUES = (100, 300, 300, 500, 900, 20000)
"""Centipawns of pawn, knight, bishop, rook, queen and king. They are round so that equal trades are worth zero."""


@kernel(i64(i64))
def see_value(piece):
    if piece == PAWN:
        return SEE_VALUES[PAWN]
    if piece <= BISHOP:
        return SEE_VALUES[KNIGHT]
    if piece == ROOK:
        return SEE_VALUES[ROOK]
    return SEE_VALUES[QUEEN] if piece == QUEEN else SEE_VALUES[KING]


@kernel(i64(Position, i64))
def captured_value(pos, move):
    """Return the value of the captured piece, 0 for a quiet move."""
    kind = move_kind(move)
    if kind == KIND_EP:
        return SEE_VALUES[PAWN]
    code = code_on(pos, move_to(move))
    if code == 0 or kind == KIND_CASTLE:
        return 0
    return see_value((code & 7) - 1)


@kernel(boolean(Tables, Position, i64, u64, i64))
def _exchange(tb, pos, to, occupied_bb, balance):
    """Tell whether the mover wins the captures on `to`; the opponent begins, with `balance` < 0."""
    diagonal_bb = pos.piece_bb[BISHOP] | pos.piece_bb[QUEEN]
    straight_bb = pos.piece_bb[ROOK] | pos.piece_bb[QUEEN]
    attackers_bb = attackers_to(tb, pos, to, occupied_bb) & occupied_bb
    mover = pos.side
    side = 1 - mover
    while True:
        own_bb = attackers_bb & pos.color_bb[side]
        if own_bb == U0:
            break
        piece = PAWN
        while pos.piece_bb[piece] & own_bb == U0:
            piece += 1
        side = 1 - side
        balance = -balance - 1 - see_value(piece)
        if balance >= 0:
            # a king cannot take a piece that is still defended
            if piece == KING and attackers_bb & pos.color_bb[side] != U0:
                side = 1 - side
            break
        from_bb = pos.piece_bb[piece] & own_bb
        occupied_bb ^= from_bb & (U0 - from_bb)
        if piece in (PAWN, BISHOP, QUEEN):
            attackers_bb |= bishop_attacks(tb, to, occupied_bb) & diagonal_bb
        if piece in (ROOK, QUEEN):
            attackers_bb |= rook_attacks(tb, to, occupied_bb) & straight_bb
        attackers_bb &= occupied_bb
    return side != mover


@kernel(boolean(Tables, Position, i64, i64))
def see_at_least(tb, pos, move, threshold):
    """Tell whether the exchange that a move starts is worth `threshold` centipawns or more to the mover."""
    kind = move_kind(move)
    if kind == KIND_CASTLE:
        return threshold <= 0
    to = move_to(move)
    origin = move_from(move)
    piece = piece_on(pos, origin)
    balance = captured_value(pos, move) - threshold
    if kind >= KIND_PROMOTE:
        piece = kind - KIND_PROMOTE + KNIGHT
        balance += see_value(piece) - SEE_VALUES[PAWN]
    if balance < 0:
        return False
    balance -= see_value(piece)
    if balance >= 0:
        return True
    occupied_bb = (occupied(pos) & ~bit(origin)) | bit(to)
    if kind == KIND_EP:
        occupied_bb ^= bit(to ^ 8)
    return _exchange(tb, pos, to, occupied_bb, balance)
