"""Finds what a kernel of a user's file writes to, from its text.

A kernel makes no arrays, so whatever it assigns to by a field or an index lies in memory that others have, too.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from numba.extending import _Intrinsic

from psearch.core.toolchain import intrinsics
from psearch.core.toolchain.jit import Kernel

_WRITERS = (intrinsics.copy_record, intrinsics.clear_record, intrinsics.copy_bytes)
_ATOMIC_WRITERS = (
    intrinsics.atomic_store,
    intrinsics.relaxed_store_u64,
    intrinsics.atomic_add,
    intrinsics.atomic_or,
    intrinsics.atomic_and,
    intrinsics.compare_and_swap,
)
_ADDRESSES = ("address", "address_of_field")
"""of records and their fields"""


class Write(NamedTuple):
    """A place that is written to."""

    line: int
    record: Any
    """the type of the argument whose field it is; None for any other place"""
    field: str
    words: str


def writes_of(kernel: Kernel) -> Iterator[Write]:
    """Yield what a kernel writes to, but for words of the file's own memory."""
    function = kernel.py_func
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    kinds = dict(zip(inspect.signature(function).parameters, kernel.arguments, strict=True))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            is_field = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            record = kinds.get(node.value.id) if is_field else None  # type: ignore[attr-defined]
            field = node.attr if isinstance(node, ast.Attribute) else ""
            yield Write(first + node.lineno - 1, record, field, ast.unparse(node))
        elif isinstance(node, ast.Call) and node.args:
            called = _value(node.func, function.__globals__)
            if called in _WRITERS or (called in _ATOMIC_WRITERS and _is_in_record(node.args[0], tree, function)):
                yield Write(first + node.lineno - 1, None, "", ast.unparse(node.args[0]))


def _is_in_record(address: ast.expr, tree: ast.AST, function: Any) -> bool:
    """Whether an address, as it is written or as a variable is given it, is that of a record or its field."""
    names = {node.id for node in ast.walk(address) if isinstance(node, ast.Name)}
    given = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id in names for target in node.targets)
    ]
    calls = [node for each in (address, *given) for node in ast.walk(each) if isinstance(node, ast.Call)]
    called = [_value(call.func, function.__globals__) for call in calls]
    return any(isinstance(each, _Intrinsic) and each._defn.__name__ in _ADDRESSES for each in called)


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return what a global name, or an attribute of a module, stands for; None where that is not known."""
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, names), node.attr, None)
    return names.get(node.id) if isinstance(node, ast.Name) else None
