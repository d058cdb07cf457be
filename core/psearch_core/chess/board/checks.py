"""Tells, without making moves, whether a move gives check, and whether a side could mate in one if it were to move.

The search for a mate starts at the attacked king. It tries all moves that give check except castling, en passant and
promotions to rook or bishop. Most checks are refuted by the first square to which the king can step.
"""

from psearch_core.chess.board.attacks import (
    attackers_to,
    bishop_attacks,
    bit,
    forward,
    is_attacked,
    make_code,
    move_from,
    move_kind,
    move_to,
    pawn_attacks_east,
    pawn_attacks_west,
    piece_attacks,
    rook_attacks,
)
from psearch_core.chess.board.position import king_square, occupied, piece_on, shields, shields_from
from psearch_core.constants import (
    BISHOP,
    KIND_CASTLE,
    KIND_DOUBLE,
    KIND_EP,
    KIND_NORMAL,
    KIND_PROMOTE,
    KING,
    KNIGHT,
    NO_MOVE,
    PAWN,
    QUEEN,
    RANK_1_BB,
    RANK_3_BB,
    RANK_6_BB,
    RANK_8_BB,
    ROOK,
    U0,
    U1,
)
from psearch_core.toolchain.intrinsics import lowest_bit
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Node, Position, Tables, boolean, i64, u64, void


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
    # mostly no slider is on a line with the king: a lookup on an empty board settles that
    if rook_attacks(tb, king, U0) & straight_bb != U0 and rook_attacks(tb, king, occupied_bb) & straight_bb != U0:
        return True
    if bishop_attacks(tb, king, U0) & diagonal_bb == U0:
        return False
    return bishop_attacks(tb, king, occupied_bb) & diagonal_bb != U0


@kernel(u64(Tables, i64, i64, u64, u64))
def _check_squares(tb, piece, king, straight_bb, diagonal_bb):
    """Return the squares from which a piece of this type, but no pawn, gives check."""
    if piece == QUEEN:
        return straight_bb | diagonal_bb
    if piece == ROOK:
        return straight_bb
    if piece == BISHOP:
        return diagonal_bb
    return tb.knight[king] if piece == KNIGHT else U0


@kernel(void(Tables, Position, Node))
def find_checks(tb, pos, node):
    """Find from where each piece of the side to move would give check, and which pieces would by leaving a line."""
    side = pos.side
    king = king_square(pos, 1 - side)
    occupied_bb = occupied(pos)
    node.straight_checks = rook_attacks(tb, king, occupied_bb)  # never U0
    node.diagonal_checks = bishop_attacks(tb, king, occupied_bb)
    node.discoverers = shields(tb, pos, king, side) & pos.color_bb[side]


@kernel(boolean(Tables, Position, Node, i64))
def gives_check_at(tb, pos, node, move):
    """Tell whether a legal move of a node gives check, like `gives_check`, by what `find_checks` finds once a node.
    Called under the lock if the node is open."""
    if move_kind(move) > KIND_DOUBLE:
        return gives_check(tb, pos, move)
    if node.straight_checks == U0:
        find_checks(tb, pos, node)
    king = king_square(pos, 1 - pos.side)
    origin = move_from(move)
    to_bb = bit(move_to(move))
    piece = piece_on(pos, origin)
    if piece == PAWN:
        checks_bb = tb.pawn[1 - pos.side, king]
    else:
        checks_bb = _check_squares(tb, piece, king, node.straight_checks, node.diagonal_checks)
    if checks_bb & to_bb != U0:
        return True
    return node.discoverers & bit(origin) != U0 and tb.line[king * 64 + origin] & to_bb == U0


_LAST_RANKS_BB = RANK_1_BB | RANK_8_BB


@kernel(u64(Position, i64, i64, u64, u64))
def _pawns_that_reach(pos, side, target, pawns_bb, occupied_bb):
    """Return those of the defender's pawns `pawns_bb` that can be pushed to an empty square. side: the attacker."""
    behind_bb = forward(bit(target), side)
    reaching_bb = behind_bb & pawns_bb
    fourth_bb = forward(RANK_6_BB if side == 0 else RANK_3_BB, 1 - side)
    if bit(target) & fourth_bb != U0 and behind_bb & occupied_bb == U0:
        reaching_bb |= forward(behind_bb, side) & pawns_bb
    return reaching_bb


@kernel(boolean(Tables, Position, i64, i64, i64, i64, i64, u64))
def _is_answered(tb, pos, side, king, origin, to, checker, occupied_bb):
    """Tell whether a piece other than the king can take the checker or step between. occupied_bb: after the move."""
    defenders_bb = pos.color_bb[1 - side] & ~bit(to) & ~bit(king)
    pawns_bb = pos.piece_bb[PAWN] & defenders_bb
    pinned_bb = shields_from(tb, pos, king, pos.color_bb[side] & ~bit(origin), occupied_bb)
    targets_bb = bit(checker) | tb.between[king * 64 + checker]
    while targets_bb != U0:
        target = lowest_bit(targets_bb)
        targets_bb &= targets_bb - U1
        answers_bb = attackers_to(tb, pos, target, occupied_bb) & defenders_bb
        if target != checker:
            answers_bb = (answers_bb & ~pawns_bb) | _pawns_that_reach(pos, side, target, pawns_bb, occupied_bb)
        while answers_bb != U0:
            answer = lowest_bit(answers_bb)
            answers_bb &= answers_bb - U1
            if pinned_bb & bit(answer) == U0 or tb.line[king * 64 + answer] & bit(target) != U0:
                return True
    return False


@kernel(boolean(Tables, Position, i64, i64, i64, i64, i64))
def _is_mate(tb, pos, side, king, piece, origin, to):
    """Tell whether a move that gives check mates. king: the attacked king's square; piece: type after the move."""
    other_bb = pos.color_bb[1 - side]
    occupied_bb = (occupied(pos) & ~bit(origin)) | bit(to)
    open_bb = occupied_bb ^ bit(king)
    steps_bb = tb.king[king] & ~(other_bb & ~bit(to))
    if piece != PAWN:
        steps_bb &= ~piece_attacks(tb, piece, to, open_bb)
    else:
        steps_bb &= ~tb.pawn[side, to]
    while steps_bb != U0:
        if not is_attacked(tb, pos, lowest_bit(steps_bb), side, open_bb):
            return False
        steps_bb &= steps_bb - U1
    checkers_bb = attackers_to(tb, pos, king, occupied_bb) & pos.color_bb[side] & ~bit(origin)
    reach_bb = tb.pawn[side, to] if piece == PAWN else piece_attacks(tb, piece, to, occupied_bb)
    if reach_bb & bit(king) != U0:
        checkers_bb |= bit(to)
    if checkers_bb & (checkers_bb - U1) == U0:
        checker = lowest_bit(checkers_bb)
        if _is_answered(tb, pos, side, king, origin, to, checker, occupied_bb):
            return False
    own = to if piece == KING else king_square(pos, side)
    return attackers_to(tb, pos, own, occupied_bb) & other_bb & ~bit(to) == U0


@kernel(i64(Tables, Position, i64, i64, i64, i64, u64, i64))
def _first_mate(tb, pos, side, king, piece, origin, targets_bb, kind):
    """Return the first move of a piece to one of these squares that mates, else NO_MOVE. All of them give check."""
    while targets_bb != U0:
        to = lowest_bit(targets_bb)
        targets_bb &= targets_bb - U1
        if _is_mate(tb, pos, side, king, piece, origin, to):
            return make_code(origin, to, kind)
    return NO_MOVE


@kernel(i64(Tables, Position, i64, i64, i64, u64, u64, u64))
def _pawn_mate(tb, pos, side, king, origin, straight_bb, diagonal_bb, any_bb):
    """Return a mating move of a pawn, else NO_MOVE. any_bb: squares to which its move gives a discovered check."""
    pawn_bb = bit(origin)
    occupied_bb = occupied(pos)
    single_bb = forward(pawn_bb, side) & ~occupied_bb
    double_bb = forward(single_bb & (RANK_3_BB if side == 0 else RANK_6_BB), side) & ~occupied_bb
    captures_bb = (pawn_attacks_west(pawn_bb, side) | pawn_attacks_east(pawn_bb, side)) & pos.color_bb[1 - side]
    moves_bb = single_bb | captures_bb
    if moves_bb & _LAST_RANKS_BB != U0:
        for piece in (QUEEN, KNIGHT):
            checks_bb = _check_squares(tb, piece, king, straight_bb, diagonal_bb) | any_bb
            kind = KIND_PROMOTE + piece - KNIGHT
            move = _first_mate(tb, pos, side, king, piece, origin, moves_bb & checks_bb, kind)
            if move != NO_MOVE:
                return move
        return NO_MOVE
    checks_bb = tb.pawn[1 - side, king] | any_bb
    move = _first_mate(tb, pos, side, king, PAWN, origin, moves_bb & checks_bb, KIND_NORMAL)
    if move != NO_MOVE or double_bb & checks_bb == U0:
        return move
    if tb.pawn[side, lowest_bit(single_bb)] & pos.piece_bb[PAWN] & pos.color_bb[1 - side] != U0:
        return NO_MOVE  # the pawn may be captured en passant
    return _first_mate(tb, pos, side, king, PAWN, origin, double_bb, KIND_DOUBLE)


@kernel(i64(Tables, Position, i64))
def mate_in_one(tb, pos, side):
    """Return a move with which `side` would mate if it were to move, else NO_MOVE. Neither king may be in check."""
    king = king_square(pos, 1 - side)
    occupied_bb = occupied(pos)
    own_bb = pos.color_bb[side]
    straight_bb = rook_attacks(tb, king, occupied_bb)
    diagonal_bb = bishop_attacks(tb, king, occupied_bb)
    discoverers_bb = shields(tb, pos, king, side) & own_bb
    for piece in range(QUEEN, PAWN, -1):
        pieces_bb = pos.piece_bb[piece] & own_bb
        checks_bb = _check_squares(tb, piece, king, straight_bb, diagonal_bb) & ~own_bb
        while pieces_bb != U0:
            origin = lowest_bit(pieces_bb)
            pieces_bb &= pieces_bb - U1
            targets_bb = piece_attacks(tb, piece, origin, occupied_bb)
            if discoverers_bb & bit(origin) == U0:
                targets_bb &= checks_bb
            else:
                targets_bb &= ~own_bb & (checks_bb | ~tb.line[king * 64 + origin])
            move = _first_mate(tb, pos, side, king, piece, origin, targets_bb, KIND_NORMAL)
            if move != NO_MOVE:
                return move
    # pawns that can give check: near the king, or about to promote
    pawns_bb = pos.piece_bb[PAWN] & own_bb
    near_bb = tb.pawn[1 - side, king]
    home_bb = forward(near_bb, 1 - side)
    candidates_bb = home_bb | forward(home_bb, 1 - side) | pawn_attacks_west(near_bb, 1 - side)
    candidates_bb |= pawn_attacks_east(near_bb, 1 - side) | forward(_LAST_RANKS_BB, 1 - side) | discoverers_bb
    pawns_bb &= candidates_bb
    while pawns_bb != U0:
        origin = lowest_bit(pawns_bb)
        pawns_bb &= pawns_bb - U1
        any_bb = ~tb.line[king * 64 + origin] if discoverers_bb & bit(origin) != U0 else U0
        move = _pawn_mate(tb, pos, side, king, origin, straight_bb, diagonal_bb, any_bb)
        if move != NO_MOVE:
            return move
    if discoverers_bb & pos.piece_bb[KING] != U0:
        origin = king_square(pos, side)
        targets_bb = tb.king[origin] & ~own_bb & ~tb.line[king * 64 + origin] & ~tb.king[king]
        return _first_mate(tb, pos, side, king, KING, origin, targets_bb, KIND_NORMAL)
    return NO_MOVE
