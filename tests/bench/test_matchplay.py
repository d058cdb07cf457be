"""The rules of a match: arithmetic against published figures, announced mates, engines, limits and books."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import ladder
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ladder import slope
from matchplay.elo import PAIR_SCORES, Sprt, elo_of_score, moments, score_of_elo, strength
from matchplay.engines import TimeControl, parse_engine, parse_limit
from matchplay.game import MateClaims, thrown_away
from matchplay.openings import read_book
from matchplay.scripts import MatchError
from paths import SUPPORT

# (pairs with 0, 1/2, 1, 3/2, 2 points), elo0, elo1, LLR as published
LOGISTIC = [  # Stockfish pull requests 3209 (both), 2971, 3331: bounds were in logistic Elo then
    ((253, 4282, 17604, 4431, 286), -0.25, 1.25, 2.94),
    ((58, 3302, 33130, 3518, 84), 0.25, 1.25, 2.97),
    ((17, 253, 1042, 337, 39), -0.5, 1.5, 2.96),
    ((115, 2196, 11328, 2317, 136), -0.25, 1.25, 2.94),
]
NORMALISED = [  # Stockfish pull requests 5712 (both), 4194 (both), and an early small one of another engine
    ((831, 31795, 68460, 32448, 834), 0.0, 2.0, 2.93),
    ((307, 54901, 140959, 56230, 281), 0.5, 2.5, 2.95),
    ((371, 10263, 24989, 10642, 379), 0.0, 2.0, 2.95),
    ((47, 8181, 25234, 8575, 47), 0.5, 2.5, 2.94),
    ((0, 0, 1, 8, 1), 0.0, 50.0, 1.24),
]


@pytest.mark.parametrize(("pairs", "elo0", "elo1", "llr"), LOGISTIC)
def test_llr_of_published_tests_in_logistic_elo(pairs: tuple[int, ...], elo0: float, elo1: float, llr: float) -> None:
    assert Sprt(elo0, elo1, model="logistic").llr(pairs) == pytest.approx(llr, abs=0.006)


@pytest.mark.parametrize(("pairs", "elo0", "elo1", "llr"), NORMALISED)
def test_llr_of_published_tests_in_normalised_elo(pairs: tuple[int, ...], elo0: float, elo1: float, llr: float) -> None:
    assert Sprt(elo0, elo1).llr(pairs) == pytest.approx(llr, abs=0.006)


def test_elo_of_a_published_match() -> None:
    """fastchess reports Elo 72.85 +/- 22.33 and nElo 132.30 for (1, 10, 78, 48, 13)."""
    found = strength((1, 10, 78, 48, 13))
    assert found.pairs == 150
    assert found.elo == pytest.approx(72.85, abs=0.01)
    assert (found.high - found.low) / 2 == pytest.approx(22.33, abs=0.01)
    assert found.normalised_elo == pytest.approx(132.30, abs=0.01)
    assert found.los > 0.9999999


def test_bounds_and_decision() -> None:
    test = Sprt(0.0, 5.0)
    assert test.bounds == pytest.approx((-2.944438979, 2.944438979))
    assert Sprt(0, 5, alpha=0.01, beta=0.1).bounds == pytest.approx((math.log(0.1 / 0.99), math.log(0.9 / 0.01)))
    assert [test.decision(llr) for llr in (-3.0, -2.9, 2.9, 3.0)] == ["H0", None, None, "H1"]


@pytest.mark.parametrize(("elo", "score"), [(0, 0.5), (100, 0.640065), (-400, 1 / 11), (200, 0.759747)])
def test_elo_and_score(elo: float, score: float) -> None:
    assert score_of_elo(elo) == pytest.approx(score, abs=1e-6)
    assert elo_of_score(score) == pytest.approx(elo, abs=1e-3)


def test_results_without_spread() -> None:
    assert strength((0, 0, 0, 0, 0)) is None
    draws, wins = strength((0, 0, 9, 0, 0)), strength((0, 0, 0, 0, 9))
    assert (draws.elo, draws.low, draws.high, draws.los, draws.normalised_elo) == (0.0, -math.inf, math.inf, None, 0.0)
    assert (wins.elo, wins.low, wins.los) == (math.inf, -math.inf, None)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(*[st.integers(0, 10) | st.integers(0, 10**6)] * 5).filter(any),
    st.floats(-90, 80),
    st.floats(1, 10),
    st.sampled_from(["logistic", "normalised"]),
)
def test_llr_is_finite_and_turns_with_the_colours(
    pairs: tuple[int, ...], elo0: float, width: float, model: str
) -> None:
    """Evidence for `elo1` against `elo0` is, seen from the other side, evidence for -elo1 against -elo0."""
    llr = Sprt(elo0, elo0 + width, model=model).llr(pairs)
    assert math.isfinite(llr)
    mirrored = Sprt(-elo0 - width, -elo0, model=model).llr(pairs[::-1])
    assert llr == pytest.approx(-mirrored, rel=1e-6, abs=1e-9)


def test_near_the_normal_approximation() -> None:
    """Van den Bergh's approximation: N (s1 - s0) (2 s - s0 - s1) / (2 variance)."""
    pairs = (120, 900, 2100, 980, 150)
    mean, variance = moments(pairs)
    low, high = score_of_elo(1), score_of_elo(4)
    expected = sum(pairs) * (high - low) * (2 * mean - low - high) / (2 * variance)
    assert Sprt(1, 4, model="logistic").llr(pairs) == pytest.approx(expected, rel=0.01)
    assert len(PAIR_SCORES) == len(pairs)


def claims(*mates: int | None) -> list[str | None]:
    made = MateClaims()
    return [made.move(f"position {number}", mate) for number, mate in enumerate(mates, 1)]


def test_a_mate_that_comes_in_time() -> None:
    assert claims(3, 2, 1) == [None, None, None]
    assert claims(5, None, 3, 2, 1) == [None] * 5


def test_a_mate_that_does_not_come() -> None:
    assert claims(2, None, None) == [None, None, "announced mate in 2 in position 1 and did not mate"]
    assert claims(1, 1)[1] == "announced mate in 1 in position 1 and did not mate"
    # a longer promise does not move the day
    assert claims(2, 5, 4)[2] == "announced mate in 2 in position 1 and did not mate"


def test_a_mate_announced_again() -> None:
    assert claims(3, 3, 3, 2, 1) == [None] * 5
    made = MateClaims()
    made.move("here", 4)
    assert made.end("repetition") == "announced mate in 4 in here: repetition"
    assert MateClaims().end("repetition") is None


def test_being_mated_is_no_promise() -> None:
    assert claims(-2, -1, None, None) == [None] * 4


def test_thrown_away() -> None:
    assert thrown_away("repetition", 300)
    assert not thrown_away("repetition", 299)
    assert not thrown_away("insufficient material", 900)
    assert not thrown_away("stalemate", None)


def test_engines_and_limits() -> None:
    spec = parse_engine("name=a cmd='true --deep' option.Hash=16 'option.Clear Hash=' tc=40/60+0.5 proto=xboard", None)
    assert (spec.name, spec.command, spec.protocol) == ("a", ("true", "--deep"), "xboard")
    assert spec.options == {"Hash": "16", "Clear Hash": ""}
    assert spec.limit == TimeControl(base_s=60, increment_s=0.5, moves=40)
    ours = parse_engine("", TimeControl(depth=3))
    assert ours.limit.depth == 3
    assert ours.settings()["command"] == ("psearch", "uci") and sys.executable in ours.command
    assert spec.settings()["command"] == spec.command
    assert str(parse_limit("tc", "5")) == "5+0"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tc=5+",
        "tc=0",
        "tc=5+-1",
        "nodes=1.5",
        "nodes=0",
        "movetime=nan",
        "depth=999",
        "tc=1 nodes=5",
        "nodes=1 nodes=2",
        "colour=red nodes=5",
        "cmd=/no/such/program nodes=5",
        "cmd='' nodes=5",
        "name='a nodes=5",
        "proto=cecp nodes=5",
        "proto=xboard nodes=5",
        "dir=/no/such/folder nodes=5",
    ],
)
def test_bad_engines_are_refused(text: str) -> None:
    with pytest.raises(MatchError):
        parse_engine(text, None)


def test_books(tmp_path: Path) -> None:
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 3 9"
    (tmp_path / "a.epd").write_text(f"# a book\n{fen}\n\n4k3/8/8/8/8/8/4P3/4K3 b - - hmvc 5; fmvn 7;\n")
    first, second = read_book(tmp_path / "a.epd")
    assert first.board().fen() == fen
    assert (second.board().halfmove_clock, second.board().fullmove_number) == (5, 7)
    (tmp_path / "a.pgn").write_text('[Event "x"]\n\n1. e4 e5 2. Nf3 *\n\n[Event "y"]\n\n1. d4 *\n')
    assert [opening.moves for opening in read_book(tmp_path / "a.pgn")] == [("e2e4", "e7e5", "g1f3"), ("d2d4",)]
    built_in = read_book(None)
    assert len({opening.board().fen() for opening in built_in}) == len(built_in) == 10


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.epd", "", "no opening"),
        ("a.epd", "4k3/8/8/8/8/8/4P3/4K3 w - -\nrubbish\n", "line 2"),
        ("a.epd", "8/8/8/8/8/8/8/4K3 w - -\n", "line 1: illegal position: Black has no king"),
        ("a.epd", "7k/5KQ1/8/8/8/8/8/8 b - -\n", "line 1: the game is over"),
        ("a.pgn", "1. e4 Ke4 *\n", "game 1"),
    ],
)
def test_bad_books_are_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(MatchError, match=reason):
        read_book(tmp_path / name)


def test_the_slope_of_a_ladder_is_that_of_its_rungs() -> None:
    even, ahead = [0, 10, 80, 10, 0], [0, 5, 60, 30, 5]
    behind = ahead[::-1]
    level = slope([(10_000, even), (160_000, even)])
    falling = slope([(10_000, ahead), (40_000, even), (160_000, behind)])
    assert level is not None and falling is not None
    assert level.elo == pytest.approx(0.0, abs=1e-9)
    top, bottom = strength(ahead), strength(behind)
    assert top is not None and bottom is not None
    assert falling.elo == pytest.approx((bottom.elo - top.elo) / 4, rel=0.01)
    assert 0 < falling.error < 10
    assert slope([(10_000, even)]) is None


def test_a_level_has_no_interval_where_nothing_differs() -> None:
    pytest.importorskip("scipy")
    from fit_strength import interval

    opponents = np.array([1500.0, 1700.0])
    assert interval(opponents, np.array([[0, 0, 3, 0, 0], [2, 0, 0, 0, 0]])) is None
    assert interval(opponents, np.array([[1, 0, 2, 0, 0], [1, 0, 0, 0, 0]])) is None, "one pair"
    low, high = interval(opponents, np.array([[2, 0, 3, 0, 2], [2, 1, 0, 1, 0]])) or (0, 0)
    assert high - low > 50


def test_a_ladder_continues_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = f"cmd='{sys.executable} {SUPPORT / 'fake_engine.py'}'"
    words = [
        "--first",
        f"name=a {engine}",
        "--second",
        f"name=b {engine}",
        "--nodes",
        "10",
        "20",
        "--out",
        str(tmp_path),
    ]
    book = tmp_path / "book.epd"
    book.write_text("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\n4k3/8/8/8/8/8/3P4/4K3 w - - 0 1\n")
    assert ladder.run([*words, "--games", "2", "--book", str(book)]) == 0
    (tmp_path / "20-nodes.json").unlink()  # as if it had been ended within its first round
    assert ladder.run([*words, "--games", "4", "--book", str(book)]) == 0
    capsys.readouterr()
    assert ladder.run([*words, "--table"]) == 0
    assert [row.split(" | ")[1] for row in capsys.readouterr().out.splitlines()[2:4]] == ["4", "4"]
    for bad in ({"a": 1}, {"games": 1, "pairs": 3}, {"games": 1, "pairs": [1]}, {"games": "1", "pairs": [0] * 5}):
        (tmp_path / "20-nodes.json").write_text(json.dumps(bad))
        with pytest.raises(MatchError, match="is no summary of a match"):
            ladder.run([*words, "--table"])
