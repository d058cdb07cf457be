"""Micro-benchmarks of the compiled code: `pytest bench -n 0 --benchmark-only`. Whole searches: `psearch bench`.

Calls from Python cost about a microsecond each, so what is faster than that is repeated inside: the table shows time
per call of the benchmark, and `extra_info` (in `--benchmark-json`) how many operations or nodes a call holds.
"""

from __future__ import annotations

from typing import Any

import chess
import numpy as np
import pytest

from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.board.movegen import generate_captures, generate_quiets
from psearch_core.chess.board.position import find_pins, make_move
from psearch_core.chess.evaluation.evaluate import evaluate
from psearch_core.chess.evaluation.network import network_value
from psearch_core.chess.ordering.see import see_at_least
from psearch_core.chess.tables import make_tables
from psearch_core.records import FRAME_SIZE, MAX_PLY, PAWN_ENTRIES, evaluation_dtype, frame_dtype
from psearch_core.toolchain.jit import entry
from psearch_core.views import evaluation_at, frame_at, i64, tables_at

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
OPERATIONS = 100_000
HASH_MB = 16


# -- loops around one kernel: entries like any other, compiled and cached with the rest ----------------------


@entry(i64(i64, i64, i64))
def repeat_generate(tables, frame, times):
    """Generate all legal moves, pins included."""
    tb = tables_at(tables)
    fr = frame_at(frame)
    total = 0
    for _ in range(times):
        find_pins(tb, fr.position)
        fr.node.end = generate_quiets(tb, fr.position, fr.node, generate_captures(tb, fr.position, fr.node, 0))
        total += fr.node.end
    return total


@entry(i64(i64, i64, i64))
def repeat_make(tables, frame, times):
    """Make the frame's moves (`repeat_generate`), one after the other."""
    tb = tables_at(tables)
    fr = frame_at(frame)
    child = frame_at(frame + FRAME_SIZE)
    index = 0
    total = 0
    for _ in range(times):
        make_move(tb, fr.position, child.position, fr.node.moves[index] & 0xFFFF)
        total += child.position.rule50
        index = index + 1 if index + 1 < fr.node.end else 0
    return total


@entry(i64(i64, i64, i64, i64, i64))
def repeat_evaluate(tables, evaluation, frame, times, pawn_hash):
    """Evaluate a position for both sides in turn, so that the call cannot be moved out of the loop."""
    tb = tables_at(tables)
    ev = evaluation_at(evaluation)
    pos = frame_at(frame).position
    total = 0
    for i in range(times):
        pos.side = i & 1
        if pawn_hash == 0:
            ev.pawns[np.int64(pos.pawn_key & np.uint64(PAWN_ENTRIES - 1))].key = np.uint64(0)
        total += evaluate(tb, ev, pos) & 0xFF  # the sign turns: a plain sum would be 0
    pos.side = 0
    return total


@entry(i64(i64, i64, i64, i64))
def repeat_network(tables, evaluation, frame, times):
    """Evaluate the positions behind two moves of the frame in turn, by sums that the frame's position has left."""
    tb = tables_at(tables)
    ev = evaluation_at(evaluation)
    fr = frame_at(frame)
    first = frame_at(frame + FRAME_SIZE)
    second = frame_at(frame + 2 * FRAME_SIZE)
    make_move(tb, fr.position, first.position, fr.node.moves[0] & 0xFFFF)
    make_move(tb, fr.position, second.position, fr.node.moves[fr.node.end - 1] & 0xFFFF)
    total = network_value(tb, ev, fr.position, 0)
    for i in range(times):
        total += network_value(tb, ev, first.position if i & 1 else second.position, 1)
    return total


@entry(i64(i64, i64, i64))
def repeat_see(tables, frame, times):
    """Exchanges of the frame's first moves, the captures."""
    tb = tables_at(tables)
    fr = frame_at(frame)
    captures = generate_captures(tb, fr.position, fr.node, 0)
    index = 0
    passed = 0
    for i in range(times):
        if see_at_least(tb, fr.position, fr.node.moves[index] & 0xFFFF, (i & 255) - 128):
            passed += 1
        index = index + 1 if index + 1 < captures else 0
    return passed


@pytest.fixture(scope="module")
def tables() -> np.ndarray:
    return make_tables()


@pytest.fixture
def frames(tables: np.ndarray) -> np.ndarray:
    made = np.zeros(MAX_PLY, frame_dtype)
    set_position(tables, made["position"][:1], chess.Board(KIWIPETE))
    repeat_generate(tables.ctypes.data, made.ctypes.data, 1)
    return made


@pytest.mark.parametrize("loop", [repeat_generate, repeat_make, repeat_see], ids=lambda loop: loop.__name__)
def test_kernel(benchmark: Any, tables: np.ndarray, frames: np.ndarray, loop: Any) -> None:
    benchmark.extra_info["operations"] = OPERATIONS
    assert benchmark(loop, tables.ctypes.data, frames.ctypes.data, OPERATIONS) != 0


EVALUATED = {
    "opening": chess.STARTING_FEN,
    "middle game": KIWIPETE,
    "ending": "8/2p2k2/1p1p1p2/p2P1P1p/P2KP2P/1P4r1/5R2/8 w - - 0 1",
}


@pytest.mark.parametrize("stage", EVALUATED)
@pytest.mark.parametrize("pawn_hash", [True, False], ids=["pawn hash hit", "miss"])
def test_evaluation(benchmark: Any, tables: np.ndarray, stage: str, pawn_hash: bool) -> None:
    """A miss costs more where there are more pawns."""
    made = np.zeros(1, frame_dtype)
    set_position(tables, made["position"], chess.Board(EVALUATED[stage]))
    scratch = np.zeros(1, evaluation_dtype)
    benchmark.extra_info["operations"] = OPERATIONS
    addresses = tables.ctypes.data, scratch.ctypes.data, made.ctypes.data
    assert benchmark(repeat_evaluate, *addresses, OPERATIONS, 1 if pawn_hash else 0) != 0


@pytest.mark.parametrize("stage", EVALUATED)
def test_network(benchmark: Any, tables: np.ndarray, stage: str) -> None:
    """The sums of the previous position are known, as nearly always in a search."""
    made = np.zeros(3, frame_dtype)
    set_position(tables, made["position"][:1], chess.Board(EVALUATED[stage]))
    repeat_generate(tables.ctypes.data, made.ctypes.data, 1)
    scratch = np.zeros(1, evaluation_dtype)
    benchmark.extra_info["operations"] = OPERATIONS
    assert benchmark(repeat_network, tables.ctypes.data, scratch.ctypes.data, made.ctypes.data, OPERATIONS) != 0
