"""What measures the scheduler and the search. Imports processes and simulation and what is below.

Begin with `speedup_study` (real processes) and `virtual_study` (virtual time); `depths` says to which depth each of
them searches a position, and with what luck. `prediction_study` judges node types (on `one_tree`), `pruning_counts`
counts what was left out, `soundness` compares modes, with searches that check what they would skip
(`shadow_kernels`), `uniform_tree` (`uniform_kernels`) counts the leaves that alpha-beta must visit. `tree_sizes` says
how much was searched and whether that is enough, `comparisons` what the speedups come to, `plots` draws;
`study_entries` names the groups of kernels.
"""

from __future__ import annotations

from typing import Protocol


class StudyProgress(Protocol):
    """What a study calls after every step."""

    def __call__(self, text: str, done: float = 0, total: float = 0) -> None:
        """text: a line on what was done last; done, total: work in any unit, both 0 while the total is not known."""
