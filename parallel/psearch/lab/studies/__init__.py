"""Studies that measure the scheduler and the search. They import processes, simulation and the layers below.

Start reading at `speedup_study` (real processes) and `virtual_study` (virtual time). `tree_sizes` chooses the depth of
each position, seeds the histories and warns of small studies; `comparisons` summarizes speedups. `prediction_study`
measures predictions of node types, `pruning_counts` counts what was pruned, `soundness` compares modes, and
`uniform_tree` counts the leaves that alpha-beta must visit; their kernels are in `study_kernels`. `plots` draws.
"""

from __future__ import annotations

from typing import Protocol


class StudyProgress(Protocol):
    """Callback of a study, called after every step."""

    def __call__(self, text: str, done: float = 0, total: float = 0) -> None:
        """Show the progress. text: the latest step; done, total: work in any unit, 0 while the total is unknown."""
