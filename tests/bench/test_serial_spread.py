"""`bench/study/serial_spread.py`: the same serial search again, with other luck."""

from __future__ import annotations

import json
import re
from pathlib import Path

import chess
import pytest
from programs import run_bench
from serial import search
from serial_spread import repeated

from psearch.arena.arena import Arena

FEN = "r2q1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2NP1N2/PPP2PPP/R1BQ1RK1 w - - 0 8"
DEPTH = 9


@pytest.fixture(scope="module")
def nodes() -> int:
    """Of the serial search from an empty history."""
    arena = Arena(workers=1, hash_mb=4)
    count = search(arena, FEN, DEPTH).nodes
    arena.close()
    return count


def test_luck_changes_the_count_and_seeds_give_it_again(nodes: int) -> None:
    arena = Arena(workers=1, hash_mb=4)
    counts = [repeated(arena, FEN, DEPTH, seed) for seed in (1, 2, 3, 1)]
    assert counts[0] == counts[3] and len({nodes, *counts}) > 2
    arena.close()


def test_the_report(nodes: int, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    lines = [{"about": {}}]
    for policy, depth, count in (("serial", DEPTH, nodes), ("serial", 100, 5), ("ybw", DEPTH, 7)):
        board = chess.Board(FEN)
        board.halfmove_clock = depth % 50  # positions of their own
        lines.append({"position": "one", "fen": board.fen(), "depth": depth, "policy": policy, "nodes": count})
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    done = run_bench("study/serial_spread.py", "--log", log, "--times", "2", "--hash", "4")
    assert done.returncode == 0, done.stderr
    assert "1 positions, 2 times each" in done.stdout, "mates and other policies are left out"
    found = re.search(r"nodes against the log: x([0-9.]+)", done.stdout)
    assert found and 0.3 < float(found[1]) < 3


@pytest.mark.parametrize("text", ["", '{"about": {}}\n', "no log\n"])
def test_nothing_to_repeat(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(text, "utf-8")
    done = run_bench("study/serial_spread.py", "--log", str(log))
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("serial_spread: ")
