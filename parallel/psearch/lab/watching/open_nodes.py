"""The open split nodes as a tree: what the workers share at this moment, read without a lock and without a message.

Every open node has a worker at or below it, so all are found on the way from the workers up (`open_parent`): nothing
else is looked at, whatever the size of the pool. Of many nodes those with most workers at or below them are taken, and
so with each node all above it.

Workers write while this reads: a number may be old, and two numbers may not belong together. So every number that leads
somewhere is checked first, whatever is said of an open node is taken for true only if the node had the same number
before and after it was read, and moves are played on a board (`node_lines`). Frames that no worker has come to are not
touched: their pages would be taken. The arrays of a `Memory` last for one look: nothing here keeps memory that the
engine has given back.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from psearch.arena.arena import Arena
from psearch.lab.watching.node_lines import NodeLine, NodeLines
from psearch.scheduler.prediction import progress_step
from psearch.trace.recorder import split_name
from psearch_core.constants import BOUND_EXACT, BOUND_NONE, TYPE_NAMES
from psearch_core.records import CERTAIN, DEPTHS, MAX_PLY

MOST_NODES = 64
"""Most nodes in one look; of more, those with most workers are taken."""
MOST_WORKERS = 16
"""Most workers that are named at a node."""
BUDGET_S = 0.004
"""CPU time that a look may take to check lines; what is left over is not shown this time."""


class Memory:
    """Reads an arena for one look. Raises AttributeError when it is closed."""

    def __init__(self, arena: Arena) -> None:
        self._stacks = arena.stacks
        self._worker = arena.worker
        self._bases = arena.stack["base"]
        self._moves = arena.stack["path"]["move"]
        self._node = arena.frames["node"]
        self._homes = arena.frames["visit"]["home"]
        self._split = arena.frames["trace"]["split"]
        self.p_no_cutoff = arena.header["prediction"]["p_no_cut"][0]
        """by expected type, table bound, depth and progress, in 1/65536"""

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return numbers of the workers that run a stack, and the numbers of their stacks and plies there."""
        stacks, plies = self._worker["stack"].copy(), self._worker["ply"].copy()
        there = np.flatnonzero((stacks >= 0) & (stacks < self._stacks) & (plies >= 0) & (plies < MAX_PLY))
        return there, stacks[there], plies[there]

    def chains(self, stacks: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """Return the open nodes above each of these workers: a row a step, from the innermost up; -1 beyond the last
        one.

        The innermost is that of the worker's frame, or the home of the visit that led there, or its open ancestor.
        """
        own = stacks * MAX_PLY + plies
        # a helper's visit lies at the base of its stack; the visit that led to a frame lies at the ply before it
        led = np.where(plies > np.clip(self._bases[stacks], 0, MAX_PLY - 1), own - 1, own)
        homes = self._valid(self._homes[led])
        present = np.where(self._is_open(own), own, np.where(self._is_open(homes), homes, self._open_parents(homes)))
        rows = []
        for _ in range(MAX_PLY):
            present = np.where(self._is_open(present), present, -1)
            if (present < 0).all():
                break
            rows.append(present)
            above = self._open_parents(present)
            # a chain leads up: what was read from two nodes at once may not
            present = np.where((above % MAX_PLY < present % MAX_PLY) & (present >= 0), above, -1)
        return np.array(rows, np.int64).reshape(len(rows), len(own))

    def _is_open(self, homes: np.ndarray) -> np.ndarray:
        """Tell whether each is the number of a frame whose node is open."""
        found: np.ndarray = (homes >= 0) & (self._node["open"][np.maximum(homes, 0)] != 0)
        return found

    def _open_parents(self, homes: np.ndarray) -> np.ndarray:
        """Return the open nodes above those of these frames; -1 for none, and for what is no number of a frame."""
        return np.where(homes >= 0, self._valid(self._node["open_parent"][np.maximum(homes, 0)]), -1)

    def _valid(self, homes: np.ndarray) -> np.ndarray:
        """Return these numbers of frames, with -1 for what is none."""
        return np.where((homes >= 0) & (homes < self._stacks * MAX_PLY), homes, -1)

    def line(self, stack: int, ply: int) -> tuple[int, ...]:
        """Return codes of the moves that lead to this ply of a stack."""
        return tuple(self._moves[stack, 1 : ply + 1].tolist())

    def node(self, home: int) -> tuple[int, np.void, tuple[int, ...]] | None:
        """Return number, record and line of an open node; None if it was closed, or another was opened in its place,
        while it was read."""
        split = int(self._split[home])
        if not self._node["open"][home] or split <= 0:
            return None
        record = self._node[home].copy()
        codes = self.line(*divmod(home, MAX_PLY))
        if not self._node["open"][home] or int(self._split[home]) != split:
            return None
        is_sound = (
            0 <= record["split_type"] < len(TYPE_NAMES)
            and 0 <= record["tt_bound"] <= BOUND_EXACT
            and 0 <= record["p_needed"] <= CERTAIN
            and record["inside"] >= 0
            and record["moves_done"] >= 0
            and record["open_parent"] != home
        )
        return (split, record, codes) if is_sound else None


class OpenNodeTree:
    """Follows the open nodes of one search from look to look."""

    def __init__(self) -> None:
        self._known: dict[int, NodeLine] = {}
        """by the number of the node: those of the last look"""

    def look(self, memory: Memory, lines: NodeLines, budget_s: float | None = None) -> tuple[list[dict[str, Any]], int]:
        """Return the open nodes, parents before children, and how many there are that are not among them.

        `moves` of each lead there from its parent, or from the root where that is not among them; `words` are these for
        people.
        """
        workers, stacks, plies = memory.places()
        chains = memory.chains(stacks, plies)
        homes, counts = np.unique(chains[chains >= 0], return_counts=True)
        below = dict(zip(homes.tolist(), counts.tolist(), strict=True))
        chosen = sorted(below, key=lambda home: (-below[home], home % MAX_PLY, home))[:MOST_NODES]
        reached: dict[int, list[tuple[int, int]]] = {home: [] for home in chosen}
        """workers at or below a node, and the code of the move that each has taken there; 0: none yet"""
        places = zip(chains.T.tolist(), workers.tolist(), stacks.tolist(), plies.tolist(), strict=True)
        for chain, worker, stack, ply in places:
            inside = [home for home in chain if home in reached and len(reached[home]) < MOST_WORKERS]
            taken = (*memory.line(stack, ply), 0) if inside else ()
            for home in inside:
                reached[home].append((worker, taken[min(home % MAX_PLY, ply)]))
        deadline = time.thread_time() + (BUDGET_S if budget_s is None else budget_s)
        known: dict[int, NodeLine] = {}
        shown: dict[int, dict[str, Any]] = {}
        found: dict[int, NodeLine] = {}
        for home in sorted(chosen, key=lambda home: home % MAX_PLY):
            read = memory.node(home)
            if read is None:
                continue
            split, record, codes = read
            parent = int(record["open_parent"])
            above = found.get(parent)
            line = self._known.get(split)
            if line is None or line.codes != codes:
                line = lines.line(codes, above) if time.thread_time() <= deadline else None
            if line is None:
                continue
            start = 0 if above is None else len(above.moves)
            if above is not None and line.moves[:start] != above.moves:
                continue  # another node lies there by now, and this one is given up
            known[split] = found[home] = line
            shown[home] = {
                "id": split_name(split),
                "parent": None if above is None else shown[parent]["id"],
                "ply": home % MAX_PLY,
                "below": below[home],
                "moves": list(line.moves[start:]),
                "words": list(line.words[start:]),
                "fen": line.fen,
                **_described(record, lines, line, reached[home], memory.p_no_cutoff),
            }
        self._known = known
        return list(shown.values()), len(below) - len(shown)


def _described(
    record: np.void, lines: NodeLines, line: NodeLine, reached: list[tuple[int, int]], no_cutoff: np.ndarray
) -> dict[str, Any]:
    """Describe a node for JSON."""
    kind, inside, handed_out = (int(record[name]) for name in ("split_type", "inside", "moves_done"))
    finished = max(0, handed_out - inside)
    bound = BOUND_NONE if record["tt_bound"] == BOUND_EXACT else int(record["tt_bound"])
    depth = min(max(int(record["depth"]), 0), DEPTHS - 1)
    under_way: dict[int, list[int]] = {}
    for worker, code in reached:
        under_way.setdefault(code, []).append(worker)
    taken = ((lines.named(line.position, code), there) for code, there in under_way.items() if code)
    return {
        "type": TYPE_NAMES[kind],
        "depth": int(record["depth"]),
        "closed": bool(record["closed"]),
        "p_no_cutoff": round(int(no_cutoff[kind, bound, depth, progress_step.py_func(finished)]) / CERTAIN, 3),
        "p_needed": round(int(record["p_needed"]) / CERTAIN, 3),
        "inside": inside,
        "done": finished,
        "handed_out": handed_out,
        "to_come": max(0, line.choices - handed_out),
        "under_way": [
            {"move": named[0], "san": named[1], "workers": there} for named, there in taken if named is not None
        ],
    }
