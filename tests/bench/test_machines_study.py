"""What machines are worth by their moves: searched, judged and reported, and gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from machines_study import main
from positions import KIWIPETE, MIDDLE_GAME


@pytest.fixture
def positions(tmp_path: Path) -> Path:
    path = tmp_path / "positions.epd"
    path.write_text(f"{MIDDLE_GAME};12;1.0\n{KIWIPETE}\n8/8/8/8/4k3/8/R7/4K3 w - - 0 1\n")
    return path


def test_a_log_is_gone_on_with(
    kernels: None, positions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    words = ["--positions", str(positions), "--out", str(log), "--nodes", "400", "--workers", "1", "--hash", "1"]
    words += ["--judge-nodes", "300"]
    assert main([*words, "--machines", "1x1,1x2"]) == 0
    assert main([*words, "--machines", "1x1,1x2,2", "--modes", "root+entries,root"]) == 0
    out = capsys.readouterr().out
    assert out.count("1x1: 2 positions") == 1, "what was searched is not searched again; few pieces are left out"
    assert "| 2 root+entries | 2 |" in out and "| 2 root | 2 |" in out
    about, *lines = map(json.loads, log.read_text().splitlines())
    assert about["about"]["nodes"] == 400
    assert len([line for line in lines if "config" in line]) == 8
    assert main([*words, "--machines", ""]) == 0
    assert capsys.readouterr().out.splitlines()[-4:] == out.splitlines()[-4:]


def test_bad_input_is_a_line(positions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    words = ["--positions", str(positions), "--out", str(log), "--nodes", "400", "--machines", "2"]
    assert main([*words, "--modes", "x"]) == 2
    assert main([*words, "--workers", "3"]) == 2, "another run"
    assert main(["--positions", "nowhere", "--out", str(log)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
