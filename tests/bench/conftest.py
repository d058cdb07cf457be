"""Fixtures for matches in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

_OPENINGS = """rnbqkbnr/ppp2ppp/3p4/4p3/8/2PP4/PP2PPPP/RNBQKBNR w KQkq - 0 3
rnbqkbnr/ppp1ppp1/3p4/7p/8/6P1/PPPPPPBP/RNBQK1NR w KQkq - 0 3
rnbqkb1r/ppp3pp/4pn2/3p1p2/3P1P2/4PN2/PPP3PP/RNBQKB1R w KQkq - 0 1
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.epd"
    path.write_text(_OPENINGS)
    return path
