"""Recordings: what was seen of a search, as a file that the page opens (docs/guides/recordings.md).

A recording is JSON lines: an object with the key `psearch_recording`, the version of the format, and facts about the
search; then the snapshots of `watcher`, in order of time. A file may hold several recordings, one after the other.
"""

from __future__ import annotations

import json
import math
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psearch.lab.watching.node_lines import chess_lines
from psearch.lab.watching.watcher import LinesOf, Watched, WatchedSearch, Watcher
from psearch.simulation.simulator import Simulator
from psearch.trace.trace_file import replacing
from psearch.version import __version__

VERSION = 1
"""Version of the format."""
PERIOD_S = 0.05
"""Time between two snapshots of a live search, in seconds."""
_MOST_LIVE = 1200
"""Most snapshots of a live search, the latest: one minute."""
_MOST_VIRTUAL = 300
_MOST_TRACKS_OF_ALL = 4800
"""Most snapshots of a virtual search, and most snapshots times workers."""
_TICKS_PER_NS = 1000


def write_recording(path: Path, facts: dict[str, Any], looks: Iterable[dict[str, Any]]) -> None:
    """Write a recording, replacing the file when it is complete. Raises OSError."""
    with replacing(path) as out:
        for line in ({"psearch_recording": VERSION, "by": f"psearch {__version__}", **facts}, *looks):
            out.write(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n")


def virtual_looks(simulator: Simulator, lines_of: LinesOf = chess_lines) -> list[dict[str, Any]]:
    """Repeat the last search of a simulator with a recorder, and return snapshots of it at equal distances."""
    recorder = simulator.recorder
    assert recorder is not None, "a simulator with trace events has a recorder"
    end = recorder.end_ns * _TICKS_PER_NS
    count = max(20, min(_MOST_VIRTUAL, _MOST_TRACKS_OF_ALL // recorder.arena.workers))
    simulator.begin_again()
    search = WatchedSearch(recorder, lines_of, budget_s=math.inf)  # however slow this machine is
    looks = []
    for number in range(1, count + 1):
        at = end * number // count + _TICKS_PER_NS * (number == count)  # the end is rounded down
        simulator.advance_to(at)
        looks.append(search.look(virtual_now=at))
    recorder.end(end)
    return looks


@contextmanager
def recorded(engine: Watched) -> Iterator[deque[dict[str, Any]]]:
    """Watch an engine inside the block, in a thread; the snapshots, at most the last minute, are complete after it."""
    watcher, looks, ended = Watcher(engine), deque[dict[str, Any]](maxlen=_MOST_LIVE), threading.Event()

    def look() -> None:
        while True:
            is_last = ended.wait(PERIOD_S)
            found = watcher.look()
            if found is not None and found["fen"] is not None:
                looks.append(found)
            if is_last:
                return

    thread = threading.Thread(target=look, name="psearch-record", daemon=True)
    thread.start()
    try:
        yield looks
    finally:
        ended.set()
        thread.join()
