"""Every command by name, with its parser; the module of a command is imported when the command is given."""

from __future__ import annotations

import argparse
import importlib
from typing import NoReturn, Protocol, cast

from psearch.faces.cli.output import refuse
from psearch.faces.cli.signals import Signals

SEARCH = "search"
"""The command without a name: `psearch FEN`."""

COMMANDS = {
    "analyse": "search every position of a test suite, or of a collection of games",
    "serve": "a page on this machine: board, lines, play, the workers live",
    "game": "search a game of your own, from a file of some functions",
    "perft": "move path counts, one line per root move, or the counts of a suite checked",
    "bench": "a fixed search on one worker: `N nodes M nps`",
    "uci": "the engine for chess programs; also plain `psearch`",
    "speedup": "time to depth with 1 and 2 worker processes",
    "simulate": "speedup in virtual time, with any number of workers",
    "predict": "how often the rules that predict node types are right",
    "verify-sound": "whether `--pruning sound` keeps every value, as it must",
    "leaves": "the leaves alpha-beta must visit, by formula and counted",
    "version": "what a report of a problem should say: versions, processor, cores, memory",
    "completion": "completion of commands and options by the shell",
}
"""What each does, in a line."""


class Command(Protocol):
    """What the module of a command holds."""

    __name__: str
    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its arguments."""

    def run(self, options: argparse.Namespace, signals: Signals) -> int:
        """Do it, and return the exit status."""


class _Parser(argparse.ArgumentParser):
    """Reports an error as one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        refuse(message)


def load(name: str) -> Command:
    """Return the module of a command."""
    return cast(Command, importlib.import_module(f"psearch.faces.cli.commands.{name.replace('-', '_')}_command"))


def parser_of(name: str, command: Command) -> argparse.ArgumentParser:
    """Return the parser of a command, whose help keeps its line breaks."""
    parser = _Parser(
        prog="psearch" if name == SEARCH else f"psearch {name}",
        description=command.DESCRIPTION,
        epilog=command.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser
