"""The studies can be read by somebody who did not make them: words first, commits and commands last."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUDIES = sorted((ROOT / "docs" / "studies").glob("*.md"))
COLUMNS = ("speedup", "interval", "ceiling", "nps", "nodes", "idle", "joins", "aborted", "paired")


def _sections(study: Path) -> list[str]:
    return study.read_text("utf-8").split("\n## ")[1:]


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_words_come_first_and_runs_last(study: Path) -> None:
    titles = [section.partition("\n")[0] for section in _sections(study)]
    assert titles[0] == "Words" and titles[-1] == "Runs"


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_commits_and_commands_are_in_the_table_of_runs(study: Path) -> None:
    prose = study.read_text("utf-8").partition("\n## Runs\n")[0]
    assert not re.findall(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,10}\b", prose)
    assert not re.findall(r"`(?:psearch|python) [^`]*--[^`]*`", prose)


def test_columns_are_explained() -> None:
    study = ROOT / "docs" / "studies" / "study.md"
    words, *rest = _sections(study)
    explained = {word for cell in re.findall(r"^\| (.*?) \|", words, re.MULTILINE) for word in cell.split(", ")}
    heads = re.findall(r"^\|(.*)\|\n\|---", "\n".join(rest), re.MULTILINE)
    used = {column for column in COLUMNS for head in heads if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", head)}
    assert used and used <= explained
