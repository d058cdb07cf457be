"""The raw log of a study, for the scripts that search its positions again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psearch.files.raw_log import read_log
from psearch.results import PsearchError

_DEEPEST = 60
"""Deeper searches ended with a mate, at a depth that means nothing."""

Row = dict[str, Any]
"""A search."""


def read_rows(path: Path, script: str) -> list[Row]:
    """All searches of a log. If it is none, ends the script with a line."""
    try:
        return read_log(path, dict)[0]
    except PsearchError as error:
        raise SystemExit(f"{script}: {error}") from None


def serial_rows(rows: list[Row], path: Path, script: str) -> list[Row]:
    """The serial ones, one for each position, mates left out. Without any, ends the script with a line."""
    found = {row["fen"]: row for row in rows if row["policy"] == "serial" and row["depth"] <= _DEEPEST}
    if not found:
        raise SystemExit(f"{script}: there is no serial search in {path}")
    return list(found.values())


def read_serial_rows(path: Path, script: str) -> list[Row]:
    """`serial_rows` of a log of which nothing else is wanted."""
    return serial_rows(read_rows(path, script), path, script)
