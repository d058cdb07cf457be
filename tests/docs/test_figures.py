"""The figures in the README, and those of the study's first table, are those of the logs that they name."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pack_logs import read_packed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
STUDY = ROOT / "docs" / "studies" / "study.md"
MEASUREMENTS = ROOT / "docs" / "measurements"

Line = dict[str, Any]


def _figures() -> Iterator[tuple[str, list[str]]]:
    """Yield the name of the log and the numbers that were measured, of each row that names a log."""
    section = README.split("## Figures\n", 1)[1].split("\n## ", 1)[0]
    for row in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]:
        _, measured, log = row.split(" | ")
        yield re.findall(r"\[`(.*)`\]", log)[0], re.findall(r"\d+(?:\.\d+)?", measured)
    for log, cells in _study_rows():
        yield log, [number for number in cells.values() if number]


def _study_rows() -> Iterator[tuple[str, dict[int, str]]]:
    """Yield the run of each row of the study's first table that names one, and its number for each worker count."""
    head, _, *rows = re.findall(r"^\|.*\|$", STUDY.read_text("utf-8").split("\n## ", 1)[0], re.MULTILINE)
    counts = [int(cell.replace(",", "")) for cell in head.split("|")[2:-2]]
    for row in rows:
        if names := re.findall(r"\[`(.*)`\]", row):
            cells = [cell.strip(" *") for cell in row.split("|")[2:-2]]
            yield names[0], dict(zip(counts, cells, strict=True))


def _speedups(study: str, run: str, workers: list[int], logs: str = "logs") -> list[float]:
    """Of each count: the mean over positions of the time of one worker over the time of this count."""
    samples = [line for line in read_packed(MEASUREMENTS / study / f"{logs}.jsonl.xz")[run] if "position" in line]

    def seconds(count: int) -> dict[str, float]:
        times: dict[str, list[float]] = {}
        for sample in samples:
            if sample["threads"] == count:
                times.setdefault(sample["fen"], []).append(sample["seconds"])
        return {fen: statistics.geometric_mean(values) for fen, values in times.items()}

    alone = seconds(1)
    return [statistics.geometric_mean(alone[fen] / taken for fen, taken in seconds(count).items()) for count in workers]


def _match(name: str) -> list[int]:
    result = json.loads((MEASUREMENTS / "games" / f"{name}.json").read_text("utf-8"))
    return [result["wins"], result["draws"], result["losses"]]


def _suite(name: str) -> list[float]:
    """Solved, all, million nodes a second."""
    lines = read_packed(MEASUREMENTS / "suites" / "logs.jsonl.xz")[name]
    rows = [line for line in lines if "id" in line]
    solved = sum(row["result"] == "right" for row in rows)
    return [solved, len(rows), sum(row["nodes"] for row in rows) / sum(row["time"] for row in rows) / 1e6]


MEASURED: dict[str, Callable[[], list[float] | list[int]]] = {
    "wac_300_arasan_wacnew": lambda: _suite("wac_300_arasan_wacnew"),
    "glaurung-5s-0.05s": lambda: _match("glaurung-5s-0.05s"),
    "toga2-5s-0.05s": lambda: _match("toga2-5s-0.05s"),
    "network-5a402e7-5s-0.05s": lambda: _match("network-5a402e7-5s-0.05s"),
    "network-stockfish6-5s-0.05s": lambda: _match("network-stockfish6-5s-0.05s"),
    "network-two-processes-5s-0.05s": lambda: _match("network-two-processes-5s-0.05s"),
    "network-stockfish11-5s-0.05s": lambda: _match("network-stockfish11-5s-0.05s"),
    "speedup-2-ecm440": lambda: _speedups("study-selective", "speedup-2-ecm440", [2]),
    "null-windows-ecm24": lambda: _speedups("study-selective", "null-windows-ecm24", [8, 32, 64], "tables"),
    "null-windows-large": lambda: _speedups("study-selective", "null-windows-large", [8, 16, 64, 256]),
    "pvs-ecm24": lambda: _speedups("study-selective", "pvs-ecm24", [8, 32, 64], "tables"),
    "default": lambda: _speedups("study-selective", "default", [2, 8, 32, 64], "tables"),
    "large": lambda: _speedups("study-selective", "large", [8, 16, 32, 64, 256], "tables"),
    "default-small": lambda: _speedups("study-selective", "default-small", [2, 8, 32], "tables"),
    "plain": lambda: _speedups("study-selective", "plain", [2, 8, 32], "tables"),
}


def test_every_figure_has_a_log() -> None:
    logs = [log for log, _ in _figures()]
    assert sorted(set(logs)) == sorted(MEASURED)


@pytest.mark.parametrize(("log", "said"), list(_figures()))
def test_figure(log: str, said: list[str]) -> None:
    found = MEASURED[log]()
    assert len(said) == len(found)
    for number, value in zip(said, found, strict=True):
        decimals = len(number.partition(".")[2])
        assert f"{value:.{decimals}f}" == number


@pytest.mark.parametrize(("log", "cells"), list(_study_rows()))
def test_figures_stand_under_their_worker_counts(log: str, cells: dict[int, str]) -> None:
    logs = "logs" if log in ("speedup-2-ecm440", "null-windows-large") else "tables"
    lines = read_packed(MEASUREMENTS / "study-selective" / f"{logs}.jsonl.xz")[log]
    counts = {line["threads"] for line in lines if "position" in line} - {1}
    assert counts == {count for count, number in cells.items() if number}
