"""`bench/study/calibrate.py`: every cost is measured, shown beside its default, and written for `simulate --costs`."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

import calibrate
import chess
import pytest
from cost_kernels import MICRO_COSTS, TIMED_LOCKS
from programs import run_bench
from sharing_costs import SharingCosts, measure_sharing

from psearch.scheduler.scheduler_entries import load_kernels
from psearch.simulation.costs import SHARING, Costs

MIDDLE_GAME = "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10"
BUSY = {"transfer": 8425.0, "poll_line": 480.0, "join": 4000.0, "machine": "made up"}


@pytest.fixture(scope="module")
def kernels() -> None:
    load_kernels(MICRO_COSTS, TIMED_LOCKS)


@pytest.mark.slow
def test_calibration_measures_every_cost(kernels: None) -> None:
    names = ("open", "join", "leave", "lock", "poll", "poll_stack", "abort", "transfer")
    for _ in range(3):  # costs are differences of times: beside other work one may be of no use
        calibration = calibrate.calibrate(depth=6, join_depth=6, positions=2)
        costs = calibration.costs
        if all(0 < getattr(costs, name) < 1e6 for name in names):
            break
    else:
        pytest.fail(f"no calibration of three has every cost: {costs}")
    assert 0 < costs.node + costs.qnode < 1e5
    assert "cores" in costs.machine
    assert "join that succeeds" in calibration.table()
    assert "\n2 positions, " in calibration.table() and "ns: nanoseconds that `psearch simulate`" in calibration.table()


@pytest.mark.slow
def test_what_is_measured_of_sharing(kernels: None) -> None:
    said: list[str] = []
    found = measure_sharing([chess.Board(MIDDLE_GAME)], 9, 2.0, lambda text, *_: said.append(text))
    assert set(found.costs) == set(SHARING) - {"transfer", "poll_line"}
    for name in ("hold_value", "hold_move", "hold_new_moves", "hold_learn"):
        assert 1 < found.costs[name] < 15_000, name
    assert found.costs["hold_new_moves"] > found.costs["hold_value"]
    assert 0.2 < found.ratio < 5
    assert said == ["calibrate: sharing, position 1/1"]


@pytest.mark.parametrize("load", [0.1, 3.2])
def test_a_busy_machine_is_named(
    load: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = Costs(**BUSY)  # type: ignore[arg-type]
    found = calibrate.Calibration(costs, 0.01, 9, 10, 2, 1000.0, SharingCosts({}, 10, 1.0))
    file = tmp_path / "costs.json"
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(calibrate, "prepare_kernels", lambda *units: None)
    monkeypatch.setattr(calibrate, "calibrate", lambda progress: found)
    monkeypatch.setattr(sys, "argv", ["calibrate.py", "--out", str(file)])
    calibrate.main()
    out, err = capsys.readouterr()
    assert ("other jobs are running (load 3.2)" in err) == (load == 3.2)
    assert "transfer is 47 times the default, poll_line is 96 times the default: another" in err, err
    shown = {line.split()[0]: line.split()[1:3] for line in out.splitlines() if len(line.split()) > 3}
    told_apart = {"crowd", "jitter", "lock_contended", "side_by_side", "system_load"}
    names = {field.name for field in fields(Costs) if field.type == "float"} - told_apart
    assert names <= shown.keys() and shown["transfer"] == ["8425.0", "180.0"] and f"load {load}" in out
    assert Costs.load(file).system_load == load


def test_a_file_that_cannot_be_written_is_one_line() -> None:
    done = run_bench("study/calibrate.py", "--out", "no/such/folder/costs.json")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "its folder does not exist" in done.stderr
