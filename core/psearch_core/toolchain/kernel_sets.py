"""Kernel sets: which kernels a search runs, as a value that travels with its memory and workers; reading a user's file.

A set is the package's own, or the same with hooks (`jit.hook`) replaced by the kernels of one file, or of a game's and
a policy's. What has such a set asks it for the group to call in place of one of the package's. A file is known by its
path and a hash of its content: one that has been edited is another set, and no process runs another than the one that
was asked for. The program that names a file reads it here, and so does the compiler that runs it.
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
"""Words of memory that a file may have: a mebibyte."""
_WORDS = re.compile(rb"^WORDS\b[^=\n]*=[ \t]*([^#\r\n]*)", re.MULTILINE)
_lock = threading.Lock()
_groups: dict[tuple[str, PlugIn, str], Group] = {}


@dataclass(frozen=True)
class KernelSet:
    """The kernels of the package, or with those of a file in place of some."""

    file: str = ""
    """absolute path; empty: nothing is replaced"""
    module: str = ""
    """by which the file is imported; empty: it is no module of a package"""
    digest: str = ""
    """hash of the file's content"""
    words: int = 0
    """of 64 bits, in the memory that all workers share, for the file's kernels alone"""
    hooks: str = ""
    """names of the hooks that the file replaces, as its text has them, with spaces between"""
    adapter: str = ""
    """the module that makes kernels of the file, where it is one of plain functions: it names, as `REPLACED` and
    `MODULES`, what every group has in its kernels' place, and besides; see `Recipe`"""
    beside: tuple[str, ...] = ()
    """see `PlugIn`"""

    @property
    def brings_game(self) -> bool:
        """Whether the file says what is searched: the package's own kernels cannot search it then."""
        return bool(self.adapter)

    def group(self, base: Group) -> Group:
        """Return the group with this set's kernels; `base` itself where nothing is replaced."""
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
    """Return the content of a file. Raises OSError, also for what is no regular file of a mebibyte at most."""
    # a pipe without a writer is not waited for
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        with open(descriptor, "rb", closefd=False) as source:
            content = source.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB")
    return content


def compiled(source: bytes, file: str) -> CodeType:
    """Return Python's code of a file. Raises SyntaxError, and PlugInError for null bytes, which are a ValueError before
    Python 3.11.4."""
    try:
        return compile(source, file, "exec", dont_inherit=True)
    except ValueError as error:
        raise PlugInError(f"{file}: {error}") from error


def syntax_mistake(error: SyntaxError, file: str) -> PlugInError:
    """Return what a user is told of a text that is no Python: that of the file, or of one that it imports."""
    place = (error.filename or file) if error.lineno is None else f"{error.filename}:{error.lineno}"
    return PlugInError(f"{place}: {error.msg}")


def hooks_of(content: bytes) -> str:
    """Return the names that a file replaces with `@replaces(NAME)`, as its text has them, with spaces between; nothing
    of the file is run. A text that is no Python replaces nothing, which its compiler will tell."""
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
    """`c` of `a.b.c`; empty for what is no name."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def words_of(file: str, content: bytes) -> int:
    """Return N of the line `WORDS = N`, 0 if there is none. Raises PlugInError for another N than one that will do."""
    words = 0
    for found in _WORDS.finditer(content):
        number = found[1].strip()
        words = int(number) if re.fullmatch(rb"[0-9]{1,7}", number) else _MOST_WORDS + 1
        if words > _MOST_WORDS:
            line = content.count(b"\n", 0, found.start()) + 1
            raise PlugInError(f"{file}:{line}: WORDS must be a whole number from 0 to {_MOST_WORDS}")
    return words
