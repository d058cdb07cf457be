"""Entries that look into the network's kernels, for many positions in one call."""

from __future__ import annotations

from inspect_entries import INSPECT

from psearch_core.chess.evaluation.network import network_value
from psearch_core.records import NETWORK_HIDDEN, position_dtype
from psearch_core.toolchain.intrinsics import differing_bytes, row_adder, square_dot
from psearch_core.toolchain.jit import entry
from psearch_core.views import evaluation_at, i64, position_at, tables_at, void

_POSITION_BYTES = position_dtype.itemsize
_add_rows = row_adder(NETWORK_HIDDEN)
_square_dot = square_dot(NETWORK_HIDDEN, 255)


@entry(i64(i64, i64, i64, i64), INSPECT)
def value_by_network(tables, evaluation, position, ply):
    """`network_value`."""
    return network_value(tables_at(tables), evaluation_at(evaluation), position_at(position), ply)


@entry(void(i64, i64, i64, i64, i64, i64), INSPECT)
def sum_rows(target, source, added, added_count, removed, removed_count):
    """An adder of rows, as `network` has it."""
    _add_rows(target, source, added, added_count, removed, removed_count)


@entry(i64(i64, i64), INSPECT)
def dot_of_squares(units, weights):
    """`square_dot` as `network` has it."""
    return _square_dot(units, weights)


@entry(i64(i64, i64), INSPECT)
def bytes_that_differ(first, second):
    """`differing_bytes`, as int64 with the same bits."""
    return i64(differing_bytes(first, second))
