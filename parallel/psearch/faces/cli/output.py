"""Output of the commands: results go to stdout, everything else to stderr.

The exit status is 0 for success, 128 + N after signal N, else one of the constants below.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO, cast

from psearch.terminal.streams import folded, printable

EXIT_WRONG = 1
"""A check failed: perft counts, leaves, sound pruning, or the games of a PGN."""
EXIT_SYSTEM = 1
"""The system refused something, such as writing to a full disk."""
EXIT_BAD_INPUT = 2
EXIT_WORKER_DIED = 3
EXIT_SIGNAL = 128
_INDENT = 4
_NAME = "psearch: "
_NO_BREAK = "\xa0"
_LONGEST_COMPLAINT = 2000
"""Longest error message, in characters."""


class _Messages:
    """Wraps stderr and ignores write errors: a long run must survive the loss of its terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def abandon(stream: TextIO) -> None:
    """Discard the buffered text of a broken stream, so that the flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def steady_streams() -> Iterator[None]:
    """Make the standard streams robust: unencodable characters are escaped, errors of stderr are ignored, also at
    exit, and no file gets the descriptor of a closed stream."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    messages = sys.stderr
    if messages is not None:
        sys.stderr = cast(TextIO, _Messages(messages))
    try:
        yield
    finally:
        sys.stderr = messages
        if messages is not None:
            try:
                messages.flush()
            except OSError:
                abandon(messages)


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, on one line."""
    import json

    print(json.dumps(facts, default=int), flush=True)  # default=int: counters may be numpy integers


def print_answer(as_json: bool, facts: Mapping[str, Any], text: str) -> None:
    """Print the facts as JSON, or else the text unless it is empty."""
    if as_json:
        print_json(facts)
    elif text:
        print(text, flush=True)


def say(text: str) -> None:
    """Print lines on stderr, if there is one."""
    if sys.stderr is not None:  # with None print() would write to stdout
        # a long path stays on the line of the program's name
        whole = printable(text).replace(_NAME, _NAME.replace(" ", _NO_BREAK), 1)
        print(folded(whole, sys.stderr, _INDENT).replace(_NO_BREAK, " "), file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Print a message as one line on stderr."""
    line = " ".join(message.split())
    say(_NAME + (line if len(line) <= _LONGEST_COMPLAINT else line[: _LONGEST_COMPLAINT - 3] + "..."))


def refuse(message: str) -> NoReturn:
    """Exit because of bad arguments, with one line of explanation and no usage."""
    complain(message)
    sys.exit(EXIT_BAD_INPUT)
