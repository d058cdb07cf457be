"""A trace that psearch has written, from its text: for pages, which send what a user has chosen.

What is read is whatever a file may hold, so all is checked, and nothing that it says is used but numbers and names that
psearch writes. Runs in a process of its own (`job`): a large file takes seconds and much memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from psearch.files.safe_files import json_value
from psearch.lab.watching.cells import Segment, in_cells, packed
from psearch.lab.watching.laboratory import MOST_CELLS, iteration, segment, split_types
from psearch.results import PsearchError
from psearch.trace.trace_file import (
    FIRST_WORKER_TID,
    ITERATIONS_TID,
    OPENING,
    SEARCH_PID,
    SPLITS_PID,
    WORKERS_PID,
)

MOST_CHARACTERS = 32 << 20
"""Longest file that is read; psearch writes ASCII."""
MOST_WORKERS = 64
"""Whose tracks are shown; of more workers the first ones."""
_MOST_US = 1e12
_LONGEST = 120
"""Longest fact that is shown, in characters."""
_FACTS = (
    *("psearch", "game", "position", "policy", "depth", "seed", "pruning"),
    *("clock", "workers", "finished", "dropped_events"),
)
_NO_TRACE = "that is no trace of psearch (psearch --trace FILE, or simulate --trace FILE)"


def read_trace(text: str, tell: Callable[[str, float], None] = lambda text, share: None) -> dict[str, Any]:
    """Return what a trace shows, for JSON, as `laboratory.timeline` has it, with the facts. Raises PsearchError."""
    if len(text) > MOST_CHARACTERS:
        raise PsearchError(f"a trace of more than {MOST_CHARACTERS >> 20} MiB is not opened here; ui.perfetto.dev may")
    if not text.startswith(OPENING):
        raise PsearchError(_NO_TRACE)
    tell("reading", 0.1)
    try:
        whole = json_value(text)
        facts, events = whole["otherData"], whole["traceEvents"]
        if not isinstance(facts, dict) or not isinstance(events, list):
            raise PsearchError(_NO_TRACE)
        tell("drawing", 0.6)
        return _shown(facts, events)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise PsearchError(f"{_NO_TRACE}, or it is not complete") from None


def _shown(facts: Mapping[str, Any], events: list[Any]) -> dict[str, Any]:
    """Raises ValueError, TypeError, KeyError for what psearch does not write."""
    tracks: dict[int, list[Segment]] = {}
    depths: list[dict[str, Any]] = []
    lives: list[dict[str, Any]] = []
    names = set()
    for event in events:
        if event["ph"] != "X":
            if event["ph"] == "M" and event["name"] == "thread_name" and event["pid"] == WORKERS_PID:
                names.add(_worker(event))
            continue
        begin, end = _times(event)
        if event["pid"] == WORKERS_PID:
            worker = _worker(event)
            if worker < MOST_WORKERS:
                found = segment(event["name"], begin, end, event["args"])
                if found is not None:  # workers with a root of their own have iterations there, too
                    tracks.setdefault(worker, []).append(found)
        elif event["pid"] == SEARCH_PID and event["tid"] == ITERATIONS_TID:
            depths.append(iteration(event["args"], begin, end))
        elif event["pid"] == SPLITS_PID:
            lives.append(_life(event["args"]))
    if not names:
        raise ValueError("no workers")
    last = max((segment.end for track in tracks.values() for segment in track), default=0)
    shown = range(min(max(names) + 1, MOST_WORKERS))
    return {
        "facts": {name: _text(facts[name]) for name in _FACTS if name in facts},
        "workers": max(names) + 1,
        "end": last,
        "tracks": [packed(in_cells(tracks.get(worker, []), 0, last, MOST_CELLS)) for worker in shown],
        "depths": depths,
        "types": split_types(lives),
    }


def _worker(event: Mapping[str, Any]) -> int:
    worker = int(event["tid"]) - FIRST_WORKER_TID
    if not 0 <= worker < 1 << 10:
        raise ValueError("no such worker")
    return worker


def _times(event: Mapping[str, Any]) -> tuple[int, int]:
    """Begin and end, microseconds."""
    begin, length = float(event["ts"]), float(event["dur"])
    if not (math.isfinite(begin) and math.isfinite(length)) or not 0 <= begin <= begin + length <= _MOST_US:
        raise ValueError("no times")
    return int(begin), int(begin + length)


def _life(args: Mapping[str, Any]) -> dict[str, Any]:
    p_needed = float(args.get("p_needed", 0))
    if not 0 <= p_needed <= 1:
        raise ValueError("no probability")
    return {
        "type": args["type"],
        "helpers": int(args.get("helpers", 0)),
        "p_needed": p_needed,
        "outcome": args.get("outcome"),
    }


def _text(fact: object) -> str:
    return str(fact)[:_LONGEST]
