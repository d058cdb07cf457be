"""Exercise 5: every worker searches a root of its own."""

from psearch.own_policy import replaces, splits_nothing


@replaces(splits_nothing)
def nothing(ctx):
    return True
