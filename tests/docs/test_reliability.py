"""docs/reliability.md: the tests that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGE = (ROOT / "docs/reliability.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]*test_\w+(?:\.py|…)?)`", PAGE)))
FILES = {path.name: path.read_text() for path in (ROOT / "tests").rglob("*.py")}


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name: str) -> None:
    """A file, a function, or with … at its end the beginning of one."""
    if name.endswith(".py"):
        assert name.rpartition("/")[2] in FILES
        return
    begin = name.removesuffix("…")
    ends = r"\w*\(" if name.endswith("…") else r"\("
    assert any(re.search(rf"^def {begin}{ends}", text, re.MULTILINE) for text in FILES.values())
