"""A docstring begins with a verb, or with a noun phrase that names its object: it can be read alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = "Of That Those Who Whose Which As By With Without Nobody Only So At On If Among To Not Also And But Or"
FRAGMENT = re.compile(rf"(The same|{WORDS.replace(' ', '|')})\b")
SOURCES = [path for folder in ("core", "parallel", "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))]


def fragments(source: str) -> Iterator[str]:
    """Yield line and beginning of each docstring, of constants and fields as well, that begins as a fragment."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            text = getattr(statement.value, "value", None) if isinstance(statement, ast.Expr) else None
            if isinstance(text, str) and FRAGMENT.match(text.strip()):
                yield f"{statement.lineno}: {text.strip()[:60]}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_can_be_read_alone(path: Path) -> None:
    assert not list(fragments(path.read_text("utf-8")))


def test_a_fragment_is_found() -> None:
    assert list(fragments('class Result:\n    score: int\n    """Of the best move."""\n')) == ["3: Of the best move."]
