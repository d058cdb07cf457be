"""The kernels of `uniform_tree.py`: plain alpha-beta over the artificial tree, and what each rule says on the way."""

from __future__ import annotations

from typing import cast

import numba
import numpy as np
from numba.core import types

from psearch.lab.studies.study_entries import UNIFORM_TREE
from psearch.lab.studies.uniform_tree import INFINITE, RULES, SPREAD, level_dtype, uniform_dtype
from psearch.scheduler.policy import POLICY_KNUTH, child_type_by
from psearch_core.arithmetic import SPLITMIX_STEP, splitmix64
from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE, VISIT_FULL, VISIT_SCOUT
from psearch_core.game import PICK_QUIETS
from psearch_core.toolchain.intrinsics import view
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import boolean, i64, u64

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
            said = child_type_by(rule, np.int64(level.expected[rule]), index, PICK_QUIETS, VISIT_SCOUT)
            knuth = child_type_by(POLICY_KNUTH, np.int64(level.expected[POLICY_KNUTH]), index, PICK_QUIETS, VISIT_SCOUT)
            if said != knuth:
                un.unlike_knuth[rule] += 1
    return un.skipped


@kernel(u64(u64, i64))
def child_key(key, index):
    """Return the key of a node's child."""
    return splitmix64(key + np.uint64(index + 1) * SPLITMIX_STEP)


@kernel(i64(i64, u64, i64))
def child_value(value, key, index):
    """Return what is dealt out to a child: value of its parent, key and index of the child."""
    return -value + (np.int64(key % np.uint64(SPREAD)) if index > 0 else 0)


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
        child.expected[rule] = child_type_by(rule, np.int64(parent.expected[rule]), index, PICK_QUIETS, stage)
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
