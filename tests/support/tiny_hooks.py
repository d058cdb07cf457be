"""A hook that is compiled in no time, and an entry that calls it: for tests of files that replace hooks."""

from __future__ import annotations

from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.jit import entry, hook, limit_answers
from psearch_core.views import i64

TINY_HOOKS = Group("tiny_hooks", "tiny_hooks")


@hook(i64(i64))
def chosen(number):
    return number + 1


limit_answers(0, 1000, chosen)


@entry(i64(i64), TINY_HOOKS)
def answer(number):
    return chosen(number)
