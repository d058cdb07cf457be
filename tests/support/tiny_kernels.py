"""A kernel that is compiled in no time, and calls another: for tests of the cache and of the compiler."""

from __future__ import annotations

from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import i64


@kernel(i64(i64))
def half(a):
    return a // 2


@entry(i64(i64))
def twice(a):
    return half(4 * a)
