"""Searches one node with one worker; docs/design/search.md has the steps.

Begin with `enter_node` (enter, after a child, finish); then `passes` over the moves, `next_move` (the loop that picks
and prunes), `children` (depth and window of a child) and `quiescence`. `decisions` has the hooks that a user's file may
replace: pruning, reductions, the evaluation. `tt` is the transposition table; `correction` corrects the evaluation by
what searches have found.
"""
