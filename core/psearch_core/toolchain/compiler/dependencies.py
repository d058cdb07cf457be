"""Finds what a kernel's machine code depends on: its text, the constants frozen into it, the kernels that it calls."""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import sys
import types as python_types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import _Intrinsic

from psearch_core.toolchain import jit
from psearch_core.toolchain.jit import Kernel


def _names(code: python_types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, python_types.CodeType):
            yield from _names(constant)


def _globals_of(kernel: Kernel) -> dict[str, Any]:
    """Return the values of a kernel's global names, without attributes and builtins."""
    function = kernel.py_func
    if function.__closure__ or function.__name__ == "<lambda>":
        what = "closure" if function.__closure__ else "lambda"
        raise AssertionError(f"{kernel.symbol} is a {what}: kernels are plain functions")
    return {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}


def called_by(kernel: Kernel) -> list[Kernel]:
    """Return the kernels that a kernel calls."""
    return [value for value in _globals_of(kernel).values() if isinstance(value, Kernel)]


def closure(entries: Iterable[Kernel], replaced: Mapping[str, str] | None = None) -> dict[str, Kernel]:
    """Return the entries and all kernels that they need, by symbol.

    replaced: symbols of kernels, and of the kernels that stand in for them. Only a stand-in can call the original that
    it replaces; all other kernels call the stand-in.
    """
    replaced = replaced or {}
    unused = set(replaced)
    found: dict[str, Kernel] = {}
    waiting = list(entries)
    while waiting:
        kernel = waiting.pop()
        if kernel.symbol in replaced:
            unused.discard(kernel.symbol)
            other = jit.registry[replaced[kernel.symbol]]
            if (other.arguments, other.result) != (kernel.arguments, kernel.result):
                raise AssertionError(f"{other.symbol} cannot replace {kernel.symbol}: its signature is another")
            kernel = other
        if kernel.symbol not in found:
            found[kernel.symbol] = kernel
            for called in called_by(kernel):
                if replaced.get(called.symbol) == kernel.symbol:
                    found[called.symbol] = called
                    waiting += called_by(called)
                else:
                    waiting.append(called)
    if unused:
        raise AssertionError(f"nothing calls {', '.join(sorted(unused))}, to be replaced")
    return found


def circle(members: Mapping[str, Kernel], replaced: Mapping[str, str]) -> list[Kernel]:
    """Return kernels of a closure each of which calls the next, and the last one the first; empty without a cycle."""
    sorter = TopologicalSorter(dict.fromkeys(members, ()))
    for symbol, kernel in members.items():
        for called in called_by(kernel):
            other = replaced.get(called.symbol, symbol)
            sorter.add(called.symbol if other == symbol else other, symbol)
    try:
        sorter.prepare()
    except CycleError as error:
        return [members[symbol] for symbol in error.args[1][:-1]]
    return []


def _dump(tree: ast.AST) -> str:
    """Return a syntax tree as text, without comments, line numbers and docstrings, which do not reach machine code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            node.body = [
                statement
                for statement in node.body
                if not (isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str))
            ]
    return ast.dump(tree)


@cache
def _functions_in(file: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Return the functions of a file, by name and first line."""
    # `linecache` keeps the text that was imported, whatever a user has edited since
    tree = ast.parse("".join(linecache.getlines(file)))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {
        (node.name, line): node
        for node in functions
        for line in (node.lineno, *(decorator.lineno for decorator in node.decorator_list))
    }


def _function_text(function: Callable[..., Any]) -> str:
    code = function.__code__
    node = _functions_in(inspect.getsourcefile(function) or "").get((code.co_name, code.co_firstlineno))
    if node is None:
        raise AssertionError(f"{function.__module__}.{function.__name__}: its text is not in {code.co_filename}")
    return f"{ast.dump(node.args)} {_dump(ast.Module(node.body, []))}"


@cache
def _module_text(name: str) -> str:
    """Return the whole text of a module of intrinsics."""
    return _dump(ast.parse(Path(str(sys.modules[name].__file__)).read_bytes()))


def _enclosed(function: Callable[..., Any]) -> list[str]:
    """Return the values of a function's closure, as text."""
    found = []
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        found += _enclosed(value) if isinstance(value, python_types.FunctionType) else [str(value)]
    return found


def _frozen(kernel: Kernel, name: str, value: Any) -> str:
    """Return as text what a global of a kernel contributes to its machine code."""
    if isinstance(value, Kernel):
        return f"kernel {value.symbol} {value.result} {value.arguments}"
    if isinstance(value, bool | int | str | np.integer | np.bool_ | tuple):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, types.Type):
        return str(value)
    if isinstance(value, _Intrinsic):
        return f"{_module_text(value._defn.__module__)} {value._defn.__name__} {_enclosed(value._defn)}"
    if isinstance(value, python_types.BuiltinFunctionType | type):
        return value.__name__
    if isinstance(value, python_types.ModuleType) and value is np:
        return "numpy"
    missing = ", and has no @kernel(RESULT(ARGUMENTS)) above it" if isinstance(value, python_types.FunctionType) else ""
    raise AssertionError(f"{kernel.symbol}: a kernel cannot use {name}, which is a {type(value).__name__}{missing}")


def toolchain() -> str:
    """Return the text of all modules that decide how a kernel is compiled."""
    names = ("jit", "compiler.front_end", "compiler.back_end")
    return "".join(_module_text(f"psearch_core.toolchain.{name}") for name in names)


def digest_of(kernel: Kernel) -> str:
    """Return a digest of everything that a kernel's bitcode depends on. The kernels that it calls have their own."""
    parts = [toolchain(), kernel.symbol, str(kernel.result), str(kernel.arguments), _function_text(kernel.py_func)]
    parts += [str(kernel.limits)]
    parts += [f"{name} = {_frozen(kernel, name, value)}" for name, value in sorted(_globals_of(kernel).items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
