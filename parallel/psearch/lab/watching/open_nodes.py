"""Reads the tree of open split nodes from shared memory, without locks or messages.

Every open node has a worker at or below it, so following `open_parent` up from the workers finds all of them, whatever
the size of the pool. If there are too many, those with the most workers at or below them are taken, which always
includes their ancestors.

Workers write meanwhile, so values may be old or inconsistent. Every index is checked before use, a node is accepted
only if its split number was the same before and after reading, and moves are played on a board (`node_lines`). Frames
without a worker are not read, because that would allocate their pages. The arrays of a `Memory` are used for one look
only, so that no memory of the engine is kept after it is released.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from psearch.arena.arena import Arena
from psearch.lab.watching.node_lines import NodeLine, NodeLines
from psearch.scheduler.prediction import MOST_UNDER_WAY, progress_step
from psearch.trace.recorder import split_name
from psearch_core.constants import BOUND_EXACT, BOUND_NONE, INFINITE, TYPE_NAMES
from psearch_core.records import CERTAIN, DEPTHS, MAX_PLY

MOST_NODES = 64
"""Most nodes of one look; those with the most workers are taken."""
MOST_WORKERS = 16
"""Most workers listed at a node."""
BUDGET_S = 0.004
"""CPU time of a look for checking lines, in seconds; the remaining nodes are not shown this time."""


class Memory:
    """Reads an arena for one look. Raises AttributeError if it is closed."""

    def __init__(self, arena: Arena) -> None:
        self._stacks = arena.stacks
        self._worker = arena.worker
        self._bases = arena.stack["base"]
        self._moves = arena.stack["path"]["move"]
        self._node = arena.frames["node"]
        self._homes = arena.frames["visit"]["home"]
        self._split = arena.frames["trace"]["split"]
        self.p_no_cutoff = arena.header["prediction"]["p_no_cut"][0]
        """P(no cutoff) by expected type, table bound, depth and progress, in 1/65536."""

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the workers that run a stack, with their stacks and plies."""
        stacks, plies = self._worker["stack"].copy(), self._worker["ply"].copy()
        there = np.flatnonzero((stacks >= 0) & (stacks < self._stacks) & (plies >= 0) & (plies < MAX_PLY))
        return there, stacks[there], plies[there]

    def chains(self, stacks: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """Return the open nodes above each worker, one row per step from the innermost up; -1 after the last.

        The innermost is the node of the worker's frame, or the home of the visit that led there, or its open ancestor.
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
            # a chain must lead up, but inconsistent values may not
            present = np.where((above % MAX_PLY < present % MAX_PLY) & (present >= 0), above, -1)
        return np.array(rows, np.int64).reshape(len(rows), len(own))

    def _is_open(self, homes: np.ndarray) -> np.ndarray:
        """Tell which frames have an open node."""
        found: np.ndarray = (homes >= 0) & (self._node["open"][np.maximum(homes, 0)] != 0)
        return found

    def _open_parents(self, homes: np.ndarray) -> np.ndarray:
        """Return the open parents of the nodes of these frames; -1 for none."""
        return np.where(homes >= 0, self._valid(self._node["open_parent"][np.maximum(homes, 0)]), -1)

    def _valid(self, homes: np.ndarray) -> np.ndarray:
        return np.where((homes >= 0) & (homes < self._stacks * MAX_PLY), homes, -1)

    def first_moves(self) -> list[tuple[int, int]]:
        """Return the workers that search below a root move, with the code of the move that leads there."""
        there, stacks, plies = self.places()
        below = plies > 0
        return list(zip(there[below].tolist(), self._moves[stacks[below], 1].tolist(), strict=True))

    def line(self, stack: int, ply: int) -> tuple[int, ...]:
        """Return the codes of the moves that lead to a ply of a stack."""
        return tuple(self._moves[stack, 1 : ply + 1].tolist())

    def node(self, home: int) -> tuple[int, dict[str, Any], tuple[int, ...]] | None:
        """Return split number, fields and line of an open node; None if it was closed or replaced during reading."""
        split = int(self._split[home])
        if not self._node["open"][home] or split <= 0:
            return None
        record = dict(zip(self._node.dtype.names or (), self._node[home].item(), strict=True))  # faster than one by one
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


def read_open_nodes(
    memory: Memory, lines: NodeLines, budget_s: float | None = None
) -> tuple[list[dict[str, Any]], int, dict[int, NodeLine]]:
    """Return the open nodes, parents before children, without those that closed meanwhile; the number of those left
    out; and the lines of the nodes by split number. `moves` and `words` (in SAN) lead to a node from its parent, or
    from the root if the parent was left out."""
    workers, stacks, plies = memory.places()
    chains = memory.chains(stacks, plies)
    homes, counts = np.unique(chains[chains >= 0], return_counts=True)
    below = dict(zip(homes.tolist(), counts.tolist(), strict=True))
    chosen = sorted(below, key=lambda home: (-below[home], home % MAX_PLY, home))[:MOST_NODES]
    reached: dict[int, list[tuple[int, int]]] = {home: [] for home in chosen}
    """Workers at or below each node, with the code of the move that each has taken there; 0 for none yet."""
    places = zip(chains.T.tolist(), workers.tolist(), stacks.tolist(), plies.tolist(), strict=True)
    for chain, worker, stack, ply in places:
        inside = [home for home in chain if home in reached and len(reached[home]) < MOST_WORKERS]
        taken = (*memory.line(stack, ply), 0) if inside else ()
        for home in inside:
            reached[home].append((worker, taken[min(home % MAX_PLY, ply)]))
    read = {home: memory.node(home) for home in chosen}  # before python-chess takes its time
    hidden = len(below) - len(chosen)
    deadline = time.thread_time() + (BUDGET_S if budget_s is None else budget_s)
    known: dict[int, NodeLine] = {}
    shown: dict[int, dict[str, Any]] = {}
    found: dict[int, NodeLine] = {}
    for home in sorted(chosen, key=lambda home: home % MAX_PLY):
        node = read[home]
        if node is None:
            continue
        split, record, codes = node
        parent = record["open_parent"]
        above = found.get(parent)
        if not lines.has(codes) and time.thread_time() > deadline:
            hidden += 1
            continue
        line = lines.line(codes)
        if line is None:
            continue
        start = 0 if above is None else len(above.moves)
        if above is not None and line.moves[:start] != above.moves:
            continue  # the parent has been replaced meanwhile
        known[split] = found[home] = line
        shown[home] = {
            "id": split_name(split),
            "parent": None if above is None else shown[parent]["id"],
            "ply": home % MAX_PLY,
            "below": below[home],
            "moves": list(line.moves[start:]),
            "words": list(line.words[start:]),
            "fen": line.fen,
            **_described(record, line, reached[home], memory.p_no_cutoff),
        }
    return list(shown.values()), hidden, known


def score_or_none(value: int) -> int | None:
    """Return a score in centipawns, as seen by the side to move; None for an infinite bound or no score."""
    return value if abs(value) < INFINITE else None


def _described(
    record: dict[str, Any], line: NodeLine, reached: list[tuple[int, int]], no_cutoff: np.ndarray
) -> dict[str, Any]:
    kind, inside, handed_out = (record[name] for name in ("split_type", "inside", "moves_done"))
    finished = max(0, handed_out - inside)
    bound = BOUND_NONE if record["tt_bound"] == BOUND_EXACT else record["tt_bound"]
    depth = min(max(record["depth"], 0), DEPTHS - 1)
    p_needed = p_next = record["p_needed"] / CERTAIN
    for move in range(finished, finished + min(max(inside, 1), MOST_UNDER_WAY)):
        p_next *= int(no_cutoff[kind, bound, depth, progress_step.py_func(move)]) / CERTAIN
    best_move = line.named(record["best_move"])
    under_way: dict[int, list[int]] = {}
    for worker, code in reached:
        under_way.setdefault(code, []).append(worker)
    taken = ((line.named(code), there) for code, there in under_way.items() if code)
    return {
        "type": TYPE_NAMES[kind],
        "depth": record["depth"],
        "closed": bool(record["closed"]),
        "p_no_cutoff": round(int(no_cutoff[kind, bound, depth, progress_step.py_func(finished)]) / CERTAIN, 3),
        "p_needed": round(p_needed, 3),
        "p_next": round(p_next, 3),
        **{name: score_or_none(record[name]) for name in ("alpha", "beta", "best")},
        "best_move": None if best_move is None else best_move[1],
        "joined": record["joined"],
        "inside": inside,
        "done": finished,
        "handed_out": handed_out,
        "to_come": max(0, line.choices - handed_out),
        "under_way": [
            {"move": named[0], "san": named[1], "workers": there} for named, there in taken if named is not None
        ],
    }
