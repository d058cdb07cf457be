"""Tables of plain text: the one way in which studies and commands show rows of figures."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Sequence

_WIDEST = 1000
"""Columns: a table is never folded, for it may go to a file."""


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

    from psearch.terminal.streams import printable

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
