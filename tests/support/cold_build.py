"""Run by test_jit.py in processes of its own: build every kernel, print what was found as one line of JSON.

    python cold_build.py [--types]

With `--types`, all types that numba inferred are searched for what silently goes wrong: floats (a variable
that is uint64 here and int64 there becomes one), and operators between uint64 and signed integers, which are
signed. Only what was compiled in this process has types to look at; what was loaded has forgotten them.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

from numba.core import ir, types

ALLOWED: dict[str, str] = {}
"""What a kernel may do all the same: the finding as it is printed, and why."""


def import_all_kernels() -> None:
    """Import every module that can hold a kernel, as the cache key sees them."""
    from psearch.core import jit

    for path in jit._kernel_sources():
        package = "psearch.core" if path.parent == jit._PACKAGE else "psearch"
        if path.stem != "__init__":
            importlib.import_module(f"{package}.{path.stem}")


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


def suspicious(dispatcher: Any) -> Iterator[str]:
    """Findings in all compiled versions of a function: `module.function:line: what`."""
    function = dispatcher.py_func
    place = f"{function.__module__}.{function.__name__}"
    for compiled in dispatcher.overloads.values():
        annotation = compiled.type_annotation
        if isinstance(annotation, str):  # loaded from the cache
            continue
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


def main() -> None:
    import_all_kernels()
    from psearch.core import jit

    was_cached = jit.is_cached()
    lines: list[str] = []
    seconds = jit.build(lines.append)
    dispatchers = [dispatcher for dispatcher, _ in jit._kernels + jit._entries]
    found: list[str] = []
    if "--types" in sys.argv:
        found = [finding for dispatcher in dispatchers for finding in suspicious(dispatcher)]
    versions = {dispatcher.py_func.__qualname__: len(dispatcher.overloads) for dispatcher in dispatchers}
    report = {
        "file": jit.__file__,
        "was_cached": was_cached,
        "is_cached": jit.is_cached(),
        "seconds": seconds,
        "lines": lines,
        "kernels": len(jit._kernels),
        "entries": len(jit._entries),
        "versions": versions,
        "findings": [finding for finding in found if finding not in ALLOWED],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
