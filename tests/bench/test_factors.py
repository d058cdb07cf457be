"""Many changes in one match: what is drawn, what is written, and the table."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from programs import run_bench


def factors(*words: str) -> tuple[int, str, str]:
    done = run_bench("match/factors.py", *words)
    return done.returncode, done.stdout, done.stderr


def test_pairs_are_played_and_written(kernels: None, book: Path, tmp_path: Path) -> None:
    """Sides that play alike but for something that never happens at 300 nodes draw each pair."""
    log = tmp_path / "log.jsonl"
    words = ("null_verify_depth=90:99", "singular_depth=80:90+double_margin=1:2", "--nodes", "300", "--games", "4")
    status, out, err = factors(*words, "--book", str(book), "--skip", "1", "--log", str(log), "--jobs", "1")
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
    status, out, err = factors("--read", str(log))
    assert (status, err) == (0, "")
    title, *rows = out.splitlines()
    assert title.startswith("8000 games")
    found = {row.split()[-1]: (float(row.split()[0]), float(row.split()[2])) for row in rows}
    for name, expected in (("first", 0), ("lmr_base=60:100", 69.5), ("probcut=0:1", 0)):
        elo, half_width = found[name]
        assert 6 < half_width < 9
        assert abs(elo - expected) < 1.5 * half_width


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lmr_base"], "a change is NAME=LOW:HIGH"),
        (["nothing=0:1"], "no pruning parameter is called 'nothing'"),
        (["lmr_base=60:100", "--games", "100"], "100 games need 50 different openings"),
        (["--read", "/nowhere.jsonl"], "cannot read"),
        ([], "some changes and a --log are needed"),
    ],
)
def test_bad_input_is_one_line(book: Path, tmp_path: Path, words: list[str], said: str) -> None:
    status, out, err = factors("--book", str(book), "--log", str(tmp_path / "log"), *words)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1
