"""A user's file of kernels, as it is read: by the program that names it, and by the compiler that runs it."""

from __future__ import annotations

import ast
import errno
import os
import re
import stat
from types import CodeType

from psearch_core.toolchain.kernel_cache import PlugInError

_MOST_BYTES = 1 << 20
_MOST_WORDS = 1 << 17
"""of memory of its own: a mebibyte"""
_WORDS = re.compile(rb"^WORDS\b[^=\n]*=[ \t]*([^#\r\n]*)", re.MULTILINE)
_DIGITS = re.compile(rb"[0-9]{1,7}")


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
        words = int(number) if _DIGITS.fullmatch(number) else _MOST_WORDS + 1
        if words > _MOST_WORDS:
            line = content.count(b"\n", 0, found.start()) + 1
            raise PlugInError(f"{file}:{line}: WORDS must be a whole number from 0 to {_MOST_WORDS}")
    return words
