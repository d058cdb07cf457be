"""How a program starts another Python: the interpreter that it runs in itself, with the flags that it has."""

from __future__ import annotations

import os
import subprocess
import sys


class NotPython(Exception):
    """`sys.executable` is the program itself, or nothing; the text is its name, quoted."""


def python_command(mark: str) -> list[str]:
    """Return this Python with the flags it was started with: an isolated one stays isolated.

    mark: the environment variable that is set in what is started, so that a program that is started in the place of
    an interpreter does not start itself again. Raises NotPython there, in a frozen program, and in one that embeds
    Python.
    """
    name = os.path.basename(sys.executable or "")
    if mark in os.environ or getattr(sys, "frozen", False) or "py" not in name.lower():
        raise NotPython(repr(name))
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # no public twin; multiprocessing calls it too
    return [sys.executable, *flags]
