"""The move picker: every legal move once, in the order promised, whatever the table and the killers hold."""

from __future__ import annotations

import random

import chess
import numpy as np
import pytest
from inspect_node import NodeProbe, greatest_of
from positions import KIWIPETE, absurd, sample

from psearch_core.chess.board.attacks import move_kind
from psearch_core.chess.board.bridge import from_chess_move, to_chess_move
from psearch_core.chess.ordering.movepick import (
    PICK_BAD_CAPTURES,
    PICK_CAPTURES,
    PICK_CAPTURES_START,
    PICK_KILLER_2,
    PICK_QUIETS,
    PICK_QUIETS_START,
)
from psearch_core.chess.ordering.see import SEE_VALUES
from psearch_core.chess.tables import make_tables
from psearch_core.constants import HISTORY_MAX, KIND_PROMOTE, NO_MOVE

# the stage the picker is left in tells which kind of move it gave out; in the order they come
TT, GOOD, KILLER_1, KILLER_2, QUIET, BAD = range(6)
KINDS = {
    PICK_CAPTURES_START: TT,
    PICK_CAPTURES: GOOD,
    PICK_KILLER_2: KILLER_1,
    PICK_QUIETS_START: KILLER_2,
    PICK_QUIETS: QUIET,
    PICK_BAD_CAPTURES: BAD,
}
CHECKS = {
    "standard": lambda: sample(31, 500),
    "chess960": lambda: sample(32, 300, chess960=True),
    "absurd": lambda: absurd(33, 150),
}


@pytest.fixture(scope="module")
def probe() -> NodeProbe:
    return NodeProbe(make_tables())


def any_code(probe: NodeProbe, dice: random.Random, others: list[int]) -> int:
    """A legal move, a legal move of another position, garbage, or nothing."""
    return dice.choice((dice.choice(probe.legal_moves()), dice.choice(others), dice.randrange(1 << 16), NO_MOVE))


def is_quiet(board: chess.Board, code: int) -> bool:
    move = to_chess_move(code, board)
    return not board.is_capture(move) and not move.promotion


def check_order(
    board: chess.Board, probe: NodeProbe, order: list[tuple[int, int]], tt_move: int, killers: tuple[int, int]
) -> set[int]:
    """Everything the picker promises; returns the kinds of moves seen."""
    legal = probe.legal_moves()
    codes = [code for _, code in order]
    kinds = [KINDS[stage] for stage, _ in order]
    assert sorted(codes) == sorted(legal)
    assert kinds == sorted(kinds)
    if tt_move in legal:
        assert codes[0] == tt_move and kinds[0] == TT
    assert (TT in kinds) == (tt_move in legal)
    captures = set(probe.captures())
    for kind, code in zip(kinds, codes, strict=True):
        if kind == TT:
            continue
        loses = not probe.see_at_least(code, 0)
        if kind in (GOOD, BAD):
            assert code in captures and loses == (kind == BAD)
        else:
            assert code not in captures
        if kind in (KILLER_1, KILLER_2):
            assert code == killers[kind - KILLER_1]
        # a killer is tried as a killer, or not at all
        wanted = code in killers and code != tt_move and is_quiet(board, code)
        assert wanted == (kind in (KILLER_1, KILLER_2))
    return set(kinds)


@pytest.mark.parametrize("kind", list(CHECKS))
def test_every_legal_move_once_and_in_order(probe: NodeProbe, kind: str) -> None:
    dice = random.Random(kind)
    boards = CHECKS[kind]()
    others = [NO_MOVE]
    seen: set[int] = set()
    checks = 0
    for board in boards:
        probe.set(board)
        checks += probe.in_check
        for _ in range(4):
            tt_move = any_code(probe, dice, others)
            killers = (any_code(probe, dice, others), any_code(probe, dice, others))
            if killers[0] == killers[1]:
                killers = (killers[0], NO_MOVE)  # learn_cutoff never writes the same move twice
            order = probe.pick_order(tt_move, killers)
            seen |= check_order(board, probe, order, tt_move, killers)
        others = probe.legal_moves()
    assert seen == set(KINDS.values())
    assert checks > 20


def test_every_code_as_table_move(probe: NodeProbe) -> None:
    """All 65,536 codes: a legal one comes first, any other is passed over."""
    for fen in (KIWIPETE, "2r3k1/1P1P4/8/3pP3/8/8/6p1/R3K2R w KQ d6 0 1", "4k3/8/8/8/8/5n2/8/R3K2R w KQ - 0 1"):
        probe.set(chess.Board(fen))
        plain = [code for _, code in probe.pick_order()]
        legal = set(plain)
        for code in range(1 << 16):
            given = [move for _, move in probe.pick_order(tt_move=code)]
            if code in legal:
                assert given == [code, *(move for move in plain if move != code)]
            else:
                assert given == plain


def test_captures_by_victim_then_attacker(probe: NodeProbe) -> None:
    for board in sample(34, 200):
        probe.set(board)
        values = []
        for stage, code in probe.pick_order():
            if KINDS[stage] == GOOD:
                move = to_chess_move(code, board)
                victim = board.piece_type_at(move.to_square)
                value = SEE_VALUES[victim - 1] if victim else 100 if board.is_en_passant(move) else 0
                attacker = board.piece_type_at(move.from_square) or 0
                # a queen promotion is worth about what it gains
                values.append(8 * value - attacker + (3000 if move.promotion else 0))
        assert values == sorted(values, reverse=True), board.fen()


def test_quiets_by_history(probe: NodeProbe) -> None:
    """The more a move has cut, the earlier; underpromotions behind all others."""
    random_numbers = np.random.default_rng(35)
    for board in sample(36, 100):
        probe.set(board)
        history = random_numbers.integers(-HISTORY_MAX, HISTORY_MAX, (2, 4096), endpoint=True)
        probe.learning["quiet"][0] = history[:, None]
        side = 0 if board.turn else 1
        scores = [
            -HISTORY_MAX - 1 if int(move_kind.py_func(code)) >= KIND_PROMOTE else history[side, code & 4095]
            for stage, code in probe.pick_order()
            if KINDS[stage] == QUIET
        ]
        assert scores == sorted(scores, reverse=True), board.fen()
    probe.learning["quiet"] = 0


def begin(probe: NodeProbe, board: chess.Board) -> None:
    probe.set(board)
    probe.worker[0] = 0
    probe.learning[0] = 0


def place_of(probe: NodeProbe, wanted: int) -> int:
    """Return how many moves the picker gives out until it comes to a move."""
    return [code for _, code in probe.pick_order()].index(wanted) + 1


def test_killers_differ_and_the_last_is_first(probe: NodeProbe) -> None:
    dice = random.Random(37)
    board = chess.Board(KIWIPETE)
    begin(probe, board)
    moves = probe.legal_moves()
    killers = probe.worker[0]["killers"]
    expected = [0, 0]
    for _ in range(300):
        move = dice.choice(moves)
        probe.pick_order(limit=place_of(probe, move))
        probe.learn_cutoff(move, ply=3, depth=4)
        if is_quiet(board, move) and move != expected[0]:
            expected = [move, expected[0]]
        assert killers[3].tolist() == expected
    assert expected[1] and np.count_nonzero(killers) == 2, "no other ply is touched"


def test_history_learns_within_bounds(probe: NodeProbe) -> None:
    """A cutoff raises the move and lowers the quiet moves tried before it; nothing leaves +-HISTORY_MAX."""
    dice = random.Random(38)
    board = chess.Board(KIWIPETE)
    begin(probe, board)
    quiets = [code for code in probe.legal_moves() if is_quiet(board, code)]
    for number in range(2000):
        cutter = dice.choice(quiets[: 3 + number % 20])
        tried = [code for _, code in probe.pick_order(limit=place_of(probe, cutter))]
        before = probe.learning[0]["quiet"][:, 0].astype(int)
        probe.learn_cutoff(cutter, ply=5, depth=dice.choice((1, 2, 3, 7, 20, 250)))
        after = probe.learning[0]["quiet"][:, 0].astype(int)
        assert np.abs(after).max() <= HISTORY_MAX
        changed = {int(code) for code in np.flatnonzero(after[0] != before[0])}
        lowered = {code & 4095 for code in tried if is_quiet(board, code)} - {cutter & 4095}
        # at the bounds a counter no longer moves
        assert changed <= lowered | {cutter & 4095}
        assert all(after[0, code] <= before[0, code] for code in lowered)
        assert after[0, cutter & 4095] >= before[0, cutter & 4095]
        assert lowered - changed <= {int(code) for code in np.flatnonzero(before[0] < -HISTORY_MAX // 2)}
        assert not after[1].any(), "the other side's"
    assert np.abs(probe.learning[0]["quiet"]).max() > HISTORY_MAX // 2


def test_a_move_from_an_attacked_square_has_a_history_of_its_own(probe: NodeProbe) -> None:
    board = chess.Board()
    begin(probe, board)
    move = from_chess_move(chess.Move.from_uci("g1f3"), board)
    for part, attacked in enumerate(([], [chess.F3], [chess.G1], [chess.G1, chess.F3])):
        probe.node["threats"] = int(chess.SquareSet(attacked))
        before = probe.learning[0]["quiet"].copy()
        probe.pick_order(limit=place_of(probe, move))
        probe.learn_cutoff(move, ply=3, depth=4)
        changed = probe.learning[0]["quiet"] - before
        assert changed[0, part, move & 4095] == 4 * 4 * 8
        changed[0, part] = 0
        assert not changed.any()
    probe.node["threats"] = 0


def test_the_move_that_keeps_cutting_comes_first(probe: NodeProbe) -> None:
    board = chess.Board()
    begin(probe, board)
    cutter = from_chess_move(chess.Move.from_uci("a2a3"), board)
    assert place_of(probe, cutter) > 1
    probe.pick_order(limit=place_of(probe, cutter))
    probe.learn_cutoff(cutter, ply=5, depth=3)
    assert place_of(probe, cutter) == 1


def test_the_greatest_entry_is_found_in_lists_of_any_length(kernels: None) -> None:
    dice = np.random.default_rng(5)
    for count in range(1, 80):
        entries = np.full(count + 8, (1 << 31) - 1, np.int32)  # what lies behind the last one is not taken
        for _ in range(10):
            entries[:count] = dice.choice(1 << 31, count, replace=False) - (1 << 30)
            assert greatest_of(entries.ctypes.data, count) == int(entries[:count].argmax()), count
    entries[0] = -(1 << 31)
    assert greatest_of(entries.ctypes.data, 1) == 0
