"""An artificial tree, uniform and perfectly ordered, searched by plain alpha-beta, and what was expected of its nodes.

Every inner node has B children, every leaf is N plies deep. Values are dealt out from the root down, in negamax: the
first child has exactly what its parent is worth, every other child as much or less. So the first move is always a best
one, ties among them, and the value of any node is known before it is searched.

On the way each rule of the policies says what it expects of every child, with what a search has to go by in such a
tree: the number of the move, and whether it is searched with the full window (the first move of a PV node) or a scout.
Without a table and kinds of moves the picker of every node is in its quiet stage. The search itself is in
`study_kernels.py`; to call it needs no numba.

The leaves that it must visit, in a tree of breadth b and depth n, are

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
"""A value above all others: the root's is 0, and a ply changes it by no more than `SPREAD`."""
SPREAD = 16
_NODES_AT_ONCE = 1 << 18
"""Nodes between two looks at signals and at the progress."""

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


@dataclass(frozen=True)
class Leaves:
    """Leaves of the least tree, exact at any size."""

    depth: int
    """plies"""
    pv: int
    cut: int
    all: int

    @property
    def total(self) -> int:
        return self.pv + self.cut + self.all


def least_leaves(breadth: int, depth: int) -> Leaves:
    """Return the least leaves by the formulas; breadth from 1, depth from 0.

    >>> least_leaves(40, 5)
    Leaves(depth=5, pv=1, cut=63999, all=1599)
    """
    return Leaves(depth, 1, breadth ** ((depth + 1) // 2) - 1, breadth ** (depth // 2) - 1)


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
    """Search a tree, another one for each seed; gives the count so far now and then, and at last the whole.

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
        found = state[0]
        leaves = found["leaves"]
        wrong, unlike_knuth = (
            {name: int(found[field][POLICY_NAMES.index(name)]) for name in PREDICTING_POLICIES}
            for field in ("wrong", "unlike_knuth")
        )
        yield Count(
            breadth=breadth,
            depth=depth,
            leaves=Leaves(depth, int(leaves[PV_NODE]), int(leaves[CUT_NODE]), int(leaves[ALL_NODE])),
            nodes=int(leaves.sum() + found["inner"].sum()),
            skipped=int(found["skipped"]),
            wrong=wrong,
            unlike_knuth=unlike_knuth,
            misvalued=int(found["misvalued"]) + int(done and found["found"] != 0),
        )
