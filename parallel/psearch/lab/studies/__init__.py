"""What measures the scheduler and the search. Imports processes and simulation and what is below.

Begin with `speedup_study` (real processes) and `virtual_study` (virtual time); `tree_sizes` says to which depth each of
them searches a position, with what luck, and whether that is enough, `comparisons` what the speedups come to.
`prediction_study` judges node types, `pruning_counts` counts what was left out, `soundness` compares modes,
`uniform_tree` counts the leaves that alpha-beta must visit; the kernels of these are in `study_kernels`. `plots` draws.
"""

from __future__ import annotations

from typing import Protocol


class StudyProgress(Protocol):
    """What a study calls after every step."""

    def __call__(self, text: str, done: float = 0, total: float = 0) -> None:
        """text: a line on what was done last; done, total: work in any unit, both 0 while the total is not known."""
