"""What measures the scheduler and the search. Imports processes and simulation and what is below.

Begin with `speedup_study` (real processes) and `virtual_study` (virtual time); `depths` says to which depth each of
them searches a position, and with what luck. `prediction_study` judges node types (on `one_tree`), `pruning_counts`
counts what was left out, `soundness` compares modes, with searches that check what they would skip (`shadow_kernels`,
layouts in `shadow_records`), `uniform_tree` (`uniform_kernels`) counts what `leaf_formulas` says. `tree_sizes` says how
much was searched and whether that is enough, `pairs` compares policies position by position, `time_fit` finds work and
critical path, `plots` draws. `progress` is how a study says how far it is;
`study_entries` names the groups of kernels.
"""
