"""Every link in a document leads somewhere."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("tests/data/*.md"))
)

_LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)


def _prose(text: str) -> str:
    """Without fenced and indented code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<=\n\n)(?:    .*\n|\n)+", "\n", text)


@cache
def _anchors(path: Path) -> frozenset[str]:
    """What GitHub makes of the headings: small letters, hyphens for blanks, no other signs; a second one counted."""
    count: Counter[str] = Counter()
    anchors = []
    for title in re.findall(r"^#{1,6} (.+)$", _prose(path.read_text("utf-8")), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        anchors.append(f"{anchor}-{count[anchor]}" if count[anchor] else anchor)
        count[anchor] += 1
    return frozenset(anchors)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links(document: str) -> None:
    path = ROOT / document
    broken = []
    for inline, reference in _LINK.findall(_prose(path.read_text("utf-8"))):
        link = inline or reference
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        if not there.exists() or (anchor and anchor not in _anchors(there)):
            broken.append(link)
    assert not broken


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    named = {inline.partition("#")[0] for inline, _ in _LINK.findall(index)}
    pages = {document.removeprefix("docs/") for document in DOCUMENTS if document.startswith("docs/")}
    assert pages - {"README.md"} == {link for link in named if link.endswith(".md") and not link.startswith("../")}


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("A walk: `psearch --threads 2 FEN`", "a-walk-psearch---threads-2-fen"),
        ("P(needed)", "pneeded"),
        ("What's new?", "whats-new"),
    ],
)
def test_anchors_are_those_of_github(tmp_path: Path, title: str, anchor: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# {title}\n\n    # code\n\n## {title}\n", "utf-8")
    assert _anchors(page) == {anchor, f"{anchor}-1"}
