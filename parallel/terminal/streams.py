"""Who reads a standard stream: a person at a terminal, or a file, a pipe, nobody."""

from __future__ import annotations

import os
from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Whether someone watches this stream (it is None when the shell closed it)."""
    return stream is not None and stream.isatty()


def can_redraw(stream: TextIO | None) -> bool:
    """Whether it is a terminal that can move its cursor."""
    return is_terminal(stream) and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
