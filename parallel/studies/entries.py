"""What the studies call in machine code."""

from __future__ import annotations

from psearch.core.kernels import Group

UNIFORM_TREE = Group("uniform_tree", "psearch.studies.uniform_kernels")
search_uniform = UNIFORM_TREE.entry("search_uniform")

MICRO_COSTS = Group("micro_costs", "psearch.studies.micro_costs")
