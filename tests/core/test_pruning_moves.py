"""Decisions about a move: what is left out, reduced and extended, to the centipawn."""

from __future__ import annotations

import chess
import numpy as np
import pytest
from pruning_probes import GAINS, IN_CHECK, PAWNS, QUIET, code, probe_of, searched_one, with_only

from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.chess.ordering.movepick import PICK_BAD_CAPTURES, PICK_CAPTURES, PICK_QUIETS
from psearch_core.constants import ALL_NODE, CUT_NODE, INFINITE, MATE, MATE_IN_MAX_PLY, PASS_IID, PV_NODE, SKIP_QUIETS
from psearch_core.records.pruning_record import MODERN, PLAIN


@pytest.mark.parametrize("improving", [0, 1])
def test_late_move_pruning_counts_moves(tables: np.ndarray, improving: int) -> None:
    probe = probe_of(tables, QUIET, lmp=1)
    move = code(QUIET, "a2a3")
    for depth in range(1, 10):
        limit = (MODERN.lmp_base + depth * depth) // (2 - improving)
        for done in (limit - 1, limit, limit + 7):
            searched_one(probe, depth, 0, done, improving=improving)
            pruned = depth <= 8 and done >= limit
            assert probe.prunes_move(move) == pruned, (depth, done)
            assert int(probe.node["skip"]) == (SKIP_QUIETS if pruned else 0)


@pytest.mark.parametrize("technique", ["lmp", "move_futility"])
def test_the_first_late_move_takes_all_others_along(tables: np.ndarray, technique: str) -> None:
    """Once one quiet move is pruned so are those left on the list, and counted; those that give check stay."""
    fen = "4k3/2P5/8/3p4/2N1P3/8/8/R3K2Q w - - 0 1"
    board = chess.Board(fen)
    probe = probe_of(tables, fen, **{technique: 1}, lmp_base=-9999, move_futility_base=-9999)
    order = probe.pick_order()
    quiets = [move for stage, move in order if stage == PICK_QUIETS]
    for number, move in enumerate(quiets):
        probe.enter(4, 0, None, best=-100, moves_done=number + 1)
        probe.pick_order(limit=[code for _, code in order].index(move) + 1)
        before = probe.counts()[technique]
        left = quiets[number + 1 :]
        stay = [code for code in left if probe.gives_check(code) or to_chess_move(code, board).promotion]
        if probe.gives_check(move) or to_chess_move(move, board).promotion:
            assert not probe.prunes_move(move)
            continue
        assert probe.prunes_move(move)
        assert {code for stage, code in probe.pick_rest() if stage == PICK_QUIETS} == set(stay)
        tried, pruned = probe.counts()[technique]
        assert (tried - before[0], pruned - before[1]) == (1 + len(left) - len(stay),) * 2
    assert any(probe.gives_check(code) for code in quiets) and len(quiets) > 20


@pytest.mark.parametrize("technique", ["lmp", "move_futility"])
def test_a_killer_that_is_pruned_takes_quiet_moves_along(tables: np.ndarray, technique: str) -> None:
    """They are not generated then, but those that give check, and promotions to less than a queen, are."""
    fen = "4k3/2P5/8/3p4/2N1P3/8/8/R3K2Q w - - 0 1"
    board = chess.Board(fen)
    probe = probe_of(tables, fen, **{technique: 1}, lmp_base=-9999, move_futility_base=-9999)
    killer = code(fen, "c4e3")
    quiets = {move for stage, move in probe.pick_order() if stage == PICK_QUIETS}
    probe.enter(4, 0, None, best=-100, moves_done=1)
    order = [move for _, move in probe.pick_order(killers=(killer, 0))]
    probe.enter(4, 0, None, best=-100, moves_done=1)
    probe.pick_order(killers=(killer, 0), limit=order.index(killer) + 1)
    assert probe.prunes_move(killer) and int(probe.node["skip"]) == SKIP_QUIETS
    promotions = {move for move in quiets if to_chess_move(move, board).promotion}
    rest = {move for stage, move in probe.pick_rest() if stage == PICK_QUIETS}
    assert rest == promotions | {move for move in quiets if probe.gives_check(move)}
    assert len(promotions) == 3 < len(rest)


def test_move_futility_at_the_margin(tables: np.ndarray) -> None:
    """The margin is that of the depth after reduction: far down the list it is smaller."""
    probe = probe_of(tables, QUIET, move_futility=1)
    move = code(QUIET, "a2a3")
    record = with_only(move_futility=1).record()
    for depth in range(1, 9):
        for done in (1, 5, 20):
            reduced = max(0, depth - 1 - (int(record["reductions"][depth, done]) >> 8))
            bound = probe.evaluate() + MODERN.move_futility_base + MODERN.move_futility_margin * reduced
            searched_one(probe, depth, bound, done)
            assert probe.prunes_move(move) == (reduced <= 6), (depth, done)
            assert int(probe.node["best"]) == (bound if reduced <= 6 else bound - 100)
            searched_one(probe, depth, bound - 1, done)
            assert not probe.prunes_move(move)


def test_history_pruning_at_the_margin(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, history_pruning=1)
    move = code(QUIET, "a2a3")
    for depth, reduced in ((1, 0), (2, 0), (3, 1)):
        limit = -MODERN.history_pruning_margin * (reduced + 1)
        for history, pruned in ((limit, False), (limit - 1, True)):
            probe.learning["quiet"][0, 0, 0, move & 4095] = history
            searched_one(probe, depth, 0, 2)
            assert probe.prunes_move(move) == pruned, depth
    probe.learning["quiet"][0, 0, 0, move & 4095] = -8192
    searched_one(probe, 12, 0, 2)
    assert not probe.prunes_move(move), "too deep"


def test_see_pruning_of_quiets_and_captures(tables: np.ndarray) -> None:
    # the knight goes where a pawn takes it; the queen takes a pawn that a pawn protects
    fen = "4k3/2p5/1p6/8/2N1N3/8/6p1/Q3K3 w - - 0 1"
    probe = probe_of(tables, fen, see_quiets=1)
    for depth in range(2, 12):
        reduced = depth - 1 - (int(PLAIN.record()["reductions"][depth, 1]) >> 8)
        searched_one(probe, depth, 0)
        loses = 20 * reduced * reduced < 300
        assert probe.prunes_move(code(fen, "c4a5")) == (loses and reduced <= 8), depth
        searched_one(probe, depth, 0)
        assert not probe.prunes_move(code(fen, "c4d2")), "loses nothing"
    fen = "4k3/2p5/1p6/8/8/1Q6/8/4K3 w - - 0 1"
    captures = probe_of(tables, fen, see_captures=1)
    for depth in range(1, 12):
        searched_one(captures, depth, 0)
        assert captures.prunes_move(code(fen, "b3b6")) == (95 * depth < 800 and depth <= 8), depth
        searched_one(captures, depth, 0)
        assert not captures.prunes_move(code(fen, "b3b4"))


ALL_MOVE_TECHNIQUES = with_only(
    lmp=1,
    lmp_base=-9999,
    move_futility=1,
    history_pruning=1,
    history_pruning_margin=-9999,
    see_quiets=1,
    see_captures=1,
    see_captures_margin=-999,
    see_quiets_margin=-999,
)


def test_what_no_technique_prunes(tables: np.ndarray) -> None:
    """Quiet checks, the first move, moves at the root, while being mated, with bare pawns; quiet moves in check."""
    check = "4k3/8/8/3p4/4P3/8/7R/1N2K3 w - - 0 1"
    for fen, uci, changed, pruned in (
        (check, "h2h3", {}, True),
        (check, "e4d5", {}, True),
        (check, "h2h8", {}, False),
        (check, "h2h3", {"best": -INFINITE}, False),
        (check, "e4d5", {"best": -INFINITE}, False),
        (check, "h2h3", {"best": 12 - MATE}, False),
        (check, "h2h3", {"ply": 0}, False),
        (check, "h2h3", {"pass_kind": PASS_IID}, True),
        (PAWNS, "e2e3", {}, False),
        ("4k3/8/8/8/7b/8/8/R3K3 w - - 0 1", "e1d1", {}, False),
    ):
        probe = probe_of(tables, fen, ALL_MOVE_TECHNIQUES)
        probe.enter(2, 5000, None, **{"best": 0, "moves_done": 5, **changed})
        assert probe.prunes_move(code(fen, uci)) == pruned, (fen, uci, changed)


def test_delta_at_the_margin(tables: np.ndarray) -> None:
    for fen, uci, gain in GAINS:
        if gain == 0:
            continue
        probe = probe_of(tables, fen, delta=1)
        bound = probe.evaluate() + MODERN.delta_margin + gain
        probe.enter(0, bound)
        probe.node["best"] = probe.evaluate()
        assert probe.prunes_capture(code(fen, uci)) and int(probe.node["best"]) == bound
        probe.enter(0, bound - 1)
        assert not probe.prunes_capture(code(fen, uci))
        probe.enter(0, MATE_IN_MAX_PLY)
        assert not probe.prunes_capture(code(fen, uci))
        off = probe_of(tables, fen, PLAIN)
        off.enter(0, bound)
        assert not off.prunes_capture(code(fen, uci)) and off.counts()["delta"] == (0, 0)


def test_check_extension(tables: np.ndarray) -> None:
    """0: none; 1: checks that lose nothing; 2: all. Never in a line that is long already."""
    fen = "4k3/8/8/2b5/8/8/R7/4K2R w K - 0 1"
    safe, losing = code(fen, "h1h8"), code(fen, "a2e2")
    hanging = "3qk3/8/8/8/8/8/R7/4K3 w - - 0 1"
    for setting, extended in ((0, (0, 0)), (1, (1, 0)), (2, (1, 1))):
        probe = probe_of(tables, fen, check_extension=setting)
        probe.enter(5, 0)
        assert probe.extension(safe, gives=True) == extended[0]
        assert probe.extension(safe, gives=False) == 0
        assert probe.extension(safe, gives=True, within=False) == 0
        probe = probe_of(tables, hanging, check_extension=setting)
        probe.enter(5, 0)
        assert probe.extension(code(hanging, "a2a8"), gives=True) == extended[1]
    assert losing != safe
    probe = probe_of(tables, fen, check_extension=1, check_extension_depth=4)
    for depth, plies in ((4, 1), (5, 0)):
        probe.enter(depth, 0)
        assert probe.extension(safe, gives=True) == plies


def test_singular_extension_is_for_the_table_move_in_the_main_phase(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, singular=1)
    move, other = code(QUIET, "a2a3"), code(QUIET, "h2h3")
    for extension in (-1, 1, 2):
        probe.enter(8, 0, None, tt_move=move, extension=extension)
        assert probe.extension(move, gives=False) == extension
        assert probe.extension(other, gives=False) == 0
        assert probe.extension(move, gives=False, within=False) == min(extension, 0)
        probe.enter(8, 0, None, tt_move=move, extension=extension, pass_kind=PASS_IID)
        assert probe.extension(move, gives=False) == 0


def test_late_move_reduction(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, lmr=1)
    record = with_only(lmr=1).record()
    move = code(QUIET, "a2a3")
    for depth in (1, 2, 3, 6, 12, 30):
        for index in (0, 1, 2, 3, 10, 40):
            for kind, pv, expected in (("CUT", False, CUT_NODE), ("ALL", False, ALL_NODE), ("PV", True, PV_NODE)):
                for improving in (0, 1):
                    probe.enter(depth, 0, 50 if pv else None, kannan_type=expected, improving=improving)
                    plies = int(record["reductions"][depth, index])
                    plies += 256 * (kind == "CUT") - 256 * pv + 128 * (not improving)
                    none = depth < 3 or index < (3 if pv else 2)
                    assert probe.reduction(move, index) == (0 if none else max(0, plies >> 8)), (depth, index, kind)


def test_what_reduces_less(tables: np.ndarray) -> None:
    fen = "4k3/2p5/1p6/8/8/1Q6/8/4K3 w - - 0 1"
    probe = probe_of(tables, fen, lmr=1, lmr_base=100, lmr_tt_capture=100)
    quiet, capture = code(fen, "b3c3"), code(fen, "b3b6")

    def reduction(move: int, picked: int = PICK_QUIETS, gives: bool = False, cutoffs: int = 0, **fields: int) -> int:
        probe.enter(12, 0, None, improving=1, **fields)
        return probe.reduction(move, 20, picked, gives, cutoffs)

    plain = reduction(quiet)
    assert plain >= 3
    assert reduction(quiet, gives=True) == plain - 1
    assert reduction(quiet, killer_1=quiet) == reduction(quiet, killer_2=quiet) == plain - 1
    assert reduction(capture, PICK_CAPTURES) == 0
    assert reduction(capture, PICK_BAD_CAPTURES) == plain - 1
    assert reduction(quiet, tt_move=capture) == plain + 1
    assert reduction(quiet, tt_move=quiet) == plain
    for cutoffs in (3, 4):
        assert reduction(quiet, tt_move=capture, cutoffs=cutoffs, ply=1) == plain + (1 if cutoffs == 3 else 3)
    assert reduction(quiet, cutoffs=9, ply=0) == plain
    probe.learning["quiet"][0, 0, 0, quiet & 4095] = MODERN.lmr_history
    assert reduction(quiet) == plain - 1
    probe.learning["quiet"][0, 0, 0, quiet & 4095] = -MODERN.lmr_history
    assert reduction(quiet) == plain + 1
    probe.learning["quiet"][0, 0, 0, quiet & 4095] = 0
    checked = probe_of(tables, IN_CHECK, lmr=1)
    checked.enter(12, 0)
    assert checked.reduction(code(IN_CHECK, "e1d1"), 20) == 0
    off = probe_of(tables, fen, PLAIN)
    off.enter(12, 0)
    assert off.reduction(quiet, 20) == 0
