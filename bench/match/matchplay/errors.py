"""What ends the match with one line."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import NoReturn

from psearch.results import PsearchError

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


class MatchError(Exception):
    """Bad input, or an engine that cannot be started."""


class Parser(argparse.ArgumentParser):
    """Raises MatchError instead of printing the usage; keeps the line breaks of the description."""

    def __init__(self, description: str | None) -> None:
        super().__init__(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )

    def error(self, message: str) -> NoReturn:
        raise MatchError(message)


def run_script(name: str) -> int:
    """Call `run` of a script, imported under its own name, by which other processes know its functions.

    Returns the exit status; bad input is one line.
    """
    try:
        return int(import_module(name).run())
    except (MatchError, PsearchError) as error:
        print(f"{name}.py: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
