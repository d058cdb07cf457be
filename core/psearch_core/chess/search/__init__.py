"""One node, by one worker. Imports what is below it in `psearch_core`; docs/design/search.md has the steps.

Begin with `enter_node` (enter, after a child, finish); then `passes` over the moves, `next_move` (the loop that picks
and prunes), `children` (depth and window of a child) and `quiescence`. `decisions` has what a
user's file may replace: pruning, reductions, the evaluation. `tt` is the transposition table; `correction` is what the
search learns about the evaluation.
"""
