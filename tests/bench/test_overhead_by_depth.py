"""`bench/study/overhead_by_depth.py`: nodes of a parallel search against one worker's, by depth."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from overhead_by_depth import growth_per_ply
from programs import run_bench

FEN = "r2q1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2NP1N2/PPP2PPP/R1BQ1RK1 w - - 0 8"


def test_growth() -> None:
    depths = np.arange(1, 12)
    assert growth_per_ply(1.5 * 1.03 ** (11 - depths), depths) == pytest.approx(1.03)


def test_the_table_and_the_picture(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    lines = [{"about": {}}]
    for name, policy, depth in (("one", "serial", 8), ("two", "serial", 100), ("one", "ybw", 8)):
        lines.append({"position": name, "fen": FEN, "depth": depth, "policy": policy, "nodes": 1})
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    picture = tmp_path / "a.png"
    plot = ["--plot", str(picture)]
    done = run_bench("study/overhead_by_depth.py", "--log", str(log), "--workers", "1,4", "--hash", "4", *plot)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 positions"), "a mate's depth means nothing"
    split = [line.split() for line in done.stdout.splitlines()]
    rows = {
        (row[0], row[1]): [float(cell) for cell in row[2:]] for row in split if row[1] in ("PV", "CUT", "ALL", "all")
    }
    assert set(rows[("1", "all")]) == {1.0}, "one worker of any policy searches the serial tree"
    assert set(rows[("4", "all")]) != {1.0}, "four search another, which may be smaller by luck"
    assert re.search(r"4 workers: x[0-9.]+ for each ply", done.stdout)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"about": {}}\n', "utf-8")
    done = run_bench("study/overhead_by_depth.py", "--log", str(log))
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "overhead_by_depth: " in done.stderr
