"""How many leaves alpha-beta must visit: the formulas of Knuth, Moore and Levin.

In a uniform tree of breadth b and depth n with the best move always first, the leaves are

    PV   1
    CUT  b^ceil(n/2) - 1
    ALL  b^floor(n/2) - 1

together b^ceil(n/2) + b^floor(n/2) - 1 (M. Levin, quoted by D. Edwards and T. Hart 1961; D. Knuth and R. Moore, "An
analysis of alpha-beta pruning", 1975, where the types are 1, 2 and 3). `uniform_tree.py` confirms them by counting.
"""

from __future__ import annotations

from dataclasses import dataclass


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
