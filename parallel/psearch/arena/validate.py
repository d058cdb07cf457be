"""Checks of all invariants of an arena, and its state as text, for when a search hangs.

`violations` needs an arena at rest: in one process, between two steps. `describe` may be called while workers run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from psearch.arena.arena import Arena
from psearch_core.constants import (
    STACK_ACTIVE,
    STACK_FREE,
    STACK_NAMES,
    STACK_PARKED,
    STATE_BEGIN,
    STATE_CHILD,
    STATE_IDLE,
    STATE_NAMES,
    STATE_NEXT,
    STATE_UNWIND,
)
from psearch_core.records import MAX_PLY


def _offers(arena: Arena, number: int) -> list[int]:
    """Return the plies whose bit is set in a stack's mask of open nodes."""
    low, high = (int(word) & (1 << 64) - 1 for word in arena.stack[number]["open_mask"])
    bits = low | high << 64
    return [ply for ply in range(bits.bit_length()) if bits >> ply & 1]


def _all_offers(arena: Arena) -> Iterator[tuple[int, list[int]]]:
    """Yield the number of each stack that offers nodes, and their plies."""
    for number in np.flatnonzero(arena.stack["open_mask"].any(axis=1)).tolist():
        yield number, _offers(arena, number)


def _visited_frames(arena: Arena) -> Iterator[int]:
    """Yield the number of each frame whose visit counts as inside its node, if that node is open."""
    stacks = arena.stack
    tops = {
        number: int(stacks[number]["parked_ply"]) for number in np.flatnonzero(stacks["state"] == STACK_PARKED).tolist()
    }
    for worker in arena.worker:
        if worker["stack"] >= 0:
            tops[int(worker["stack"])] = int(worker["ply"]) + (int(worker["state"]) in (STATE_NEXT, STATE_CHILD))
    for number, top in tops.items():
        for ply in range(int(stacks[number]["base"]), top):
            yield number * MAX_PLY + ply


def _worker_violations(arena: Arena) -> Iterator[str]:
    runners: dict[int, int] = {}
    for number, worker in enumerate(arena.worker):
        stack, idle = int(worker["stack"]), int(worker["state"]) in (STATE_IDLE, STATE_BEGIN)
        if idle != (stack < 0):
            yield f"worker {number} is {STATE_NAMES[int(worker['state'])]} with stack {stack}"
        if stack >= 0:
            if stack in runners:
                yield f"workers {runners[stack]} and {number} both run stack {stack}"
            runners[stack] = number
            if arena.stack[stack]["state"] != STACK_ACTIVE:
                yield f"worker {number} runs stack {stack}, which is {STACK_NAMES[arena.stack[stack]['state']]}"
    without = sum(int(worker["stack"]) < 0 for worker in arena.worker)
    if without != int(arena.header[0]["idle_workers"]):
        yield f"the header counts {arena.header[0]['idle_workers']} idle workers, there are {without}"
    for number in np.flatnonzero(arena.stack["state"] == STACK_ACTIVE).tolist():
        is_root = number < arena.workers and int(arena.worker[number]["state"]) == STATE_BEGIN  # not yet taken
        if number not in runners and not is_root:
            yield f"stack {number} is active, but no worker runs it"
    for number, plies in _all_offers(arena):
        if arena.stack[number]["state"] == STACK_FREE:
            yield f"free stack {number} offers plies {plies}"


def _node_violations(arena: Arena) -> Iterator[str]:
    nodes = arena.frames["node"]
    homes = (int(arena.frames[number]["visit"]["home"]) for number in _visited_frames(arena))
    inside = Counter(home for home in homes if nodes[home]["open"])
    live = {
        int(home)
        for number in np.flatnonzero(arena.stack["state"] != STACK_FREE)
        for home in number * MAX_PLY + np.flatnonzero(nodes["open"][number * MAX_PLY : (number + 1) * MAX_PLY])
    }
    for home in live | set(inside):
        node = nodes[home]
        if node["lock"]:
            yield f"node {home} is locked between steps"
        if int(node["inside"]) != inside[home]:
            yield f"node {home} counts {node['inside']} inside, there are {inside[home]}"
        if node["open_parent"] >= 0 and not nodes[node["open_parent"]]["open"]:
            yield f"node {home} has the open parent {node['open_parent']}, which is not open"
    for number, plies in _all_offers(arena):
        for ply in plies:
            node = nodes[number * MAX_PLY + ply]
            if not node["open"] or node["closed"]:
                yield f"stack {number} offers ply {ply}, open {node['open']}, closed {node['closed']}"


def _abort_violations(arena: Arena) -> Iterator[str]:
    """Check that a worker which has seen the abort epoch, and does not unwind, runs below no closed node."""
    epoch = int(arena.header[0]["abort_epoch"])
    nodes, visits = arena.frames["node"], arena.frames["visit"]
    for number, worker in enumerate(arena.worker):
        if worker["stack"] < 0 or worker["state"] == STATE_UNWIND or worker["seen_epoch"] != epoch:
            continue
        first = int(worker["stack"]) * MAX_PLY
        homes = visits["home"][first + int(arena.stack[worker["stack"]]["base"]) : first + int(worker["ply"])].tolist()
        above = int(nodes[homes[0]]["open_parent"]) if homes else -1
        chain = [home for home in homes if nodes[home]["open"]]
        while above >= 0:
            chain.append(above)
            above = int(nodes[above]["open_parent"])
        for home in chain:
            if nodes[home]["closed"]:
                yield f"worker {number} has seen epoch {epoch} and runs below node {home}, which is closed"


def violations(arena: Arena) -> list[str]:
    """Return the violated invariants in words; empty when all hold."""
    return [*_worker_violations(arena), *_node_violations(arena), *_abort_violations(arena)]


def leftovers(arena: Arena) -> list[str]:
    """Return what a finished search has not released, in words; empty when all stacks are free and all workers idle."""
    found = [f"stack {i} is {STACK_NAMES[s['state']]}" for i, s in enumerate(arena.stack) if s["state"]]
    found += [f"stack {number} offers {plies}" for number, plies in _all_offers(arena)]
    found += [f"worker {i} has stack {w['stack']}" for i, w in enumerate(arena.worker) if w["stack"] >= 0]
    nodes = arena.frames["node"]
    found += [f"node {i} is locked" for i in np.flatnonzero(nodes["lock"])]
    found += [f"node {i} is open" for i in np.flatnonzero(nodes["open"])]
    return found


def _fields(record: np.void, names: str) -> str:
    return " ".join(f"{name}={record[name]}" for name in names.split())


_HEADER = "stop abort_epoch done info_count depth score roots idle_workers node_limit"
_NODE = "lock closed inside joined open_parent alpha beta depth split_type best moves_done"


def describe(arena: Arena) -> str:
    """Return the state of a search as text: header, workers, stacks in use with their open nodes."""
    lines = [f"header: {_fields(arena.header[0], _HEADER)}"]
    for number, worker in enumerate(arena.worker):
        lines.append(
            f"worker {number}: {STATE_NAMES[int(worker['state'])]} {_fields(worker, 'stack ply nodes')} "
            f"{_fields(worker['counters'], 'joins polls')} seen={worker['seen_epoch']}"
        )
    for number in np.flatnonzero(arena.stack["state"] != STACK_FREE).tolist():
        stack = arena.stack[number]
        name, offers = STACK_NAMES[int(stack["state"])], _offers(arena, number)
        lines.append(f"stack {number}: {name} {_fields(stack, 'home base parked_ply')} offers={offers}")
        nodes = arena.frames["node"][number * MAX_PLY : (number + 1) * MAX_PLY]
        for ply in np.flatnonzero(nodes["open"]).tolist():
            lines.append(f"    node {number * MAX_PLY + ply} (ply {ply}): {_fields(nodes[ply], _NODE)}")
    return "\n".join(lines)
