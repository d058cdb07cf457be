"""Each term on a position made for it: counted where it should be, and its fitted weight has the sign that it should.

Counts come from the kernel itself: with all weights zero but one, the evaluation is that term.
"""

from __future__ import annotations

import chess
import numpy as np
import pytest
from inspect_node import NodeProbe

from psearch_core.chess.evaluation.endgames import SCALING_PHASE
from psearch_core.chess.evaluation.weights import TERM_VALUES, UNIT_VALUES
from psearch_core.chess.tables import make_tables, term_pairs
from psearch_core.terms import DANGER, DANGER_STEPS, TERM_COUNT, TERMS, UNITS

FIRST = {term.name: term.first for term in TERMS}
FIRST_UNIT = {unit.name: unit.first for unit in UNITS}


@pytest.fixture(scope="module")
def tables() -> np.ndarray:
    return make_tables()


def count(tables: np.ndarray, fen: str, name: str, place: int) -> int:
    """Return how much more often White has the term than Black."""
    own = without_weights(tables)
    own["terms"][0, FIRST[name] + place] = (1 << 16) + 1
    return value_for_white(own, fen)


def without_weights(tables: np.ndarray) -> np.ndarray:
    own = tables.copy()
    for field in ("terms", "units", "psq_mg", "psq_eg"):
        own[field] = 0
    return own


def value_for_white(tables: np.ndarray, fen: str) -> int:
    board = chess.Board(fen)
    assert board.is_valid(), fen
    probe = NodeProbe(tables, board)
    probe.record["phase"] = SCALING_PHASE + 1  # nothing is scaled
    return probe.evaluate() if board.turn else -probe.evaluate()


CASES = [
    # name, place in its row, position, how often White has it more than Black
    ("ISOLATED", 0, "4k3/2p5/8/8/8/8/P7/4K3 w - - 0 1", 0),
    ("ISOLATED", 1, "4k3/p1p5/8/8/8/8/P7/4K3 w - - 0 1", 0),
    ("ISOLATED", 0, "4k3/1pp5/8/8/8/8/P3P3/4K3 w - - 0 1", 2),
    ("ISOLATED", 1, "4k3/pp6/8/8/8/8/P3P3/4K3 w - - 0 1", 1),
    ("DOUBLED", 0, "4k3/pp6/8/8/4P3/8/P3P3/4K3 w - - 0 1", 1),
    ("BACKWARD", 0, "4k3/8/3p4/5P2/8/8/4P3/4K3 w - - 0 1", 0),
    ("BACKWARD", 0, "4k3/8/8/8/3p1P2/8/4P3/4K3 w - - 0 1", 1),
    ("BACKWARD", 1, "4k3/4p3/8/8/3p1P2/8/4P3/4K3 w - - 0 1", 1),
    ("PHALANX", 2, "4k3/8/8/3PP3/8/8/8/4K3 w - - 0 1", 0),
    ("PHALANX", 3, "4k3/8/8/PP6/8/8/8/4K3 b - - 0 1", 2),
    ("PHALANX", 2, "4k3/8/8/8/3PP3/8/8/4K3 w - - 0 1", 2),
    ("SUPPORTED", 2, "4k3/8/8/8/3P4/4P3/8/4K3 w - - 0 1", 1),
    ("CANDIDATE", 3, "4k3/2p5/8/3PP3/8/8/8/4K3 w - - 0 1", 1),
    ("CANDIDATE", 3, "4k3/2p5/8/3P4/8/8/8/4K3 w - - 0 1", 0),
    ("PASSED", 3, "4k3/7p/8/3P4/8/8/8/4K3 w - - 0 1", 1),
    ("PASSED", 3, "4k3/3p4/8/3P4/8/8/8/4K3 w - - 0 1", 0),
    ("PASSED_OWN_KING", 1, "8/7k/8/3P4/8/3K4/8/8 w - - 0 1", 3),
    ("PASSED_ENEMY_KING", 1, "8/7k/8/3P4/8/3K4/8/8 w - - 0 1", 4),
    ("SHELTER", 7 * 0 + 1, "4k3/8/8/8/8/8/5PPP/6K1 w - - 0 1", 1),
    ("SHELTER", 7 * 2 + 2, "4k3/8/8/8/8/5P2/6PP/6K1 w - - 0 1", 1),
    ("SHELTER", 7 * 1 + 0, "4k3/8/8/8/8/8/5P1P/6K1 w - - 0 1", 1),
    ("STORM", 3, "k7/8/8/8/6p1/8/5P1P/6K1 w - - 0 1", 1),
    ("STORM", 7 + 2, "k7/8/8/8/8/6p1/5PPP/6K1 w - - 0 1", 1),
    ("MOBILITY_KNIGHT", 8, "4k3/8/8/8/3N4/8/8/K7 w - - 0 1", 1),
    ("MOBILITY_KNIGHT", 2, "4k3/8/8/8/8/8/8/KN6 w - - 0 1", 0),
    ("MOBILITY_BISHOP", 13, "6k1/8/8/8/3B4/8/8/1K6 w - - 0 1", 1),
    ("MOBILITY_ROOK", 14, "7k/8/8/8/3R4/8/8/1K6 w - - 0 1", 1),
    ("MOBILITY_QUEEN", 27, "5k2/8/8/8/3Q4/8/8/2K5 w - - 0 1", 1),
    ("BISHOP_PAIR", 0, "k7/8/8/8/3B4/3B4/8/1K6 w - - 0 1", 1),
    ("BISHOP_PAWNS", 0, "7k/8/8/8/8/4P3/1P6/1K1B4 w - - 0 1", 0),
    ("BISHOP_PAWNS", 0, "7k/8/8/8/8/4P3/1P6/1KB5 w - - 0 1", 2),
    ("BISHOP_PAWNS", 1, "7k/8/8/8/4n3/4P3/1P6/1KB5 w - - 0 1", 1),
    ("OUTPOST_KNIGHT", 0, "7k/5p2/8/3N4/8/8/8/1K6 w - - 0 1", 1),
    ("OUTPOST_KNIGHT", 1, "7k/5p2/8/3N4/4P3/8/8/1K6 w - - 0 1", 1),
    ("OUTPOST_KNIGHT", 0, "7k/4p3/8/3N4/8/8/8/1K6 w - - 0 1", 0),
    ("OUTPOST_BISHOP", 1, "7k/5p2/8/3B4/4P3/8/8/1K6 w - - 0 1", 1),
    ("OUTPOST_REACHABLE", 0, "7k/5p2/8/8/4P3/2N5/8/1K6 w - - 0 1", 1),
    ("MINOR_BEHIND_PAWN", 0, "6k1/8/8/8/2p5/2B5/8/1K6 w - - 0 1", 1),
    ("KING_DISTANCE", 0, "k7/8/8/8/8/8/8/K5N1 w - - 0 1", 6),
    ("KING_DISTANCE", 1, "k7/8/8/8/8/6B1/8/K7 w - - 0 1", 6),
    ("ROOK_OPEN", 0, "k7/p7/8/8/8/8/P7/K2R4 w - - 0 1", 1),
    ("ROOK_SEMI_OPEN", 0, "k7/p2p4/8/8/8/8/P7/K2R4 w - - 0 1", 1),
    ("ROOK_SEVENTH", 0, "k7/3R4/8/8/8/8/P7/K7 w - - 0 1", 1),
    ("ROOK_SEVENTH", 0, "8/3R4/k7/8/8/8/P7/K7 w - - 0 1", 0),
    ("ROOK_TRAPPED", 0, "4k3/8/8/8/8/8/6PP/5K1R w - - 0 1", 1),
    ("ROOK_TRAPPED", 0, "4k3/8/8/8/8/8/6PP/5RK1 w - - 0 1", 0),
    ("THREAT_BY_PAWN", 0, "4k3/8/8/3n4/4P3/8/8/4K3 w - - 0 1", 1),
    ("THREAT_BY_PAWN", 3, "4k3/8/8/3q4/4P3/4K3/8/8 w - - 0 1", 1),
    ("THREAT_BY_PUSH", 0, "4k3/8/8/3n4/8/4P3/8/4K3 w - - 0 1", 1),
    ("THREAT_BY_MINOR", 3, "4k3/8/8/3r4/8/4N3/8/4K3 w - - 0 1", 1),
    ("THREAT_BY_MINOR", 0, "4k3/8/8/3p4/8/4N3/8/4K3 w - - 0 1", 1),
    ("THREAT_BY_MINOR", 0, "4k3/8/2p5/3p4/8/4N3/8/4K3 w - - 0 1", 0),
    ("THREAT_BY_ROOK", 4, "4k3/8/2p5/3q4/8/8/8/3RK3 w - - 0 1", 1),
    ("THREAT_BY_KING", 0, "4k3/8/8/8/8/8/3n4/4K3 w - - 0 1", 1),
    ("HANGING", 0, "4k3/8/8/3n4/8/8/8/3RK3 w - - 0 1", 1),
    ("HANGING", 0, "4k3/8/2p5/3n4/8/8/8/3RK3 w - - 0 1", 0),
    ("RESTRICTED", 0, "3rk3/8/8/8/8/8/8/3RK3 w - - 0 1", 0),
    ("QUEEN_THREAT", 0, "4k3/3q4/8/8/4N3/8/8/K7 w - - 0 1", 2),
    ("PASSED_BLOCKED", 1, "7k/8/3N4/3P4/8/8/8/K7 w - - 0 1", 1),
    ("PASSED_BLOCKED", 4 + 1, "8/8/3k4/3P4/8/8/8/K7 w - - 0 1", 1),
    ("PASSED_FREE", 1, "8/8/7k/3P4/8/8/8/K7 w - - 0 1", 1),
    ("PASSED_SAFE", 1, "8/8/7k/3P4/8/8/8/K2R3r w - - 0 1", 0),
    ("PASSED_SAFE", 1, "7r/8/7k/3P4/8/8/8/K7 w - - 0 1", 1),
    ("PASSED_DEFENDED", 1, "8/8/7k/2KP4/8/8/8/8 w - - 0 1", 1),
    ("PASSED_ROOK_BEHIND", 0, "8/8/7k/3P4/8/8/8/K2R4 w - - 0 1", 1),
    ("PASSED_ROOK_BEHIND", 1, "8/8/7k/3P4/8/8/8/K2r4 w - - 0 1", 1),
    ("UNSTOPPABLE", 0, "7k/8/8/P7/8/8/8/K7 w - - 0 1", 1),
    ("UNSTOPPABLE", 0, "4k3/8/8/P7/8/8/8/K7 b - - 0 1", 0),
    ("SPACE", 0, "4k3/8/8/8/8/8/8/K7 w - - 0 1", 0),
    ("SPACE", 0, "4k3/8/8/8/3p4/8/8/K7 w - - 0 1", -2),
    ("SPACE", 1, "7k/8/8/3P4/8/8/8/K7 w - - 0 1", 3),
    ("TEMPO", 0, "4k3/8/8/8/8/8/8/K7 w - - 0 1", 1),
]


@pytest.mark.parametrize(("name", "place", "fen", "expected"), CASES)
def test_count(tables: np.ndarray, name: str, place: int, fen: str, expected: int) -> None:
    assert count(tables, fen, name, place) == expected
    assert count(tables, chess.Board(fen).mirror().fen(), name, place) == -expected


def test_every_term_has_a_case_that_counts() -> None:
    seen = {name for name, _, _, expected in CASES if expected}
    assert {term.name for term in TERMS} - seen == {"DANGER", "RESTRICTED"}  # the two have tests of their own


def test_a_term_without_weights_counts_nothing_and_weights_without_a_term_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filled = make_tables()[0]["terms"].tolist()
    doubled = next(term for term in TERMS if term.name == "DOUBLED")
    monkeypatch.delitem(TERM_VALUES, "DOUBLED")
    assert term_pairs(doubled) == ((0, 0),)
    without = make_tables()[0]["terms"].tolist()
    assert [place for place, pair in enumerate(filled) if pair != without[place]] == [doubled.first]
    monkeypatch.setitem(TERM_VALUES, "DUBLED", ((1, 1),))
    with pytest.raises(AssertionError, match="DUBLED"):
        make_tables()


def test_restricted_squares(tables: np.ndarray) -> None:
    """A bishop's diagonal that an enemy pawn bars is not contested; one that both bishops see is."""
    alone = count(tables, "4k3/8/8/8/8/8/8/K2R4 w - - 0 1", "RESTRICTED", 0)
    assert alone != count(tables, "4k3/8/7n/8/8/8/8/K4R2 w - - 0 1", "RESTRICTED", 0)


def danger(tables: np.ndarray, fen: str, unit: str, place: int = 0) -> int:
    """Return how many more units of danger to the other king White has than Black: at most one step apart from base."""
    own = without_weights(tables)
    own["units"][0, FIRST_UNIT[unit] + place] = 8  # one step of the table
    own["terms"][0, DANGER : DANGER + DANGER_STEPS] = np.arange(DANGER_STEPS) * ((1 << 16) + 1)
    return value_for_white(own, fen)


@pytest.mark.parametrize(
    ("unit", "place", "fen", "expected"),
    [
        ("DANGER_NO_QUEEN", 0, "6k1/8/8/8/8/8/8/KQ6 w - - 0 1", -1),
        ("DANGER_ATTACKER", 0, "6k1/8/8/6N1/8/8/8/K7 w - - 0 1", 1),
        ("DANGER_ATTACKER", 2, "6k1/8/8/8/8/8/8/K6R w - - 0 1", 1),
        ("DANGER_RING", 0, "6k1/8/8/8/8/8/8/K6R w - - 0 1", 2),
        ("DANGER_WEAK", 0, "6k1/8/8/8/8/8/8/K6R w - - 0 1", 3),
        ("DANGER_CHECK", 2, "6k1/8/8/8/8/8/8/K6R w - - 0 1", 1),
        ("DANGER_CHECK", 0, "6k1/8/8/3N4/8/8/8/K7 w - - 0 1", 2),
        ("DANGER_UNSAFE_CHECK", 0, "6k1/8/4r3/3N4/8/8/8/K7 w - - 0 1", 2),
        ("DANGER_FLANK", 0, "6k1/8/8/8/7P/8/8/K7 w - - 0 1", 1),
        ("DANGER_OPEN_FILE", 0, "6k1/5p1p/8/8/8/8/PPP5/K7 w - - 0 1", 1),
        ("DANGER_PAWN_RING", 0, "6k1/8/6P1/8/8/8/8/K7 w - - 0 1", 2),
    ],
)
def test_danger_count(tables: np.ndarray, unit: str, place: int, fen: str, expected: int) -> None:
    assert danger(tables, fen, unit, place) == expected
    assert danger(tables, chess.Board(fen).mirror().fen(), unit, place) == -expected


GOOD = (
    "BISHOP_PAIR",
    "HANGING",
    "ROOK_OPEN",
    "ROOK_SEMI_OPEN",
    "THREAT_BY_PUSH",
    "TEMPO",
    "UNSTOPPABLE",
    "OUTPOST_KNIGHT",
    "OUTPOST_BISHOP",
    "MINOR_BEHIND_PAWN",
)
BAD = ("ISOLATED", "DOUBLED", "BACKWARD", "ROOK_TRAPPED")


def test_fitted_weights_have_the_signs_they_should() -> None:
    """Rows by their sums: single places may be odd. What has the wrong sign is a fault of the term, or of the data."""
    for name in GOOD:
        assert sum(map(sum, TERM_VALUES[name])) > 0, name
    for name in BAD:
        assert sum(map(sum, TERM_VALUES[name])) < 0, name
    for name in ("MOBILITY_KNIGHT", "MOBILITY_BISHOP", "MOBILITY_ROOK", "PASSED", "DANGER"):
        first, last = TERM_VALUES[name][0], TERM_VALUES[name][-1]
        assert sum(last) > sum(first), name
    danger = [middle_game for middle_game, _ in TERM_VALUES["DANGER"]]
    assert danger == sorted(danger), "more danger is never worth less"
    assert all(value > 0 for value in (*UNIT_VALUES["DANGER_ATTACKER"], *UNIT_VALUES["DANGER_CHECK"]))
    assert UNIT_VALUES["DANGER_NO_QUEEN"][0] < 0
    assert sum(map(len, TERM_VALUES.values())) == TERM_COUNT
