"""An artificial tree that the scheduler searches in place of chess, and naive searches of the same tree.

The tree is that of `psearch.lab.studies.uniform_tree`, and may be less regular. A node is known by its key, from which
those of its children follow, and its value is dealt out before it is searched: child 0 is worth exactly what its
parent is (negamax), every other child as much to its parent or less. `Shape` says which liberties are taken; each
keeps the root's value what was dealt out, so any search of any number of workers must find it.

Below `step` nothing of chess is left: a group of kernels in which those of `artificial_kernels.py` replace the handlers
of a node. Moves are numbers from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import begin_search
from psearch_core.constants import INFINITE, MATE_IN_MAX_PLY
from psearch_core.records import position_dtype
from psearch_core.toolchain.groups import Group

_KERNELS = (
    "after_null",
    "after_quiescence",
    "begin_moves",
    "child_depth",
    "defer_move",
    "enter",
    "enter_quiescence",
    "learn",
    "make_child",
    "next_move",
    "next_quiescence",
    "push_null",
)
REPLACED = {f"psearch_core.game.{name}": f"artificial_kernels.{name}" for name in _KERNELS}
"""Kernels that stand in for those of the door; the others are those of chess, which look at no board."""

ARTIFICIAL = Group("artificial_tree", "round_robin", "psearch.simulation.virtual_driver", replaced=REPLACED)
run_interleaved = ARTIFICIAL.entry("run_interleaved")
step_worker = ARTIFICIAL.entry("step_worker")
begin_virtual = ARTIFICIAL.entry("begin_virtual")
run_virtual = ARTIFICIAL.entry("run_virtual")

_SHAPE_FIELDS = ("breadth", "spread", "disorder", "reduce", "null", "noise", "prune", "swing")
tree_dtype = np.dtype(
    {
        "names": ["value", *_SHAPE_FIELDS, "key"],
        "formats": ["i8"] * (1 + len(_SHAPE_FIELDS)) + ["u8"],
        "offsets": [*range(0, 8 * (1 + len(_SHAPE_FIELDS)), 8), position_dtype.fields["key"][1]],
        "itemsize": position_dtype.itemsize,
    }
)
"""Contents of a position's memory; the key lies where the scheduler looks for it."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_SPREAD = 16
_FIRST_QUIET = 2


@dataclass(frozen=True)
class Shape:
    breadth: int
    depth: int
    """Depth of the search; every line continues beyond it."""
    seed: int = 1
    spread: int = 0
    """Greatest number of children that a node may have less than others."""
    disorder: bool = False
    """Child 0 is not the first to be tried."""
    reduce: bool = False
    """Later moves are first searched a ply less deep."""
    null: bool = False
    """Nodes that are worth beta try to pass."""
    noise: bool = False
    """Quiescence searches a few moves."""
    prune: bool = False
    """Some of the moves that are worth less than alpha are left out."""
    swing: int = 0
    """Greatest difference of the root's value between two iterations."""


def _mixed(state: int) -> int:
    """Return the next output of splitmix64."""
    state &= _MASK
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
    return state ^ state >> 31


@dataclass(frozen=True)
class Place:
    shape: Shape
    key: int
    value: int
    """Value dealt out to the node, without the swing of an iteration."""

    def _child(self, index: int) -> Place:
        key = _mixed(self.key + (index + 1) * _GOLDEN)
        return Place(self.shape, key, -self.value + (key % _SPREAD if index else 0))

    @property
    def breadth(self) -> int:
        return self.shape.breadth - self.key % (self.shape.spread + 1)

    def after(self, move: int) -> Place:
        shift = (self.key >> 32) % self.breadth if self.shape.disorder else 0
        return self._child((move - 1 + shift) % self.breadth)

    def after_null(self) -> Place:
        return self._child(self.shape.breadth)

    def after_noise(self) -> Place | None:
        """Return the place that follows in quiescence; None: it is quiet."""
        if not self.shape.noise or self.key >> 62:
            return None
        return Place(self.shape, self._child(0).key, -self.value)


def root_of(shape: Shape) -> Place:
    return Place(shape, _mixed(shape.seed), shape.seed % 7)


def swing_of(shape: Shape, iteration: int) -> int:
    """Return by how much more the root is worth in this iteration."""
    return _mixed(iteration * _GOLDEN) % (2 * shape.swing + 1) - shape.swing if shape.swing else 0


def minimax(place: Place, depth: int, swing: int = 0) -> int:
    """The value, by looking at every node. swing: what a leaf is worth more, for the side to move at `place`."""
    if depth == 0:
        return place.value + swing
    return max(-minimax(place.after(move), depth - 1, -swing) for move in range(1, place.breadth + 1))


class Serial:
    """The search of one worker without a table, as a recursion: iterations, windows, reductions, and so on.

    `value` of the last iteration, `nodes` of all, those of quiescence (`qnodes`) among them.
    """

    def __init__(self, shape: Shape, aspiration: int = 0) -> None:
        self.shape = shape
        self.nodes = self.qnodes = 0
        self.value = 0
        self._order = list(range(1, root_of(shape).breadth + 1))
        self._below = dict.fromkeys(self._order, 0)
        """Nodes that were searched below each move of the root."""
        for self._iteration in range(1, shape.depth + 1):
            self._iterate(aspiration)
            self._order[1:] = sorted(self._order[1:], key=self._below.__getitem__, reverse=True)

    def _iterate(self, aspiration: int) -> None:
        alpha, beta, width = -INFINITE, INFINITE, INFINITE
        if aspiration and self._iteration >= 4 and abs(self.value) < MATE_IN_MAX_PLY:
            alpha, beta, width = self.value - aspiration, self.value + aspiration, aspiration
        while True:
            self._best_move = 0
            value = self._search(root_of(self.shape), 0, self._iteration, alpha, beta, False)
            width = min(3 * width, INFINITE)
            wide = width > 1000
            if value <= alpha:
                alpha = -INFINITE if wide else max(value - width, -INFINITE)
                continue
            self._order.remove(self._best_move)
            self._order.insert(0, self._best_move)
            if value < beta:
                self.value = value
                return
            beta = INFINITE if wide else min(value + width, INFINITE)

    def _exact(self, place: Place, ply: int) -> int:
        swing = swing_of(self.shape, self._iteration)
        return place.value + (-swing if ply % 2 else swing)

    def _search(self, place: Place, ply: int, depth: int, alpha: int, beta: int, may_pass: bool) -> int:
        self.nodes += 1
        if depth <= 0:
            return self._quiesce(place, ply, beta)
        passes = self.shape.null and may_pass and ply > 0 and beta - alpha == 1 and depth >= 2
        passes = passes and self._exact(place, ply) >= beta
        if passes and -self._search(place.after_null(), ply + 1, depth - 2, -beta, 1 - beta, False) >= beta:
            return beta
        best, done = -INFINITE, 0
        for move in list(self._order) if ply == 0 else range(1, place.breadth + 1):
            child = place.after(move)
            if self.shape.prune and ply > 0 and -child.value <= alpha and not child.key >> 62:
                best = max(best, -child.value)
                done += 1
                continue
            before = self.nodes
            value = self._try(child, ply, depth - 1, alpha, beta, done)
            if ply == 0:
                self._below[move] += self.nodes - before
            done += 1
            best = max(best, value)
            if value > alpha:
                alpha = value
                if ply == 0:
                    self._best_move = move
                if value >= beta:
                    break
        return best

    def _try(self, child: Place, ply: int, depth: int, alpha: int, beta: int, index: int) -> int:
        """Search a child: the first with the full window; else less deep, then with a null window, then with all."""
        full = index == 0 and beta - alpha > 1
        if not full:
            if self.shape.reduce and index >= _FIRST_QUIET and depth >= 2:
                value = -self._search(child, ply + 1, depth - 1, -alpha - 1, -alpha, True)
                if value <= alpha:
                    return value
            value = -self._search(child, ply + 1, depth, -alpha - 1, -alpha, True)
            if value <= alpha or value >= beta:
                return value
        return -self._search(child, ply + 1, depth, -beta, -alpha, True)

    def _quiesce(self, place: Place, ply: int, beta: int) -> int:
        self.qnodes += 1
        following = place.after_noise()
        if following is None:
            return self._exact(place, ply)
        self.nodes += 1
        return -self._quiesce(following, ply + 1, 0)


def set_up(arena: Arena, shape: Shape, options: SearchOptions, multipv: int = 1) -> None:
    """Write a search of the tree into the arena; every worker must be idle."""
    write_search(arena, chess.Board(), Limits(depth=shape.depth), replace(options, mate_distance=False))
    header = arena.header[0]
    root = root_of(shape)
    header["root"] = np.zeros((), position_dtype)
    tree = arena.header["root"].view(tree_dtype)
    tree["key"], tree["value"] = root.key, root.value
    for name in _SHAPE_FIELDS:
        tree[name] = int(getattr(shape, name))
    header["root_count"] = header["legal_root_moves"] = root.breadth
    header["root_moves"][: root.breadth] = range(1, root.breadth + 1)
    header["multipv"] = multipv
    begin_search(arena.context)
