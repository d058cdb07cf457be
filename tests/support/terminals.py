"""Terminals: programs that run at one, and one as far as our output needs it."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PIECE = re.compile(r"\x1b\[(?P<parameters>[?0-9;]*)(?P<final>[A-Za-z])|(?P<char>[\s\S])")


@dataclass
class _Row:
    text: str = ""
    goes_on: bool = False
    """The row holds the rest of the line in the row above."""


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


CONTROL = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]|\r")
_LAST_FRAME = re.compile(r"[^\n]*\n(?:\x1b\[\?25h)?\r\x1b\[1A\x1b\[2K")
"""a line, the end of it, and the way back to erase it: so Rich takes a display of one line away"""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def take(self) -> str:
        """Return what was written since."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


def on_terminal(
    command: Sequence[str], columns: int = 80, stdout_too: bool = True, folder: Path | None = None
) -> tuple[str, str, int]:
    """Return what a terminal of this width gets on stderr, and on stdout if that is another; and the exit status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    stdout = theirs if stdout_too else subprocess.PIPE
    with subprocess.Popen(command, stdin=theirs, stdout=stdout, stderr=theirs, env=environment, cwd=folder) as running:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how Linux says that the other end was closed
            pass
        rows = running.stdout.read().decode() if running.stdout is not None else ""
        status = running.wait()
    os.close(ours)
    return shown.decode(), rows, status


def what_stays(text: str) -> str:
    """Return the final contents of a terminal: without displays that were taken away, and without colours."""
    lines = _LAST_FRAME.sub("", text).split("\n")
    return "\n".join(CONTROL.sub("", line.rpartition("\x1b[2K")[2]).rstrip() for line in lines)


def line_before(text: str, words: str) -> str:
    """Return the text to the left of these words, on the same line and not erased."""
    before = re.split(r"\x1b\[2K|\n", text[: text.index(words)])[-1]
    return CONTROL.sub("", before)
