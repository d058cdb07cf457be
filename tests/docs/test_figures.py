"""The figures in the README, and those of the study's first table, are those of the logs that they name."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pack_logs import read_packed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
STUDY = ROOT / "docs" / "studies" / "study.md"
MEASUREMENTS = ROOT / "docs" / "measurements"
NAMED = r"\[`(.*)`\]\[(games|suites|logs|tables)\]"
"""A log, and the kind of file that it lies in."""

Line = dict[str, Any]


def _readme_rows() -> Iterator[tuple[str, str, list[str]]]:
    """Yield of each row the log that it names, where that lies, and the numbers that were measured."""
    section = README.split("## Figures\n", 1)[1].split("\n## ", 1)[0]
    for row in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]:
        _, measured, log = row.split(" | ")
        yield *re.findall(NAMED, log)[0], re.findall(r"\d+(?:\.\d+)?", measured)


def _study_rows() -> Iterator[tuple[str, str, dict[int, str]]]:
    """Yield the same of each row of the study's first table that names a log, its numbers by their worker counts."""
    head, _, *rows = re.findall(r"^\|.*\|$", STUDY.read_text("utf-8").split("\n## ", 1)[0], re.MULTILINE)
    counts = [int(cell.replace(",", "")) for cell in head.split("|")[2:-2]]
    for row in rows:
        if "[`" in row:
            cells = [cell.strip(" *") for cell in row.split("|")[2:-2]]
            yield *re.findall(NAMED, row)[0], {count: cell for count, cell in zip(counts, cells, strict=True) if cell}


def _speedups(lines: list[Line]) -> dict[int, float]:
    """Return, by number of workers, the mean over positions of the time of one worker over theirs."""
    times: dict[int, dict[str, list[float]]] = {}
    for line in lines:
        if "position" in line:
            times.setdefault(line["threads"], {}).setdefault(line["fen"], []).append(line["seconds"])
    seconds = {
        count: {fen: statistics.geometric_mean(values) for fen, values in row.items()} for count, row in times.items()
    }
    alone = seconds.pop(1)
    return {
        count: statistics.geometric_mean(alone[fen] / taken for fen, taken in row.items())
        for count, row in sorted(seconds.items())
    }


def _match(name: str) -> list[int]:
    result = json.loads((MEASUREMENTS / "games" / f"{name}.json").read_text("utf-8"))
    return [result["wins"], result["draws"], result["losses"]]


def _suite(lines: list[Line]) -> list[float]:
    """Solved, all, million nodes a second."""
    rows = [line for line in lines if "id" in line]
    solved = sum(row["result"] == "right" for row in rows)
    return [solved, len(rows), sum(row["nodes"] for row in rows) / sum(row["time"] for row in rows) / 1e6]


def _lines(log: str, where: str) -> list[Line]:
    folder = "suites" if where == "suites" else "study-selective"
    return read_packed(MEASUREMENTS / folder / f"{'tables' if where == 'tables' else 'logs'}.jsonl.xz")[log]


def _agree(said: list[str], found: list[float] | list[int]) -> bool:
    decimals = [len(number.partition(".")[2]) for number in said]
    return said == [f"{value:.{places}f}" for value, places in zip(found, decimals, strict=True)]


def test_every_figure_has_a_log() -> None:
    assert list(_readme_rows())
    ours = [line for line in STUDY.read_text("utf-8").splitlines() if line.startswith(("| **virtual", "| **processes"))]
    assert ours and len(list(_study_rows())) == len(ours)


@pytest.mark.parametrize(("log", "where", "said"), list(_readme_rows()))
def test_a_figure_of_the_readme(log: str, where: str, said: list[str]) -> None:
    if where == "games":
        assert _agree(said, _match(log))
    elif where == "suites":
        assert _agree(said, _suite(_lines(log, where)))
    else:
        assert _agree(said, list(_speedups(_lines(log, where)).values()))


@pytest.mark.parametrize(("log", "where", "cells"), list(_study_rows()))
def test_the_figures_of_a_run_of_the_study(log: str, where: str, cells: dict[int, str]) -> None:
    found = _speedups(_lines(log, where))
    assert list(cells) == list(found)
    assert _agree(list(cells.values()), list(found.values()))
