"""`bench/study/tables.py`: the tables of the study are those of the logs, and are made again by one command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import tables
from pack_logs import read_packed

from psearch.text.epd_text import read_suite

TOY = tables.Table("toy", "Toy", tables.DOCS / "study" / "twelve.epd", 2000, (2, 4), 1.0, ("calibrated", "lazy"),
                   driver="null", hash_mb=1)  # fmt: skip


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["tables.py", *words])
    tables.main()


def test_the_page_is_what_the_logs_give() -> None:
    assert tables.PAGE.read_text("utf-8") == tables.page(read_packed(tables.LOGS))


def test_one_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tables, "TABLES", (TOY,))
    logs, page = tmp_path / "logs.jsonl.xz", tmp_path / "tables.md"
    words = ["--minutes", "0.001", "--out", str(tmp_path / "out"), "--logs", str(logs), "--page", str(page)]
    run(monkeypatch, *words)
    text = page.read_text("utf-8")
    assert "## Toy" in text and "pruning `modern`, driver `null`;\ndepths: the nearest" in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert [row[:2] for row in rows] == [[f"| `{name}`", n] for name in ("calibrated", "lazy") for n in "24"]
    (lines,) = read_packed(logs).values()
    about = lines[0]["about"]
    assert about["commit"] and about["arguments"]["driver"] == "null" and len(lines) == 1 + 3 * (1 + 4)

    def refuse(*arguments: Any) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr(tables, "run_study", refuse)
    run(monkeypatch, *words)
    run(monkeypatch, "--minutes", "0", "--logs", str(logs), "--page", str(page))
    assert page.read_text("utf-8") == text


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
    "words", [["--minutes", "1"], ["--minutes", "nan", "--out", "x"], ["--minutes", "0", "--only", "x"]]
)
def test_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, *words)
    assert leaving.value.code == 2 and "tables.py: error: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
