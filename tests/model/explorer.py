"""Every state that the model can be in: breadth first, so that a counterexample is as short as there is one.

Two reductions. Workers are alike, and so are stacks but for those of roots: both are sorted before a state is kept,
stacks by what lies in them, as far as it does not refer to other stacks. And a worker whose next step is nobody
else's business (`chooses_alone`, `goes_unseen`) makes it before anybody else moves: in any other order the same states
follow, and no such steps go round in a circle.

Of states seen before, a hash of 64 bits is kept: among ten million states two share one with a probability of 3e-6.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import mutations
import numpy as np
import outcomes as found
import steps
from protocol import (
    CHOICES,
    INFINITE,
    PLIES,
    STACKS,
    WORKERS,
    advance,
    begin,
    broken,
    chooses_alone,
    entry,
    goes_unseen,
    inner,
    interrupt,
    is_over,
    leftover,
    node_dtype,
    setting_dtype,
    state_dtype,
    visit_dtype,
    worker_dtype,
)

_WORDS = state_dtype.itemsize // 8
_WORKER_WORDS = worker_dtype.itemsize // 8
_NODE_WORDS = node_dtype.itemsize // 8
_VISIT_WORDS = visit_dtype.itemsize // 8
_NODES = WORKERS * _WORKER_WORDS
_VISITS = _NODES + STACKS * PLIES * _NODE_WORDS
_SUPERVISOR = WORKERS
_ACTIONS = (WORKERS + 1) * CHOICES


@dataclass(frozen=True)
class Setting:
    workers: int
    moves: int
    levels: int
    """Number of levels of nodes that may open."""
    stacks: int
    values: int = 2
    """Number of values of a leaf."""
    iterations: int = 1
    """Number of iterations of the main root."""
    roots: int = 1
    """Number of roots: 2 adds a side root."""
    defers: bool = False
    """Moves may be deferred."""
    stops: bool = True
    """The supervisor may stop the search at any moment."""
    betas: tuple[int, ...] = (INFINITE, 1)
    """Upper bounds of the roots; each root is combined with each."""
    mutation: int = mutations.NOTHING

    def record(self) -> np.void:
        made = np.zeros(1, setting_dtype)
        for name in setting_dtype.names or ():
            made[name] = getattr(self, name)
        first: np.void = made[0]
        return first


@dataclass(frozen=True)
class Exploration:
    states: int
    steps: int
    outcome: int
    """DONE, or the number of a property that does not hold"""
    trace: tuple[str, ...]
    """Steps to the state or to the step where the property does not hold."""
    seen: frozenset[str]
    """Names of the steps that were made."""

    def __str__(self) -> str:
        if self.outcome == found.DONE:
            return f"{self.states} states, {self.steps} steps"
        return f"does not hold: {found.PROPERTIES[self.outcome]}\n" + "\n".join(self.trace)


@inner
def _sort_workers(words, workers):
    """In place; they are the first words of a state."""
    for i in range(1, workers):
        for j in range(i, 0, -1):
            a, b = j * _WORKER_WORDS, (j - 1) * _WORKER_WORDS
            if words[a] > words[b] or (words[a] == words[b] and words[a + 1] >= words[b + 1]):
                break
            for k in range(_WORKER_WORDS):
                words[a + k], words[b + k] = words[b + k], words[a + k]


@inner
def _key(state, frame):
    node, visit = state.node[frame], state.visit[frame]
    return node.id, node.open, node.lock, node.cursor, visit.home_id, visit.move


@inner
def _comes_before(state, a, b):
    """Whether stack a is to stand before stack b."""
    if state.stack[a] != state.stack[b]:
        return state.stack[a] < state.stack[b]
    for ply in range(PLIES):
        one, other = _key(state, a * PLIES + ply), _key(state, b * PLIES + ply)
        if one != other:
            return one < other
    return False


@inner
def _renamed(frame, a, b):
    """A frame's number when the stacks a and b have changed places."""
    if frame < 0:
        return frame
    stack, ply = frame // PLIES, frame % PLIES
    return (b if stack == a else a if stack == b else stack) * PLIES + ply


@inner
def _swap(words, first, a, b, size):
    for i in range(size):
        at_a, at_b = first + a * size + i, first + b * size + i
        words[at_a], words[at_b] = words[at_b], words[at_a]


@inner
def _exchange_stacks(state, words, a, b):
    _swap(words, _NODES, a, b, PLIES * _NODE_WORDS)
    _swap(words, _VISITS, a, b, PLIES * _VISIT_WORDS)
    state.stack[a], state.stack[b] = state.stack[b], state.stack[a]
    state.runner[a], state.runner[b] = state.runner[b], state.runner[a]
    for frame in range(STACKS * PLIES):
        state.node[frame].parent = _renamed(state.node[frame].parent, a, b)
        state.visit[frame].home = _renamed(state.visit[frame].home, a, b)
    for w in range(WORKERS):
        wk = state.worker[w]
        wk.home = _renamed(wk.home, a, b)
        wk.walk = _renamed(wk.walk, a, b)
        wk.stack = b if wk.stack == a else a if wk.stack == b else wk.stack
        wk.claimed = b if wk.claimed == a else a if wk.claimed == b else wk.claimed


@entry
def normalise(state, words, c):
    """One of the states that differ in nothing but names."""
    for i in range(c.roots + 1, c.stacks):
        for j in range(i, c.roots, -1):
            if not _comes_before(state, j, j - 1):
                break
            _exchange_stacks(state, words, j, j - 1)
    _sort_workers(words, c.workers)


@entry
def settle(state, c, made):
    """Make all steps that go unseen; the first property that does not hold on the way. made: filled, by step."""
    result = broken(state, c)
    w = 0
    while w < c.workers and result == found.DONE:
        if goes_unseen(state, w):
            made[state.worker[w].pc] = True
            result = advance(state, w, 0, c)
            if result == found.DONE:
                result = broken(state, c)
            w = 0
        else:
            w += 1
    return result


@inner
def _hash(words):
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for i in range(_WORDS):
        mixed = (mixed ^ words[i]) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
    return mixed | np.uint64(1)  # 0 marks a free place


@inner
def _grown(array, count):
    made = np.zeros((2 * len(array), *array.shape[1:]), array.dtype)
    made[:count] = array[:count]
    return made


@inner
def _place(keys, key):
    mask = np.uint64(len(keys) - 1)
    at = (key >> np.uint64(20)) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@inner
def _rehashed(keys, numbers):
    new_keys = np.zeros(2 * len(keys), np.uint64)
    new_numbers = np.zeros(2 * len(keys), np.int32)
    for i in range(len(keys)):
        if keys[i] != 0:
            at = _place(new_keys, keys[i])
            new_keys[at] = keys[i]
            new_numbers[at] = numbers[i]
    return new_keys, new_numbers


@inner
def _can_end(froms, tos, steps_made, ends, count):
    """Return, for each state, whether an end can be reached from it, going backwards along all steps."""
    starts = np.zeros(count + 1, np.int64)
    for i in range(steps_made):
        starts[tos[i] + 1] += 1
    for i in range(count):
        starts[i + 1] += starts[i]
    sources = np.zeros(steps_made, np.int32)
    place = starts[:-1].copy()
    for i in range(steps_made):
        sources[place[tos[i]]] = froms[i]
        place[tos[i]] += 1
    can = ends[:count].copy()
    waiting = np.zeros(count, np.int32)
    top = 0
    for i in range(count):
        if can[i]:
            waiting[top] = i
            top += 1
    while top > 0:
        top -= 1
        state = waiting[top]
        for i in range(starts[state], starts[state + 1]):
            if not can[sources[i]]:
                can[sources[i]] = True
                waiting[top] = sources[i]
                top += 1
    return can


@inner
def _numbered(keys, numbers, words, count):
    """Return the number of a state; of one that is new it is `count`."""
    key = _hash(words)
    at = _place(keys, key)
    if keys[at] == 0:
        keys[at], numbers[at] = key, count
    return numbers[at]


@inner
def _act(state, c, action, made):
    """Make one step, and all after it that go unseen; BLOCKED if it is not possible now."""
    who, choice = action // CHOICES, action % CHOICES
    if who == _SUPERVISOR:
        result = interrupt(state, c) if choice == 0 else found.BLOCKED
    elif who >= c.workers:
        result = found.BLOCKED
    else:
        made[state.worker[who].pc] = True
        result = advance(state, who, choice, c)
    return settle(state, c, made) if result == found.DONE else result


@inner
def _alone(state, c):
    """Return the worker that moves before all others; -1: any may be next."""
    alone = -1
    for w in range(c.workers):
        if chooses_alone(state, w):
            alone = w
    return alone


@entry
def _search(c, state, words, beginnings):
    """Outcome, number of the state it was found in, action that led from there; then states, steps, the way back.

    state, words: one state as a record, and the same memory as words; beginnings: first states, as words.
    """
    keys, numbers = np.zeros(1 << 16, np.uint64), np.zeros(1 << 16, np.int32)
    parents, actions = np.zeros(1 << 15, np.int32), np.zeros(1 << 15, np.int16)
    ends = np.zeros(1 << 15, np.bool_)
    froms, tos = np.zeros(1 << 16, np.int32), np.zeros(1 << 16, np.int32)
    made = np.zeros(steps.LOCAL, np.bool_)
    queue, later = np.zeros((1 << 12, _WORDS), np.uint64), np.zeros((1 << 12, _WORDS), np.uint64)
    count = steps_made = 0
    outcome, where, how = found.DONE, -1, -1
    for i in range(len(beginnings)):
        words[:] = beginnings[i]
        normalise(state, words, c)
        queue[i] = words
        _numbered(keys, numbers, words, count)
        parents[count], actions[count] = -1, i
        count += 1
    waiting = count
    first = 0  # number of the first state in the queue: they are numbered in the order in which they are found
    while waiting > 0 and outcome == found.DONE:
        following = 0
        for here in range(first, first + waiting):
            words[:] = queue[here - first]
            alone = _alone(state, c)
            moved = False
            for action in range(_ACTIONS):
                if alone >= 0 and action // CHOICES != alone:
                    continue
                words[:] = queue[here - first]
                result = _act(state, c, action, made)
                if result == found.BLOCKED:
                    continue
                if result != found.DONE:
                    outcome, where, how = result, here, action
                    break
                moved = True
                normalise(state, words, c)
                if 2 * count >= len(keys):
                    keys, numbers = _rehashed(keys, numbers)
                number = _numbered(keys, numbers, words, count)
                if number == count:
                    if count == len(parents):
                        parents, actions, ends = _grown(parents, count), _grown(actions, count), _grown(ends, count)
                    if following == len(later):
                        later = _grown(later, following)
                    parents[count], actions[count] = here, action
                    later[following] = words
                    following += 1
                    count += 1
                if steps_made == len(froms):
                    froms, tos = _grown(froms, steps_made), _grown(tos, steps_made)
                froms[steps_made], tos[steps_made] = here, number
                steps_made += 1
            if outcome == found.DONE and not moved:
                words[:] = queue[here - first]
                ends[here] = True
                if not is_over(state, c):
                    outcome, where = found.DEADLOCK, here
                elif leftover(state, c):
                    outcome, where = found.LEFTOVER, here
            if outcome != found.DONE:
                break
        first += waiting
        queue, later = later, queue
        waiting = following
    if outcome == found.DONE:
        endless = np.flatnonzero(~_can_end(froms, tos, steps_made, ends, count))
        if len(endless):
            outcome, where = found.LIVELOCK, endless[0]
    return outcome, where, how, count, steps_made, parents, actions, made


def _describe(state: np.void, setting: Setting, action: int) -> str:
    """A step, in words, before it is made."""
    who = action // CHOICES
    if who == _SUPERVISOR:
        return "supervisor stops the search"
    wk = state["worker"][who]
    home = f" home={wk['home']}" if wk["home"] else ""
    return f"stack {wk['stack']} ply {wk['ply']}{home}: {steps.NAMES[int(wk['pc'])]} {action % CHOICES}"


def _trace(setting: Setting, beginnings: np.ndarray, actions: list[int]) -> tuple[str, ...]:
    """Follow actions from one of the beginnings, which the first one names."""
    c = setting.record()
    memory = np.zeros(1, state_dtype)
    words = memory.view(np.uint64)
    words[:] = beginnings[actions[0]]
    made = np.zeros(steps.LOCAL, np.bool_)
    lines = []
    for action in actions[1:]:
        normalise(memory[0], words, c)
        lines.append(_describe(memory[0], setting, action))
        if action // CHOICES == _SUPERVISOR:
            interrupt(memory[0], c)
        else:
            advance(memory[0], action // CHOICES, action % CHOICES, c)
        settle(memory[0], c, made)
    return tuple(lines)


def explore(setting: Setting) -> Exploration:
    """Look at every state; stops at the first one, or the first step, in which a property does not hold."""
    c = setting.record()
    windows = list(product(setting.betas, setting.betas if setting.roots > 1 else (0,)))
    beginnings = np.zeros(len(windows), state_dtype)
    for number, betas in enumerate(windows):
        begin(beginnings[number], c, *betas)
    first = beginnings.view(np.uint64).reshape(-1, _WORDS)
    memory = np.zeros(1, state_dtype)
    outcome, where, how, count, made, parents, actions, seen = _search(c, memory[0], memory.view(np.uint64), first)
    way: list[int] = [] if how < 0 else [how]
    while where >= 0:
        way.append(int(actions[where]))
        where = int(parents[where])
    trace = _trace(setting, first, way[::-1]) if outcome != found.DONE else ()
    names = frozenset(steps.NAMES[int(pc)] for pc in np.flatnonzero(seen))
    return Exploration(int(count), int(made), int(outcome), trace, names)
