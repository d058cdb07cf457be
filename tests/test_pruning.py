"""Decisions of selective search, one at a time: conditions, margins to the centipawn, and what they never touch."""

from __future__ import annotations

import math
import random
from dataclasses import fields, replace

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psearch
from psearch.core.boards import from_chess_move, to_chess_move
from psearch.core.constants import (
    ALL_NODE,
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    CUT_NODE,
    INFINITE,
    MATE,
    MATE_IN_MAX_PLY,
    NO_SCORE,
    NULL_MOVE,
    PHASE_IID,
    PHASE_PROBCUT,
    PV_NODE,
    SKIP_QUIETS,
)
from psearch.core.inspect_pruning import PruningProbe
from psearch.core.movepick import PICK_BAD_CAPTURES, PICK_CAPTURES, PICK_QUIETS
from psearch.core.pruning import PRUNE_NOTHING, PRUNE_NULL, PRUNE_RAZOR, PRUNE_RETURN
from psearch.core.pruning_modes import (
    AEL,
    DEFAULT_MODE,
    INTERNAL,
    MODERN,
    MODES,
    PLAIN,
    Pruning,
    parse_pruning,
    pruning_text,
)
from psearch.core.pruning_parameters import PARAMETERS
from psearch.core.records import TECHNIQUE_NAMES
from psearch.core.tables import make_tables
from psearch.kernels import load_kernels

QUIET = "r2q1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2NP1N2/PPP2PPP/R1BQ1RK1 w - - 0 8"
"""Nothing hangs, both have all kinds of pieces, and there are checks and captures to tell apart."""
PAWNS = "4k3/pppp4/8/8/8/8/4PPPP/4K3 w - - 0 1"
ONE_PIECE = "4k3/pppp4/8/8/8/8/4PPPP/4K1N1 w - - 0 1"
IN_CHECK = "4k3/8/8/8/7b/8/8/4K2R w - - 0 1"


@pytest.fixture(scope="module")
def tables() -> np.ndarray:
    load_kernels()
    return make_tables()


def with_only(**values: int) -> Pruning:
    """Plain, but for what is named."""
    return replace(PLAIN, **values)


def probe_of(tables: np.ndarray, fen: str, pruning: Pruning | None = None, **values: int) -> PruningProbe:
    return PruningProbe(tables, pruning or with_only(**values), chess.Board(fen))


def code(fen: str, uci: str) -> int:
    return from_chess_move(chess.Move.from_uci(uci), chess.Board(fen))


# -- the record ------------------------------------------------------------------------------------------------------


def test_modes_are_those_the_program_offers() -> None:
    assert tuple(MODES) == psearch.PRUNING_MODES
    assert DEFAULT_MODE == psearch.DEFAULT_PRUNING


def test_every_parameter_has_a_meaning_and_every_default_is_allowed() -> None:
    assert list(PARAMETERS) == [field.name for field in fields(Pruning) if field.name not in INTERNAL]
    for mode, pruning in MODES.items():
        for name, (meaning, least, most) in PARAMETERS.items():
            assert meaning and least <= getattr(pruning, name) <= most, (mode, name)


def test_plain_leaves_nothing_out() -> None:
    switches = [name for name in TECHNIQUE_NAMES if hasattr(PLAIN, name)]
    on = [name for name in switches if getattr(PLAIN, name)]
    # extending checks leaves nothing out; the others go with futility and the null move
    assert on == ["quiet_shortcut", "null_verify", "check_extension"]


def test_ael_is_heinz() -> None:
    expected = with_only(
        futility=1,
        futility_margin=300,
        extended_futility=1,
        extended_futility_margin=500,
        limited_razoring=1,
        limited_razoring_margin=900,
        futility_by_material=1,
        null_move=1,
        null_adaptive=1,
        null_verify=0,
        table_in_quiescence=1,
    )
    assert expected == AEL


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "pruning must begin with one of"),
        ("none", "pruning must begin with one of"),
        ("lmr=0", "pruning must begin with one of"),
        ("Modern", "pruning must begin with one of"),
        ("modern,", "no pruning parameter is called ''"),
        ("modern,speed=1", "no pruning parameter is called 'speed'"),
        ("modern,reductions=1", "no pruning parameter is called 'reductions'"),
        ("modern,lmr", "must be a whole number from 0 to 1, not ''"),
        ("modern,lmr=", "must be a whole number from 0 to 1, not ''"),
        ("modern,lmr=1.5", "must be a whole number from 0 to 1, not '1.5'"),
        ("modern,lmr=2", "must be a whole number from 0 to 1, not '2'"),
        ("modern,lmr=1=1", "must be a whole number from 0 to 1, not '1=1'"),
        ("modern,lmr=\u0661", "must be a whole number"),
        ("modern,check_extension=3", "from 0 to 2"),
        ("modern,lmr_divisor=0", "from 1 to"),
        ("modern,null_eval_divisor=-1", "from 1 to"),
        ("modern,probcut_depth=3", "from 4 to"),
        ("modern,futility_margin=1000000", "from -999999 to 999999"),
        ("modern," + "x" * 1000, "no pruning parameter is called"),
        ("modern\n,lmr=\x1b[31m", "must be a whole number"),
    ],
)
def test_bad_texts_get_one_line(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_pruning(text)
    line = str(caught.value)
    assert complaint in line and "\n" not in line and "\x1b" not in line and len(line) < 200


@given(
    mode=st.sampled_from(list(MODES)),
    changes=st.dictionaries(st.sampled_from(list(PARAMETERS)), st.integers(-999_999, 999_999), max_size=4),
)
@settings(max_examples=200, deadline=None)
def test_text_and_record_are_the_same(mode: str, changes: dict[str, int]) -> None:
    allowed = {name: min(max(value, PARAMETERS[name].least), PARAMETERS[name].most) for name, value in changes.items()}
    if any(allowed.get(name, getattr(MODES[mode], name)) for name in ("sound", "sound_delta")):
        allowed["table_in_quiescence"] = 0  # refused otherwise
    pruning = parse_pruning(", ".join([mode, *(f"{name}={value}" for name, value in allowed.items())]))
    assert pruning == replace(MODES[mode], **allowed)
    assert parse_pruning(pruning_text(pruning)) == pruning
    record = pruning.record()
    assert all(int(record[name]) == getattr(pruning, name) for name in PARAMETERS)
    assert (record["reductions"] >= 0).all()


def test_reductions_follow_the_formula() -> None:
    record = MODERN.record()
    for depth in (1, 2, 3, 8, 20, 63):
        for number in (1, 2, 5, 30, 63):
            plies = MODERN.lmr_base / 100 + math.log(depth) * math.log(number) / (MODERN.lmr_divisor / 100)
            assert int(record["reductions"][depth, number]) == round(256 * plies)
    extreme = parse_pruning("modern,lmr_divisor=1,lmr_base=999999").record()
    assert extreme["reductions"].max() == 64 * 256, "and does not overflow"


# -- futility, extended futility, limited razoring (Heinz) -----------------------------------------------------------


def base_of(probe: PruningProbe, by_material: int) -> int:
    return probe.material() if by_material else probe.evaluate()


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
    ("black", "razored"),
    [("1n1qk3", False), ("1nbqk3", False), ("1nbqkb2", True), ("rnbqkbnr", True), ("4k3", False)],
)
def test_limited_razoring_needs_four_enemy_pieces(tables: np.ndarray, black: str, razored: bool) -> None:
    """Own pieces and pawns do not count."""
    probe = probe_of(tables, f"{black}/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1", AEL)
    probe.enter(3, 20_000)
    assert (int(probe.node["depth"]) == 2) == razored


# -- futile moves ----------------------------------------------------------------------------------------------------

# A move, what it gains by itself: piece taken, and pawn become piece
GAINS = [
    (QUIET, "a2a3", 0),
    (QUIET, "c3b5", 0),
    ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5", 100),
    ("4k3/8/8/3n4/4P3/8/8/4K3 w - - 0 1", "e4d5", 300),
    ("4k3/8/8/3b4/4P3/8/8/4K3 w - - 0 1", "e4d5", 300),
    ("4k3/8/8/3r4/4P3/8/8/4K3 w - - 0 1", "e4d5", 500),
    ("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1", "e4d5", 900),
    ("3k4/8/6N1/3Pp3/8/8/3K4/n7 w - e6 0 1", "d5e6", 100),
    ("8/2P5/k7/8/8/8/8/4K3 w - - 0 1", "c7c8r", 400),
    ("1r6/2P5/k7/8/8/8/8/4K3 w - - 0 1", "c7b8n", 700),
    ("8/2P5/k7/8/8/8/8/4K3 w - - 0 1", "c7c8b", 200),
]


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
    ("exempt_bishop_pair", "2b1k3/8/8/3b4/4P3/8/8/4K3 w - - 0 1", ["e4d5"], ["e4e5"]),
    ("exempt_bishop_pair", "4k3/8/8/3b4/4P3/8/8/4K3 w - - 0 1", [], ["e4d5"]),
    ("exempt_bishop_pair", "2b1kb2/8/8/3n4/4P3/8/8/4K3 w - - 0 1", [], ["e4d5"]),
    ("exempt_advanced_pawn", "4k3/8/8/8/8/3p4/2P1p3/4R1K1 w - - 0 1", ["c2d3", "e1e2"], ["c2c4"]),
    ("exempt_advanced_pawn", "4k3/8/8/8/3p4/2P5/8/4K3 w - - 0 1", [], ["c3d4"]),
    ("exempt_advanced_pawn", "4k3/8/8/8/8/3n4/2P5/7K w - - 0 1", [], ["c2d3"]),
    ("exempt_queen", "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1", ["e4d5"], ["e4e5"]),
    ("exempt_queen", "4k3/8/8/3r4/4P3/8/8/4K3 w - - 0 1", [], ["e4d5"]),
]


@pytest.mark.parametrize(("switch", "fen", "exempt", "others"), EXEMPTIONS)
def test_exemptions(tables: np.ndarray, switch: str, fen: str, exempt: list[str], others: list[str]) -> None:
    """For both colours; with the switch off all these moves are futile."""
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


# -- decisions about a node ------------------------------------------------------------------------------------------


def test_deep_futility_at_the_margin(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, deep_futility=1)
    most = probe.evaluate() + 900 + 500 + 2 * 150
    probe.enter(2, most)
    assert probe.prune_node() == (PRUNE_RETURN, most)
    probe.enter(2, most - 1)
    assert probe.prune_node()[0] == PRUNE_NOTHING
    assert probe.counts()["deep_futility"] == (2, 1)


@pytest.mark.parametrize(
    ("enemy", "value"),
    [
        ("4k3/8", 0),
        ("4k3/p7", 100),
        ("3nk3/p7", 400),
        ("2bnk3/ppp5", 600),
        ("r2nk3/p7", 800),
        ("r2qk2r/8", 1400),
        ("3qk2q/pppppppp", 1800),
    ],
)
def test_deep_futility_takes_the_two_best_pieces(tables: np.ndarray, enemy: str, value: int) -> None:
    probe = probe_of(tables, f"{enemy}/8/8/8/8/8/RN2K3 w - - 0 1", deep_futility=1)
    most = probe.evaluate() + value + 300
    for alpha, action in ((most, PRUNE_RETURN), (most - 1, PRUNE_NOTHING)):
        probe.enter(3, alpha)
        assert probe.prune_node()[0] == action


@pytest.mark.parametrize("adaptive", [0, 1])
def test_deep_futility_between_2_and_3_plus_r(tables: np.ndarray, adaptive: int) -> None:
    """R has no share of the evaluation here: it is far below beta."""
    probe = probe_of(tables, QUIET, deep_futility=1, null_adaptive=adaptive)
    for depth in range(1, 14):
        r = (2 if depth <= 6 else 3) if adaptive else 3 + depth // 5
        probe.enter(depth, 15_000)
        assert probe.null_reduction() == r
        assert (probe.prune_node()[0] == PRUNE_RETURN) == (1 < depth <= 3 + r), depth


def test_adaptive_null_move_reduction(tables: np.ndarray) -> None:
    """R = 2 up to depth 6, 3 beyond 8, between by the pieces of both sides (Heinz 1999)."""
    for fen, between in (
        (QUIET, 3),
        ("rnb1k3/8/8/8/8/8/8/RNB1K3 w - - 0 1", 3),
        ("rn2k3/8/8/8/8/8/8/RNBQK3 w - - 0 1", 2),
        ("rnbqk3/8/8/8/8/8/PPPPPPPP/RN2K3 w - - 0 1", 2),
    ):
        probe = probe_of(tables, fen, AEL)
        for depth in range(2, 14):
            probe.enter(depth, -5000)
            assert probe.null_reduction() == (2 if depth <= 6 else 3 if depth > 8 else between), (fen, depth)


def test_null_move_reduction_by_evaluation(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, null_move=1)
    for depth in (2, 9, 10, 25):
        for surplus, more in ((0, 0), (199, 0), (200, 1), (599, 2), (600, 3), (5000, 3)):
            probe.enter(depth, probe.evaluate() - surplus - 1)
            assert probe.null_reduction() == 3 + depth // 5 + more


def test_null_move_conditions(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, null_move=1)
    value = probe.evaluate()
    probe.enter(5, value - 1)
    assert probe.prune_node()[0] == PRUNE_NULL
    assert probe.prune_node(came_by=NULL_MOVE)[0] == PRUNE_NOTHING, "never twice in a row"
    probe.enter(5, value)
    assert probe.prune_node()[0] == PRUNE_NOTHING, "evaluation below beta"
    probe.enter(1, value - 1)
    assert probe.prune_node()[0] == PRUNE_NOTHING, "depth"
    for alpha in (MATE_IN_MAX_PLY, -MATE_IN_MAX_PLY - 1, -MATE + 10):
        probe.enter(5, alpha)
        assert probe.prune_node()[0] == PRUNE_NOTHING, "near mate"
    probe.enter(5, value - 1, estimate=value - 1)
    assert probe.prune_node()[0] == PRUNE_NOTHING, "the table says less"
    pawns = probe_of(tables, PAWNS, null_move=1)
    pawns.enter(5, -5000)
    assert pawns.prune_node()[0] == PRUNE_NOTHING, "only pawns"
    checked = probe_of(tables, IN_CHECK, null_move=1)
    checked.enter(5, -5000)
    assert checked.prune_node()[0] == PRUNE_NOTHING, "in check"


def test_futile_nodes_have_no_null_move(tables: np.ndarray) -> None:
    """Heinz's `!fprune`: with a negative margin a node may be futile although its evaluation is at beta."""
    probe = probe_of(tables, QUIET, replace(AEL, extended_futility_margin=-2000, futility_by_material=0))
    value = probe.evaluate()
    probe.enter(2, value - 1)
    assert int(probe.node["futility"]) == value - 2000
    assert probe.prune_node()[0] == PRUNE_NOTHING
    probe.node["futility"] = NO_SCORE
    assert probe.prune_node()[0] == PRUNE_NULL


def test_verification_where_zugzwang_threatens(tables: np.ndarray) -> None:
    on = {"null_move": 1, "null_verify": 1}
    for fen, pieces in ((PAWNS, 0), (ONE_PIECE, 1), ("4k3/pppp4/8/8/8/8/4PPPP/4K1NR w - - 0 1", 2), (QUIET, 5)):
        for depth in (2, 11, 12, 20):
            probe = probe_of(tables, fen, **on)
            probe.enter(depth, -5000)
            assert ("verification" in probe.wishes()) == (pieces <= 1 or depth >= 12), (fen, depth)
    off = probe_of(tables, ONE_PIECE, null_move=1, null_verify=0)
    off.enter(20, -5000)
    assert "verification" not in off.wishes()


@pytest.mark.parametrize("improving", [0, 1])
def test_reverse_futility_at_the_margin(tables: np.ndarray, improving: int) -> None:
    probe = probe_of(tables, QUIET, reverse_futility=1)
    for depth in range(1, 11):
        beta = probe.evaluate() - 80 * (depth - improving)
        probe.enter(depth, beta - 1, improving=improving)
        assert probe.prune_node() == (PRUNE_RETURN, beta) if depth <= 8 else probe.prune_node()[0] == PRUNE_NOTHING
        probe.enter(depth, beta, improving=improving)
        assert probe.prune_node()[0] == PRUNE_NOTHING
        if depth <= 8:
            probe.enter(depth, beta - 201, improving=improving)
            assert probe.prune_node() == (PRUNE_RETURN, beta - 200 + 100), "a bound between beta and the evaluation"


def is_netted(board: chess.Board) -> bool:
    """The enemy has two pieces; of the squares around the king without own men at most one is safe, and two or more
    are attacked."""
    king = board.king(board.turn)
    assert king is not None
    if (board.occupied_co[not board.turn] & ~board.pawns & ~board.kings).bit_count() < 2:
        return False
    lifted = board.copy(stack=False)
    lifted.remove_piece_at(king)  # what he hides from a slider he cannot go to
    around = chess.SquareSet(chess.BB_KING_ATTACKS[king] & ~board.occupied_co[board.turn])
    attacked = sum(lifted.is_attacked_by(not board.turn, square) for square in around)
    return len(around) - attacked <= 1 and attacked >= 2


def test_reverse_futility_does_not_believe_a_king_in_a_mating_net(tables: np.ndarray) -> None:
    board, rng = chess.Board(), random.Random(7)
    seen = {True: 0, False: 0}
    while min(seen.values()) < 100:
        if board.is_game_over() or board.fullmove_number > 120:
            board = chess.Board()
        board.push(rng.choice(list(board.legal_moves)))
        if board.is_check() or board.is_game_over():
            continue
        netted = is_netted(board)
        seen[netted] += 1
        probe = probe_of(tables, board.fen(), reverse_futility=1, reverse_futility_net=1)
        off = probe_of(tables, board.fen(), reverse_futility=1, reverse_futility_net=0)
        for depth in (3, 4, 8):
            probe.enter(depth, probe.evaluate() - 1000)
            off.enter(depth, off.evaluate() - 1000)
            expected = PRUNE_NOTHING if netted and depth >= 4 else PRUNE_RETURN
            assert probe.prune_node()[0] == expected, (board.fen(), depth)
            assert off.prune_node()[0] == PRUNE_RETURN


def test_razoring_at_the_margin(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, razoring=1)
    for depth in (1, 2, 3):
        alpha = probe.evaluate() + 250 * depth
        probe.enter(depth, alpha)
        assert probe.prune_node()[0] == (PRUNE_RAZOR if depth <= 2 else PRUNE_NOTHING)
        probe.enter(depth, alpha - 1)
        assert probe.prune_node()[0] == PRUNE_NOTHING


ALL_NODE_TECHNIQUES = with_only(
    futility=1,
    extended_futility=1,
    limited_razoring=1,
    deep_futility=1,
    null_move=1,
    reverse_futility=1,
    razoring=1,
    probcut=1,
)


@pytest.mark.parametrize("depth", range(1, 10))
def test_nothing_without_a_move_in_check_or_near_mate(tables: np.ndarray, depth: int) -> None:
    checked = probe_of(tables, IN_CHECK, ALL_NODE_TECHNIQUES)
    for alpha in (-20_000, 0, 20_000):
        checked.enter(depth, alpha)
        assert checked.prune_node()[0] == PRUNE_NOTHING and checked.wishes() <= {"verification"}
    probe = probe_of(tables, QUIET, ALL_NODE_TECHNIQUES)
    for alpha in (MATE - 3, MATE_IN_MAX_PLY, MATE_IN_MAX_PLY - 1, -MATE_IN_MAX_PLY, -MATE_IN_MAX_PLY - 1, -MATE + 3):
        probe.enter(depth, alpha)
        assert probe.prune_node()[0] == PRUNE_NOTHING and "probcut" not in probe.wishes(), alpha


# -- phases ----------------------------------------------------------------------------------------------------------


def test_probcut_conditions(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, probcut=1)
    for depth in range(1, 9):
        probe.enter(depth, 0)
        assert ("probcut" in probe.wishes()) == (depth >= 5)
    probe.enter(6, 0, 50)
    assert "probcut" not in probe.wishes(), "PV node"
    probe.enter(6, MATE_IN_MAX_PLY - 181)
    assert "probcut" not in probe.wishes(), "the bound is a mate"
    entry = {"tt_kind": BOUND_UPPER, "tt_score": 180}
    for tt_depth, unlikely in ((2, False), (3, True), (6, True)):
        probe.enter(6, 0, None, tt_depth=tt_depth, **entry)
        assert ("probcut" in probe.wishes()) == (not unlikely), "the table knows better"
    probe.enter(6, 0, None, tt_depth=6, tt_kind=BOUND_LOWER, tt_score=181)
    assert "probcut" in probe.wishes()


def test_probcut_tries_captures_that_win_enough(tables: np.ndarray) -> None:
    fen = "4k3/8/8/3rpn2/4P3/8/7P/4K3 w - - 0 1"
    probe = probe_of(tables, fen, probcut=1)
    for threshold, kept in ((300, {"e4d5", "e4f5"}), (301, {"e4d5"}), (500, {"e4d5"}), (501, set())):
        probe.enter(6, 0, None, phase=PHASE_PROBCUT, see_threshold=threshold)
        given = {uci for uci in ("e4d5", "e4f5", "h2h3", "e1e2") if not probe.prunes_move(code(fen, uci))}
        assert given == kept


@pytest.mark.parametrize("technique", ["iid", "iir"])
def test_iid_and_iir_conditions(tables: np.ndarray, technique: str) -> None:
    probe = probe_of(tables, QUIET, **{technique: 1})
    for expected, wanted in ((PV_NODE, True), (CUT_NODE, True), (ALL_NODE, False)):
        for depth in range(1, 8):
            probe.enter(depth, 0, None, expected=expected)
            assert (technique in probe.wishes()) == (wanted and depth >= 4)
            probe.enter(depth, 0, None, expected=expected, tt_move=code(QUIET, "a2a3"))
            assert technique not in probe.wishes()


def test_singular_conditions(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, singular=1)
    entry = {"tt_move": code(QUIET, "a2a3"), "tt_kind": BOUND_LOWER, "tt_depth": 7, "tt_score": 30}
    for depth, wanted in ((7, False), (8, True), (10, True), (11, False)):
        probe.enter(depth, 0, None, **entry)
        assert ("singular" in probe.wishes()) == wanted, "deep enough, and so is the entry"
    for changed in (
        {"tt_move": 0},
        {"tt_kind": BOUND_UPPER},
        {"tt_score": MATE - 10},
        {"tt_score": 10 - MATE},
        {"tt_depth": 4},
    ):
        probe.enter(8, 0, None, **{**entry, **changed})
        assert "singular" not in probe.wishes(), changed
    probe.enter(8, 0, None, **{**entry, "tt_kind": BOUND_EXACT})
    assert "singular" in probe.wishes()


# -- decisions about a move ------------------------------------------------------------------------------------------


def searched_one(probe: PruningProbe, depth: int, alpha: int, done: int = 1, **fields: int) -> None:
    """The node after a move that was searched and did not raise alpha."""
    probe.enter(depth, alpha, None, best=alpha - 100, moves_done=done, **fields)


@pytest.mark.parametrize("improving", [0, 1])
def test_late_move_pruning_counts_moves(tables: np.ndarray, improving: int) -> None:
    probe = probe_of(tables, QUIET, lmp=1)
    move = code(QUIET, "a2a3")
    for depth in range(1, 10):
        limit = (3 + depth * depth) // (2 - improving)
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


def test_move_futility_at_the_margin(tables: np.ndarray) -> None:
    """The margin is that of the depth after reduction: far down the list it is smaller."""
    probe = probe_of(tables, QUIET, move_futility=1)
    move = code(QUIET, "a2a3")
    record = with_only(move_futility=1).record()
    for depth in range(1, 9):
        for done in (1, 5, 20):
            reduced = max(0, depth - 1 - (int(record["reductions"][depth, done]) >> 8))
            bound = probe.evaluate() + 100 + 100 * reduced
            searched_one(probe, depth, bound, done)
            assert probe.prunes_move(move) == (reduced <= 6), (depth, done)
            assert int(probe.node["best"]) == (bound if reduced <= 6 else bound - 100)
            searched_one(probe, depth, bound - 1, done)
            assert not probe.prunes_move(move)


def test_history_pruning_at_the_margin(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, history_pruning=1)
    move = code(QUIET, "a2a3")
    for depth, reduced in ((1, 0), (2, 1), (3, 1)):
        limit = -4000 * (reduced + 1)
        for history, pruned in ((limit, False), (limit - 1, True)):
            probe.learning["quiet"][0, 0, move & 4095] = history
            searched_one(probe, depth, 0, 2)
            assert probe.prunes_move(move) == pruned, depth
    probe.learning["quiet"][0, 0, move & 4095] = -8192
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
        (check, "h2h3", {"phase": PHASE_IID}, True),
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
        bound = probe.evaluate() + 200 + gain
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


# -- reductions and extensions ---------------------------------------------------------------------------------------


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


def test_singular_extension_is_for_the_table_move_in_the_main_phase(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, singular=1)
    move, other = code(QUIET, "a2a3"), code(QUIET, "h2h3")
    for extension in (-1, 1, 2):
        probe.enter(8, 0, None, tt_move=move, extension=extension)
        assert probe.extension(move, gives=False) == extension
        assert probe.extension(other, gives=False) == 0
        assert probe.extension(move, gives=False, within=False) == min(extension, 0)
        probe.enter(8, 0, None, tt_move=move, extension=extension, phase=PHASE_IID)
        assert probe.extension(move, gives=False) == 0


def test_late_move_reduction(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, lmr=1)
    record = with_only(lmr=1).record()
    move = code(QUIET, "a2a3")
    for depth in (1, 2, 3, 6, 12, 30):
        for index in (0, 1, 2, 3, 10, 40):
            for kind, pv, expected in (("CUT", False, CUT_NODE), ("ALL", False, ALL_NODE), ("PV", True, PV_NODE)):
                for improving in (0, 1):
                    probe.enter(depth, 0, 50 if pv else None, expected=expected, improving=improving)
                    plies = int(record["reductions"][depth, index])
                    plies += 256 * (kind == "CUT") - 256 * pv + 128 * (not improving)
                    none = depth < 3 or index < (3 if pv else 2)
                    assert probe.reduction(move, index) == (0 if none else max(0, plies >> 8)), (depth, index, kind)


def test_what_reduces_less(tables: np.ndarray) -> None:
    fen = "4k3/2p5/1p6/8/8/1Q6/8/4K3 w - - 0 1"
    probe = probe_of(tables, fen, lmr=1)
    quiet, capture = code(fen, "b3c3"), code(fen, "b3b6")

    def reduction(move: int, picked: int = PICK_QUIETS, gives: bool = False, **fields: int) -> int:
        probe.enter(12, 0, None, improving=1, **fields)
        return probe.reduction(move, 20, picked, gives)

    plain = reduction(quiet)
    assert plain >= 3
    assert reduction(quiet, gives=True) == plain - 1
    assert reduction(quiet, killer_1=quiet) == reduction(quiet, killer_2=quiet) == plain - 1
    assert reduction(capture, PICK_CAPTURES) == 0
    assert reduction(capture, PICK_BAD_CAPTURES) == plain - 1
    probe.learning["quiet"][0, 0, quiet & 4095] = 8192
    assert reduction(quiet) == plain - 1
    probe.learning["quiet"][0, 0, quiet & 4095] = -8192
    assert reduction(quiet) == plain + 1
    probe.learning["quiet"][0, 0, quiet & 4095] = 0
    checked = probe_of(tables, IN_CHECK, lmr=1)
    checked.enter(12, 0)
    assert checked.reduction(code(IN_CHECK, "e1d1"), 20) == 0
    off = probe_of(tables, fen, PLAIN)
    off.enter(12, 0)
    assert off.reduction(quiet, 20) == 0
