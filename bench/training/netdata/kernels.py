"""Kernels that play a whole game of the search against itself, and that turn a game into records of positions.

A move is kept as its *rank*: its place among the legal moves sorted by their codes (origin, target and kind;
`bits.py` of the board). So a file of games does not depend on the order in which moves happen to be generated.
"""

from __future__ import annotations

import numba
import numpy as np

from netdata.records import (
    ADJUDICATED,
    BLACK_WON,
    BY_RULE,
    DRAWN,
    GAMES,
    TOO_LONG,
    UNFIT,
    WHITE_WON,
    decoder_dtype,
    game_dtype,
    sample_dtype,
)
from psearch.defaults import MAX_DEPTH
from psearch.scheduler.iterations import begin_search
from psearch.scheduler.step import step
from psearch.scheduler.words import done_of
from psearch_core.chess.board.attacks import move_kind, move_to
from psearch_core.chess.board.movegen import generate_captures, generate_quiets
from psearch_core.chess.board.position import find_pins, insufficient_material, make_move
from psearch_core.constants import AGES, KIND_CASTLE, KIND_EP, KIND_PROMOTE, MOVE_MASK, STATE_IDLE, U0, U1
from psearch_core.records import MAX_HISTORY
from psearch_core.toolchain.intrinsics import atomic_load, byte_swap, copy_record, lowest_bit, view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import (
    Context,
    Frame,
    Header,
    Position,
    Tables,
    boolean,
    context_at,
    frame_of,
    header_of,
    i64,
    tables_at,
    tables_of,
    void,
    worker_of,
)

Game = numba.from_dtype(game_dtype)
Sample = numba.from_dtype(sample_dtype)
Decoder = numba.from_dtype(decoder_dtype)
game_at = view(Game)
sample_at = view(Sample)
decoder_at = view(Decoder)

_BURST = 1024
"""Transitions between two looks at the soft limit, as many as a worker makes between two looks at its messages."""
_SMALL_BURST = 64
"""Transitions between two looks where the limit is below `_SMALL_SEARCH`."""
_SMALL_SEARCH = 1000
"""Nodes; a long burst would pass such a limit by far."""
SAMPLE_BYTES = sample_dtype.itemsize


@kernel(i64(Tables, Frame))
def legal_moves(tb, frame):
    """Write all legal moves to the frame's move list; returns how many there are."""
    find_pins(tb, frame.position)
    node = frame.node
    return generate_quiets(tb, frame.position, node, generate_captures(tb, frame.position, node, 0))


@kernel(i64(Frame, i64, i64))
def _of_rank(frame, count, rank):
    """The code that so many others in the move list are below (Hoare's selection). The list loses its order."""
    moves = frame.node.moves
    low = np.int64(0)
    high = count - 1
    while low < high:
        middle = np.int64(moves[rank]) & MOVE_MASK
        i = low
        j = high
        while i <= j:
            while np.int64(moves[i]) & MOVE_MASK < middle:
                i += 1
            while np.int64(moves[j]) & MOVE_MASK > middle:
                j -= 1
            if i <= j:
                moves[i], moves[j] = moves[j], moves[i]
                i += 1
                j -= 1
        if j < rank:
            low = i
        if rank < i:
            high = j
    return np.int64(moves[rank]) & MOVE_MASK


@kernel(i64(Tables, Frame))
def _sorted_moves(tb, frame):
    """Write the codes of all legal moves in ascending order to the frame's move list; returns how many there are."""
    node = frame.node
    end = legal_moves(tb, frame)
    for i in range(end):
        code = np.int64(node.moves[i]) & MOVE_MASK
        place = i
        while place > 0 and node.moves[place - 1] > code:
            node.moves[place] = node.moves[place - 1]
            place -= 1
        node.moves[place] = code
    return end


@kernel(i64(Frame, i64, i64))
def _rank(frame, count, code):
    """The place of a move in a sorted list."""
    rank = 0
    while rank < count and frame.node.moves[rank] != code:
        rank += 1
    return rank


@kernel(boolean(Header))
def _is_third_time(hd):
    """Whether the position at the root has been there twice before."""
    seen = 0
    for i in range(hd.history_count):
        if hd.history[i] == hd.root.key:
            seen += 1
    return seen >= 2


@kernel(void(Header))
def _remember_root(hd):
    """Put the key of the root before those of the positions before it."""
    count = min(np.int64(hd.history_count), MAX_HISTORY - 1)
    for i in range(count, 0, -1):
        hd.history[i] = hd.history[i - 1]
    hd.history[0] = hd.root.key
    hd.history_count = count + 1


@kernel(void(Context, i64, Game, i64))
def _search(ctx, context, g, count):
    """Search the root, whose legal moves stand in the first frame, by worker 0; the answer stands in the header."""
    hd = header_of(ctx)
    moves = frame_of(ctx, 0).node.moves
    for i in range(count):
        hd.root_moves[i] = moves[i]
    hd.root_count = count
    hd.legal_root_moves = count
    hd.multipv = 1
    hd.first_depth = 1
    hd.max_depth = MAX_DEPTH
    hd.line_scores[0] = 0
    hd.node_limit = g.hard_nodes
    hd.age = (hd.age + 1) % AGES
    begin_search(context)
    wk = worker_of(ctx, 0)
    burst = _SMALL_BURST if g.soft_nodes < _SMALL_SEARCH else _BURST
    while wk.state != STATE_IDLE or atomic_load(done_of(hd)) == 0:
        step(ctx, 0, burst)
        if wk.nodes >= g.soft_nodes:
            hd.max_depth = min(np.int64(hd.max_depth), np.int64(hd.depth))
    g.nodes += wk.nodes


@kernel(void(Tables, Header, Frame, i64))
def _play(tb, hd, frame, move):
    """Make a move at the root, whose position the frame has, too."""
    _remember_root(hd)
    make_move(tb, frame.position, hd.root, move)
    if hd.root.reversible == 0:
        hd.history_count = 0


@kernel(i64(Game, i64, i64))
def _end(g, result, ending):
    g.result = result
    g.ending = ending
    return g.count


@entry(i64(i64, i64), GAMES)
def play_game(context, game):
    """Play a game from where it stands, by worker 0 of an arena with nobody else at work; returns its plies.

    game: address of a `game_dtype` record with root, limits and rules, and as many moves of the opening as `opening`
    says; the rest is written. The header has the position behind the opening, and the options of the search. Positions
    of the opening do not count as repeated.
    """
    ctx = context_at(context)
    hd = header_of(ctx)
    tb = tables_of(ctx)
    g = game_at(game)
    g.count = g.opening
    g.nodes = 0
    hd.history_count = 0
    ahead = 0  # scores in a row beyond won_score; negative for Black
    dead = 0
    while True:
        frame = frame_of(ctx, 0)
        copy_record(frame.position, hd.root)
        count = _sorted_moves(tb, frame)
        if count == 0:
            if hd.root.checkers == U0:
                return _end(g, DRAWN, BY_RULE)
            return _end(g, BLACK_WON if hd.root.side == 0 else WHITE_WON, BY_RULE)
        if hd.root.rule50 >= 100 or insufficient_material(hd.root) or _is_third_time(hd):
            return _end(g, DRAWN, BY_RULE)
        if g.count >= g.most_plies:
            return _end(g, DRAWN, TOO_LONG)
        _search(ctx, context, g, count)
        score = np.int64(hd.score) if hd.root.side == 0 else -np.int64(hd.score)
        if g.count == g.opening and abs(score) > g.fit_score:
            return _end(g, DRAWN, UNFIT)
        copy_record(frame.position, hd.root)
        count = _sorted_moves(tb, frame)
        move = np.int64(hd.best_move)
        g.codes[g.count] = move
        g.ranks[g.count] = _rank(frame, count, move)
        g.scores[g.count] = score
        g.count += 1
        if score > g.won_score:
            ahead = max(ahead, 0) + 1
        elif score < -g.won_score:
            ahead = min(ahead, 0) - 1
        else:
            ahead = 0
        if abs(ahead) >= g.won_plies:
            return _end(g, WHITE_WON if ahead > 0 else BLACK_WON, ADJUDICATED)
        dead = dead + 1 if abs(score) <= g.dead_score and g.count > g.dead_from else 0
        if dead >= g.dead_plies:
            return _end(g, DRAWN, ADJUDICATED)
        _play(tb, hd, frame, move)


@entry(i64(i64, i64), GAMES)
def follow_game(context, game):
    """Search the positions of a game that others have played, as `play_game` does; returns its plies.

    game: as there, with all moves. The header has the position behind the opening. Only the scores are written.
    """
    ctx = context_at(context)
    hd = header_of(ctx)
    tb = tables_of(ctx)
    g = game_at(game)
    g.nodes = 0
    hd.history_count = 0
    for ply in range(g.opening, g.count):
        frame = frame_of(ctx, 0)
        copy_record(frame.position, hd.root)
        _search(ctx, context, g, _sorted_moves(tb, frame))
        g.scores[ply] = np.int64(hd.score) if hd.root.side == 0 else -np.int64(hd.score)
        copy_record(frame.position, hd.root)
        _play(tb, hd, frame, np.int64(g.codes[ply]))
    return g.count


@entry(i64(i64, i64, i64), GAMES)
def rank_moves(tables, decoder, game):
    """Write the ranks of a game's moves from their codes; returns how many are legal, one after the other."""
    tb = tables_at(tables)
    d = decoder_at(decoder)
    g = game_at(game)
    copy_record(d.frame.position, g.root)
    for ply in range(g.count):
        code = np.int64(g.codes[ply])
        count = _sorted_moves(tb, d.frame)
        rank = _rank(d.frame, count, code)
        if rank == count:
            return ply
        g.ranks[ply] = rank
        copy_record(d.position, d.frame.position)
        make_move(tb, d.position, d.frame.position, code)
    return g.count


@kernel(boolean(Position, i64))
def is_quiet(pos, move):
    """Whether a move neither takes nor promotes."""
    kind = move_kind(move)
    if kind == KIND_CASTLE:
        return True
    return pos.board[move_to(move)] == 0 and kind != KIND_EP and kind < KIND_PROMOTE


@kernel(void(Position, Sample))
def write_pieces(pos, sample):
    """The board from the mover's side."""
    side = np.int64(pos.side)
    occupied_bb = pos.color_bb[0] | pos.color_bb[1]
    flip = 0
    if side == 1:
        occupied_bb = byte_swap(occupied_bb)
        flip = 56
    sample.occupied = occupied_bb
    for i in range(16):
        sample.pieces[i] = 0
    place = 0
    while occupied_bb != U0:
        code = np.int64(pos.board[lowest_bit(occupied_bb) ^ flip])
        occupied_bb &= occupied_bb - U1
        nibble = ((code & 7) - 1) | (((code >> 3) ^ side) << 3)
        sample.pieces[place >> 1] |= nibble << (4 * (place & 1))
        place += 1


@kernel(boolean(Decoder, Game, i64, i64))
def _is_wanted(d, g, ply, move):
    if ply < g.opening + d.skipped or abs(np.int64(g.scores[ply])) > d.most_score:
        return False
    pos = d.frame.position
    return d.noisy != 0 or (pos.checkers == U0 and is_quiet(pos, move))


@kernel(i64(Tables, Decoder, Game, i64))
def _move_of(tb, d, g, ply):
    """The game's move in the decoder's position, of which a copy is left in `before`; -1: there is none of its rank."""
    count = legal_moves(tb, d.frame)
    rank = np.int64(g.ranks[ply])
    if rank >= count:
        return -1
    copy_record(d.before, d.frame.position)
    return _of_rank(d.frame, count, rank)


@entry(i64(i64, i64, i64, i64), GAMES)
def decode_game(tables, decoder, game, samples):
    """Write a game's positions to records of `sample_dtype`, of which there is room for MOST_PLIES; returns how many.

    game: address of a `game_dtype` record with root, opening, count, result, ranks and scores. -1 - ply: there is no
    legal move of that rank at that ply.
    """
    tb = tables_at(tables)
    d = decoder_at(decoder)
    g = game_at(game)
    copy_record(d.frame.position, g.root)
    written = np.int64(0)
    for ply in range(g.count):
        move = _move_of(tb, d, g, ply)
        if move < 0:
            return -1 - ply
        if _is_wanted(d, g, ply, move):
            sample = sample_at(samples + written * SAMPLE_BYTES)
            pos = d.frame.position
            write_pieces(pos, sample)
            white = np.int64(g.scores[ply])
            sample.score = white if pos.side == 0 else -white
            sample.result = g.result if pos.side == 0 else 2 - g.result
            written += 1
        make_move(tb, d.before, d.frame.position, move)
    return written
