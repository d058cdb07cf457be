"""Futility, extended futility, limited razoring: margins to the centipawn, exempt moves (Heinz 1998 and 2000)."""

from __future__ import annotations

from dataclasses import replace

import chess
import numpy as np
import pytest
from inspect_pruning import PruningProbe
from pruning_probes import GAINS, IN_CHECK, QUIET, base_of, code, probe_of

from psearch_core.chess.board.bridge import from_chess_move
from psearch_core.constants import INFINITE, MATE, MATE_IN_MAX_PLY, NO_SCORE
from psearch_core.records.pruning_record import AEL


@pytest.mark.parametrize("by_material", [0, 1])
@pytest.mark.parametrize(("depth", "margin"), [(1, 300), (2, 500)])
def test_futility_at_the_margin(tables: np.ndarray, by_material: int, depth: int, margin: int) -> None:
    pruning = replace(AEL, futility_by_material=by_material)
    probe = probe_of(tables, QUIET, pruning)
    base = base_of(probe, by_material)
    probe.enter(depth, base + margin)
    assert int(probe.node["futility"]) == base + margin
    probe.enter(depth, base + margin - 1)
    assert int(probe.node["futility"]) == NO_SCORE
    off = probe_of(tables, QUIET, replace(pruning, futility=0, extended_futility=0))
    off.enter(depth, base + margin)
    assert int(off.node["futility"]) == NO_SCORE


def test_evaluation_and_material_differ_here(tables: np.ndarray) -> None:
    """Else the tests above could not tell them apart."""
    probe = probe_of(tables, QUIET, AEL)
    assert probe.material() != probe.evaluate()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_futility_in_check_or_near_mate(tables: np.ndarray, depth: int) -> None:
    checked = probe_of(tables, IN_CHECK, AEL)
    checked.enter(depth, 20_000)
    assert (int(checked.node["futility"]), int(checked.node["depth"])) == (NO_SCORE, depth)
    probe = probe_of(tables, QUIET, AEL)
    for alpha, beta in ((MATE_IN_MAX_PLY, None), (MATE - 5, None), (5000, MATE_IN_MAX_PLY), (5000, INFINITE)):
        probe.enter(depth, alpha, beta)
        assert (int(probe.node["futility"]), int(probe.node["depth"])) == (NO_SCORE, depth), (alpha, beta)
    probe.enter(depth, 5000)
    assert int(probe.node["futility"]) != NO_SCORE


def test_nothing_is_futile_deeper(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, AEL)
    for depth in range(4, 12):
        probe.enter(depth, 20_000)
        assert (int(probe.node["futility"]), int(probe.node["depth"])) == (NO_SCORE, depth)


def test_extended_nodes_are_spared_at_depth_2_and_3_only(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, AEL)
    for depth, spared in ((1, False), (2, True), (3, True)):
        probe.enter(depth, 20_000, extended=1)
        assert (int(probe.node["futility"]) == NO_SCORE) == spared
        assert int(probe.node["depth"]) == depth


def test_limited_razoring_takes_a_ply_off(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, AEL)
    base = probe.material()
    probe.enter(3, base + 900)
    assert (int(probe.node["depth"]), int(probe.node["futility"])) == (2, base + 500)
    probe.enter(3, base + 899)
    assert (int(probe.node["depth"]), int(probe.node["futility"])) == (3, NO_SCORE)
    assert probe.counts()["limited_razoring"] == (2, 1)
    alone = probe_of(tables, QUIET, replace(AEL, extended_futility=0))
    alone.enter(3, base + 900)
    assert (int(alone.node["depth"]), int(alone.node["futility"])) == (2, NO_SCORE)
    off = probe_of(tables, QUIET, replace(AEL, limited_razoring=0))
    off.enter(3, base + 900)
    assert int(off.node["depth"]) == 3 and off.counts()["limited_razoring"] == (0, 0)


@pytest.mark.parametrize(
    ("black", "razored"), [("1n1qk3", False), ("1nbqk3", False), ("1nbqkb2", True), ("rnbqkbnr", True), ("4k3", False)]
)
def test_limited_razoring_needs_four_enemy_pieces(tables: np.ndarray, black: str, razored: bool) -> None:
    """Own pieces and pawns do not count."""
    probe = probe_of(tables, f"{black}/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1", AEL)
    probe.enter(3, 20_000)
    assert (int(probe.node["depth"]) == 2) == razored


@pytest.mark.parametrize(("fen", "uci", "gain"), GAINS)
def test_a_futile_move_with_its_gain(tables: np.ndarray, fen: str, uci: str, gain: int) -> None:
    """Pruned while futility + gain <= alpha; the greatest such bound is the node's best value."""
    probe = probe_of(tables, fen, replace(AEL, exempt_checks=0))
    move = code(fen, uci)
    bound = probe.material() + AEL.futility_margin + gain
    probe.enter(1, bound)
    assert probe.prunes_move(move)
    assert int(probe.node["best"]) == bound
    probe.node["best"] = bound + 1
    assert probe.prunes_move(move) and int(probe.node["best"]) == bound + 1
    assert probe.counts()["futility"] == (2, 2)
    if gain:
        probe.enter(1, bound - 1)
        assert int(probe.node["futility"]) != NO_SCORE
        assert not probe.prunes_move(move)
        assert int(probe.node["best"]) == -INFINITE
        without = probe_of(tables, fen, replace(AEL, exempt_checks=0, futility_captures=0))
        without.enter(1, 5000)
        assert not without.prunes_move(move)


def test_depth_2_counts_as_extended_futility(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, AEL)
    probe.enter(2, 5000)
    assert probe.prunes_move(code(QUIET, "a2a3"))
    assert probe.counts()["extended_futility"] == (1, 1) and probe.counts()["futility"] == (0, 0)


CHECKS = [
    ("4k3/8/8/8/8/8/8/3RK3 w - - 0 1", "d1d8"),
    ("4k3/8/8/8/4N3/8/8/4R1K1 w - - 0 1", "e4c3"),
    ("5k2/8/8/8/8/8/8/4K2R w K - 0 1", "e1h1"),
    ("8/3P1k2/8/8/8/8/8/4K3 w - - 0 1", "d7d8n"),
    ("8/8/8/R2pP2k/8/8/8/4K3 w - d6 0 1", "e5d6"),
]


@pytest.mark.parametrize(("fen", "uci"), CHECKS)
@pytest.mark.parametrize("exempt", [0, 1])
def test_checks_are_exempt(tables: np.ndarray, fen: str, uci: str, exempt: int) -> None:
    probe = probe_of(tables, fen, replace(AEL, exempt_checks=exempt))
    board = chess.Board(fen, chess960=True)
    probe.enter(1, 10_000)
    assert probe.prunes_move(from_chess_move(chess.Move.from_uci(uci), board)) == (not exempt)


EXEMPTIONS = [
    # switch, position, exempt moves, moves that are not
    ("exempt_seventh", "4k3/8/P6R/8/8/8/8/4K1Q1 w - - 0 1", ["a6a7", "h6h7", "g1g7"], ["h6h5", "g1g6"]),
    ("exempt_seventh", "1k6/8/3B1N2/8/8/8/8/4K3 w - - 0 1", [], ["d6e7", "f6g8"]),
    ("exempt_bishop_pair", "r1b1k3/8/8/3b4/4P3/8/8/4K3 w - - 0 1", ["e4d5"], ["e4e5"]),
    ("exempt_bishop_pair", "r3k3/8/8/3b4/4P3/8/8/4K3 w - - 0 1", [], ["e4d5"]),
    ("exempt_bishop_pair", "2b1kb2/8/8/3n4/4P3/8/8/4K3 w - - 0 1", [], ["e4d5"]),
    ("exempt_advanced_pawn", "4k3/8/8/8/8/3p4/2P1p3/4R1K1 w - - 0 1", ["c2d3", "e1e2"], ["c2c4"]),
    ("exempt_advanced_pawn", "4k3/8/8/8/3p4/2P5/8/4K3 w - - 0 1", [], ["c3d4"]),
    ("exempt_advanced_pawn", "r3k3/8/8/8/8/3n4/2P5/7K w - - 0 1", [], ["c2d3"]),
    ("exempt_queen", "r3k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1", ["e4d5"], ["e4e5"]),
    ("exempt_queen", "r3k3/8/8/3r4/4P3/8/8/4K3 w - - 0 1", [], ["e4d5"]),
]


@pytest.mark.parametrize(("switch", "fen", "exempt", "others"), EXEMPTIONS)
def test_exemptions(tables: np.ndarray, switch: str, fen: str, exempt: list[str], others: list[str]) -> None:
    """Both colours have these exemptions; with the switch off all these moves are futile."""
    for mirrored in (False, True):
        board = chess.Board(fen).mirror() if mirrored else chess.Board(fen)
        for on in (0, 1):
            probe = PruningProbe(tables, replace(AEL, exempt_checks=0, **{switch: on}), board)
            for uci in exempt + others:
                move = chess.Move.from_uci(uci)
                if mirrored:
                    move = chess.Move(move.from_square ^ 56, move.to_square ^ 56)
                assert move in board.legal_moves, uci
                probe.enter(1, 10_000)
                assert probe.prunes_move(from_chess_move(move, board)) == (not (on and uci in exempt)), (uci, on)
