"""Who reads a standard stream: a person at a terminal, or a file, a pipe, nobody; and what a terminal may be sent."""

from __future__ import annotations

import os
import shutil
import textwrap
from typing import TextIO

from psearch.text.values import escaped


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether someone watches this stream (it is None when the shell closed it)."""
    return stream is not None and stream.isatty()


def can_redraw(stream: TextIO | None) -> bool:
    """Tell whether it is a terminal that can move its cursor."""
    return is_terminal(stream) and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def printable(text: str) -> str:
    """Return text from a file or its name as a terminal may be sent it: what neither prints nor ends a line is written
    out.

    That takes the power from escape sequences, carriage returns and marks that turn the direction of writing.

    >>> printable("a\x1b[31mb\nc\u202ed")
    'a\\x1b[31mb\nc\\u202ed'
    """
    return escaped(text, kept="\n")


def folded(text: str, stream: TextIO | None, indent: int) -> str:
    """Return lines as they are for files and pipes; broken between words where a terminal is too narrow for them.

    indent: blanks before what does not fit into the first row.
    """
    if not is_terminal(stream):
        return text
    width = shutil.get_terminal_size().columns
    blanks = " " * (indent if 2 * indent < width else 0)
    lines = (
        textwrap.wrap(line, width, subsequent_indent=blanks, break_long_words=False, break_on_hyphens=False) or [""]
        for line in text.splitlines()
    )
    return "\n".join(row for rows in lines for row in rows)
