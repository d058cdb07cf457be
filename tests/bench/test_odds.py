"""Time odds by games in virtual time: the fit, the games and their log, and bad input in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from matchplay.scripts import MatchError
from matchplay.time_odds import report, worth
from odds import run
from programs import run_bench

from psearch.results import PsearchError


def odds(*words: str) -> tuple[int, str, str]:
    done = run_bench("match/odds.py", *words)
    return done.returncode, done.stdout, done.stderr


def pairs_at(odds: float, level: float, doubling_elo: float, seed: int, number: int = 2000) -> list[int]:
    """Pairs of games without draws against a side that is `doubling_elo` stronger for each doubling beyond `level`."""
    score = 1 / (1 + 10 ** (doubling_elo * math.log2(odds / level) / 400))
    won = np.random.default_rng(seed).binomial(2, score, number)
    return [int((won == points).sum()) for points in (0, 0.5, 1, 1.5, 2)]


@pytest.mark.parametrize("level", [3.0, 4.6, 7.0])
def test_the_odds_behind_the_games_are_found(level: float) -> None:
    held = 0
    for seed in range(10):
        found = worth({k: pairs_at(k, level, 100, 100 * seed + int(10 * k)) for k in (3.0, 4.5, 6.0)})
        assert found is not None
        assert found.odds == pytest.approx(level, rel=0.2)
        assert found.doubling_elo == pytest.approx(100, abs=40)
        held += found.low < level < found.high
    assert held >= 8, "95% of the intervals hold the truth"


def test_intervals_shrink_with_games() -> None:
    wide, narrow = (worth({k: pairs_at(k, 4, 100, 1, n) for k in (3.0, 6.0)}) for n in (100, 10_000))
    assert wide is not None and narrow is not None
    ratio = math.log(wide.high / wide.low) / math.log(narrow.high / narrow.low)
    assert 6 < ratio < 20, "ten times, for a hundred times the games"


def test_the_report() -> None:
    text = report("8 workers", "1 worker", {3.0: [0, 2, 6, 8, 4], 6.0: [4, 8, 6, 2, 0]})
    assert "| x3 | 40 | [0, 2, 6, 8, 4] | +127.0 +- 80.0 |" in text
    assert "8 workers are worth x4.2 the time of 1 worker (3.6 to 5); twice the time is worth 251 Elo" in text
    outside = report("8 workers", "1 worker", {3.0: [0, 2, 6, 8, 4], 3.5: [0, 3, 6, 8, 3]})
    assert outside.endswith("; outside the odds played")
    assert "no gain from more time" in report("8 workers", "1 worker", {3.0: [0, 0, 4, 0, 0], 6.0: [0, 0, 4, 1, 0]})
    assert "worth" not in report("8 workers", "8 workers (lazy)", {1.0: [0, 2, 6, 8, 4]}), (
        "one of the odds says nothing"
    )


def test_without_mercy() -> None:
    """One side wins everything: the fit has a place all the same."""
    found = worth({1.0: [0, 0, 0, 0, 20], 16.0: [20, 0, 0, 0, 0]})
    assert found is not None and found.odds == pytest.approx(4.0) and found.low == found.high == pytest.approx(4.0)


def test_games_go_on_where_they_were(kernels: None, book: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ("--first", "2", "--nodes", "200", "--odds", "1,4", "--book", str(book), "--out", str(log))
    status, out, err = odds(*words, "--games", "4")
    assert (status, err) == (0, "") and "| x1 | 4 |" in out and "| x4 | 4 |" in out
    about, *games = map(json.loads, log.read_text().splitlines())
    assert about["about"]["first"] == {"workers": 2, "policy": "calibrated", "driver": "auto"}
    assert about["about"]["nodes"] == 200
    assert [(game["odds"], game["pair"], game["white"]) for game in games] == [
        (k, pair, white) for pair in (0, 1) for k in (1.0, 4.0) for white in (0, 1)
    ]
    assert {game["position"] for game in games} <= set(book.read_text().splitlines())

    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:4]) + lines[4][:30])  # killed within a line
    status, out, err = odds(*words, "--games", "6", "--resume")
    assert (status, err) == (0, "")
    again = [json.loads(line) for line in log.read_text().splitlines()]
    assert "resumed" in again[4] and again[1:4] + again[5:10] == games, "the same games"
    assert len(again) == 14
    assert odds("--from-log", str(log)) == (0, out, "")

    other = tmp_path / "other.jsonl"
    other.write_text(log.read_text())
    assert odds("--from-log", str(log), str(other)) == (0, out, ""), "the same game counts once"

    status, out, err = odds(*words[:-1], str(other), "--games", "6", "--nodes", "300", "--resume")
    assert (status, out) == (2, "") and "nodes was 200, is 300" in err
    status, out, err = odds(*words, "--games", "6")
    assert (status, out) == (2, "") and "--resume goes on with it" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--first", "0"], "must be a whole number from 1 to 1024"),
        (["--second", "8,greedy"], "the policy is one of"),
        (["--second", "8,lazy,ybw"], "the policy is one of"),
        (["--second", "8,ports=2"], "ports=2"),
        (["--second", "8,roots=many"], "roots=many"),
        (["--second", "8,roots=-1"], "roots must be from 0"),
        (["--costs", "/nowhere.json", "--out", "OUT", "--book", "BOOK", "--games", "2"], "cannot read costs"),
        (["--odds", "3,3"], "different numbers"),
        (["--odds", "0,1"], "different numbers"),
        (["--odds", "three"], "different numbers"),
        ([], "--out LOG.jsonl and --book FILE are needed"),
        (["--out", "OUT", "--book", "BOOK", "--games", "100"], "need 50 different openings, and there are 3"),
        (["--out", "OUT", "--book", "BOOK", "--games", "2", "--resume"], "does not exist"),
        (["--out", "/nowhere/log.jsonl", "--book", "BOOK", "--games", "2"], "cannot write"),
        (["--from-log", "BOOK"], "line 1: not a line of this study's log"),
        (["--from-log", "/nowhere.jsonl"], "cannot read"),
    ],
)
def test_bad_input_is_one_line(book: Path, tmp_path: Path, words: list[str], said: str) -> None:
    names = {"BOOK": str(book), "OUT": str(tmp_path / "log.jsonl")}
    with pytest.raises((MatchError, PsearchError)) as refused:
        run([names.get(word, word) for word in words])
    assert said in str(refused.value) and "\n" not in str(refused.value)
