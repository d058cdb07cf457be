"""Perft: counts leaves of the legal move tree, the last ply by counting moves without making them."""

from __future__ import annotations

from psearch_core.chess.board.movegen import count_legal, generate_captures, generate_quiets
from psearch_core.chess.board.position import find_pins, make_move
from psearch_core.chess.chess_entries import PERFT
from psearch_core.constants import MOVE_MASK
from psearch_core.records import FRAME_SIZE, MAX_PLY
from psearch_core.toolchain.intrinsics import check
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import Tables, frame_at, i64, tables_at


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
    """Leaves below the position in the first frame.

    tables: address of the tables; frames: address of at least depth + 1 frames, the first one holding a complete
    position; 0 <= depth < MAX_PLY.
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
