"""What commands write, results to stdout, everything else to stderr, and the status they end with: 0 answered, 128 + N
ended by signal N, else one of these."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO, cast

from psearch.terminal.streams import folded, printable

EXIT_WRONG = 1
"""What the command checks is not as it must be: perft counts, leaves, sound pruning, games of a PGN."""
EXIT_SYSTEM = 1
"""The system refused something: a full disk."""
EXIT_BAD_INPUT = 2
EXIT_WORKER_DIED = 3
EXIT_SIGNAL = 128
_INDENT = 4
_NAME = "psearch: "
_NO_BREAK = "\xa0"
_LONGEST_COMPLAINT = 2000
"""characters"""


class _Messages:
    """stderr, the loss of which ends nothing: its terminal may be closed while a long run goes on."""

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
    """Send what a stream still holds nowhere, for it cannot be written: the interpreter flushes it at exit, and if that
    fails gives a status of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def steady_streams() -> Iterator[None]:
    """Keep the streams steady: inside, no text fails for its letters, stderr never fails, and no file takes the number
    of a closed stream. stderr that has been lost does not fail at exit either."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the least number that is free: this one
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

    print(json.dumps(facts, default=int), flush=True)  # default=int: counters may come as numpy integers


def print_answer(as_json: bool, facts: Mapping[str, Any], text: str) -> None:
    """Print the facts as JSON, or the text, if there is any."""
    if as_json:
        print_json(facts)
    elif text:
        print(text, flush=True)


def say(text: str) -> None:
    """Print lines on stderr, if there is one."""
    if sys.stderr is not None:  # print() would turn to stdout
        whole = printable(text).replace(_NAME, _NAME.replace(" ", _NO_BREAK), 1)  # a long path stays behind the name
        print(folded(whole, sys.stderr, _INDENT).replace(_NO_BREAK, " "), file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Print one line on stderr, whatever the message contains."""
    line = " ".join(message.split())
    say(_NAME + (line if len(line) <= _LONGEST_COMPLAINT else line[: _LONGEST_COMPLAINT - 3] + "..."))


def refuse(message: str) -> NoReturn:
    """Refuse bad arguments: print one line without the usage, and end."""
    complain(message)
    sys.exit(EXIT_BAD_INPUT)
