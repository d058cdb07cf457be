"""The scripts of bench/study, each at toy size; every script of bench starts, and explains itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import calibrate
import chess
import pytest
import real_cores
import tables
import torture
from cost_kernels import MICRO_COSTS, TIMED_LOCKS
from pack_logs import read_packed
from paths import BENCH, DATA
from programs import run_bench, run_here
from sharing_costs import SharingCosts, measure_sharing
from torture import Torture, WrongError

from psearch.files.raw_log import read_log
from psearch.games import Game
from psearch.lab.studies.speedup_study import Sample
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.simulation.costs import SHARING, Costs
from psearch.text.epd_text import read_suite


@pytest.fixture
def two() -> Iterator[Torture]:
    made = Torture(2)
    yield made
    made.close()


def test_right_answers_pass(two: Torture) -> None:
    for seed in range(8):
        two.search(seed)
    assert two.counts["searches"] == 8 and two.counts["stopped"] == 2


def test_a_wrong_value_is_noticed(two: Torture, monkeypatch: pytest.MonkeyPatch) -> None:
    right = torture.serial_search
    monkeypatch.setattr(torture, "serial_search", lambda *given: (right(*given)[0], right(*given)[1] + 1))
    with pytest.raises(WrongError, match="one worker finds"):
        two.search(0)


def test_what_is_left_behind_is_noticed(two: Torture) -> None:
    two.supervisor.arena.frames["node"]["open"][100] = 1
    with pytest.raises(WrongError, match="node 100 is open"):
        two.search(0)


@pytest.mark.slow
@pytest.mark.timeout(100)  # a search that hangs after a kill has no limit of its own
def test_a_game_whose_workers_are_killed() -> None:
    made = Torture(2, Game(DATA / "games" / "take_away.py"), kill_ms=50)
    try:
        seed = 0
        while made.counts["kills"] < 3:  # searches are short: not every one meets a kill
            made.search(seed)
            seed += 1
    finally:
        made.close()
    assert made.counts["searches"] == seed


@pytest.mark.slow
def test_with_yields(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    program = [sys.executable, str(BENCH / "study" / "torture.py"), "--minutes", "0.1", "--log", str(log)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and done.stdout.startswith("torture: nothing is wrong: "), done.stderr
    assert json.loads(log.read_text().splitlines()[-1])["searches"] > 0


TOY = tables.Table("toy", tables.DOCS / "study" / "twelve.epd", 2000, (2, 4), 1.0, ("calibrated", "lazy"),
                   driver="null", hash_mb=1)  # fmt: skip


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["tables.py", *words])
    tables.main()


def test_the_packed_runs_are_those_of_the_tables() -> None:
    runs = read_packed(tables.LOGS)
    assert set(runs) == {table.name for table in tables.TABLES}
    for table in tables.TABLES:
        arguments = runs[table.name][0]["about"]["arguments"]
        assert tuple(arguments["workers"]) == table.workers and arguments["pruning"] == table.pruning


def test_one_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tables, "TABLES", (TOY,))
    logs = tmp_path / "logs.jsonl.xz"
    words = ["--minutes", "0.001", "--out", str(tmp_path / "out"), "--logs", str(logs)]
    run(monkeypatch, *words)
    (lines,) = read_packed(logs).values()
    about = lines[0]["about"]
    assert about["commit"] and about["arguments"]["driver"] == "null" and len(lines) == 1 + 3 * (1 + 4)
    searched = {(line["policy"], line["threads"]) for line in lines[1:]}
    assert searched == {("serial", 1), *((name, n) for name in ("calibrated", "lazy") for n in (2, 4))}
    packed = logs.read_bytes()

    def refuse(*arguments: Any) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr(tables, "run_study", refuse)
    run(monkeypatch, *words)
    assert logs.read_bytes() == packed


def test_minutes_are_positions_and_then_repeats() -> None:
    table = tables.TABLES[0]
    sizes = [table.size(minutes, 49) for minutes in (0.1, 10, 20, 1000)]
    assert sizes[0] == (2, 1) and 2 < sizes[1][0] < sizes[2][0] <= 49 and sizes[3][0] == 49 and sizes[3][1] > 5
    assert sum(table.share for table in tables.TABLES) == pytest.approx(1.0)


def test_positions_are_evenly_spread() -> None:
    suite = read_suite(str(TOY.suite))
    assert [suite.index(position) for position in tables.spread(suite, 4)] == [0, 3, 6, 9]
    assert tables.spread(suite, 100) == suite


@pytest.mark.parametrize(
    "words",
    [
        ["--minutes", "1"],
        ["--minutes", "nan", "--out", "x"],
        ["--minutes", "0", "--out", "x"],
        ["--minutes", "1", "--out", "x", "--only", "x"],
    ],
)
def test_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, *words)
    assert leaving.value.code == 2 and "tables.py: error: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


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


SCRIPTS = sorted(
    path.relative_to(BENCH).as_posix()
    for path in BENCH.rglob("*.py")
    if '\nif __name__ == "__main__":\n' in path.read_text("utf-8")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(script: str) -> None:
    done = run_bench(script, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


def test_marks_of_three_rules(tmp_path: Path) -> None:
    games, results = tmp_path / "a.pgn", tmp_path / "a.jsonl"
    games.write_text("1. f3 e5 2. g4 Qh4# 0-1\n\n1. e4 e5 1/2-1/2\n", "utf-8")
    assert run_here("analyse", "--nodes", "2000", "--threads", "1", "--out", results, games).returncode == 0
    done = run_bench("study/marks.py", games, results)
    first, _, _, *rules, different = done.stdout.splitlines()
    assert first == "2 games, 6 moves"
    assert [rule.split()[-3] for rule in rules if rule] == ["1", "1", "1"], done.stdout
    assert different == "marked differently: 0, 0 of them beyond 2.5 pawns"
    assert "has no results" in run_bench("study/marks.py", DATA / "games" / "openings.pgn", results).stderr


SUITE = BENCH.parent / "docs" / "measurements" / "study" / "twelve.epd"
GAMES = DATA / "games" / "blunders.pgn"
TOY_HOUR = ["--counts", "1,2", "--minutes", "0.01", "--seconds", "0.03", "--movetime", "0.01", "--hash", "1"]


def run_hour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> list[list[str]]:
    """The commands that are run, none of which does anything."""
    commands: list[list[str]] = []

    def only_noted(command: list[str], **how: Any) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(stdout="table", returncode=0)

    monkeypatch.setattr(real_cores.subprocess, "run", only_noted)
    monkeypatch.setattr(real_cores, "usable_cores", lambda: 16)
    out = str(tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["real_cores.py", "--suite", str(SUITE), "--games", "g", "--out", out, *words])
    real_cores.main()
    return commands


def test_an_hour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    speedup, null, *moves = run_hour(monkeypatch, tmp_path)
    assert speedup[speedup.index("--threads") + 1] == "1,2,4,8,16" and speedup[speedup.index("--seconds") + 1] == "5"
    assert null[null.index("--threads") + 1] == "1,8,16" and null[null.index("--driver") + 1] == "null"
    assert len(read_suite(str(tmp_path / "out" / "positions.epd"))) == 12
    assert [command[command.index("--concurrency") + 1] for command in moves] == ["2", "16", "1", "16"]
    engines = [[word for word in command if "option.Threads=" in word] for command in moves]
    assert all("option.Policy=lazy movetime=0.1" in pair[1] for pair in engines[::2])
    assert [pair[1].split("movetime=")[1] for pair in engines[1::2]] == ["0.8", "1.6"]
    assert run_hour(monkeypatch, tmp_path) == [], "all parts are finished"
    (tmp_path / "out" / "moves-16.txt").unlink()
    assert run_hour(monkeypatch, tmp_path) == moves[2:]


def test_two_cores_have_no_null_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    speedup, *moves = run_hour(monkeypatch, tmp_path, "--counts", "1,2")
    assert "pvs" in speedup and len(moves) == 2


def test_minutes_are_positions() -> None:
    assert real_cores.positions_for(30, [[1, 2, 4, 8, 16]], 5.0, 1) == pytest.approx(80, abs=20)
    assert real_cores.positions_for(0.01, [[1, 2]], 5.0, 1) == 2
    assert real_cores.moves_for(10, 16, 0.1, 16) == pytest.approx(600 / 0.1 / 3, rel=0.05)


@pytest.mark.slow
def test_at_toy_size(tmp_path: Path) -> None:
    words = [
        str(BENCH / "study" / "real_cores.py"),
        "--suite",
        str(SUITE),
        "--games",
        str(GAMES),
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run([sys.executable, *words, *TOY_HOUR], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    samples, facts = read_log(tmp_path / "speedup.jsonl", Sample)
    assert {sample.threads for sample in samples} == {1, 2} and facts["ceilings"]["2"] > 0
    moves = (tmp_path / "moves-2-together.jsonl").read_text("utf-8").splitlines()[1:]
    assert {json.loads(line)["engine"] for line in moves} == {"2-calibrated", "2-lazy"}


@pytest.mark.parametrize("words", [["--minutes", "nan"], ["--movetime", "0"], ["--counts", "0"], ["--repeat", "0"]])
def test_bad_input_of_an_hour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        run_hour(monkeypatch, tmp_path, *words)
    assert leaving.value.code == 2 and not list(tmp_path.iterdir())
