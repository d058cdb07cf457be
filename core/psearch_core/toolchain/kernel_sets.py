"""Kernel sets, which say what kernels a search runs, and functions that read a user's file of kernels.

A set has the kernels of the package, or has hooks (`jit.hook`) replaced by the kernels of a user's file: a policy, a
game, or both. `KernelSet.group` gives the group to call in place of one of the package's. A file is identified by its
path and a hash of its content: an edited file is another set, so every process runs the version that was asked for.
"""

from __future__ import annotations

import ast
import errno
import os
import re
import stat
import threading
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType

from psearch_core.toolchain import kernel_cache
from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.kernel_cache import PlugIn, PlugInError

_MARK_DIGITS, _MOST_LETTERS = 12, 32
_MOST_BYTES = 1 << 20
_MOST_WORDS = 1 << 17
"""Greatest number of 64-bit words of memory that a file may have: one mebibyte."""
_WORDS = re.compile(rb"^WORDS\b[^=\n]*=[ \t]*([^#\r\n]*)", re.MULTILINE)
_lock = threading.Lock()
_groups: dict[tuple[str, PlugIn, str], Group] = {}


@dataclass(frozen=True)
class KernelSet:
    """The kernels of the package, some of which a user's file may replace."""

    file: str = ""
    """Absolute path of the user's file; empty if nothing is replaced."""
    module: str = ""
    """Name under which the file is imported; empty if it is no module of a package."""
    digest: str = ""
    """Hash of the file's content."""
    words: int = 0
    """Number of 64-bit words in shared memory that only the file's kernels use."""
    hooks: str = ""
    """Names of the hooks that the file replaces, separated by spaces."""
    adapter: str = ""
    """Module that makes kernels from a file of plain functions (see `Recipe`); empty for a file of kernels. Its
    `REPLACED` names kernels that it replaces in every group, its `MODULES` modules that it adds to every group."""
    beside: tuple[str, ...] = ()
    """A second file; see `PlugIn`."""

    @property
    def brings_game(self) -> bool:
        """Whether the file defines a game, which the package's own kernels cannot search."""
        return bool(self.adapter)

    def group(self, base: Group) -> Group:
        """Return the group with this set's kernels; `base` itself if nothing is replaced."""
        if not self.file:
            return base
        plug_in = PlugIn(self.file, self.module, self.digest, self.beside)
        with _lock:
            if (base.name, plug_in, self.adapter) not in _groups:
                stem = re.sub(r"[^A-Za-z0-9_]", "_", Path(self.file).stem)[:_MOST_LETTERS]
                mark = kernel_cache.content_hash(repr((*plug_in, self.adapter)).encode())[:_MARK_DIGITS]
                modules, replaced = base.recipe.modules, base.recipe.replaced
                if self.adapter:
                    adapter = import_module(self.adapter)
                    modules, replaced = (*modules, *adapter.MODULES), {**replaced, **adapter.REPLACED}
                name = f"{base.name}-{stem}-{mark}"
                made = Group(name, *modules, replaced=replaced, plug_in=plug_in, adapter=self.adapter)
                _groups[base.name, plug_in, self.adapter] = made
            return _groups[base.name, plug_in, self.adapter]


STANDARD = KernelSet()
"""The package's own kernels."""


def read_plug_in(file: str) -> bytes:
    """Return the content of a file. Raises OSError, also unless it is a regular file of at most one mebibyte."""
    # O_NONBLOCK: do not wait for the writer of a named pipe
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as source:
            content = source.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB")
    return content


def compiled(source: bytes, file: str) -> CodeType:
    """Compile the source text of a file to Python code. Raises SyntaxError, and PlugInError for null bytes, for which
    Python before 3.11.4 raises ValueError."""
    try:
        return compile(source, file, "exec", dont_inherit=True)
    except ValueError as error:
        raise PlugInError(f"{file}: {error}") from error


def syntax_mistake(error: SyntaxError, file: str) -> PlugInError:
    """Return the error message for a syntax error in a user's file, or in a file that it imports."""
    place = (error.filename or file) if error.lineno is None else f"{error.filename}:{error.lineno}"
    return PlugInError(f"{place}: {error.msg}")


def hooks_of(content: bytes) -> str:
    """Return the names that a file replaces with `@replaces(NAME)`, separated by spaces, without running the file. A
    file with a syntax error replaces nothing; the compiler reports the error later."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    other = {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    found = set()
    for node in ast.walk(tree):
        for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(mark, ast.Call) and mark.args:
                name = _last_name(mark.args[0])
                if other.get(_last_name(mark.func), _last_name(mark.func)) == "replaces":
                    found.add(other.get(name, name))
    return " ".join(sorted(found - {""}))


def _last_name(node: ast.expr) -> str:
    """Return `c` for `a.b.c`; empty for anything but names."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def words_of(file: str, content: bytes) -> int:
    """Return N of the line `WORDS = N`, 0 without such a line. Raises PlugInError if N is no number or too big."""
    words = 0
    for found in _WORDS.finditer(content):
        number = found[1].strip()
        words = int(number) if re.fullmatch(rb"[0-9]{1,7}", number) else _MOST_WORDS + 1
        if words > _MOST_WORDS:
            line = content.count(b"\n", 0, found.start()) + 1
            raise PlugInError(f"{file}:{line}: WORDS must be a whole number from 0 to {_MOST_WORDS}")
    return words
