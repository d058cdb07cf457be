"""`bench/study/depth_rules.py`: the old rules, and what the script prints. What they do is in test_depths.py."""

from __future__ import annotations

import sys
from pathlib import Path

import depth_rules
import pytest
from paths import BENCH

from psearch.files.raw_log import read_log

SUITE = BENCH.parent / "docs" / "measurements" / "study" / "twelve.epd"


def test_the_old_rules() -> None:
    sizes = {5: 400.0, 6: 900.0, 7: 2500.0}
    assert depth_rules.first_beyond(sizes, 1000.0) == 7 and depth_rules.last_within(sizes, 1000.0) == 6
    assert depth_rules.first_beyond(sizes, 9000.0) == 0 and depth_rules.last_within(sizes, 100.0) == 0
    assert depth_rules.last_within({100: 3.0}, 1000.0) == 0


def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ["--suite", str(SUITE), "--tree-nodes", "1000", "--repeat", "1", "--workers", "2", "--hash", "1"]
    monkeypatch.setattr(sys, "argv", ["depth_rules.py", *words, "--log", str(log)])
    depth_rules.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "12 positions, about 1,000 nodes, repeats: 1"
    assert [line.split()[0] for line in lines[2:]] == ["nearest"] * 3 + ["first"] * 2 + ["last"] * 2
    samples, _ = read_log(log, depth_rules.RuleSample)
    assert {sample.rule for sample in samples} == {"nearest", "first", "last"}
    old = [sample for sample in samples if sample.rule != "nearest" and sample.compared == "base"]
    assert old and all(sample.history == 0 for sample in old)
    assert all(sample.history > 0 for sample in samples if sample.rule == "nearest")
