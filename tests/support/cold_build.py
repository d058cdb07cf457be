"""Run by the tests of the compiler in processes of their own: load groups of kernels, print what happened as JSON.

    python cold_build.py GROUP [GROUP ...]

The groups are compiled if the cache lacks them.
"""

from __future__ import annotations

import json
import sys
import time

from inspect_entries import INSPECT
from round_robin_entries import ROUND_ROBIN

from psearch.scheduler.scheduler_entries import PREDICTION, SEARCH
from psearch.simulation.simulation_entries import VIRTUAL
from psearch_core.chess.chess_entries import CHESS, PERFT
from psearch_core.toolchain import groups

GROUPS = {group.name: group for group in (CHESS, INSPECT, PERFT, PREDICTION, SEARCH, ROUND_ROBIN, VIRTUAL)}


def is_cached(*some: groups.Group) -> bool:
    return all(groups.cached(group) is not None for group in some)


def main() -> None:
    wanted = [GROUPS[name] for name in sys.argv[1:]]
    was_cached = is_cached(*wanted)
    lines: list[str] = []
    start = time.perf_counter()
    groups.load(*wanted, progress=lines.append)
    report = {
        "file": groups.__file__,
        "was_cached": was_cached,
        "is_cached": is_cached(*wanted),
        "seconds": time.perf_counter() - start,
        "lines": lines,
        "imported": sorted(name for name in sys.modules if "." not in name),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
