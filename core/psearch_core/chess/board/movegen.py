"""Generates legal moves in two parts, captures with queen promotions and the rest, and counts their tree (perft).

Moves are legal by construction: a mask has the squares that answer a check, pinned pieces stay on their line, and each
king step, castling and en passant capture is tested for attacks.
"""

from psearch_core.chess.board.attacks import (
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
)
from psearch_core.chess.board.checks import find_checks, gives_check_at
from psearch_core.chess.board.position import code_on, ep_is_legal, find_pins, king_square, make_move, occupied
from psearch_core.chess.chess_entries import PERFT
from psearch_core.constants import (
    ALL_BB,
    KIND_CASTLE,
    KIND_DOUBLE,
    KIND_EP,
    KIND_NORMAL,
    KIND_PROMOTE,
    KING,
    KNIGHT,
    MOVE_MASK,
    PAWN,
    QUEEN,
    RANK_1_BB,
    RANK_3_BB,
    RANK_6_BB,
    RANK_8_BB,
    U0,
    U1,
    WHITE,
)
from psearch_core.records import FRAME_SIZE, MAX_PLY
from psearch_core.toolchain.intrinsics import check, lowest_bit, popcount
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Node, Position, Tables, boolean, frame_at, i64, tables_at, u64

_LAST_RANKS_BB = RANK_1_BB | RANK_8_BB
_LAST_KIND = KIND_PROMOTE + QUEEN - KNIGHT
"""Greatest kind of a move. Codes from the table may have a greater one, which no move has."""


@kernel(u64(Tables, Position))
def check_mask(tb, pos):
    """Return the squares to which pieces may go, without the king: all, answers to a check, or none in double check."""
    checkers_bb = pos.checkers
    if checkers_bb == U0:
        return ALL_BB
    if checkers_bb & (checkers_bb - U1) != U0:
        return U0
    king = king_square(pos, pos.side)
    return checkers_bb | tb.between[king * 64 + lowest_bit(checkers_bb)]


@kernel(boolean(Tables, Position, i64, i64))
def king_can_step(tb, pos, king, to):
    """Tell whether the king would be safe on a square."""
    side = pos.side
    return not is_attacked(tb, pos, to, 1 - side, occupied(pos) ^ bit(king))


@kernel(boolean(Tables, Position, i64, i64))
def castling_is_legal(tb, pos, king, rook):
    """Tell whether castling with a rook is legal: the way is free, and the king enters no attacked square on it."""
    side = pos.side
    short = rook > king
    king_to = side * 56 + (6 if short else 2)
    rook_to = side * 56 + (5 if short else 3)
    movers_bb = bit(king) | bit(rook)
    way_bb = tb.between[king * 64 + king_to] | bit(king_to) | tb.between[rook * 64 + rook_to] | bit(rook_to)
    occupied_bb = occupied(pos)
    if way_bb & occupied_bb & ~movers_bb != U0:
        return False
    steps_bb = tb.between[king * 64 + king_to]
    while steps_bb != U0:
        if is_attacked(tb, pos, lowest_bit(steps_bb), 1 - side, occupied_bb ^ bit(king)):
            return False
        steps_bb &= steps_bb - U1
    # in Chess960 the rook that leaves may uncover an attack along the rank
    after_bb = (occupied_bb ^ movers_bb) | bit(king_to) | bit(rook_to)
    return not is_attacked(tb, pos, king_to, 1 - side, after_bb)


@kernel(i64(Tables, Position, Node, i64, u64, i64, i64))
def _add_pawn_moves(tb, pos, node, n, targets_bb, step, kind):
    """Append one pawn move for each target; a pinned pawn must stay on its line."""
    king = king_square(pos, pos.side)
    pinned_bb = pos.pinned
    while targets_bb != U0:
        to = lowest_bit(targets_bb)
        targets_bb &= targets_bb - U1
        origin = to - step
        if pinned_bb & bit(origin) != U0 and tb.line[king * 64 + origin] & bit(to) == U0:
            continue
        node.moves[n] = make_code(origin, to, kind)
        n += 1
    return n


@kernel(i64(Tables, Position, Node, i64, u64, i64, i64))
def _add_promotions(tb, pos, node, n, targets_bb, step, queens):
    """Append the queen promotions, or the three others."""
    if queens:
        return _add_pawn_moves(tb, pos, node, n, targets_bb, step, KIND_PROMOTE + 3)
    n = _add_pawn_moves(tb, pos, node, n, targets_bb, step, KIND_PROMOTE)
    n = _add_pawn_moves(tb, pos, node, n, targets_bb, step, KIND_PROMOTE + 1)
    return _add_pawn_moves(tb, pos, node, n, targets_bb, step, KIND_PROMOTE + 2)


@kernel(i64(Tables, Position, Node, i64, u64))
def _add_ep(tb, pos, node, n, pawns_bb):
    side = pos.side
    target = pos.ep
    candidates_bb = tb.pawn[1 - side, target] & pawns_bb
    while candidates_bb != U0:
        origin = lowest_bit(candidates_bb)
        candidates_bb &= candidates_bb - U1
        if ep_is_legal(tb, pos, origin, target, side):
            node.moves[n] = make_code(origin, target, KIND_EP)
            n += 1
    return n


@kernel(i64(Tables, Position, Node, i64, u64))
def _add_piece_moves(tb, pos, node, n, targets_bb):
    """Append moves of knights, bishops, rooks and queens to the given squares."""
    side = pos.side
    king = king_square(pos, side)
    occupied_bb = occupied(pos)
    pinned_bb = pos.pinned
    for piece in range(KNIGHT, KING):
        pieces_bb = pos.piece_bb[piece] & pos.color_bb[side]
        while pieces_bb != U0:
            origin = lowest_bit(pieces_bb)
            pieces_bb &= pieces_bb - U1
            moves_bb = piece_attacks(tb, piece, origin, occupied_bb) & targets_bb
            if pinned_bb & bit(origin) != U0:
                moves_bb &= tb.line[king * 64 + origin]
            while moves_bb != U0:
                node.moves[n] = make_code(origin, lowest_bit(moves_bb), KIND_NORMAL)
                n += 1
                moves_bb &= moves_bb - U1
    return n


@kernel(i64(Tables, Position, Node, i64, u64))
def _add_king_moves(tb, pos, node, n, targets_bb):
    king = king_square(pos, pos.side)
    moves_bb = tb.king[king] & targets_bb
    while moves_bb != U0:
        to = lowest_bit(moves_bb)
        moves_bb &= moves_bb - U1
        if king_can_step(tb, pos, king, to):
            node.moves[n] = make_code(king, to, KIND_NORMAL)
            n += 1
    return n


@kernel(i64(Tables, Position, Node, i64))
def _add_castling(tb, pos, node, n):
    side = pos.side
    king = king_square(pos, side)
    rooks_bb = pos.castling_bb & pos.color_bb[side]
    while rooks_bb != U0:
        rook = lowest_bit(rooks_bb)
        rooks_bb &= rooks_bb - U1
        if castling_is_legal(tb, pos, king, rook):
            node.moves[n] = make_code(king, rook, KIND_CASTLE)
            n += 1
    return n


@kernel(i64(Tables, Position, Node, i64))
def generate_captures(tb, pos, node, n):
    """Append legal captures and queen promotions to `node.moves` from index `n`; returns the new end.

    `pos.pinned` must be set (`find_pins`).
    """
    side = pos.side
    them_bb = pos.color_bb[1 - side]
    mask_bb = check_mask(tb, pos)
    if mask_bb != U0:
        pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[side]
        up = 8 - 16 * side
        west_bb = pawn_attacks_west(pawns_bb, side) & them_bb & mask_bb
        east_bb = pawn_attacks_east(pawns_bb, side) & them_bb & mask_bb
        push_bb = forward(pawns_bb, side) & ~occupied(pos) & mask_bb & _LAST_RANKS_BB
        n = _add_promotions(tb, pos, node, n, push_bb, up, 1)
        n = _add_promotions(tb, pos, node, n, west_bb & _LAST_RANKS_BB, up - 1, 1)
        n = _add_promotions(tb, pos, node, n, east_bb & _LAST_RANKS_BB, up + 1, 1)
        n = _add_pawn_moves(tb, pos, node, n, west_bb & ~_LAST_RANKS_BB, up - 1, KIND_NORMAL)
        n = _add_pawn_moves(tb, pos, node, n, east_bb & ~_LAST_RANKS_BB, up + 1, KIND_NORMAL)
        if pos.ep >= 0:
            n = _add_ep(tb, pos, node, n, pawns_bb)
        n = _add_piece_moves(tb, pos, node, n, them_bb & mask_bb)
    return _add_king_moves(tb, pos, node, n, them_bb)


@kernel(i64(Tables, Position, Node, i64, u64))
def _add_underpromotions(tb, pos, node, n, mask_bb):
    """Append underpromotions, captures included, that end on a square of the mask."""
    side = pos.side
    pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[side]
    last_bb = mask_bb & _LAST_RANKS_BB
    ahead_bb = forward(pawns_bb, side)
    if (ahead_bb | pawn_attacks_west(pawns_bb, side) | pawn_attacks_east(pawns_bb, side)) & last_bb == U0:
        return n
    them_bb = pos.color_bb[1 - side]
    up = 8 - 16 * side
    n = _add_promotions(tb, pos, node, n, ahead_bb & ~occupied(pos) & last_bb, up, 0)
    n = _add_promotions(tb, pos, node, n, pawn_attacks_west(pawns_bb, side) & them_bb & last_bb, up - 1, 0)
    return _add_promotions(tb, pos, node, n, pawn_attacks_east(pawns_bb, side) & them_bb & last_bb, up + 1, 0)


@kernel(i64(Tables, Position, Node, i64))
def generate_underpromotions(tb, pos, node, n):
    """Append the legal underpromotions from index `n`; returns the new end. `pos.pinned` must be set."""
    mask_bb = check_mask(tb, pos)
    return _add_underpromotions(tb, pos, node, n, mask_bb) if mask_bb != U0 else n


@kernel(i64(Tables, Position, Node, i64))
def generate_quiets(tb, pos, node, n):
    """Append all other legal moves: neither captures nor promotions, and underpromotions, captures included."""
    side = pos.side
    empty_bb = ~occupied(pos)
    mask_bb = check_mask(tb, pos)
    if mask_bb != U0:
        pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[side]
        up = 8 - 16 * side
        single_bb = forward(pawns_bb, side) & empty_bb
        double_bb = forward(single_bb & (RANK_3_BB if side == WHITE else RANK_6_BB), side) & empty_bb & mask_bb
        single_bb &= mask_bb
        n = _add_pawn_moves(tb, pos, node, n, single_bb & ~_LAST_RANKS_BB, up, KIND_NORMAL)
        n = _add_pawn_moves(tb, pos, node, n, double_bb, up * 2, KIND_DOUBLE)
        n = _add_piece_moves(tb, pos, node, n, empty_bb & mask_bb)
        n = _add_underpromotions(tb, pos, node, n, mask_bb)
        if pos.checkers == U0 and pos.castling_bb != U0:
            n = _add_castling(tb, pos, node, n)
    return _add_king_moves(tb, pos, node, n, empty_bb)


@kernel(i64(Tables, Position, Node, i64))
def generate_quiet_checks(tb, pos, node, n):
    """Append the legal moves that give check and neither capture nor promote, from index `n`; returns the new end.

    The side to move must not be in check; `pos.pinned` must be set.
    """
    find_checks(tb, pos, node)
    side = pos.side
    king = king_square(pos, side)
    target = king_square(pos, 1 - side)
    occupied_bb = occupied(pos)
    empty_bb = ~occupied_bb
    discoverers_bb = node.discoverers
    begin = n
    pawns_bb = pos.piece_bb[PAWN] & pos.color_bb[side]
    up = 8 - 16 * side
    home_bb = RANK_3_BB if side == WHITE else RANK_6_BB
    single_bb = forward(pawns_bb, side) & empty_bb
    double_bb = forward(single_bb & home_bb, side) & empty_bb
    moving_bb = forward(pawns_bb & discoverers_bb, side)
    near_bb = tb.pawn[1 - side, target]
    n = _add_pawn_moves(tb, pos, node, n, single_bb & (near_bb | moving_bb) & ~_LAST_RANKS_BB, up, KIND_NORMAL)
    n = _add_pawn_moves(tb, pos, node, n, double_bb & (near_bb | forward(moving_bb, side)), up * 2, KIND_DOUBLE)
    for piece in range(KNIGHT, KING):
        pieces_bb = pos.piece_bb[piece] & pos.color_bb[side]
        near_bb = piece_attacks(tb, piece, target, occupied_bb) & empty_bb
        while pieces_bb != U0:
            origin = lowest_bit(pieces_bb)
            pieces_bb &= pieces_bb - U1
            moves_bb = piece_attacks(tb, piece, origin, occupied_bb)
            moves_bb &= empty_bb if discoverers_bb & bit(origin) != U0 else near_bb
            if pos.pinned & bit(origin) != U0:
                moves_bb &= tb.line[king * 64 + origin]
            while moves_bb != U0:
                node.moves[n] = make_code(origin, lowest_bit(moves_bb), KIND_NORMAL)
                n += 1
                moves_bb &= moves_bb - U1
    if discoverers_bb & bit(king) != U0:
        n = _add_king_moves(tb, pos, node, n, empty_bb)
    if pos.castling_bb != U0:
        n = _add_castling(tb, pos, node, n)
    kept = begin
    for i in range(begin, n):
        if gives_check_at(tb, pos, node, node.moves[i]):
            node.moves[kept] = node.moves[i]
            kept += 1
    return kept


@kernel(i64(Tables, Position, u64, u64))
def _count_pawn_moves(tb, pos, pawns_bb, mask_bb):
    """Count pushes and captures of pawns; a promotion counts as four moves."""
    side = pos.side
    them_bb = pos.color_bb[1 - side] & mask_bb
    empty_bb = ~occupied(pos)
    single_bb = forward(pawns_bb, side) & empty_bb
    double_bb = forward(single_bb & (RANK_3_BB if side == WHITE else RANK_6_BB), side) & empty_bb & mask_bb
    single_bb &= mask_bb
    west_bb = pawn_attacks_west(pawns_bb, side) & them_bb
    east_bb = pawn_attacks_east(pawns_bb, side) & them_bb
    count = popcount(single_bb) + popcount(double_bb) + popcount(west_bb) + popcount(east_bb)
    last_bb = _LAST_RANKS_BB
    if (single_bb | west_bb | east_bb) & last_bb != U0:
        count += 3 * (popcount(single_bb & last_bb) + popcount(west_bb & last_bb) + popcount(east_bb & last_bb))
    return count


@kernel(i64(Tables, Position, u64, u64))
def _count_officers(tb, pos, pieces_bb, targets_bb):
    """Count the moves of these knights, bishops, rooks and queens to target squares."""
    occupied_bb = occupied(pos)
    count = 0
    for piece in range(KNIGHT, KING):
        own_bb = pos.piece_bb[piece] & pieces_bb
        while own_bb != U0:
            count += popcount(piece_attacks(tb, piece, lowest_bit(own_bb), occupied_bb) & targets_bb)
            own_bb &= own_bb - U1
    return count


@kernel(i64(Tables, Position))
def count_legal(tb, pos):
    """Return the number of legal moves without generating them. `pos.pinned` must be set."""
    side = pos.side
    us_bb = pos.color_bb[side]
    king = king_square(pos, side)
    count = 0
    moves_bb = tb.king[king] & ~us_bb
    while moves_bb != U0:
        if king_can_step(tb, pos, king, lowest_bit(moves_bb)):
            count += 1
        moves_bb &= moves_bb - U1
    mask_bb = check_mask(tb, pos)
    if mask_bb == U0:
        return count
    pawns_bb = pos.piece_bb[PAWN] & us_bb
    pinned_bb = pos.pinned
    count += _count_pawn_moves(tb, pos, pawns_bb & ~pinned_bb, mask_bb)
    count += _count_officers(tb, pos, us_bb & ~pinned_bb, mask_bb & ~us_bb)
    while pinned_bb != U0:
        origin_bb = pinned_bb & (U0 - pinned_bb)
        pinned_bb ^= origin_bb
        line_bb = tb.line[king * 64 + lowest_bit(origin_bb)] & mask_bb
        if origin_bb & pawns_bb != U0:
            count += _count_pawn_moves(tb, pos, origin_bb, line_bb)
        else:
            count += _count_officers(tb, pos, origin_bb, line_bb & ~us_bb)
    if pos.ep >= 0:
        candidates_bb = tb.pawn[1 - side, pos.ep] & pawns_bb
        while candidates_bb != U0:
            if ep_is_legal(tb, pos, lowest_bit(candidates_bb), pos.ep, side):
                count += 1
            candidates_bb &= candidates_bb - U1
    if pos.checkers == U0:
        rooks_bb = pos.castling_bb & us_bb
        while rooks_bb != U0:
            if castling_is_legal(tb, pos, king, lowest_bit(rooks_bb)):
                count += 1
            rooks_bb &= rooks_bb - U1
    return count


@kernel(boolean(Tables, Position, i64, i64, i64))
def _pawn_move_is_possible(tb, pos, origin, to, kind):
    """Tell whether a pawn's push, double push or capture is possible and of the right kind; ignores en passant."""
    side = pos.side
    promotes = bit(to) & _LAST_RANKS_BB != U0
    if promotes != (kind >= KIND_PROMOTE) or kind > _LAST_KIND:
        return False
    if tb.pawn[side, origin] & bit(to) != U0:
        return kind != KIND_DOUBLE and pos.color_bb[1 - side] & bit(to) != U0
    empty_bb = ~occupied(pos)
    single_bb = forward(bit(origin), side) & empty_bb
    if kind == KIND_DOUBLE:
        from_home = single_bb & (RANK_3_BB if side == WHITE else RANK_6_BB)
        return forward(from_home, side) & empty_bb & bit(to) != U0
    return single_bb & bit(to) != U0


@kernel(boolean(Tables, Position, i64))
def is_legal(tb, pos, move):
    """Tell whether a move code, from the table or a killer slot, is a legal move here. `pos.pinned` must be set."""
    side = pos.side
    origin = move_from(move)
    to = move_to(move)
    kind = move_kind(move)
    code = code_on(pos, origin)
    if code == 0 or code >> 3 != side:
        return False
    piece = (code & 7) - 1
    us_bb = pos.color_bb[side]
    king = king_square(pos, side)
    if kind == KIND_CASTLE:
        return (
            piece == KING
            and pos.checkers == U0
            and pos.castling_bb & us_bb & bit(to) != U0
            and castling_is_legal(tb, pos, king, to)
        )
    if us_bb & bit(to) != U0:
        return False
    if piece == KING:
        return kind == KIND_NORMAL and tb.king[king] & bit(to) != U0 and king_can_step(tb, pos, king, to)
    if kind == KIND_EP:
        return (
            piece == PAWN
            and to == pos.ep
            and tb.pawn[side, origin] & bit(to) != U0
            and ep_is_legal(tb, pos, origin, to, side)
        )
    if check_mask(tb, pos) & bit(to) == U0:
        return False
    if pos.pinned & bit(origin) != U0 and tb.line[king * 64 + origin] & bit(to) == U0:
        return False
    if piece != PAWN:
        return kind == KIND_NORMAL and piece_attacks(tb, piece, origin, occupied(pos)) & bit(to) != U0
    return _pawn_move_is_possible(tb, pos, origin, to, kind)


@kernel(i64(Tables, i64))
def _generate_all(tb, frame):
    fr = frame_at(frame)
    find_pins(tb, fr.position)
    end = generate_captures(tb, fr.position, fr.node, 0)
    fr.node.end = generate_quiets(tb, fr.position, fr.node, end)
    fr.node.cursor = 0
    return fr.node.end


@entry(i64(i64, i64, i64), PERFT)
def perft(tables, frames, depth):
    """Return the number of leaves below the position in the first frame.

    tables: address of the tables; frames: address of at least depth + 1 frames, the first with a complete position;
    0 <= depth < MAX_PLY.
    """
    check(0 <= depth < MAX_PLY, "perft goes no deeper than a stack")
    tb = tables_at(tables)
    if depth == 0:
        return 1
    if depth == 1:
        fr = frame_at(frames)
        find_pins(tb, fr.position)
        return count_legal(tb, fr.position)
    leaves = 0
    ply = 0
    _generate_all(tb, frames)
    while ply >= 0:
        frame = frames + ply * FRAME_SIZE
        fr = frame_at(frame)
        node = fr.node
        if node.cursor == node.end:
            ply -= 1
            continue
        move = node.moves[node.cursor] & MOVE_MASK
        node.cursor += 1
        child = frame_at(frame + FRAME_SIZE)
        make_move(tb, fr.position, child.position, move)
        if ply + 2 == depth:
            find_pins(tb, child.position)
            leaves += count_legal(tb, child.position)
        else:
            ply += 1
            _generate_all(tb, frame + FRAME_SIZE)
    return leaves
