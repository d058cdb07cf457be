"""Positions: copy-make, null moves, checks, pins, and incremental updates (key, piece-square sums, phase)."""

import numpy as np

from psearch_core.chess.board.attacks import (
    attackers_to,
    bishop_attacks,
    bit,
    is_attacked,
    move_from,
    move_kind,
    move_to,
    rook_attacks,
)
from psearch_core.chess.chess_entries import CHESS
from psearch_core.constants import (
    BISHOP,
    BLACK,
    KIND_CASTLE,
    KIND_DOUBLE,
    KIND_EP,
    KIND_PROMOTE,
    KING,
    KNIGHT,
    LIGHT_BB,
    NO_SQUARE,
    PAWN,
    QUEEN,
    RANK_1_BB,
    RANK_8_BB,
    ROOK,
    U0,
    U1,
    WHITE,
)
from psearch_core.toolchain.intrinsics import check, copy_record, lowest_bit, popcount
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Position, Tables, boolean, i64, position_at, tables_at, u64, void

_PAWN_KEY_CODES = np.uint64(1 << PAWN + 1 | 1 << KING + 1 | 1 << 8 + PAWN + 1 | 1 << 8 + KING + 1)

_RANK_7_BB = np.uint64(0x00FF000000000000)
_RANK_2_BB = np.uint64(0x000000000000FF00)
_MOST_IN_GAMES = 71


@kernel(u64(Position))
def occupied(pos):
    return pos.color_bb[WHITE] | pos.color_bb[BLACK]


@kernel(i64(Position, i64))
def code_on(pos, square):
    """Return the code of a square: 0 if it is empty, else colour * 8 + piece type + 1."""
    return pos.board[square]


@kernel(i64(Position, i64))
def piece_on(pos, square):
    """Return the type of the piece on a square; -1 if it is empty."""
    return (pos.board[square] & 7) - 1


@kernel(i64(Position, i64))
def king_square(pos, side):
    return lowest_bit(pos.piece_bb[KING] & pos.color_bb[side])


@kernel(boolean(Tables, Position, i64, i64, i64))
def ep_is_legal(tb, pos, origin, target, side):
    """Tell whether a side's pawn may capture en passant: its king must be safe with both pawns gone."""
    captured = target ^ 8
    occupied_bb = (occupied(pos) ^ bit(origin) ^ bit(captured)) | bit(target)
    return not is_attacked(tb, pos, king_square(pos, side), 1 - side, occupied_bb)


@kernel(i64(Tables, Position, i64))
def legal_ep_square(tb, pos, target):
    """Return `target` if the side to move has a legal en passant capture there, else NO_SQUARE."""
    side = pos.side
    candidates_bb = tb.pawn[1 - side, target] & pos.piece_bb[PAWN] & pos.color_bb[side]
    while candidates_bb != U0:
        if ep_is_legal(tb, pos, lowest_bit(candidates_bb), target, side):
            return target
        candidates_bb &= candidates_bb - U1
    return NO_SQUARE


@kernel(u64(Tables, Position))
def find_checkers(tb, pos):
    """Return the pieces that attack the king of the side to move."""
    side = pos.side
    return attackers_to(tb, pos, king_square(pos, side), occupied(pos)) & pos.color_bb[1 - side]


@kernel(u64(Tables, Position, i64, u64, u64))
def shields_from(tb, pos, king, by_bb, occupied_bb):
    """Return pieces that stand alone between a king's square and a slider of `by_bb`, on a board occupied like this."""
    queens_bb = pos.piece_bb[QUEEN]
    snipers_bb = (
        (rook_attacks(tb, king, U0) & (pos.piece_bb[ROOK] | queens_bb))
        | (bishop_attacks(tb, king, U0) & (pos.piece_bb[BISHOP] | queens_bb))
    ) & by_bb
    shields_bb = U0
    while snipers_bb != U0:
        shield_bb = tb.between[king * 64 + lowest_bit(snipers_bb)] & occupied_bb
        if popcount(shield_bb) == 1:
            shields_bb |= shield_bb
        snipers_bb &= snipers_bb - U1
    return shields_bb


@kernel(u64(Tables, Position, i64, i64))
def shields(tb, pos, king, by_side):
    """Return pieces of either colour that stand alone between a king's square and a slider of `by_side`."""
    return shields_from(tb, pos, king, pos.color_bb[by_side], occupied(pos))


@kernel(void(Tables, Position))
def find_pins(tb, pos):
    """Set `pinned`, the pieces of the side to move that may only move along the line to their king."""
    side = pos.side
    pos.pinned = shields(tb, pos, king_square(pos, side), 1 - side) & pos.color_bb[side]


@kernel(void(Tables, Position, i64, i64, i64))
def put_piece(tb, pos, code, square, sign):
    """Add (sign 1) or remove (sign -1) a piece, and update keys, sums and phase."""
    square_bb = bit(square)
    pos.piece_bb[(code & 7) - 1] ^= square_bb
    pos.color_bb[code >> 3] ^= square_bb
    pos.board[square] = code if sign > 0 else 0
    piece_key = tb.zobrist_piece[code, square]
    pos.key ^= piece_key
    # the mask is all ones for pawns and kings, else zero, so that no branch is needed
    pos.pawn_key ^= piece_key & (U0 - ((_PAWN_KEY_CODES >> np.uint64(code)) & U1))
    pos.psq_mg += sign * tb.psq_mg[code, square]
    pos.psq_eg += sign * tb.psq_eg[code, square]
    pos.phase += sign * tb.phase[code]


@kernel(void(Tables, Position, u64))
def _drop_castling(tb, pos, gone_bb):
    lost_bb = pos.castling_bb & gone_bb
    if lost_bb != U0:
        pos.castling_bb ^= lost_bb
        while lost_bb != U0:
            pos.key ^= tb.zobrist_castling[lowest_bit(lost_bb)]
            lost_bb &= lost_bb - U1


@kernel(void(Tables, Position, i64, i64))
def _castle(tb, pos, king_from, rook_from):
    side = pos.side
    king_code = side * 8 + KING + 1
    rook_code = side * 8 + ROOK + 1
    rank = side * 56
    short = rook_from > king_from
    # remove both first: in Chess960 they may land on each other's squares
    put_piece(tb, pos, king_code, king_from, -1)
    put_piece(tb, pos, rook_code, rook_from, -1)
    put_piece(tb, pos, king_code, rank + (6 if short else 2), 1)
    put_piece(tb, pos, rook_code, rank + (5 if short else 3), 1)


@kernel(u64(Tables, Position, i64))
def likely_key(tb, pos, move):
    """Return the key after a move as a hint, ignoring castling rights, en passant and promotion."""
    code = code_on(pos, move_from(move))
    to = move_to(move)
    captured = code_on(pos, to)
    key = pos.key ^ tb.zobrist_side ^ tb.zobrist_piece[code, move_from(move)] ^ tb.zobrist_piece[code, to]
    return key if captured == 0 else key ^ tb.zobrist_piece[captured, to]


@kernel(void(Tables, Position, Position, i64))
def make_move(tb, source, target, move):
    """Copy `source` to `target` and play a legal move there."""
    copy_record(target, source)
    pos = target
    side = pos.side
    origin = move_from(move)
    to = move_to(move)
    kind = move_kind(move)
    code = code_on(pos, origin)
    piece = (code & 7) - 1
    check(code != 0 and code >> 3 == side, "who is to move moves a piece of his own")
    if pos.ep >= 0:
        pos.key ^= tb.zobrist_ep[pos.ep & 7]
        pos.ep = NO_SQUARE
    pos.rule50 += 1
    pos.reversible += 1
    pos.key ^= tb.zobrist_side

    if kind == KIND_CASTLE:
        _castle(tb, pos, origin, to)
    else:
        captured_square = to ^ 8 if kind == KIND_EP else to
        captured = code_on(pos, captured_square)
        if captured != 0:
            put_piece(tb, pos, captured, captured_square, -1)
            pos.rule50 = 0
        put_piece(tb, pos, code, origin, -1)
        if kind >= KIND_PROMOTE:
            put_piece(tb, pos, side * 8 + kind - KIND_PROMOTE + KNIGHT + 1, to, 1)
        else:
            put_piece(tb, pos, code, to, 1)
        if piece == PAWN:
            pos.rule50 = 0
    if pos.castling_bb != U0:
        gone_bb = bit(origin) | bit(to)
        if piece == KING:
            gone_bb |= RANK_1_BB if side == WHITE else RANK_8_BB
        castling_bb = pos.castling_bb
        # a rook is captured or moved, or the king moved; a rank never has castling rooks of both sides
        _drop_castling(tb, pos, gone_bb)
        if pos.castling_bb != castling_bb:
            pos.reversible = 0
    if pos.rule50 == 0:
        pos.reversible = 0
    pos.side = 1 - side
    if kind == KIND_DOUBLE:
        ep_square = legal_ep_square(tb, pos, (origin + to) >> 1)
        if ep_square >= 0:
            pos.ep = ep_square
            pos.key ^= tb.zobrist_ep[ep_square & 7]
    pos.checkers = find_checkers(tb, pos)


@kernel(void(Tables, Position, Position))
def make_null(tb, source, target):
    """Copy `source` to `target` and make a null move there. The side to move must not be in check."""
    copy_record(target, source)
    pos = target
    if pos.ep >= 0:
        pos.key ^= tb.zobrist_ep[pos.ep & 7]
        pos.ep = NO_SQUARE
    pos.key ^= tb.zobrist_side
    pos.rule50 += 1
    pos.reversible = 0  # positions before a null move do not count as repetitions
    pos.side = 1 - pos.side
    pos.checkers = U0


@kernel(void(Tables, Position))
def complete_position(tb, pos):
    """Set bitboards, keys, sums and checkers from `board`, `side`, `castling_bb` and `ep`; keep all other fields."""
    for piece in range(6):
        pos.piece_bb[piece] = U0
    pos.color_bb[WHITE] = U0
    pos.color_bb[BLACK] = U0
    pos.key = U0
    pos.pawn_key = U0
    pos.psq_mg = 0
    pos.psq_eg = 0
    pos.phase = 0
    for square in range(64):
        code = code_on(pos, square)
        if code != 0:
            put_piece(tb, pos, code, square, 1)
    castling_bb = pos.castling_bb
    while castling_bb != U0:
        pos.key ^= tb.zobrist_castling[lowest_bit(castling_bb)]
        castling_bb &= castling_bb - U1
    if pos.side == BLACK:
        pos.key ^= tb.zobrist_side
    if pos.ep >= 0:
        pos.ep = legal_ep_square(tb, pos, pos.ep)
        if pos.ep >= 0:
            pos.key ^= tb.zobrist_ep[pos.ep & 7]
    pos.checkers = find_checkers(tb, pos)
    find_pins(tb, pos)


@entry(void(i64, i64), CHESS)
def complete(tables, position):
    """Call `complete_position` for Python, with the addresses of the tables and of a position."""
    complete_position(tables_at(tables), position_at(position))


@kernel(boolean(Position))
def insufficient_material(pos):
    """Tell whether no moves can lead to mate: bare kings, one minor piece, or only bishops of one square colour."""
    if pos.piece_bb[PAWN] | pos.piece_bb[ROOK] | pos.piece_bb[QUEEN] != U0:
        return False
    knights_bb = pos.piece_bb[KNIGHT]
    bishops_bb = pos.piece_bb[BISHOP]
    if knights_bb != U0:
        return popcount(knights_bb) == 1 and bishops_bb == U0
    return bishops_bb & LIGHT_BB == U0 or bishops_bb & ~LIGHT_BB == U0


@kernel(boolean(Position))
def is_crowded(pos):
    """Tell whether a board is fuller than in any known game: pieces count 3, 3, 5, 9 (62 at the start of a game), and a
    pawn that can promote at once counts 6."""
    pawns_bb = pos.piece_bb[PAWN]
    promoting_bb = (pawns_bb & pos.color_bb[0] & _RANK_7_BB) | (pawns_bb & pos.color_bb[1] & _RANK_2_BB)
    minors_bb = pos.piece_bb[KNIGHT] | pos.piece_bb[BISHOP]
    heavy = 5 * popcount(pos.piece_bb[ROOK]) + 9 * popcount(pos.piece_bb[QUEEN])
    return 3 * popcount(minors_bb) + heavy + 6 * popcount(promoting_bb) > _MOST_IN_GAMES


@kernel(boolean(Position, i64))
def has_pieces(pos, side):
    """Tell whether a side has more than king and pawns."""
    plain_bb = pos.piece_bb[PAWN] | pos.piece_bb[KING]
    return pos.color_bb[side] & ~plain_bb != U0
