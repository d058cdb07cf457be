"""The open split nodes as a tree: what the workers share at this moment.

Every open node has a worker at or below it, so all are found on the way from the workers up (`open_parent`): nothing
else is looked at, whatever the size of the pool. Of many nodes those with most workers at or below them are taken, and
so with each node all above it.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from psearch.lab.watching.node_lines import NodeLine, NodeLines
from psearch.lab.watching.reading import Memory
from psearch.trace.recorder import split_name
from psearch_core.constants import BOUND_EXACT, BOUND_NONE, TYPE_NAMES
from psearch_core.records import CERTAIN, DEPTHS, MAX_PLY

MOST_NODES = 64
"""Most nodes in one look; of more, those with most workers are taken."""
MOST_WORKERS = 16
"""Most workers that are named at a node."""
BUDGET_S = 0.004
"""CPU time that a look may take to check lines; what is left over is not shown this time."""
_DEEPEST = MAX_PLY
_STEPS = (0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6)
"""Values of `progress_step`, by moves done."""


class _Raw(NamedTuple):
    """A node as it was read."""

    home: int
    split: int
    parent: int
    depth: int
    kind: int
    bound: int
    closed: int
    inside: int
    handed_out: int
    p_needed: int
    codes: tuple[int, ...]


class OpenNodeTree:
    """The open nodes of one search, from look to look."""

    def __init__(self) -> None:
        self._known: dict[int, NodeLine] = {}
        """by the number of the node: those of the last look"""

    def look(self, memory: Memory, lines: NodeLines, budget_s: float | None = None) -> tuple[list[dict[str, Any]], int]:
        """Return the open nodes, parents before children, and how many there are that are not among them.

        `moves` of each lead there from its parent, or from the root where that is not among them; `words` are these for
        people.
        """
        workers, stacks, plies = memory.places()
        if not len(workers):
            self._known = {}
            return [], 0
        chains = _chains(memory, memory.innermost(stacks, plies))
        below = _count(chains)
        chosen = sorted(below, key=lambda home: (-below[home], home % MAX_PLY, home))[:MOST_NODES]
        deadline = time.thread_time() + (BUDGET_S if budget_s is None else budget_s)
        known: dict[int, NodeLine] = {}
        shown: dict[int, dict[str, Any]] = {}
        no_cutoff = memory.p_no_cutoff()
        reached = _reached(memory, chains, workers, stacks, plies, set(chosen))
        for home in sorted(chosen, key=lambda home: home % MAX_PLY):
            raw = _read(memory, home)
            if raw is None:
                continue
            above = shown.get(raw.parent)
            line = self._known.get(raw.split)
            if line is None or line.codes != raw.codes:
                if time.thread_time() > deadline:
                    continue
                line = lines.line(raw.codes, None if above is None else known[above["split"]])
            if line is None:
                continue
            if above is not None and line.moves[: above["ply"]] != above["line"]:
                continue  # another node lies there by now, and this one is given up
            known[raw.split] = line
            shown[home] = _described(raw, lines, line, reached.get(home, []), below[home], no_cutoff)
        self._known = known
        for node in shown.values():
            above = shown.get(node.pop("parent_home"))
            node["parent"] = None if above is None else above["id"]
            start = 0 if above is None else above["ply"]
            node["moves"], node["words"] = list(node["line"][start:]), list(node["words"][start:])
        for node in shown.values():
            del node["split"], node["line"]
        return list(shown.values()), len(below) - len(shown)


def _chains(memory: Memory, innermost: np.ndarray) -> np.ndarray:
    """The open nodes above each worker: a row a step, from the innermost up; -1 beyond the last one."""
    rows = []
    present = innermost
    for _ in range(_DEEPEST):
        present = np.where(memory.is_open(present), present, -1)
        if (present < 0).all():
            break
        rows.append(present)
        above = memory.open_parents(present)
        # a chain leads up: what was read from two nodes at once may not
        present = np.where((above % MAX_PLY < present % MAX_PLY) & (present >= 0), above, -1)
    return np.array(rows, np.int64).reshape(len(rows), len(innermost))


def _count(chains: np.ndarray) -> dict[int, int]:
    """Workers at or below each open node."""
    homes, counts = np.unique(chains[chains >= 0], return_counts=True)
    return dict(zip(homes.tolist(), counts.tolist(), strict=True))


def _reached(
    memory: Memory, chains: np.ndarray, workers: np.ndarray, stacks: np.ndarray, plies: np.ndarray, chosen: set[int]
) -> dict[int, list[tuple[int, int]]]:
    """Return, by node, the workers at or below it and the code of the move that each has taken there; 0: none yet."""
    found: dict[int, list[tuple[int, int]]] = {home: [] for home in chosen}
    for column in range(chains.shape[1]):
        homes = [home for home in chains[:, column].tolist() if home in chosen and len(found[home]) < MOST_WORKERS]
        if not homes:
            continue
        codes = memory.line(int(stacks[column]), int(plies[column]))
        for home in homes:
            ply = home % MAX_PLY
            found[home].append((int(workers[column]), codes[ply] if ply < len(codes) else 0))
    return found


def _read(memory: Memory, home: int) -> _Raw | None:
    """One open node; None if it was closed, or another was opened in its place, while it was read."""
    split = int(memory.split[home])
    node = memory.node
    if not node["open"][home] or split <= 0:
        return None
    stack, ply = divmod(home, MAX_PLY)
    record = node[home]
    raw = _Raw(
        home,
        split,
        int(record["open_parent"]),
        int(record["depth"]),
        int(record["split_type"]),
        int(record["tt_bound"]),
        int(record["closed"]),
        int(record["inside"]),
        int(record["moves_done"]),
        int(record["p_needed"]),
        tuple(memory.line(stack, ply)),
    )
    if not node["open"][home] or int(memory.split[home]) != split:
        return None
    is_sound = (
        0 <= raw.kind < len(TYPE_NAMES)
        and 0 <= raw.bound <= BOUND_EXACT
        and 0 <= raw.p_needed <= CERTAIN
        and raw.inside >= 0
        and raw.handed_out >= 0
        and raw.parent != home
    )
    return raw if is_sound else None


def _step(moves_done: int) -> int:
    """`progress_step` of psearch.scheduler.prediction."""
    return _STEPS[moves_done] if moves_done < len(_STEPS) else 7


def _described(
    raw: _Raw, lines: NodeLines, line: NodeLine, reached: list[tuple[int, int]], below: int, no_cutoff: np.ndarray
) -> dict[str, Any]:
    """Describe a node for JSON."""
    finished = max(0, raw.handed_out - raw.inside)
    bound = BOUND_NONE if raw.bound == BOUND_EXACT else raw.bound
    depth = min(max(raw.depth, 0), DEPTHS - 1)
    under_way: dict[int, list[int]] = {}
    for worker, code in reached:
        under_way.setdefault(code, []).append(worker)
    taken = ((lines.named(line.position, code), there) for code, there in under_way.items() if code)
    return {
        "id": split_name(raw.split),
        "split": raw.split,
        "parent_home": raw.parent,
        "type": TYPE_NAMES[raw.kind],
        "depth": raw.depth,
        "ply": raw.home % MAX_PLY,
        "closed": raw.closed != 0,
        "p_no_cutoff": round(int(no_cutoff[raw.kind, bound, depth, _step(finished)]) / CERTAIN, 3),
        "p_needed": round(raw.p_needed / CERTAIN, 3),
        "inside": raw.inside,
        "below": below,
        "done": finished,
        "handed_out": raw.handed_out,
        "to_come": max(0, line.choices - raw.handed_out),
        "under_way": [
            {"move": named[0], "san": named[1], "workers": there} for named, there in taken if named is not None
        ],
        "line": line.moves,
        "words": line.words,
        "fen": line.fen,
    }
