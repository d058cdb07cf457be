"""What is redrawn in place on a terminal that may become narrower meanwhile."""

from __future__ import annotations

import os
from typing import Any

from rich.console import RenderableType
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment

_WITHOUT_REFLOW = ("linux", "rxvt", "screen")
"""How `TERM` begins where a narrower window cuts lines off. xterm itself, which does too, sets `XTERM_VERSION`."""


class ShrinkableLive(Live):
    """A Live that erases all rows of its last frame where the terminal has broken its lines into more of them.

    Other terminals than a few old ones break the lines that they show anew when their width changes, and rich knows
    only how many rows it wrote.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._widths: list[int] = []
        """columns of each row of the last frame"""
        self._breaks_anew = "XTERM_VERSION" not in os.environ and not os.environ.get("TERM", "").startswith(
            _WITHOUT_REFLOW
        )

    def update(self, renderable: RenderableType, *, refresh: bool = False) -> None:
        """See rich."""
        self._erase_surplus()
        super().update(renderable, refresh=refresh)
        self._remember(renderable)

    def stop(self) -> None:
        """See rich."""
        self._erase_surplus()
        super().stop()

    def _remember(self, renderable: RenderableType) -> None:
        rows = self.console.render_lines(renderable, pad=False)[: self.console.size.height]
        self._widths = [Segment.get_line_length(row) for row in rows]

    def _erase_surplus(self) -> None:
        """Rows beyond those that rich erases, with the cursor in the last one."""
        width = self.console.size.width
        surplus = sum(max(0, columns - 1) // width for columns in self._widths) if self._breaks_anew else 0
        self._widths = []
        if surplus:
            row = ((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))
            self.console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2), *row * surplus))
