"""Imports a user's file of kernels, and reports a mistake in one line that begins with file and line number."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import decode_source, find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from numba.core import types
from numba.extending import _Intrinsic

from psearch_core.toolchain import intrinsics, jit
from psearch_core.toolchain.compiler.dependencies import called_by
from psearch_core.toolchain.jit import Kernel, line_of
from psearch_core.toolchain.kernel_cache import PlugIn, PlugInError, content_hash
from psearch_core.toolchain.kernel_sets import compiled, read_plug_in, syntax_mistake, words_of

_NO_FOLDER = "/dev/null"
_MOST_WORDS = 240
_DIGITS = 8
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NO_MEMORY = "a kernel takes no memory: no lists, no new arrays, no strings, no dictionaries"
_PLAIN = (
    (re.compile(r"No conversion from none to .*"), "a path through it returns nothing"),
    (re.compile(r"No implementation of function .* for signature: >>> (\w+)\((.*)\)$"), r"there is no \1 of \2"),
    (
        re.compile(r"(there is no .*float64.*)"),
        r"\1: where a u64 and another whole number meet numba may make a float64; write np.uint64(1)",
    ),
    (
        re.compile(r"Invalid use of type\(Kernel\(<function (\w+) at .*"),
        r"\1 is called with arguments that it does not take",
    ),
    (re.compile(r"Record\(.*"), "a record"),  # numba writes all of its fields
    (re.compile(r"NRT required but not enabled.*"), _NO_MEMORY),
    (re.compile(r"there is no .*\b(list|set|dict|DictType|ListType|unicode_type|array)\(?.*"), _NO_MEMORY),
    (re.compile(r"there is no (hash|str|repr|zeros|ones|empty|full|array|arange) of .*"), _NO_MEMORY),
    (re.compile(r".*unsupported opcode \(IMPORT_NAME\).*"), "a kernel cannot import: say so at the head of the file"),
    (re.compile(r" for '\$.*"), ""),
)
"""Patterns of numba's messages, and the words that replace them."""

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
"""Names of the intrinsics that give the address of a record or of its field."""


class Loaded:
    """The kernels of a user's file. Raises PlugInError for one that cannot be imported, or that replaces nothing."""

    def __init__(self, plug_in: PlugIn, adapter: str = "") -> None:
        self.file, self._module, self.digest, beside = plug_in
        self._adapter = import_module(adapter) if adapter else None
        before = set(sys.modules)
        self._words, self._made = self._import()
        self.imported = set(sys.modules) - before
        """Names of the file's module and of the modules that it imported first."""
        self.symbols = {
            symbol for symbol, kernel in jit.registry.items() if kernel.py_func.__code__.co_filename == self.file
        }
        """Symbols of the file's kernels."""
        if self._adapter is not None:
            made = self._adapter.adapt(self._made, self.file)
            self.symbols |= {kernel.symbol for kernel in made}
            self.imported |= {kernel.py_func.__module__ for kernel in made}
        self.replaced = self._find_replaced()
        """Symbols of hooks, and of the file's kernels that stand in for them."""
        if beside:
            file, module, digest = beside
            other = Loaded(PlugIn(file, module, digest))
            self.imported |= other.imported
            self.symbols |= other.symbols
            self.replaced = {**other.replaced, **self.replaced}

    def _import(self) -> tuple[int, ModuleType]:
        """Import the file as the program has read it. Returns its number of words of memory, and its module."""
        file = self.file
        before = sys.dont_write_bytecode, sys.pycache_prefix
        # import source text only: Python trusts compiled code of an older text that has the same size and second
        sys.dont_write_bytecode, sys.pycache_prefix = True, _NO_FOLDER
        try:
            source = read_plug_in(file)
            if content_hash(source) != self.digest:
                raise PlugInError(f"{file}: it has changed since it was read")
            words = words_of(file, source)
            code = compiled(source, file)
            text = [f"{line}\n" for line in decode_source(source).split("\n")]
            linecache.cache[file] = (len(source), None, text, file)  # later messages quote this text
            name = f"plug_in_{re.sub(r'[^A-Za-z0-9]', '_', Path(file).stem)}_{self.digest[:_DIGITS]}"
            spec = find_spec(self._module) if self._module else spec_from_file_location(name, file)
            if spec is None:
                raise PlugInError(f"{file}: not a file of Python: its name does not end in .py")
            made = sys.modules[spec.name] = module_from_spec(spec)
            if not self._module:
                sys.path.append(str(Path(file).parent))  # last, so that the file may import its neighbours
            exec(code, made.__dict__)
            if getattr(made, "WORDS", 0) != words:
                raise PlugInError(f"{file}: WORDS must be set once, by a line that begins with it: WORDS = 4")
            return words, made
        except PlugInError:
            raise
        except SyntaxError as error:
            raise syntax_mistake(error, file) from error
        except (Exception, SystemExit) as error:  # raised by the user's code
            own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
            place = f"{file}:{own[-1].lineno}" if own else file
            raise PlugInError(f"{place}: {_one_line(f'{type(error).__name__}: {error}')}") from error
        finally:
            sys.dont_write_bytecode, sys.pycache_prefix = before

    def _find_replaced(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for symbol in sorted(self.symbols):
            kernel = jit.registry[symbol]
            try:
                called, forbidden = called_by(kernel), _forbidden(kernel, self._words)
            except Exception as error:  # a closure, or an error of Python's parser
                raise mistake_in(kernel, error) from error
            if not self._words and any(each.is_memory for each in called):
                raise PlugInError(f"{_place(kernel)} uses memory of its own: a line WORDS = 4 must say how many words")
            if forbidden is not None:
                line, words = forbidden
                raise PlugInError(f"{_place(kernel, line)}: {words}")
            if kernel.stands_in_for is None:
                continue
            hook = kernel.stands_in_for
            if hook.symbol in found:
                raise PlugInError(f"{_place(kernel)}: {hook.py_func.__name__} has been replaced already")
            found[hook.symbol] = symbol
        if not found:
            raise PlugInError(f"{self.file}: it replaces nothing: no function is marked with @replaces")
        if self._adapter is None:
            for symbol in found.values():
                self._check_writes(jit.registry[symbol])
        return found

    def _check_writes(self, stand_in: Kernel) -> None:
        """Raise PlugInError if a stand-in, or a kernel of the file that it calls, writes what its hook may not."""
        hook = stand_in.stands_in_for
        assert hook is not None
        waiting, seen = [stand_in], {stand_in.symbol}
        for kernel in waiting:
            for line, record, field, words in writes_of(kernel):
                if (record, field) not in hook.writes:
                    may = ", ".join(f"the field {name} of {_record_name(hook, one)}" for one, name in hook.writes)
                    may = f"it may write {may} only" if may else "it only reads"
                    name = hook.py_func.__name__
                    raise PlugInError(f"{_place(kernel, line)}: it writes to {words}; in place of {name} {may}")
            for called in called_by(kernel):
                if called.symbol in self.symbols and called.symbol not in seen:
                    seen.add(called.symbol)
                    waiting.append(called)

    def try_out(self, functions: dict[str, Any]) -> None:
        """Let the adapter try out the file's functions. functions: the entries of a group. Raises PlugInError."""
        if self._adapter is not None:
            self._adapter.try_out(self._made, self.file, functions)

    def check_calls(self, circle: Sequence[Kernel]) -> None:
        """Raise PlugInError if a kernel of the file is in this cycle of calls."""
        own = [number for number, kernel in enumerate(circle) if kernel.symbol in self.symbols]
        if own:
            kernel, *others = (*circle[own[0] :], *circle[: own[0]])
            names = ", ".join(each.py_func.__name__ for each in others)
            way = f" by way of {names}" if names else ""
            raise PlugInError(f"{_place(kernel)} calls itself{way}: no kernel is recursive")


def mistake_in(kernel: Kernel, error: Exception) -> PlugInError:
    """Return the error message for a kernel that cannot be compiled."""
    if isinstance(error, KeyError):  # numba raises it for a field that a record does not have
        field, known = str(error.args[0]), _fields_looked_in(error)
        there_are = f": there are {', '.join(known)}" if known else ""
        lines, first = inspect.getsourcelines(kernel.py_func)
        number = next((first + number for number, line in enumerate(lines) if field in line), None)
        return PlugInError(f"{_place(kernel, number)}: no field is called {field}{there_are}")
    text = _COLOURS.sub("", str(error))
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("Failed in ")]
    words = " ".join(lines[: 1 + lines[0].endswith("signature:")]) if lines else type(error).__name__
    words = " ".join(words.split())
    for pattern, plain in _PLAIN:
        words = pattern.sub(plain, words)
    words = words.removeprefix(f"{kernel.symbol}: ")
    return PlugInError(f"{_place(kernel, _line_in(kernel, error, text))}: {_one_line(words)}")


def _fields_looked_in(error: BaseException) -> list[str]:
    """Return the names of the fields of the record in which numba looked for a missing one."""
    found: list[str] = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        record = frame.f_locals.get("self")
        if isinstance(record, types.Record):
            found = [name for name in record.fields if not name.startswith("pad")]
    return found


def _record_name(hook: Kernel, record: Any) -> str:
    names = inspect.signature(hook.py_func).parameters
    return next(name for name, kind in zip(names, hook.arguments, strict=True) if kind == record)


def _forbidden(kernel: Kernel, words: int) -> tuple[int, str] | None:
    """Return line and message for code that numba compiles but that fails in a worker, or does something else there;
    None if there is none. words: size of the file's memory."""
    tree, first = _tree(kernel)
    for node in ast.walk(tree):
        message = ""
        if isinstance(node, ast.Raise | ast.Assert):
            message = "a kernel cannot raise exceptions"
        elif isinstance(node, ast.Return) and kernel.limits is not None:
            least, most = kernel.limits
            ends = (node.value.body, node.value.orelse) if isinstance(node.value, ast.IfExp) else (node.value,)
            beyond = [number for number in map(_number, ends) if number is not None and not least <= number <= most]
            message = f"it returns {beyond[0]}: {kernel.limits_text}" if beyond else ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = kernel.py_func.__globals__.get(node.func.id)
            number = _number(node.args[1]) if getattr(called, "is_memory", False) and len(node.args) > 1 else None
            if node.func.id == "print":
                message = "a kernel cannot print"
            elif number is not None and not 0 <= number < words:
                message = f"there is no word {number}: WORDS = {words} are numbered from 0"
        if message and isinstance(node, ast.stmt | ast.expr):
            return first + node.lineno - 1, message
    return None


def _tree(kernel: Kernel) -> tuple[ast.Module, int]:
    """Return the syntax tree of a kernel, and the line of the file at which it begins."""
    lines, first = inspect.getsourcelines(kernel.py_func)
    return ast.parse(textwrap.dedent("".join(lines))), first


def _number(node: ast.expr | None) -> int | None:
    """Return the value of a literal integer, None for anything else."""
    try:
        value = None if node is None else ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _line_in(kernel: Kernel, error: Any, text: str) -> int | None:
    """Return the line that numba names, if it belongs to the kernel's file."""
    loc = getattr(error, "loc", None)
    file = Path(kernel.py_func.__code__.co_filename).name
    if loc is not None and Path(str(loc.filename)).name == file:
        return int(loc.line)
    named = re.search(r'File "([^"]*)", line (\d+)', text)
    return int(named[2]) if named and Path(named[1]).name == file else None


def _place(kernel: Kernel, line: int | None = None) -> str:
    function = kernel.py_func
    return f"{function.__code__.co_filename}:{line or line_of(function)}: {function.__name__}"


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MOST_WORDS else words[:_MOST_WORDS] + " ..."


# -- what a kernel writes to -----------------------------------------------------------------------------------------


def writes_of(kernel: Kernel) -> Iterator[tuple[int, Any, str, str]]:
    """Yield what a kernel writes to, except the words of the file's own memory.

    Each item is the line, the type of the argument whose field it is (None for any other place), the field, and the
    text of the place.
    """
    function = kernel.py_func
    tree, first = _tree(kernel)
    kinds = dict(zip(inspect.signature(function).parameters, kernel.arguments, strict=True))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node.value if isinstance(node, ast.Attribute) else None
            record = kinds.get(target.id) if isinstance(target, ast.Name) else None
            field = node.attr if isinstance(node, ast.Attribute) else ""
            yield first + node.lineno - 1, record, field, ast.unparse(node)
        elif isinstance(node, ast.Call) and node.args:
            called = _value(node.func, function.__globals__)
            if called in _WRITERS or (called in _ATOMIC_WRITERS and _is_in_record(node.args[0], tree, function)):
                yield first + node.lineno - 1, None, "", ast.unparse(node.args[0])


def _is_in_record(address: ast.expr, tree: ast.AST, function: Any) -> bool:
    """Tell whether an expression, or an assignment to its variables, takes the address of a record or a field."""
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
    """Return the value of a global name or of an attribute of a module; None if it is unknown."""
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, names), node.attr, None)
    return names.get(node.id) if isinstance(node, ast.Name) else None
