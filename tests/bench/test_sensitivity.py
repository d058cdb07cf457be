"""`bench/study/sensitivity.py`: the picture and the figures, made again from logs in one file."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from programs import run_bench
from sensitivity import PANELS

FIELDS = {"depth": 8, "seed": 0, "score": 0, "bestmove": 1, "splits": 1, "joins": 1, "aborted_nodes": 10}


def test_from_logs_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl.xz"
    with lzma.open(path, "wt") as out:
        for panel in PANELS:
            for number, value in enumerate(panel.values):
                run = f"points/{panel.name}-{value}"
                for policy, threads, seconds in (("serial", 1, 8.0), ("calibrated", 64, 4.0 / (1 + number))):
                    sample = {"position": "a", "fen": "a", "policy": policy, "threads": threads, "seconds": seconds}
                    out.write(json.dumps({**FIELDS, **sample, "nodes": 1000, "idle_share": 0.1, "run": run}) + "\n")
    words = ("--from-log", f"{path}#points", "--out", str(tmp_path / "out"))
    done = run_bench("study/sensitivity.py", *words)
    assert done.returncode == 0, done.stderr
    assert "split-depth  calibrated    64  1: 2.00  2: 4.00  3: 6.00  4: 8.00  6: 10.00" in done.stdout
    figures = json.loads((tmp_path / "out" / "sensitivity.json").read_text())
    assert [row["speedup"] for row in figures["defer-depth"]] == pytest.approx([2, 4, 6, 8])
    assert (tmp_path / "out" / "sensitivity.png").read_bytes().startswith(b"\x89PNG")
