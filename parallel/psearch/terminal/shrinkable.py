"""What is redrawn in place on a terminal that may become narrower meanwhile."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment

_WITHOUT_REFLOW = ("linux", "rxvt", "screen")
"""How `TERM` begins where a narrower window cuts lines off. xterm itself, which does too, sets `XTERM_VERSION`."""


class _MeasuredWidth:
    """Notes how wide each row is as it is written: the width of the terminal may be another one a moment later."""

    def __init__(self, renderable: RenderableType, widths: list[int]) -> None:
        self._renderable = renderable
        self._widths = widths

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = console.render_lines(self._renderable, options, pad=False)
        self._widths[:] = [Segment.get_line_length(row) for row in rows[: options.size.height]]
        for row in rows:
            yield from row
            yield Segment.line()


class ShrinkableLive(Live):
    """A Live that erases all rows of its last frame where the terminal has broken its lines into more of them.

    Other terminals than a few old ones break the lines that they show anew when their width changes, and rich knows
    only how many rows it wrote.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._widths: list[int] = []
        """columns of each row of the last frame"""
        super().__init__(*arguments, **options)  # which asks for the first frame
        self._breaks_anew = "XTERM_VERSION" not in os.environ and not os.environ.get("TERM", "").startswith(
            _WITHOUT_REFLOW
        )

    def get_renderable(self) -> RenderableType:
        """See rich."""
        return _MeasuredWidth(super().get_renderable(), self._widths)

    def refresh(self) -> None:
        """See rich, which calls this for every frame, the last one included."""
        self._erase_surplus()
        super().refresh()

    def _erase_surplus(self) -> None:
        """Rows beyond those that rich erases, with the cursor in the last one."""
        width = self.console.size.width
        surplus = sum(max(0, columns - 1) // width for columns in self._widths) if self._breaks_anew else 0
        self._widths.clear()
        if surplus:
            row = ((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))
            self.console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2), *row * surplus))
