"""A walk over the types that numba inferred, for what goes wrong in silence.

Floats (a variable that is uint64 here and int64 there becomes one), and operators between uint64 and signed integers,
which are signed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import ir, types


def is_float(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return any(is_float(member) for member in kind)
    kind = getattr(kind, "dtype", kind)
    return isinstance(kind, types.Float | types.Complex)


def is_mixed(left: Any, right: Any) -> bool:
    """Whether one is uint64 and the other a signed integer."""
    pair = [types.unliteral(left), types.unliteral(right)]
    signed = [isinstance(kind, types.Integer) and kind.signed for kind in pair]
    return (pair[0] == types.uint64 and signed[1]) or (pair[1] == types.uint64 and signed[0])


def suspicious(place: str, annotation: Any) -> Iterator[str]:
    """Findings in a function's type annotation: `place:line: what`."""
    for name, kind in annotation.typemap.items():
        if is_float(kind):
            yield f"{place}: {name.partition('.')[0] or 'a temporary'} is {kind}"
    for expression, signature in annotation.calltypes.items():
        if not isinstance(expression, ir.Expr):
            continue
        if signature is not None and is_float(signature.return_type):
            yield f"{place}:{expression.loc.line}: {expression.op} gives {signature.return_type}"
        if expression.op in ("binop", "inplace_binop"):
            left = annotation.typemap[expression.lhs.name]
            right = annotation.typemap[expression.rhs.name]
            if is_mixed(left, right):
                yield f"{place}:{expression.loc.line}: {expression.fn.__name__} of {left} and {right}"
