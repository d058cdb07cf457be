"""Commands at a terminal of a given width, and what they leave on it."""

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
from pathlib import Path

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
    """What a terminal of this width is sent on stderr, and on stdout if that is not the same; the exit status."""
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
    """What a terminal shows in the end of what it was sent: no display that was taken away, and no colours."""
    lines = _LAST_FRAME.sub("", text).split("\n")
    return "\n".join(CONTROL.sub("", line.rpartition("\x1b[2K")[2]).rstrip() for line in lines)


def line_before(text: str, words: str) -> str:
    """What stands to the left of these words, on the same line and not erased."""
    before = re.split(r"\x1b\[2K|\n", text[: text.index(words)])[-1]
    return CONTROL.sub("", before)
