"""The steps of a node are numbered in search.md and in the source, where each begins."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (
    *sorted((ROOT / "core" / "psearch_core" / "chess" / "search").glob("*.py")),
    ROOT / "parallel" / "psearch" / "scheduler" / "step.py",
)


def test_every_step_of_the_document_begins_somewhere_in_the_source() -> None:
    text = (ROOT / "docs" / "design" / "search.md").read_text("utf-8")
    steps = re.split(r"^## ", text.split("## The steps\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    said = [int(number) for number in re.findall(r"^([0-9]+)\. \*\*", steps, re.MULTILINE)]
    marked = {int(number) for path in SOURCES for number in re.findall(r"# step ([0-9]+):", path.read_text("utf-8"))}
    assert said == list(range(13))
    assert marked == set(said)
