"""The table of policies against each other: which matches it has, that a run goes on, and bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gate import _read, cells, rounds, run
from matchplay.scripts import MatchError
from programs import run_bench

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
    ("words", "said"),
    [
        ([], "--out"),
        (["--out", "x"], "--book FILE is needed"),
        (["--out", "x", "--limit", "9"], "NODES=GAMES"),
        (["--out", "x", "--workers", "2,y"], "whole number"),
        (["--out", "x", "--workers", "2048", "--table"], "at most 1024"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str) -> None:
    with pytest.raises(MatchError) as refused:
        run(words)
    assert said in str(refused.value) and "\n" not in str(refused.value)
