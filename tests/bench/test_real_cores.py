"""`bench/study/real_cores.py`: what an hour on a machine with many cores is for, at toy size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import real_cores
from paths import BENCH

from psearch.files.raw_log import read_log
from psearch.lab.studies.speedup_study import Sample
from psearch.text.epd_text import read_suite

SUITE = BENCH.parent / "docs" / "measurements" / "study" / "twelve.epd"
TOY = ["--counts", "1,2", "--minutes", "0.01", "--seconds", "0.03", "--tc", "0.3+0.01", "--hash", "1"]


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> list[list[str]]:
    """The commands that are run, none of which does anything."""
    commands: list[list[str]] = []

    def only_noted(command: list[str], **how: Any) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(stdout="table", returncode=0)

    monkeypatch.setattr(real_cores.subprocess, "run", only_noted)
    out = str(tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["real_cores.py", "--suite", str(SUITE), "--book", "b", "--out", out, *words])
    real_cores.main()
    return commands


def test_an_hour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    speedup, match = run(monkeypatch, tmp_path)
    assert speedup[speedup.index("--threads") + 1] == "1,2,4,8,16" and speedup[speedup.index("--seconds") + 1] == "5"
    assert len(read_suite(str(tmp_path / "out" / "positions.epd"))) == 12
    assert int(match[match.index("--games") + 1]) % 2 == 0 and match[match.index("--tc") + 1] == "5+0.05"
    assert run(monkeypatch, tmp_path) == [], "both parts are finished"
    (tmp_path / "out" / "two-one.txt").unlink()
    (tmp_path / "out" / "two-one.jsonl").touch()
    assert run(monkeypatch, tmp_path) == [[*match, "--resume"]]


def test_minutes_are_positions_and_games() -> None:
    assert real_cores.positions_for(30, [1, 2, 4, 8, 16], 5.0, 1) == pytest.approx(100, abs=20)
    assert real_cores.games_for(30, "5+0.05", 8) == pytest.approx(850, abs=150)
    assert real_cores.games_for(0.01, "5+0.05", 1) == 2


@pytest.mark.slow
def test_at_toy_size(tmp_path: Path) -> None:
    """The games may be lost on time, so short are they; then they are complained about."""
    book = tmp_path / "book.epd"
    book.write_text("rnbqkbnr/ppp2ppp/3p4/4p3/8/2PP4/PP2PPPP/RNBQKBNR w KQkq - hmvc 0; fmvn 3;\n", "utf-8")
    words = [str(BENCH / "study" / "real_cores.py"), "--suite", str(SUITE), "--book", str(book), "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, *words, *TOY], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 or "real_cores: two-one ended with exit status 1" in done.stderr, done.stderr
    samples, facts = read_log(tmp_path / "speedup.jsonl", Sample)
    assert {sample.threads for sample in samples} == {1, 2} and facts["ceilings"]["2"] > 0
    result = json.loads((tmp_path / "two-one.json").read_text("utf-8"))
    assert result["wins"] + result["draws"] + result["losses"] == 2


@pytest.mark.parametrize("words", [["--minutes", "nan"], ["--tc", "40/5"], ["--counts", "0"], ["--repeat", "0"]])
def test_bad_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, tmp_path, *words)
    assert leaving.value.code == 2 and not list(tmp_path.iterdir())
