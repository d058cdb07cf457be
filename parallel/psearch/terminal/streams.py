"""Text for standard streams: whether they are terminals, safe text, folded lines, tables."""

from __future__ import annotations

import io
import os
import shutil
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TextIO

from psearch.text.values import escaped

_WIDEST = 1000
"""Width of a table in columns: so large that it is never folded, since it may go to a file."""
INDENT = 4
"""Blanks at the start of the continued rows of an iteration's line."""


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether the stream is a terminal; it is None if the shell closed it."""
    return stream is not None and stream.isatty()


def can_redraw(stream: TextIO | None) -> bool:
    """Tell whether the stream is a terminal that can move its cursor."""
    return is_terminal(stream) and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def printable(text: str) -> str:
    """Return text that is safe to send to a terminal: unprintable characters except newlines are escaped.

    This disarms escape sequences, carriage returns and marks that change the direction of writing.

    >>> printable("a\x1b[31mb\nc\u202ed")
    'a\\x1b[31mb\nc\\u202ed'
    """
    return escaped(text, kept="\n")


def folded(text: str, stream: TextIO | None, indent: int) -> str:
    """Return text whose lines are broken between words if the stream is a terminal that is too narrow. indent: blanks
    at the start of continued rows."""
    if not is_terminal(stream):
        return text
    width = shutil.get_terminal_size().columns
    blanks = " " * (indent if 2 * indent < width else 0)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=blanks, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrapper.fill(line) for line in text.splitlines())


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int | Collection[int] = 1) -> str:
    """Return a table with two blanks between columns and no newline at the end.

    head: names of the columns; left: columns aligned to the left, as a number of first columns or as column numbers.

    >>> print(text_table(["policy", "nodes"], [["ybw", "1,234"], ["calibrated", "98"]]))
    policy      nodes
    ybw         1,234
    calibrated     98
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lefts = range(left) if isinstance(left, int) else left
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(head):
        table.add_column(Text(name), justify="left" if number in lefts else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    out = io.StringIO()
    Console(file=out, width=_WIDEST, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def glossary(meanings: Sequence[tuple[str, str]]) -> str:
    """Return a line for each name and its meaning, such as the legend of a table.

    >>> print(glossary([("idle", "time without work"), ("nps", "nodes per second")]))
      idle  time without work
      nps   nodes per second
    """
    widest = max(len(name) for name, _ in meanings)
    return "\n".join(f"  {name:<{widest}}  {meaning}" for name, meaning in meanings)
