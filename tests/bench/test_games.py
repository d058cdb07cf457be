"""Games in this process: two settings, many changes at once, time odds in virtual time, and policies by cells."""

from __future__ import annotations

import json
import math
import random
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from gate import _read, cells, rounds
from matchplay.scripts import MatchError
from matchplay.time_odds import report, worth
from programs import run_bench

from psearch.results import PsearchError


def script(name: str, *words: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a script."""
    done = run_bench(f"match/{name}.py", *words)
    return done.returncode, done.stdout, done.stderr


def test_games_are_counted_and_the_same_again(kernels: None, book: Path) -> None:
    """Against itself every pair is one point."""
    words = ("--nodes", "300", "--games", "6", "--book", str(book))
    status, out, err = script("quick", "--second", "modern", *words)
    assert (status, err) == (0, "")
    assert "6 games, pairs [0, 0, 3, 0, 0]: Elo +0.0 +- 0.0" in out
    first = script("quick", "--second", "plain", *words, "--jobs", "1")
    assert first[0] == 0 and "6 games" in first[1]
    assert script("quick", "--second", "plain", *words, "--jobs", "2") == first


def test_pairs_are_played_and_written(kernels: None, book: Path, tmp_path: Path) -> None:
    """Sides that play alike but for something that never happens at 300 nodes draw each pair."""
    log = tmp_path / "log.jsonl"
    words = ("null_verify_depth=90:99", "singular_depth=80:90+double_margin=1:2", "--nodes", "300", "--games", "4")
    status, out, err = script("factors", *words, "--book", str(book), "--skip", "1", "--log", str(log), "--jobs", "1")
    assert (status, out, err) == (0, "2 pairs: too few for 2 changes\n", "")
    head, *rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert head["changes"] == ["null_verify_depth=90:99", "singular_depth=80:90+double_margin=1:2"]
    assert [row["half_points"] for row in rows] == [2, 2]
    assert all(abs(sign) == 1 for row in rows for sign in row["signs"])


def test_the_table_finds_what_was_put_in(tmp_path: Path) -> None:
    """Results drawn with +69 Elo for one change (a score of 0.6) and nothing for the other."""
    dice = random.Random(16)
    lines = [{"changes": ["lmr_base=60:100", "probcut=0:1"]}]
    for _ in range(4000):
        signs = [dice.choice((-1, 1)), dice.choice((-1, 1))]
        won = sum(dice.random() < 0.5 + 0.1 * signs[0] for _ in range(2))
        lines.append({"signs": signs, "half_points": 2 * won})
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    status, out, err = script("factors", "--read", str(log))
    assert (status, err) == (0, "")
    title, *rows = out.splitlines()
    assert title.startswith("8000 games")
    found = {row.split()[-1]: (float(row.split()[0]), float(row.split()[2])) for row in rows}
    for name, expected in (("first", 0), ("lmr_base=60:100", 69.5), ("probcut=0:1", 0)):
        elo, half_width = found[name]
        assert 6 < half_width < 9
        assert abs(elo - expected) < 1.5 * half_width


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
        assert found.odds == pytest.approx(level, rel=0.2)
        assert found.doubling_elo == pytest.approx(100, abs=40)
        held += found.low < level < found.high
    assert held >= 8, "95% of the intervals hold the truth"


def test_intervals_shrink_with_games() -> None:
    wide, narrow = (worth({k: pairs_at(k, 4, 100, 1, n) for k in (3.0, 6.0)}) for n in (100, 10_000))
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
    status, out, err = script("odds", *words, "--games", "4")
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
    status, out, err = script("odds", *words, "--games", "6", "--resume")
    assert (status, err) == (0, "")
    again = [json.loads(line) for line in log.read_text().splitlines()]
    assert "resumed" in again[4] and again[1:4] + again[5:10] == games, "the same games"
    assert len(again) == 14
    assert script("odds", "--from-log", str(log)) == (0, out, "")

    other = tmp_path / "other.jsonl"
    other.write_text(log.read_text())
    assert script("odds", "--from-log", str(log), str(other)) == (0, out, ""), "the same game counts once"

    status, out, err = script("odds", *words[:-1], str(other), "--games", "6", "--nodes", "300", "--resume")
    assert (status, out) == (2, "") and "nodes was 200, is 300" in err
    status, out, err = script("odds", *words, "--games", "6")
    assert (status, out) == (2, "") and "--resume goes on with it" in err


SMALL = ("--workers", "2", "--nodes", "200", "--hash", "1", "--second", "lazy", "--round", "2")


def test_cells_that_take_least_time_come_first() -> None:
    options = _read(["--out", "x", "--workers", "2,8", "--nodes", "1000,4000", "--games", "60", "--limit", "4000=20"])
    found = cells(options)
    assert len(found) == 2 * 2 * 2 * 2 and len({cell.name for cell in found}) == len(found)
    assert [cell.nodes * cell.workers for cell in found] == sorted(cell.nodes * cell.workers for cell in found)
    games = {cell: number for cell, number in rounds(options)}
    assert {number for cell, number in games.items() if cell.nodes == 4000} == {20}
    assert {number for cell, number in games.items() if cell.nodes == 1000} == {60}


def test_a_run_goes_on_where_it_was(kernels: None, book: Path, tmp_path: Path) -> None:
    out = tmp_path / "logs"
    words = (*SMALL, "--book", str(book), "--out", str(out))
    done = run_bench("match/gate.py", *words, "--games", "2")
    assert done.returncode == 0 and done.stdout.count("| `calibrated`, `lazy` | 2 |") == 2
    logs = {path.name: path.read_text().splitlines() for path in out.iterdir()}
    assert set(logs) == {"2-calibrated-lazy-200-far.jsonl", "2-calibrated-lazy-200-near.jsonl"}
    about = json.loads(logs["2-calibrated-lazy-200-near.jsonl"][0])["about"]
    assert about["costs"]["transfer"] < 100 and about["second"]["policy"] == "lazy"
    again = run_bench("match/gate.py", *words, "--games", "4", "--costs", "far")
    assert again.returncode == 0 and "| 2 | far | 200 | 4 |" in again.stdout
    more = (out / "2-calibrated-lazy-200-far.jsonl").read_text().splitlines()
    assert more[:3] == logs["2-calibrated-lazy-200-far.jsonl"] and len(more) == 6
    table = run_bench("match/gate.py", *words, "--table")
    assert "| 2 | far | 200 | 4 |" in table.stdout and "| 2 | near | 200 | 2 |" in table.stdout


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("quick", "--second modern,lmr=7 --games 4", "pruning parameter lmr"),
        ("quick", "--second modern --games 100", "need 50 different openings"),
        ("quick", "--second modern --sprt=0,-3", "two numbers of Elo"),
        ("quick", "--second modern --book /nowhere.epd", "cannot read"),
        ("factors", "lmr_base --log OUT", "a change is NAME=LOW:HIGH"),
        ("factors", "nothing=0:1 --log OUT", "no pruning parameter is called 'nothing'"),
        ("factors", "lmr_base=60:100 --games 100 --log OUT", "100 games need 50 different openings"),
        ("factors", "--read /nowhere.jsonl", "cannot read"),
        ("factors", "--log OUT", "some changes and a --log are needed"),
        ("odds", "--first 0", "must be a whole number from 1 to 1024"),
        ("odds", "--second 8,greedy", "the policy is one of"),
        ("odds", "--second 8,lazy,ybw", "the policy is one of"),
        ("odds", "--second 8,ports=2", "ports=2"),
        ("odds", "--second 8,roots=many", "roots=many"),
        ("odds", "--second 8,roots=-1", "roots must be from 0"),
        ("odds", "--costs /nowhere.json --out OUT --games 2", "cannot read costs"),
        ("odds", "--odds 3,3", "different numbers"),
        ("odds", "--odds 0,1", "different numbers"),
        ("odds", "--odds three", "different numbers"),
        ("odds", "", "--out LOG.jsonl and --book FILE are needed"),
        ("odds", "--out OUT --games 100", "need 50 different openings, and there are 3"),
        ("odds", "--out OUT --games 2 --resume", "does not exist"),
        ("odds", "--out /nowhere/log.jsonl --games 2", "cannot write"),
        ("odds", "--from-log BOOK", "line 1: not a line of this study's log"),
        ("odds", "--from-log /nowhere.jsonl", "cannot read"),
        ("gate", "", "--out"),
        ("gate", "--out OUT --limit 9", "NODES=GAMES"),
        ("gate", "--out OUT --workers 2,y", "whole number"),
        ("gate", "--out OUT --workers 2048 --table", "at most 1024"),
    ],
)
def test_bad_input_is_one_line(book: Path, tmp_path: Path, name: str, words: str, said: str) -> None:
    names = {"BOOK": str(book), "OUT": str(tmp_path / "log.jsonl")}
    given = [names.get(word, word) for word in words.split()]
    with pytest.raises((MatchError, PsearchError)) as refused:
        import_module(name).run([*given, *([] if "--book" in given else ["--book", str(book)])])
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_script_says_what_is_bad_in_one_line() -> None:
    status, out, err = script("gate", "--out", "x")
    assert (status, out) == (2, "") and err == "gate.py: --book FILE is needed, or --table\n"
