"""Sound futility: skips moves that provably cannot raise alpha before they are made.

At node P side S is to move, and a legal move m leads to the child C, a quiescence node. C stands pat on its evaluation
E(C), which is M(C) + rest with |rest| <= B, or that scaled towards zero. So for S the move is worth at most U(m) = M(C)
+ B, where M(C) is the tapered piece-square sum of C seen by S. If U(m) <= alpha, m cannot raise alpha. The proof needs
several gates. Each has a bit, so that tests can show that it fails without the gate (docs/design/soundness.md).

The idea is Heinz's (2000, "scalable search in computer chess", futility pruning at frontier nodes, `max_posn_score`).
"""

from psearch_core.chess.board.attacks import bit, move_from, move_kind, move_to
from psearch_core.chess.board.checks import gives_check
from psearch_core.chess.board.draws import repeats
from psearch_core.chess.board.position import code_on
from psearch_core.chess.evaluation.endgames import SCALING_PHASE
from psearch_core.chess.evaluation.evaluate import PHASE_MAX, taper
from psearch_core.chess.pruning.counters import count_pruned, count_tried
from psearch_core.constants import DRAW, KIND_CASTLE, KIND_EP, KIND_PROMOTE, KNIGHT, NO_SCORE, PAWN, QUEEN, ROOK, U0
from psearch_core.records import (
    SOUND_BOOKKEEPING,
    SOUND_BOUND,
    SOUND_CASTLING,
    SOUND_CHECKS,
    SOUND_EN_PASSANT,
    SOUND_FIFTY_MOVES,
    SOUND_FRONTIER,
    SOUND_LEGALITY,
    SOUND_MATERIAL,
    SOUND_PHASE,
    SOUND_PROMOTION,
    SOUND_REPETITION,
    SOUND_SCALING,
)
from psearch_core.techniques import SOUND, SOUND_DELTA
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Node, Position, Tables, Worker, boolean, header_of, i64, stack_of, tables_of


@kernel(i64(Position, i64, i64))
def _victim_square(pos, move, gates):
    """Return the square on which a move captures, if it does: the target, except for en passant."""
    to = move_to(move)
    return to ^ 8 if move_kind(move) == KIND_EP and gates & SOUND_EN_PASSANT else to


@kernel(i64(Tables, Position, i64))
def _phase_after(tb, pos, move):
    """Return the game phase after a legal move, not limited to PHASE_MAX."""
    phase = pos.phase
    kind = move_kind(move)
    if kind in (KIND_CASTLE, KIND_EP):
        return phase
    if kind >= KIND_PROMOTE:
        phase += tb.phase[kind - KIND_PROMOTE + KNIGHT + 1] - tb.phase[PAWN + 1]
    victim = code_on(pos, move_to(move))
    return phase - tb.phase[victim] if victim != 0 else phase


@kernel(i64(Tables, Position, i64, i64))
def material_after(tb, pos, move, gates):
    """Return M after a legal move, for the side that makes it; exactly equal to the incremental sums."""
    side = pos.side
    origin = move_from(move)
    to = move_to(move)
    kind = move_kind(move)
    code = code_on(pos, origin)
    middle_game = pos.psq_mg
    end_game = pos.psq_eg
    phase = _phase_after(tb, pos, move) if gates & SOUND_PHASE else pos.phase
    if kind == KIND_CASTLE:
        if gates & SOUND_CASTLING:
            rook = side * 8 + ROOK + 1
            short = to > origin
            king_to = side * 56 + (6 if short else 2)
            rook_to = side * 56 + (5 if short else 3)
            middle_game += tb.psq_mg[code, king_to] - tb.psq_mg[code, origin]
            middle_game += tb.psq_mg[rook, rook_to] - tb.psq_mg[rook, to]
            end_game += tb.psq_eg[code, king_to] - tb.psq_eg[code, origin]
            end_game += tb.psq_eg[rook, rook_to] - tb.psq_eg[rook, to]
    else:
        placed = code
        if kind >= KIND_PROMOTE and gates & SOUND_PROMOTION:
            placed = side * 8 + kind - KIND_PROMOTE + KNIGHT + 1
        middle_game += tb.psq_mg[placed, to] - tb.psq_mg[code, origin]
        end_game += tb.psq_eg[placed, to] - tb.psq_eg[code, origin]
        square = _victim_square(pos, move, gates)
        victim = code_on(pos, square)
        if victim != 0:
            middle_game -= tb.psq_mg[victim, square]
            end_game -= tb.psq_eg[victim, square]
    value = taper(middle_game, end_game, min(phase, PHASE_MAX))
    return -value if side else value


@kernel(boolean(Position, i64))
def _leaves_enough(pos, move):
    """Tell whether a pawn, a rook or a queen is certainly left after a capture or promotion."""
    kind = move_kind(move)
    if kind >= KIND_PROMOTE + ROOK - KNIGHT:
        return True
    heavy_bb = (pos.piece_bb[PAWN] | pos.piece_bb[ROOK] | pos.piece_bb[QUEEN]) & ~bit(move_to(move))
    if kind == KIND_EP:
        return True  # the capturing pawn stays
    if kind >= KIND_PROMOTE:
        heavy_bb &= ~bit(move_from(move))
    return heavy_bb != U0


@kernel(boolean(Context, i64, Position, Node, i64, i64))
def _cannot_be_drawn(ctx, stack, pos, node, move, gates):
    """Tell whether the position after a move is certainly no draw, and its evaluation not scaled towards one.

    stack: stack whose path leads to the node. The node itself is no draw, or it would not be searched.
    """
    origin = move_from(move)
    to = move_to(move)
    kind = move_kind(move)
    code = code_on(pos, origin)
    tb = tables_of(ctx)
    if gates & SOUND_SCALING and _phase_after(tb, pos, move) <= SCALING_PHASE:
        return False
    if kind == KIND_CASTLE:
        return gates & SOUND_FIFTY_MOVES == 0 or pos.rule50 < 99
    if kind == KIND_EP or kind >= KIND_PROMOTE or pos.board[to] != 0:
        return gates & SOUND_MATERIAL == 0 or _leaves_enough(pos, move)
    if (code & 7) - 1 == PAWN:
        return True
    if gates & SOUND_FIFTY_MOVES and pos.rule50 >= 99:
        return False
    if gates & SOUND_REPETITION and pos.reversible >= 3:
        # if castling rights are lost, the real key differs, and this one is just not found
        key = pos.key ^ tb.zobrist_piece[code, origin] ^ tb.zobrist_piece[code, to] ^ tb.zobrist_side
        if pos.ep >= 0:
            key ^= tb.zobrist_ep[pos.ep & 7]
        path = stack_of(ctx, stack)
        return not repeats(ctx, path, key, pos.reversible + 1, node.ply + 1)
    return True


@kernel(i64(Context, i64, Position, Node, i64))
def sound_bound(ctx, stack, pos, node, move):
    """Return an upper bound of a move's value that is provably at most alpha, or NO_SCORE if it must be searched.

    pos: position of the node; stack: stack of the node. Called under the lock if the node is open.
    """
    pruning = header_of(ctx).options.pruning
    gates = pruning.sound_gates
    depth = node.depth
    # the child must stand pat: depth - 1 + extensions <= 0, and no check. All root moves need their value
    if node.ply == 0 or depth > 2 or (depth == 2 and gates & SOUND_FRONTIER):
        return NO_SCORE
    if depth > 0 and node.extension > 0 and move == node.tt_move:
        return NO_SCORE
    tb = tables_of(ctx)
    alpha = node.alpha
    bound = material_after(tb, pos, move, gates)
    if gates & SOUND_BOUND:
        bound += tb.rest_bound
    if bound > alpha:
        return NO_SCORE
    if bound < DRAW and not _cannot_be_drawn(ctx, stack, pos, node, move, gates):
        bound = DRAW
        if bound > alpha:
            return NO_SCORE
    if gates & SOUND_CHECKS and gives_check(tb, pos, move):
        return NO_SCORE
    return bound


@kernel(boolean(Context, Worker, i64, Position, Node, i64))
def skips_soundly(ctx, wk, stack, pos, node, move):
    """Tell whether a move is skipped. A skipped move counts as legal, and its bound goes into `best`."""
    technique = SOUND if node.depth > 0 else SOUND_DELTA
    count_tried(wk, technique)
    bound = sound_bound(ctx, stack, pos, node, move)
    if bound == NO_SCORE:
        return False
    gates = header_of(ctx).options.pruning.sound_gates
    count_pruned(wk, technique)
    if gates & SOUND_LEGALITY:
        node.moves_done += 1
    if gates & SOUND_BOOKKEEPING and bound > node.best:
        node.best = bound
    return True
