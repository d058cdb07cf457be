"""Text for standard streams: who reads one (a person at a terminal, or a file, a pipe, nobody), what a terminal may be
sent, and tables of plain text."""

from __future__ import annotations

import io
import os
import shutil
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TextIO

from psearch.text.values import escaped

_WIDEST = 1000
"""Columns of a table: it is never folded, for it may go to a file."""


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
    wrapper = textwrap.TextWrapper(width, subsequent_indent=blanks, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrapper.fill(line) for line in text.splitlines())


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int | Collection[int] = 1) -> str:
    """Return rows under their head, two blanks between columns; no newline at the end.

    head: names of the columns, all empty for a table without one; left: so many columns, or those of these numbers, are
    aligned to the left, the others to the right.

    >>> print(text_table(["policy", "nodes"], [["ybw", "1,234"], ["calibrated", "98"]]))
    policy      nodes
    ybw         1,234
    calibrated     98
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lefts = range(left) if isinstance(left, int) else left
    table = Table(box=None, show_header=any(head), pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(head):
        table.add_column(Text(name), justify="left" if number in lefts else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    out = io.StringIO()
    Console(file=out, width=_WIDEST, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def glossary(meanings: Sequence[tuple[str, str]]) -> str:
    """Return what stands below a table: its columns and what they mean, a line each.

    >>> print(glossary([("idle", "time without work"), ("nps", "nodes per second")]))
      idle  time without work
      nps   nodes per second
    """
    widest = max(len(name) for name, _ in meanings)
    return "\n".join(f"  {name:<{widest}}  {meaning}" for name, meaning in meanings)
