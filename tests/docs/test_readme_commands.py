"""The commands of the README run as they are printed, from the root of a checkout."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from psearch.faces.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SHORTER = {"game": ["--depth", "2"], "simulate": ["--tree-nodes", "2000", "--positions", "1"]}
"""What makes a command short, by its name; `--nodes 500` for all others."""
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("psearch")]


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 10


@pytest.mark.parametrize("line", COMMANDS)
def test_it_runs_as_printed(
    line: str, kernels: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run it with a smaller limit."""
    for name in ("docs", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)  # what is written does not stay
    words = shlex.split(line, comments=True)[1:]
    words += SHORTER.get(words[0], ["--nodes", "500"])
    status = main(words)
    captured = capsys.readouterr()
    assert (status, captured.out + captured.err != "") == (0, True), captured.err
