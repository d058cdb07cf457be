"""The repository's folders that tests use."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
TESTS = SUPPORT.parent
REPOSITORY = TESTS.parent
DATA = TESTS / "data"
BENCH = REPOSITORY / "bench"
