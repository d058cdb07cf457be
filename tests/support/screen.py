"""A terminal as far as our output needs one: it breaks what it shows anew when its width changes, as most do."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(r"\x1b\[(?P<parameters>[?0-9;]*)(?P<final>[A-Za-z])|(?P<char>[\s\S])")


@dataclass
class _Row:
    text: str = ""
    goes_on: bool = False
    """it holds the rest of the line in the row above"""


class Screen:
    """Rows of text and a cursor, without a limit of height."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._rows = [_Row()]
        self._row = 0
        self._column = 0

    @property
    def lines(self) -> list[str]:
        """The rows, without blanks at their ends."""
        return [row.text.rstrip() for row in self._rows]

    def feed(self, text: str) -> None:
        """Obey what a program writes."""
        for piece in _PIECE.finditer(text):
            if piece["char"] is not None:
                self._put(piece["char"])
            elif piece["final"] == "A":
                self._row = max(0, self._row - int(piece["parameters"] or 1))
            elif piece["final"] == "K":
                self._rows[self._row].text = ""
            elif piece["final"] not in ("m", "h", "l"):
                raise ValueError(f"this terminal does not know {piece[0]!r}")

    def _put(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\n":  # as a terminal gets it: the system makes it \r\n
            self._go_down(goes_on=False)
            self._column = 0
        else:
            if self._column == self.width:
                self._go_down(goes_on=True)
                self._column = 0
            row = self._rows[self._row]
            row.text = row.text.ljust(self._column)[: self._column] + char + row.text[self._column + 1 :]
            self._column += 1

    def _go_down(self, goes_on: bool) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append(_Row())
        self._rows[self._row].goes_on = goes_on

    def resize(self, width: int) -> None:
        """Break every line anew; the cursor stays behind the character that it is behind."""
        rows: list[_Row] = []
        cursor = (0, 0)
        line = ""
        at: int | None = None
        for number, row in enumerate(self._rows):
            line = line + row.text if row.goes_on else row.text
            if number == self._row:
                at = len(line) - len(row.text) + self._column
            last = number + 1 == len(self._rows) or not self._rows[number + 1].goes_on
            if last:
                if at is not None:
                    behind = max(0, at - 1) // width
                    cursor = (len(rows) + behind, at - behind * width)
                    at = None
                parts = [line[begin : begin + width] for begin in range(0, len(line), width)] or [""]
                rows += [_Row(part, goes_on=bool(position)) for position, part in enumerate(parts)]
        self._rows, self.width = rows, width
        self._row, self._column = cursor
