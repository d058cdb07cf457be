"""Every recipe of docs/guides/recipes.md runs as printed, on two small games, one after the other."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from psearch.faces.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guides/recipes.md").read_text("utf-8")
GAMES = """\
[White "Anna"]
[Black "Bert"]
[Result "0-1"]

1. f3 {[%clk 0:05:00]} e5 {[%clk 0:05:00]} 2. g4 {[%clk 0:00:20]} Qh4# {[%clk 0:04:00]} 0-1

[White "Bert"]
[Black "Anna"]
[Result "1-0"]

1. e4 {[%clk 0:05:00]} e5 {[%clk 0:05:00]} 2. Bc4 {[%clk 0:04:50]} Nc6 {[%clk 0:02:00]} 3. Qh5 {[%clk 0:04:40]}
Nf6 {[%clk 0:00:50]} 4. Qxf7# {[%clk 0:04:30]} 1-0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "games.pgn.gz").write_bytes(gzip.compress(GAMES.encode()))
    (tmp_path / "games.pgn").write_text(GAMES)
    return tmp_path


def test_every_recipe_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    names: dict[str, object] = {}
    shown = {}
    for section in PAGE.split("\n## ")[1:]:
        title = section.partition("\n")[0]
        for command in re.findall(r"^    psearch (.*)$", section, re.MULTILINE):
            assert main([*shlex.split(command), "--threads", "1"]) == 0
        for code in re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
            if "import duckdb" in code:
                pytest.importorskip("duckdb")
            capsys.readouterr()
            exec(compile(code, title, "exec"), names)
            shown[title] = capsys.readouterr().out
    assert re.search(r"\?\? +2", shown["A month of one's games"])
    assert re.search(r"King's Pawn Game|Bishop's Opening|Italian|Vienna", shown["Blunders by opening"])
    assert re.search(r"< 30 s +0\.[3-9]\d* +1", shown["Time trouble"])
    assert "g4" in shown["A Parquet file, queried by duckdb"]
    assert "cp_2" in shown["Positions of a table"]
    assert shown["A graph of a game"].strip().endswith("0.0]")


def test_the_script_counts_blunders_by_opening_and_time(folder: Path) -> None:
    script = ROOT / "docs/examples/my_games.py"
    command = [sys.executable, str(script), "games.pgn", "Anna", "3000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "   2 under a minute\n" in done.stdout
    done = subprocess.run(command[:3], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr.startswith("usage: ") and done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("script", ["docs/examples/my_games.py", "tests/support/typed_script.py"])
def test_scripts_have_types(tmp_path: Path, script: str) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(ROOT / script)]
    paths = {**os.environ, "MYPYPATH": f"{ROOT / 'parallel'}:{ROOT / 'core'}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=paths)
    assert done.stdout.startswith("Success"), done.stdout
