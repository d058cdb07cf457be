"""Reads recordings in Python. The page reads them by itself (workers.js), so nothing that ships needs this."""

from __future__ import annotations

import json
from typing import Any

from psearch.lab.watching.recordings import VERSION


def read_recordings(text: str) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return facts and snapshots of each recording in a file's text."""
    found: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for line in text.splitlines():
        value = json.loads(line)
        if "psearch_recording" in value:
            assert value["psearch_recording"] == VERSION
            found.append((value, []))
        else:
            assert 0 <= value["begin"] <= value["now"] and isinstance(value["tracks"], list)
            found[-1][1].append(value)
    return found
