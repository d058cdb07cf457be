"""Kernels with an assertion, for the test of builds with and without them."""

from __future__ import annotations

from psearch_core.toolchain.intrinsics import check
from psearch_core.toolchain.jit import entry, kernel
from psearch_core.views import i64


@kernel(i64(i64))
def _half(number):
    check(number % 2 == 0, "only even numbers have a half")
    return number // 2


@entry(i64(i64))
def quarter(number):
    return _half(_half(number))
