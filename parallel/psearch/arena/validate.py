"""Checks every invariant of the arena between steps, and prints it for people when something hangs.

`violations` needs a quiet arena: in one process, between two steps. `describe` reads whatever is there and may be
called while workers run.
"""

from __future__ import annotations

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


def _mask_plies(stack: np.void) -> list[int]:
    """Plies whose bit is set in a stack's mask of open nodes."""
    low, high = (int(word) & (1 << 64) - 1 for word in stack["open_mask"])
    bits = low | high << 64
    return [ply for ply in range(bits.bit_length()) if bits >> ply & 1]


def _offers(arena: Arena) -> Iterator[tuple[int, list[int]]]:
    """Numbers of stacks that offer nodes, and the plies of those."""
    for number in np.flatnonzero(arena.stack["open_mask"].any(axis=1)).tolist():
        yield number, _mask_plies(arena.stack[number])


def _stacks_in(arena: Arena, state: int) -> list[int]:
    """Numbers of the stacks in a state."""
    found: list[int] = np.flatnonzero(arena.stack["state"] == state).tolist()
    return found


def _visited_frames(arena: Arena) -> Iterator[int]:
    """Numbers of frames whose visit counts as inside its node, if that node is open."""
    for worker in arena.worker:
        stack = int(worker["stack"])
        if stack >= 0:
            top = int(worker["ply"]) + (1 if int(worker["state"]) in (STATE_NEXT, STATE_CHILD) else 0)
            for ply in range(int(arena.stack[stack]["base"]), top):
                yield stack * MAX_PLY + ply
    for number in _stacks_in(arena, STACK_PARKED):
        stack = arena.stack[number]
        for ply in range(int(stack["base"]), int(stack["parked_ply"])):
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
    for number in _stacks_in(arena, STACK_ACTIVE):
        is_to_come = number < arena.workers and int(arena.worker[number]["state"]) == STATE_BEGIN  # a root's
        if number not in runners and not is_to_come:
            yield f"stack {number} is active, but nobody runs it"
    for number, plies in _offers(arena):
        if arena.stack[number]["state"] == STACK_FREE:
            yield f"free stack {number} offers plies {plies}"


def _node_violations(arena: Arena) -> Iterator[str]:
    nodes = arena.frames["node"]
    inside: dict[int, int] = {}
    for number in _visited_frames(arena):
        home = int(arena.frames[number]["visit"]["home"])
        if nodes[home]["open"]:
            inside[home] = inside.get(home, 0) + 1
    live = {
        int(home)
        for number in np.flatnonzero(arena.stack["state"] != STACK_FREE)
        for home in number * MAX_PLY + np.flatnonzero(nodes["open"][number * MAX_PLY : (number + 1) * MAX_PLY])
    }
    for home in live | set(inside):
        node = nodes[home]
        if node["lock"]:
            yield f"node {home} is locked between steps"
        if int(node["inside"]) != inside.get(home, 0):
            yield f"node {home} counts {node['inside']} inside, there are {inside.get(home, 0)}"
        if node["open_parent"] >= 0 and not nodes[node["open_parent"]]["open"]:
            yield f"node {home} has the open parent {node['open_parent']}, which is not open"
    for number, plies in _offers(arena):
        for ply in plies:
            node = nodes[number * MAX_PLY + ply]
            if not node["open"] or node["closed"]:
                yield f"stack {number} offers ply {ply}, open {node['open']}, closed {node['closed']}"


def _open_chain(arena: Arena, stack: int, base: int, top: int) -> Iterator[int]:
    """Open nodes that a worker runs below: those of the visits on its stack, and above its base."""
    nodes, visits = arena.frames["node"], arena.frames["visit"]
    homes = [int(visits["home"][stack * MAX_PLY + ply]) for ply in range(base, top)]
    yield from (home for home in homes if nodes[home]["open"])
    above = int(nodes[homes[0]]["open_parent"]) if homes else -1
    while above >= 0:
        yield above
        above = int(nodes[above]["open_parent"])


def _abort_violations(arena: Arena) -> Iterator[str]:
    """A worker that has seen the abort epoch, and does not unwind, runs below no closed node."""
    epoch = int(arena.header[0]["abort_epoch"])
    for number, worker in enumerate(arena.worker):
        if worker["stack"] < 0 or worker["state"] == STATE_UNWIND or worker["seen_epoch"] != epoch:
            continue
        stack = int(worker["stack"])
        for home in _open_chain(arena, stack, int(arena.stack[stack]["base"]), int(worker["ply"])):
            if arena.frames["node"]["closed"][home]:
                yield f"worker {number} has seen epoch {epoch} and runs below node {home}, which is closed"


def violations(arena: Arena) -> list[str]:
    """What is wrong with the arena, in words; empty when every invariant holds."""
    return [*_worker_violations(arena), *_node_violations(arena), *_abort_violations(arena)]


def leftovers(arena: Arena) -> list[str]:
    """What a finished search has left behind; empty when every stack is free and every worker idle."""
    found = [f"stack {i} is {STACK_NAMES[s['state']]}" for i, s in enumerate(arena.stack) if s["state"]]
    found += [f"stack {number} offers {plies}" for number, plies in _offers(arena)]
    found += [f"worker {i} has stack {w['stack']}" for i, w in enumerate(arena.worker) if w["stack"] >= 0]
    nodes = arena.frames["node"]
    found += [f"node {i} is locked" for i in np.flatnonzero(nodes["lock"])]
    found += [f"node {i} is open" for i in np.flatnonzero(nodes["open"])]
    return found


def _describe_node(arena: Arena, home: int) -> str:
    node = arena.frames[home]["node"]
    names = (
        "lock",
        "closed",
        "inside",
        "joined",
        "open_parent",
        "alpha",
        "beta",
        "depth",
        "split_type",
        "best",
        "moves_done",
    )
    return f"    node {home} (ply {home % MAX_PLY}): " + " ".join(f"{name}={node[name]}" for name in names)


def describe(arena: Arena) -> str:
    """The state of a search as text: header, workers, stacks in use with their open nodes."""
    header = arena.header[0]
    words = ("stop", "abort_epoch", "done", "info_count", "depth", "score", "roots", "idle_workers", "node_limit")
    lines = ["header: " + " ".join(f"{word}={header[word]}" for word in words)]
    for number, worker in enumerate(arena.worker):
        lines.append(
            f"worker {number}: {STATE_NAMES[int(worker['state'])]} stack={worker['stack']} ply={worker['ply']} "
            f"nodes={worker['nodes']} joins={worker['counters']['joins']} polls={worker['counters']['polls']} "
            f"seen={worker['seen_epoch']}"
        )
    for number, stack in enumerate(arena.stack):
        if stack["state"] == STACK_FREE:
            continue
        lines.append(
            f"stack {number}: {STACK_NAMES[int(stack['state'])]} home={stack['home']} base={stack['base']} "
            f"parked_ply={stack['parked_ply']} offers={_mask_plies(stack)}"
        )
        nodes = arena.frames["node"][number * MAX_PLY : (number + 1) * MAX_PLY]
        lines += [_describe_node(arena, number * MAX_PLY + int(ply)) for ply in np.flatnonzero(nodes["open"])]
    return "\n".join(lines)
