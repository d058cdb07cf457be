"""`bench/study/compare_logs.py`: several virtual-time studies side by side."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from compare_logs import named
from programs import run_bench

from psearch.lab.studies.comparisons import paired

FIELDS = {"depth": 8, "seed": 0, "score": 0, "bestmove": 1, "splits": 1, "joins": 1, "aborted_nodes": 10}


def write_log(path: Path, policy: str, speedups: list[float], depth: int = 8) -> Path:
    """A study with one and eight workers on one tree for each of the speedups."""
    lines: list[dict[str, object]] = [{"about": {}}]
    for number, speedup in enumerate(speedups):
        for threads, name, seconds in ((1, "serial", 8.0), (8, policy, 8.0 / speedup)):
            sample = {"position": str(number), "fen": f"fen {number}", "policy": name, "threads": threads}
            lines.append(FIELDS | sample | {"seconds": seconds, "nodes": 1000, "idle_share": 0.1, "depth": depth})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_a_ratio_of_pairs_is_as_sure_as_the_pairs_are_alike() -> None:
    first = {"a": math.log(2), "b": math.log(8), "c": math.log(4)}
    found = paired(first, {fen: value + math.log(1.5) for fen, value in first.items()} | {"d": 0.0})
    assert found is not None
    assert found[0] == 3 and found[1:] == pytest.approx((1.5, 1.5, 1.5))
    assert paired(first, {"a": 1.0}) is None


def test_names() -> None:
    assert named("plain=logs/a.jsonl") == ("plain", Path("logs/a.jsonl"))
    assert named("logs/a.jsonl") == ("a", Path("logs/a.jsonl"))
    assert named("logs/study.jsonl.xz#a") == ("a", Path("logs/study.jsonl.xz#a"))
    assert named("runs/x=1/a.jsonl") == ("a", Path("runs/x=1/a.jsonl"))


def test_the_table_the_pairs_and_the_picture(tmp_path: Path) -> None:
    plain = write_log(tmp_path / "p.jsonl", "calibrated", [6.0, 6.0, 6.0])
    modern = write_log(tmp_path / "m.jsonl", "calibrated", [2.0, 3.0, 4.0], depth=12)
    picture = tmp_path / "a.png"
    done = run_bench("study/compare_logs.py", f"plain={plain}", f"modern={modern}", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].split()[:5] == ["plain", "calibrated", "8", "3", "6.00"]
    assert lines[2].split()[:5] == ["modern", "calibrated", "8", "3", "2.88"]
    assert lines[4].startswith("8 workers, modern (calibrated) over plain (calibrated): x0.481 (0.")
    assert lines[4].endswith("3 positions")
    assert lines[5:] == ["", "plain, modern: depths: the log does not say how they were chosen"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_policies_of_one_log(tmp_path: Path) -> None:
    log = write_log(tmp_path / "both.jsonl", "calibrated", [6.0, 4.0])
    other = write_log(tmp_path / "other.jsonl", "ybw", [3.0, 2.0])
    with log.open("a", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in other.read_text("utf-8").splitlines() if '"ybw"' in line)
    done = run_bench("study/compare_logs.py", str(log))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3].startswith(
        "8 workers, both (ybw) over both (calibrated): x0.500 (0.500 to 0.500)"
    )


def test_repeats_count_by_their_geometric_mean(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", "ybw", [2.0, 2.0])
    again = write_log(tmp_path / "b.jsonl", "ybw", [8.0, 8.0])
    with log.open("a", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in again.read_text("utf-8").splitlines()[1:])
    done = run_bench("study/compare_logs.py", str(log), f"again={again}")
    assert "again (ybw) over a (ybw): x2.000 (2.000 to 2.000), 2 positions" in done.stdout


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", "ybw", [2.0, 3.0])
    for words, complaint in (
        ((str(log), str(log)), "two logs are called a"),
        ((str(tmp_path / "none.jsonl"),), "cannot read the log"),
        ((str(log), "--plot", "a.jpg"), "--plot"),
    ):
        done = run_bench("study/compare_logs.py", *words)
        assert done.returncode == 1 and done.stderr.startswith(f"compare_logs: {complaint}")
        assert done.stderr.count("\n") == 1 and not done.stdout
