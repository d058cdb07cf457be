"""The serial searches in the raw log of a study, for the scripts that do them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psearch.results import PsearchError
from psearch.studies.raw_log import read_log

_DEEPEST = 60
"""Deeper searches ended with a mate, at a depth that means nothing."""


def serial_rows(path: Path, script: str) -> list[dict[str, Any]]:
    """One for each position, mates left out. Without any, or if the file is no log, ends the script with a line."""
    try:
        samples, _ = read_log(path, dict)
    except PsearchError as error:
        raise SystemExit(f"{script}: {error}") from None
    rows = {s["fen"]: s for s in samples if s["policy"] == "serial" and s["depth"] <= _DEEPEST}
    if not rows:
        raise SystemExit(f"{script}: there is no serial search in {path}")
    return list(rows.values())
