"""Draws by rule: fifty moves, repetition, insufficient material."""

from psearch_core.chess.board.movegen import generate_captures, generate_quiets
from psearch_core.chess.board.position import find_pins, insufficient_material
from psearch_core.constants import U0
from psearch_core.toolchain.jit import kernel
from psearch_core.views import Context, Frame, Stack, Worker, boolean, header_of, i64, stack_of, tables_of, u64


@kernel(boolean(Context, Stack, u64, i64, i64))
def repeats(ctx, st, key, reversible, ply):
    """Tell whether a position at this ply has occurred before in this search, or twice before in the game."""
    hd = header_of(ctx)
    limit = min(reversible, ply + hd.history_count)
    seen = 0
    back = 4
    while back <= limit:
        earlier = st.path[ply - back].key if back <= ply else hd.history[back - ply - 1]
        if earlier == key:
            if back < ply:
                return True
            seen += 1
            if seen == 2:
                return True
        back += 2
    return False


@kernel(boolean(Context, Worker, Frame))
def has_legal_move(ctx, wk, frame):
    tb = tables_of(ctx)
    find_pins(tb, frame.position)
    return generate_captures(tb, frame.position, frame.node, 0) + generate_quiets(tb, frame.position, frame.node, 0) > 0


@kernel(boolean(Context, Worker, Frame))
def is_draw(ctx, wk, frame):
    """Tell whether a position is drawn by the fifty-move rule (unless mate), repetition, or insufficient material."""
    pos = frame.position
    if pos.rule50 >= 4:
        if pos.rule50 >= 100 and (pos.checkers == U0 or has_legal_move(ctx, wk, frame)):
            return True
        path = stack_of(ctx, wk.stack)
        if repeats(ctx, path, pos.key, pos.reversible, wk.ply):
            return True
    return insufficient_material(pos)
