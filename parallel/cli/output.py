"""What commands write: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from psearch.cli.exit_status import EXIT_BAD_INPUT


def print_json(facts: Mapping[str, Any]) -> None:
    """One JSON object on stdout, on one line."""
    import json

    print(json.dumps(facts, default=int), flush=True)  # default=int: counters may come as numpy integers


def say(text: str) -> None:
    """One line on stderr, if there is one."""
    if sys.stderr is not None:  # print() would turn to stdout
        print(text, file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """One line on stderr, whatever the message contains."""
    line = " ".join(message.split())
    say("psearch: " + "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in line))


def refuse(message: str) -> NoReturn:
    """Bad arguments: one line without the usage, and the end."""
    complain(message)
    sys.exit(EXIT_BAD_INPUT)
