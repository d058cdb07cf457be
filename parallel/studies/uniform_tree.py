"""An artificial tree, uniform and perfectly ordered, searched by plain alpha-beta, and what was expected of its nodes.

Every inner node has B children, every leaf is N plies deep. Values are dealt out from the root down, in negamax: the
first child has exactly what its parent is worth, every other child as much or less. So the first move is always a best
one, ties among them, and the value of any node is known before it is searched.

On the way each rule of `node_types.py` says what it expects of every child, with what a search has to go by in such a
tree: the number of the move, and whether it is searched with the full window (the first move of a PV node) or a scout.
There is no table and no kind of move: the picker of every node is in its quiet stage. Rules that ask for these say here
what they say without.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numba
import numpy as np
from numba.core import types

from psearch.core.constants import ALL_NODE, CUT_NODE, PV_NODE, VISIT_FULL, VISIT_SCOUT
from psearch.core.intrinsics import view
from psearch.core.jit import entry, kernel
from psearch.core.ordering.movepick import PICK_QUIETS
from psearch.core.records import TYPES
from psearch.core.splitmix import SPLITMIX_STEP, splitmix64
from psearch.core.views import boolean, i64, u64
from psearch.defaults import POLICY_NAMES
from psearch.scheduler.node_types import child_type
from psearch.scheduler.policy import POLICY_KNUTH
from psearch.studies.entries import UNIFORM_TREE
from psearch.studies.leaf_formulas import Leaves

RULES = len(POLICY_NAMES)
INFINITE = 1 << 40
"""above every value: the root's is 0, and a ply changes it by no more than `_SPREAD`"""
_SPREAD = 16
_PREDICTING = ("knuth", "garms", "kannan", "felten", "calibrated")
"""the rest expect what garms does"""
_NODES_AT_ONCE = 1 << 18
"""between two looks at signals and at the progress"""

level_dtype = np.dtype(
    [
        ("key", "u8"),  # of the node, from which its children's come
        ("value", "i8"),  # dealt out; what the search must find
        ("alpha", "i8"),
        ("beta", "i8"),
        ("alpha_at_entry", "i8"),
        ("best", "i8"),
        ("index", "i8"),  # of the next child
        ("expected", "i8", RULES),  # by each rule
    ],
    align=True,
)
"""one node of the path, by ply; the driver sets up the root"""

uniform_dtype = np.dtype(
    [
        ("breadth", "i8"),
        ("depth", "i8"),
        ("ply", "i8"),  # of the node in hand; -1 when the search is done
        ("levels", "i8"),  # address of depth + 1 levels
        ("found", "i8"),  # the root's value
        ("leaves", "i8", TYPES),  # by what they turned out to be
        ("inner", "i8", TYPES),
        ("wrong", "i8", RULES),  # visited nodes that a rule expected to be of another type
        ("skipped", "i8"),  # children that a cutoff left out
        ("unlike_knuth", "i8", RULES),  # of these, those of which a rule expects another type than Knuth's
        ("misvalued", "i8"),  # nodes whose value is not what was dealt out, or not on the right side of the window
    ],
    align=True,
)

Level = cast(types.Record, numba.from_dtype(level_dtype))
Uniform = cast(types.Record, numba.from_dtype(uniform_dtype))
LEVEL_SIZE = level_dtype.itemsize

level_at = view(Level)
uniform_at = view(Uniform)


@kernel(i64(Level, i64, i64))
def _outcome(level, value, cut):
    """The type that a node turned out to be."""
    if cut:
        return CUT_NODE
    return ALL_NODE if value <= level.alpha_at_entry else PV_NODE


@kernel(boolean(Level, i64))
def _is_right(level, value):
    """Whether a value, exact or a bound, agrees with what was dealt out."""
    if value <= level.alpha_at_entry:
        return level.value <= value
    if value >= level.beta:
        return level.value >= value
    return level.value == value


@kernel(i64(Uniform, Level, i64))
def _judge(un, level, outcome):
    for rule in range(RULES):
        if level.expected[rule] != outcome:
            un.wrong[rule] += 1
    return outcome


@kernel(i64(Uniform, Level, i64))
def _skip(un, level, first):
    """Count the children from `first` on that a cutoff leaves out, and who expects what of them."""
    un.skipped += un.breadth - first
    for rule in range(RULES):
        for index in range(first, un.breadth):
            said = child_type(rule, np.int64(level.expected[rule]), index, PICK_QUIETS, VISIT_SCOUT)
            knuth = child_type(POLICY_KNUTH, np.int64(level.expected[POLICY_KNUTH]), index, PICK_QUIETS, VISIT_SCOUT)
            if said != knuth:
                un.unlike_knuth[rule] += 1
    return un.skipped


@kernel(u64(u64, i64))
def child_key(key, index):
    """The key of a node's child."""
    return splitmix64(key + np.uint64(index + 1) * SPLITMIX_STEP)


@kernel(i64(i64, u64, i64))
def child_value(value, key, index):
    """What is dealt out to a child: value of its parent, key and index of the child."""
    return -value + (np.int64(key % np.uint64(_SPREAD)) if index > 0 else 0)


@kernel(i64(Uniform, Level, Level))
def _enter(un, parent, child):
    """Deal out a child's value and window, and ask the rules; gives its index."""
    index = np.int64(parent.index)
    parent.index = index + 1
    child.key = child_key(parent.key, index)
    child.value = child_value(np.int64(parent.value), child.key, index)
    child.alpha = -np.int64(parent.beta)
    child.beta = -np.int64(parent.alpha)
    child.alpha_at_entry = child.alpha
    child.best = -INFINITE
    child.index = 0
    for rule in range(RULES):
        first = index == 0 and parent.expected[rule] == PV_NODE
        stage = VISIT_FULL if first else VISIT_SCOUT
        child.expected[rule] = child_type(rule, np.int64(parent.expected[rule]), index, PICK_QUIETS, stage)
    return index


@entry(i64(i64, i64), UNIFORM_TREE)
def search_uniform(address, budget):
    """Go on for `budget` nodes; returns 1 when the search is done, else 0.

    address: of one `uniform_dtype` record.
    """
    un = uniform_at(address)
    ply = np.int64(un.ply)
    for _ in range(budget):
        level = level_at(un.levels + ply * LEVEL_SIZE)
        if ply == un.depth:
            value = np.int64(level.value)
            un.leaves[_judge(un, level, _outcome(level, value, value >= level.beta))] += 1
        elif level.best >= level.beta or level.index == un.breadth:
            value = np.int64(level.best)
            cut = value >= level.beta
            if cut:
                _skip(un, level, np.int64(level.index))
            un.inner[_judge(un, level, _outcome(level, value, cut))] += 1
        else:
            _enter(un, level, level_at(un.levels + (ply + 1) * LEVEL_SIZE))
            ply += 1
            continue
        if not _is_right(level, value):
            un.misvalued += 1
        ply -= 1
        if ply < 0:
            un.found = value
            un.ply = ply
            return 1
        parent = level_at(un.levels + ply * LEVEL_SIZE)
        if -value > parent.best:
            parent.best = -value
            if -value > parent.alpha:
                parent.alpha = -value
    un.ply = ply
    return 0


@dataclass(frozen=True)
class Count:
    """What a search of the artificial tree visited."""

    breadth: int
    depth: int
    """plies"""
    leaves: Leaves
    """by what they turned out to be"""
    nodes: int
    """leaves and inner nodes"""
    skipped: int
    """children that cutoffs left out"""
    wrong: dict[str, int]
    """by rule: visited nodes of another type than expected"""
    unlike_knuth: dict[str, int]
    """by rule: children left out of which it expects another type than `knuth` does"""
    misvalued: int
    """nodes whose value was not right; 0 unless the search is broken"""


def count_uniform(breadth: int, depth: int, seed: int = 1) -> Iterator[Count]:
    """Search a tree of its own for each seed; gives the count so far now and then, and at last the whole.

    Takes time and visits `least_leaves(breadth, depth)`; memory is one record a ply. Kernels must be loaded.
    """
    levels = np.zeros(depth + 1, level_dtype)
    levels[0]["key"] = seed
    levels[0]["alpha"] = levels[0]["alpha_at_entry"] = levels[0]["best"] = -INFINITE
    levels[0]["beta"] = INFINITE
    levels[0]["expected"] = PV_NODE
    state = np.zeros(1, uniform_dtype)
    state["breadth"], state["depth"], state["levels"] = breadth, depth, levels.ctypes.data
    done = False
    while not done:
        done = bool(search_uniform(state.ctypes.data, _NODES_AT_ONCE))
        yield _count(breadth, depth, state[0])


def _count(breadth: int, depth: int, state: np.void) -> Count:
    def of_rules(field: str) -> dict[str, int]:
        return {name: int(state[field][POLICY_NAMES.index(name)]) for name in _PREDICTING}

    leaves, inner = state["leaves"], state["inner"]
    return Count(
        breadth=breadth,
        depth=depth,
        leaves=Leaves(depth, int(leaves[PV_NODE]), int(leaves[CUT_NODE]), int(leaves[ALL_NODE])),
        nodes=int(leaves.sum() + inner.sum()),
        skipped=int(state["skipped"]),
        wrong=of_rules("wrong"),
        unlike_knuth=of_rules("unlike_knuth"),
        misvalued=int(state["misvalued"]) + int(state["ply"] < 0 and state["found"] != 0),
    )
