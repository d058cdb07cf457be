"""bench/study/pack_logs.py: what goes in comes out."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from pack_logs import main, read_packed

STUDY = [{"about": {"study": "simulate", "machine": {"cores": 2}}}, {"position": "1", "seconds": 0.1}, {"ceilings": []}]
ROWS = [{"line": 1, "id": "WAC.001", "score": {"cp": -20}}, {"summary": {"solved": 1}}]


def _write(path: Path, lines: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_what_is_packed_is_unpacked_to_the_byte(tmp_path: Path) -> None:
    logs = [_write(tmp_path / "sweep" / "depth-1.jsonl", STUDY), _write(tmp_path / "rows.jsonl", ROWS)]
    packed = tmp_path / "logs.jsonl.xz"
    assert main(["add", str(packed), str(tmp_path / "sweep"), str(tmp_path / "rows.jsonl")]) == 0
    assert main(["unpack", str(packed), str(tmp_path / "out")]) == 0
    for log in logs:
        assert (tmp_path / "out" / log.relative_to(tmp_path)).read_bytes() == log.read_bytes()
    lines = [json.loads(line) for line in lzma.decompress(packed.read_bytes()).splitlines()]
    assert [line["run"] for line in lines] == ["rows"] * len(ROWS) + ["sweep/depth-1"] * len(STUDY)


def test_the_commit_is_in_the_first_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "logs.jsonl.xz"
    main(["add", str(packed), "--commit", "abc1234", str(_write(tmp_path / "a.jsonl", STUDY))])
    main(["add", str(packed), "--commit", "def5678", str(_write(tmp_path / "b.jsonl", ROWS))])
    assert read_packed(packed) == {
        "a": [{"about": {**STUDY[0]["about"], "commit": "abc1234"}}, *STUDY[1:]],
        "b": [{"about": {"commit": "def5678"}}, *ROWS],
    }
    main(["list", str(packed)])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["a", "3", "lines", "abc1234"],
        ["b", "3", "lines", "def5678"],
    ]


def test_a_run_is_replaced(tmp_path: Path) -> None:
    packed = tmp_path / "logs.jsonl.xz"
    for lines in (STUDY, ROWS):
        main(["add", str(packed), str(_write(tmp_path / "a.jsonl", lines))])
    assert read_packed(packed) == {"a": ROWS}
