"""Searches an artificial tree, uniform and perfectly ordered, by plain alpha-beta, and tests predicted node types.

Every inner node has B children, and every leaf is N plies deep. Values are assigned from the root down, in negamax: for
the side to move the first child is worth as much as its parent, every other child as much or less. So the first move is
always a best one, and the value of each node is known before it is searched.

During the search each rule predicts the type of every child, from the number of the move and from its window: full for
the first move of a PV node, else a scout. There are no kinds of moves, so every move picker is in its quiet stage. The
kernels are in `study_kernels.py`; calling them needs no numba.

The leaves that alpha-beta must visit, in a tree of breadth b and depth n, are

    PV   1
    CUT  b^ceil(n/2) - 1
    ALL  b^floor(n/2) - 1

together b^ceil(n/2) + b^floor(n/2) - 1 (M. Levin, quoted by D. Edwards and T. Hart 1961; D. Knuth and R. Moore, "An
analysis of alpha-beta pruning", 1975, where the types are 1, 2 and 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from psearch.defaults import POLICY_NAMES, PREDICTING_POLICIES
from psearch_core.constants import ALL_NODE, CUT_NODE, PV_NODE
from psearch_core.records import TYPES
from psearch_core.toolchain.groups import Group

UNIFORM_TREE = Group("uniform_tree", "psearch.lab.studies.study_kernels")
search_uniform = UNIFORM_TREE.entry("search_uniform")
RULES = len(POLICY_NAMES)
INFINITE = 1 << 40
"""Value above all others: the root's value is 0, and a ply changes it by less than `SPREAD`."""
SPREAD = 16
_NODES_AT_ONCE = 1 << 18
"""Nodes between two checks for signals and reports of progress."""

level_dtype = np.dtype(
    [
        ("key", "u8"),  # key of the node, which determines its children's keys
        ("value", "i8"),  # assigned value, which the search must find
        ("alpha", "i8"),
        ("beta", "i8"),
        ("alpha_at_entry", "i8"),
        ("best", "i8"),
        ("index", "i8"),  # index of the next child
        ("expected", "i8", RULES),  # type predicted by each rule
    ],
    align=True,
)
"""Record of one node of the current path; the caller sets up the root."""

uniform_dtype = np.dtype(
    [
        ("breadth", "i8"),
        ("depth", "i8"),
        ("ply", "i8"),  # ply of the current node; -1 when the search is done
        ("levels", "i8"),  # address of depth + 1 levels
        ("found", "i8"),  # value of the root
        ("leaves", "i8", TYPES),  # leaves by actual type
        ("inner", "i8", TYPES),  # inner nodes by actual type
        ("wrong", "i8", RULES),  # visited nodes whose type a rule predicted wrongly
        ("skipped", "i8"),  # children skipped by cutoffs
        ("unlike_knuth", "i8", RULES),  # skipped children for which a rule differs from Knuth's
        ("misvalued", "i8"),  # nodes whose value or bound contradicts the assigned value
    ],
    align=True,
)


@dataclass(frozen=True)
class Leaves:
    """Leaves of the minimal tree, exact at any size."""

    depth: int
    """Depth of the tree in plies."""
    pv: int
    cut: int
    all: int

    @property
    def total(self) -> int:
        return self.pv + self.cut + self.all


def least_leaves(breadth: int, depth: int) -> Leaves:
    """Return the leaves of the minimal tree by the formulas. breadth: at least 1; depth: at least 0.

    >>> least_leaves(40, 5)
    Leaves(depth=5, pv=1, cut=63999, all=1599)
    """
    return Leaves(depth, 1, breadth ** ((depth + 1) // 2) - 1, breadth ** (depth // 2) - 1)


@dataclass(frozen=True)
class Count:
    """Counts of a search of the artificial tree."""

    leaves: Leaves
    """Leaves by actual type."""
    nodes: int
    """Visited leaves and inner nodes."""
    skipped: int
    """Children skipped by cutoffs."""
    wrong: dict[str, int]
    """Visited nodes predicted wrongly, by rule."""
    unlike_knuth: dict[str, int]
    """Skipped children for which a rule differs from `knuth`, by rule."""
    misvalued: int
    """Nodes with a wrong value; 0 unless the search is broken."""


def count_uniform(breadth: int, depth: int, seed: int = 1) -> Iterator[Count]:
    """Search the tree of a seed; yield the counts so far from time to time, and the final counts at the end. It visits
    `least_leaves(breadth, depth)`; memory is one record per ply. The kernels must be loaded."""
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
        found = state[0]
        leaves = found["leaves"]
        wrong, unlike_knuth = (
            {name: int(found[field][POLICY_NAMES.index(name)]) for name in PREDICTING_POLICIES}
            for field in ("wrong", "unlike_knuth")
        )
        yield Count(
            leaves=Leaves(depth, int(leaves[PV_NODE]), int(leaves[CUT_NODE]), int(leaves[ALL_NODE])),
            nodes=int(leaves.sum() + found["inner"].sum()),
            skipped=int(found["skipped"]),
            wrong=wrong,
            unlike_knuth=unlike_knuth,
            misvalued=int(found["misvalued"]) + int(done and found["found"] != 0),
        )
