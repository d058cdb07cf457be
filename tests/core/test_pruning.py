"""Decisions about a node: conditions, margins to the centipawn; correction history; the record of parameters."""

from __future__ import annotations

import math
import random
from dataclasses import fields, replace

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inspect_pruning import PruningProbe
from pruning_probes import IN_CHECK, ONE_PIECE, PAWNS, QUIET, code, probe_of, with_only

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels, work
from psearch_core.chess.pruning.node_pruning import PRUNE_NOTHING, PRUNE_NULL, PRUNE_RAZOR, PRUNE_RETURN
from psearch_core.constants import (
    ALL_NODE,
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    CUT_NODE,
    MATE,
    MATE_IN_MAX_PLY,
    NO_MOVE,
    NO_SCORE,
    NULL_MOVE,
    PASS_PROBCUT,
    PV_NODE,
)
from psearch_core.records import pruning_dtype
from psearch_core.records import pruning_record as declaration
from psearch_core.records.pruning_record import (
    AEL,
    MODERN,
    MODES,
    PARAMETERS,
    PLAIN,
    SOUND,
    Pruning,
    parse_pruning,
    pruning_text,
)
from psearch_core.techniques import TECHNIQUE_NAMES


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
        r = (2 if depth <= 6 else 3) if adaptive else MODERN.null_base + depth // MODERN.null_depth_divisor
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
        for surplus, more in ((0, 0), (159, 0), (160, 1), (479, 2), (480, 3), (5000, 3)):
            probe.enter(depth, probe.evaluate() - surplus - 1)
            plies = MODERN.null_base + depth // MODERN.null_depth_divisor
            assert probe.null_reduction() == plies + more


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
        beta = probe.evaluate() - MODERN.reverse_futility_margin * (depth - improving)
        probe.enter(depth, beta - 1, improving=improving)
        assert probe.prune_node() == (PRUNE_RETURN, beta) if depth <= 7 else probe.prune_node()[0] == PRUNE_NOTHING
        probe.enter(depth, beta, improving=improving)
        assert probe.prune_node()[0] == PRUNE_NOTHING
        if depth <= 7:
            probe.enter(depth, beta - 201, improving=improving)
            assert probe.prune_node() == (PRUNE_RETURN, beta - 200 + 100), "a bound between beta and the evaluation"


def is_netted(board: chess.Board) -> bool:
    """The enemy has two pieces; of the squares around the king without own pieces at most one is safe, and two or more
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
        for depth in (3, 4, 7):
            probe.enter(depth, probe.evaluate() - 1000)
            off.enter(depth, off.evaluate() - 1000)
            expected = PRUNE_NOTHING if netted and depth >= 4 else PRUNE_RETURN
            assert probe.prune_node()[0] == expected, (board.fen(), depth)
            assert off.prune_node()[0] == PRUNE_RETURN


THREATENED = "2rr3k/pp3pp1/1nnqbNQp/3pN3/2pP4/2P5/PPB4P/R4RK1 b - - 0 1"
"""WAC.001 after Qg6: White mates on h6 or h7, whatever the queen costs."""


def test_no_cut_where_a_mate_in_one_threatens(tables: np.ndarray) -> None:
    """Reverse futility from depth 2 on: at depth 1 the search below would not see it."""
    for technique, cut in (("reverse_futility", PRUNE_RETURN), ("null_move", PRUNE_NULL)):
        looking = probe_of(tables, THREATENED, **{technique: 1}, mate_in_one=1)
        blind = probe_of(tables, THREATENED, **{technique: 1})
        quiet = probe_of(tables, QUIET, **{technique: 1}, mate_in_one=1)
        for depth in range(2, 8):
            for probe, expected in ((looking, PRUNE_NOTHING), (blind, cut), (quiet, cut)):
                probe.enter(depth, probe.evaluate() - 1000)
                assert probe.prune_node()[0] == expected, (technique, depth)
        assert looking.counts()["mate_in_one"] == (6, 6)
        assert quiet.counts()["mate_in_one"] == (6, 0)
        assert blind.counts()["mate_in_one"] == (0, 0)
    looking = probe_of(tables, THREATENED, reverse_futility=1, mate_in_one=1)
    looking.enter(1, looking.evaluate() - 1000)
    assert looking.prune_node()[0] == PRUNE_RETURN


def test_both_cuts_look_for_a_mate_once(tables: np.ndarray) -> None:
    """Netted, so that reverse futility leaves the node to the null move: it is not looked at twice."""
    probe = probe_of(tables, QUIET, reverse_futility=1, null_move=1, mate_in_one=1, reverse_futility_depth=3)
    for depth in (3, 4):
        probe.enter(depth, probe.evaluate() - 1000)
        assert probe.prune_node()[0] == (PRUNE_RETURN if depth == 3 else PRUNE_NULL)
    assert probe.counts()["mate_in_one"] == (2, 0)


def test_no_razoring_where_there_is_a_mate_in_one(tables: np.ndarray) -> None:
    mating = THREATENED.replace(" b ", " w ")
    for values, expected in (({"mate_in_one": 1}, PRUNE_NOTHING), ({}, PRUNE_RAZOR)):
        probe = probe_of(tables, mating, razoring=1, **values)
        for depth in (1, 2):
            probe.enter(depth, probe.evaluate() + 2000)
            assert probe.prune_node()[0] == expected


def test_razoring_at_the_margin(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, razoring=1)
    for depth in (1, 2, 3):
        alpha = probe.evaluate() + MODERN.razoring_margin * depth
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


def test_probcut_conditions(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, probcut=1)
    for depth in range(1, 9):
        probe.enter(depth, 0)
        assert ("probcut" in probe.wishes()) == (depth >= 5)
    probe.enter(6, 0, 50)
    assert "probcut" not in probe.wishes(), "PV node"
    probe.enter(6, MATE_IN_MAX_PLY - 181)
    assert "probcut" not in probe.wishes(), "the bound is a mate"
    entry = {"tt_bound": BOUND_UPPER, "tt_score": 180}
    for tt_depth, unlikely in ((2, False), (3, True), (6, True)):
        probe.enter(6, 0, None, tt_depth=tt_depth, **entry)
        assert ("probcut" in probe.wishes()) == (not unlikely), "the table knows better"
    probe.enter(6, 0, None, tt_depth=6, tt_bound=BOUND_LOWER, tt_score=181)
    assert "probcut" in probe.wishes()


def test_probcut_tries_captures_that_win_enough(tables: np.ndarray) -> None:
    fen = "4k3/8/8/3rpn2/4P3/8/7P/4K3 w - - 0 1"
    probe = probe_of(tables, fen, probcut=1)
    for threshold, kept in ((300, {"e4d5", "e4f5"}), (301, {"e4d5"}), (500, {"e4d5"}), (501, set())):
        probe.enter(6, 0, None, pass_kind=PASS_PROBCUT, see_threshold=threshold)
        assert {uci for uci in ("e4d5", "e4f5", "h2h3", "e1e2") if not probe.prunes_move(code(fen, uci))} == kept


@pytest.mark.parametrize("technique", ["iid", "iir"])
def test_iid_and_iir_conditions(tables: np.ndarray, technique: str) -> None:
    probe = probe_of(tables, QUIET, **{technique: 1})
    for expected, wanted in ((PV_NODE, True), (CUT_NODE, True), (ALL_NODE, False)):
        for depth in range(1, 8):
            probe.enter(depth, 0, None, kannan_type=expected)
            assert (technique in probe.wishes()) == (wanted and depth >= (4 if technique == "iid" else 3))
            probe.enter(depth, 0, None, kannan_type=expected, tt_move=code(QUIET, "a2a3"))
            assert technique not in probe.wishes()


def test_singular_conditions(tables: np.ndarray) -> None:
    probe = probe_of(tables, QUIET, singular=1)
    entry = {"tt_move": code(QUIET, "a2a3"), "tt_bound": BOUND_LOWER, "tt_depth": 7, "tt_score": 30}
    least = MODERN.singular_depth
    for depth, wanted in ((least - 1, False), (least, True), (10, True), (11, False)):
        probe.enter(depth, 0, None, **entry)
        assert ("singular" in probe.wishes()) == wanted, "deep enough, and so is the entry"
    for changed in (
        {"tt_move": 0},
        {"tt_bound": BOUND_UPPER},
        {"tt_score": MATE - 10},
        {"tt_score": 10 - MATE},
        {"tt_depth": 4},
    ):
        probe.enter(8, 0, None, **{**entry, **changed})
        assert "singular" not in probe.wishes(), changed
    probe.enter(8, 0, None, **{**entry, "tt_bound": BOUND_EXACT})
    assert "singular" in probe.wishes()


TABLES = ("pawn_correction", "piece_correction", "move_correction")
LIMIT = 1024


def entered(tables: np.ndarray, fen: str = QUIET, **values: int) -> PruningProbe:
    """A node of depth 6 that is not in check, worth 40 by its evaluation, with nothing learnt."""
    probe = probe_of(tables, fen, correction=1, **values)
    probe.enter(6, 0, eval=40, cont_1=77, cont_2=300)
    return probe


def learnt(probe: PruningProbe) -> list[int]:
    """All entries that are not zero: one of pawns, two of pieces, one of moves."""
    return [int(value) for name in TABLES for value in probe.learning[0][name].ravel() if value]


def test_the_entries_follow_the_formula(tables: np.ndarray) -> None:
    """Each goes towards +-1024 by a share of the difference, and never beyond."""
    probe = entered(tables, correction_slowness=3)
    dice = random.Random(71)
    expected = 0
    for number in range(400):
        depth = dice.randrange(1, 12)
        best = dice.randrange(-600, 700) if number < 200 else 900
        probe.node["depth"] = depth
        probe.learn_correction(best, BOUND_EXACT)
        change = min(max((best - 40) * depth // 3, -256), 256)
        expected += change - expected * abs(change) // LIMIT
        assert learnt(probe) == [expected] * 4 if expected else not learnt(probe)
        assert abs(expected) <= LIMIT
    assert expected > 0.99 * LIMIT


def test_the_correction_is_the_weighted_sum(tables: np.ndarray) -> None:
    probe = entered(tables, correction_pawns=50, correction_pieces=30, correction_moves=7)
    for _ in range(100):
        probe.learn_correction(-300, BOUND_EXACT)
    entry = learnt(probe)[0]
    assert probe.corrected(25) == 25 + ((50 + 30 + 30 + 7) * entry + LIMIT // 2) // LIMIT
    assert -120 < probe.corrected(25) - 25 < -100
    # another position, with the same pawns only, has that part of it
    board = chess.Board(QUIET)
    for square in (chess.A1, chess.A8):
        board.remove_piece_at(square)
    probe.set(board)
    probe.node["cont_1"] = 78
    assert probe.corrected(25) == 25 + (50 * entry + LIMIT // 2) // LIMIT
    # nor has the other side to move
    probe.set(chess.Board(QUIET.replace(" w ", " b ")))
    assert probe.corrected(25) == 25


@pytest.mark.parametrize(
    ("best", "bound", "move", "learns"),
    [
        (90, BOUND_EXACT, "a2a3", True),
        (90, BOUND_LOWER, "a2a3", True),
        (90, BOUND_UPPER, "", False),  # no more than 90 says nothing against 40
        (10, BOUND_UPPER, "", True),
        (10, BOUND_LOWER, "a2a3", False),
        (40, BOUND_EXACT, "a2a3", False),
        (90, BOUND_EXACT, "c4f7", False),  # a capture: the evaluation is not to blame
        (MATE - 9, BOUND_LOWER, "a2a3", False),
    ],
)
def test_when_it_learns(tables: np.ndarray, best: int, bound: int, move: str, learns: bool) -> None:
    probe = entered(tables)
    probe.node["best_move"] = code(QUIET, move) if move else NO_MOVE
    probe.learn_correction(best, bound)
    assert len(learnt(probe)) == (4 if learns else 0)


def test_nothing_is_learnt_in_check_or_without_the_technique(tables: np.ndarray) -> None:
    probe = probe_of(tables, IN_CHECK, correction=1)
    probe.enter(6, 0)
    probe.learn_correction(300, BOUND_EXACT)
    assert not learnt(probe)
    probe = probe_of(tables, PAWNS)
    probe.enter(6, 0)
    probe.learn_correction(300, BOUND_EXACT)
    assert not learnt(probe)
    assert probe.corrected(25) == 25


def searched(pruning: Pruning) -> Arena:
    """After a search of 20,000 nodes by one worker."""
    load_kernels()
    arena = Arena(workers=1, hash_mb=1)
    write_search(arena, chess.Board(QUIET), Limits(nodes=20_000), SearchOptions(policy="serial", pruning=pruning))
    while not work(arena.context, 0, 1 << 20):
        pass
    return arena


@pytest.mark.parametrize("pruning", [PLAIN, SOUND, AEL], ids=["plain", "sound", "ael"])
def test_modes_without_it_learn_none(pruning: Pruning) -> None:
    learning = searched(pruning).header[0]["learning"]
    assert learning["quiet"].any()
    assert not any(learning[name].any() for name in TABLES)


def test_a_search_learns_and_forgets(tables: np.ndarray) -> None:
    """The corrections stay within their limits, the table keeps uncorrected evaluations, and a new game clears them."""
    arena = searched(MODERN)
    learning = arena.header[0]["learning"]
    for name in TABLES:
        assert np.count_nonzero(learning[name]) > 100
        assert np.abs(learning[name]).max() <= LIMIT
    board = chess.Board(QUIET)
    probe = probe_of(tables, QUIET)
    key = int(probe.record["key"]) & (1 << 64) - 1
    words = arena.tt[(key * (len(arena.tt) // 8) >> 64) * 8 :][:8].tolist()
    stored = [data for check, data in zip(words[::2], words[1::2], strict=True) if check ^ data == key]
    assert [((data >> 32 & 0xFFFF) ^ 0x8000) - 0x8000 for data in stored] == [probe.evaluate_by_network()], board.fen()
    arena.clear_learning()
    assert not any(learning[name].any() for name in TABLES)


def test_every_parameter_has_a_meaning_and_every_default_is_allowed() -> None:
    assert list(PARAMETERS) == [field.name for field in fields(Pruning) if field.name != "sound_gates"]
    for mode, pruning in MODES.items():
        for name, (meaning, least, most) in PARAMETERS.items():
            assert meaning and least <= getattr(pruning, name) <= most, (mode, name)


def test_the_record_has_the_parameters_in_their_order() -> None:
    assert list(pruning_dtype.names or ()) == [*(field.name for field in fields(Pruning)), "reductions"]


def test_a_value_for_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AssertionError, match="moderm"):
        declaration._switch("a slip of the pen", moderm=1)


def test_plain_leaves_nothing_out() -> None:
    on = [name for name in TECHNIQUE_NAMES if getattr(PLAIN, name, False)]
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
        ("modern,razoring_margin=1000000", "from -999999 to 999999"),
        ("modern,reverse_futility_margin=-1", "from 0 to 999999"),
        ("modern,singular_margin=101", "from 0 to 100"),
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
        allowed |= {"table_in_quiescence": 0, "network": 0}  # refused otherwise
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
