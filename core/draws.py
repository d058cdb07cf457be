"""Draws by rule: fifty moves, repetition, insufficient material."""

from __future__ import annotations

import numpy as np

from psearch.core.constants import U0
from psearch.core.jit import kernel
from psearch.core.movegen import generate_captures, generate_quiets
from psearch.core.position import find_pins, insufficient_material
from psearch.core.records import (
    STACK_SIZE,
    Context,
    Position,
    Stack,
    Worker,
    boolean,
    frame_at,
    header_at,
    i64,
    stack_at,
    tables_at,
)


@kernel(boolean(Context, Stack, Position, i64))
def is_repetition(ctx, st, pos, ply):
    """A position seen before in this search, or twice before in the game."""
    hd = header_at(ctx.header)
    limit = min(np.int64(pos.reversible), ply + hd.history_count)
    key = pos.key
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


@kernel(boolean(Context, Worker, i64))
def has_legal_move(ctx, wk, frame):
    fr = frame_at(frame)
    tb = tables_at(ctx.tables)
    find_pins(tb, fr.position)
    return generate_captures(tb, fr.position, fr.node, 0) + generate_quiets(tb, fr.position, fr.node, 0) > 0


@kernel(boolean(Context, Worker, i64))
def is_draw(ctx, wk, frame):
    """Draw by the fifty-move rule (not when mated on the hundredth ply), repetition, or insufficient material."""
    pos = frame_at(frame).position
    if pos.rule50 >= 4:
        if pos.rule50 >= 100 and (pos.checkers == U0 or has_legal_move(ctx, wk, frame)):
            return True
        if is_repetition(ctx, stack_at(ctx.stacks + wk.stack * STACK_SIZE), pos, wk.ply):
            return True
    return insufficient_material(pos)
