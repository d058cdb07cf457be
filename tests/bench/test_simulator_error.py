"""`bench/study/simulator_error.py`: virtual against real time, position by position."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

from programs import run_bench

from psearch.lab.studies.speedup_study import Sample

FENS = (
    "r2q1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2NP1N2/PPP2PPP/R1BQ1RK1 w - - 0 8",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
)


def test_real_and_virtual(tmp_path: Path) -> None:
    log, out = tmp_path / "real.jsonl", tmp_path / "virtual.jsonl"
    samples = [
        Sample(fen[:4], fen, 7, policy, threads, 0, 4.0 / threads, 1000 * threads, "+1", "e2e4", 0, 0, 0, 0.0)
        for fen in FENS
        for policy, threads in (("serial", 1), ("calibrated", 2))
    ]
    log.write_text("".join(json.dumps(asdict(sample)) + "\n" for sample in samples), "utf-8")
    words = ("--real", str(log), "--hash", "1", "--out", str(out))
    done = run_bench("study/simulator_error.py", *words)
    assert done.returncode == 0, done.stderr
    virtual = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {(one["fen"], one["threads"]) for one in virtual} == {(fen, count) for fen in FENS for count in (1, 2)}
    rows = [line.split() for line in done.stdout.splitlines()]
    alone, shared = virtual[0], virtual[1]
    speedup = alone["seconds"] / shared["seconds"]
    assert rows[1][:4] == [FENS[0][:4], "2", "2.00", f"{speedup:.2f}"]
    assert rows[1][-2:] == ["2.00", f"{shared['nodes'] / alone['nodes']:.2f}"]
    assert re.match(r"2 workers, 2 positions: virtual over real x[01]\.\d+ \(", done.stdout.splitlines()[-1])
