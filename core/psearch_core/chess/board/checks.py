"""Whether a move gives check, seen before it is made."""

from __future__ import annotations

from psearch_core.chess.board.attacks import bishop_attacks, rook_attacks
from psearch_core.chess.board.bits import bit, move_from, move_kind, move_to
from psearch_core.chess.board.position import king_square, occupied, piece_on
from psearch_core.constants import (
    BISHOP,
    KIND_CASTLE,
    KIND_EP,
    KIND_PROMOTE,
    KNIGHT,
    PAWN,
    QUEEN,
    ROOK,
    U0,
)
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Position, Tables, boolean, i64


@kernel(boolean(Tables, Position, i64))
def gives_check(tb, pos, move):
    """Tell whether a legal move gives check of any kind: direct, discovered, by castling, promotion or en passant."""
    side = pos.side
    origin = move_from(move)
    to = move_to(move)
    kind = move_kind(move)
    king = king_square(pos, 1 - side)
    own_bb = pos.color_bb[side]
    occupied_bb = occupied(pos) ^ bit(origin)
    straight_bb = (pos.piece_bb[ROOK] | pos.piece_bb[QUEEN]) & own_bb & ~bit(origin)
    diagonal_bb = (pos.piece_bb[BISHOP] | pos.piece_bb[QUEEN]) & own_bb & ~bit(origin)
    if kind == KIND_CASTLE:
        rank = side * 56
        short = to > origin
        rook_bb = bit(rank + (5 if short else 3))
        occupied_bb = (occupied_bb & ~bit(to)) | rook_bb | bit(rank + (6 if short else 2))
        straight_bb = (straight_bb & ~bit(to)) | rook_bb
    else:
        piece = piece_on(pos, origin)
        if kind >= KIND_PROMOTE:
            piece = kind - KIND_PROMOTE + KNIGHT
        elif kind == KIND_EP:
            occupied_bb ^= bit(to ^ 8)
        if piece == PAWN:
            if tb.pawn[side, to] & bit(king) != U0:
                return True
        elif piece == KNIGHT:
            if tb.knight[to] & bit(king) != U0:
                return True
        elif piece == ROOK:
            straight_bb |= bit(to)
        elif piece == BISHOP:
            diagonal_bb |= bit(to)
        elif piece == QUEEN:
            straight_bb |= bit(to)
            diagonal_bb |= bit(to)
        occupied_bb |= bit(to)
    # most moves see no slider near the king's lines: the tables of an empty board settle that
    if rook_attacks(tb, king, U0) & straight_bb != U0 and rook_attacks(tb, king, occupied_bb) & straight_bb != U0:
        return True
    if bishop_attacks(tb, king, U0) & diagonal_bb == U0:
        return False
    return bishop_attacks(tb, king, occupied_bb) & diagonal_bb != U0
