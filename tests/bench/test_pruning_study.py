"""`bench/study/pruning_study.py`: nodes and solved positions by depth, mode by mode."""

from __future__ import annotations

import json
from pathlib import Path

from programs import run_bench
from pruning_study import STEPS, Iteration, table

MATE_IN_1 = '6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - bm Rd8; id "one";'
QUEEN_HANGS = '4k3/8/8/3q4/8/4N3/8/4K3 w - - bm Nxd5; id "two";'


def made_up(fen: str, step: str, depth: int, nodes: int, solved: bool = False) -> Iteration:
    return Iteration(fen, fen, step, depth, nodes, 0, "e2e4", solved)


def test_a_position_leaves_with_the_first_step_that_does_not_reach_the_depth() -> None:
    found = [made_up("a", step, depth, 1000 // (1 + (step == "modern")) * depth) for step in STEPS for depth in (1, 2)]
    found += [made_up("b", step, 1, 3000, True) for step in STEPS]
    found += [made_up("b", "plain", 2, 9000)]
    rows = [line.split() for line in table(found).splitlines()]
    assert rows[1] == ["1", "plain", "2", "4,000", "1.0000", "1"]
    assert rows[len(STEPS)] == ["1", "modern", "2", "3,500", "0.8750", "1"]
    assert rows[len(STEPS) + 1] == ["2", "plain", "1", "2,000", "1.0000", "0"]
    assert len(rows) == 1 + 2 * len(STEPS)


def test_the_log_gives_the_table_again(tmp_path: Path) -> None:
    suite, log, picture = tmp_path / "suite.epd", tmp_path / "log.jsonl", tmp_path / "a.png"
    suite.write_text(f"{MATE_IN_1}\n{QUEEN_HANGS}\n", "utf-8")
    done = run_bench(
        "study/pruning_study.py", "--suite", str(suite), "--depth", "3", "--hash", "1", "--jobs", "2", "--log", str(log)
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert lines[0]["about"]["steps"] == STEPS and lines[0]["about"]["commit"]
    assert {(line["fen"], line["step"]) for line in lines[1:]} == {
        (fen, step) for fen in {line["fen"] for line in lines[1:]} for step in STEPS
    }
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[1][:3] == ["1", "plain", "2"] and rows[-1][-1] == "2", "both are solved"
    again = run_bench("study/pruning_study.py", "--from-log", str(log), "--plot", str(picture))
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_configurations_of_one_s_own(tmp_path: Path) -> None:
    suite, log = tmp_path / "suite.epd", tmp_path / "log.jsonl"
    suite.write_text(f"{QUEEN_HANGS}\n", "utf-8")
    common = ("--suite", str(suite), "--depth", "3", "--hash", "1", "--log", str(log))
    done = run_bench("study/pruning_study.py", *common, "--step", "modern,lmr=0", "--step", "modern")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()[1:3]] == ["modern", "modern,lmr=0"]
    wrong = run_bench("study/pruning_study.py", *common, "--step", "modern,speed=1")
    assert wrong.returncode == 2 and "no pruning parameter is called 'speed'" in wrong.stderr
