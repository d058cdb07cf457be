"""Lists the commands, makes their parsers, and suggests what a mistyped command line probably meant.

The module of a command is imported only when that command is given.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shlex
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

from psearch.faces.cli.output import refuse
from psearch.faces.cli.signals import Signals
from psearch.text.values import quoted

SEARCH = "search"
"""The command without a name: `psearch FEN`."""
ANALYSE = "analyse"
COMMANDS = {
    ANALYSE: "search every position of a test suite, or of a collection of games",
    "serve": "open a page in the browser: analyse, play, watch the workers live",
    "game": "search a game that you define in a Python file",
    "perft": "count move paths from a position, or check the counts of a suite",
    "bench": "search fixed positions on one worker: `N nodes M nps`",
    "uci": "run the engine for a chess program, as plain `psearch` does",
    "speedup": "measure the time to depth with 1, 2 or more worker processes",
    "simulate": "estimate the speedup of up to 1,024 workers in virtual time",
    "predict": "measure how often the rules that predict node types are right",
    "verify-sound": "check that `--pruning sound` never changes a value",
    "leaves": "compute and count the leaves that alpha-beta must visit",
    "version": "print what a bug report needs: versions, processor, cores, memory",
    "completion": "print a completion script for the shell",
}
"""Commands, each with a one-line summary for `psearch --help`."""
_STARTPOS = "startpos"
_OTHER_NAMES = {"analyze": ANALYSE}
_MOVED = {"calibrate": "is a script of the repository: python bench/study/calibrate.py --out FILE"}
"""Commands of earlier versions, each with the words that say what replaced it."""
_OTHER_OPTIONS = {
    **dict.fromkeys(("cores", "cpus", "jobs", "processes", "workers"), "--threads"),
    **dict.fromkeys(("seconds", "time"), "--movetime"),
    "lines": "--multipv",
    "memory": "--hash",
    "output": "--out",
    "plies": "--depth",
}
"""Names that other programs use, mapped to our options. Used only where we have no option of that name."""
_ALIKE = 0.7
"""Similarity (difflib's ratio) from which a name is suggested in place of the one given."""
_LEAST_PREFIX = 3
_MOST_SHOWN = 3
_MOVE = (
    r"[1-9][0-9]*\.*|(?:[1-9][0-9]*\.+)?"
    r"(?:[NBRQK]?[a-h]?[1-8]?[x-]?[a-h][1-8](?:=?[nbrqNBRQ])?|O-O(?:-O)?|0-0(?:-0)?)[+#!?]*"
)
_ROW = "[1-8pnbrqkPNBRQK]+"
_DASHES = "–—−"  # noqa: RUF001
"""Dashes that word processors make of the hyphens before an option."""
_IN_ADDRESS = rf"((?:{_ROW}/){{7}}{_ROW})(?:[_ +]|%20)([wb](?:(?:[_ +]|%20)[^_ +%/?#]+)*)"
"""A FEN inside the address of a web page."""
_LONGEST_COMMAND = 120
"""Most characters of a command line in a message."""


class Command(Protocol):
    """Describes what the module of a command must contain."""

    __name__: str
    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command."""

    def run(self, options: argparse.Namespace, signals: Signals) -> int:
        """Run the command and return its exit status."""


class _Parser(argparse.ArgumentParser):
    """Reports an error as one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        refuse(message)


def load(name: str) -> Command:
    """Return the module of a command."""
    return cast(Command, importlib.import_module(f"psearch.faces.cli.commands.{name.replace('-', '_')}_command"))


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command, whose help keeps its line breaks."""
    command = load(name)
    parser = _Parser(
        prog="psearch" if name == SEARCH else f"psearch {name}",
        description=command.DESCRIPTION,
        epilog=command.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser


def spelled_out(words: Sequence[str]) -> list[str]:
    """Return the command line with `help COMMAND` and other spellings translated into real commands."""
    first, rest = words[0], list(words[1:])
    if first == "help":
        name = _OTHER_NAMES.get(rest[0], rest[0]) if rest else SEARCH
        if name not in (*COMMANDS, SEARCH):
            if close := _alike(name.lower(), list(COMMANDS)):
                _propose(name, "command", ["help", *close])
            refuse(f"no command {quoted(name, 40)} (see psearch help)")
        return ["--help"] if name == SEARCH else [name, "--help"]
    return rest if first == SEARCH else [_OTHER_NAMES.get(first, first), *rest]


def check_command(words: Sequence[str], at: int = 0) -> None:
    """Refuse a word that looks like a mistyped command or `startpos`, and suggest what was probably meant."""
    word, before, after = words[at], words[:at], words[at + 1 :]
    if word in _MOVED:
        refuse(f"{word} {_MOVED[word]}")
    if not word.isascii() or " " in word or word in (_STARTPOS, *COMMANDS) or is_file(word):
        return
    close = _alike(word.lower(), [_STARTPOS, *COMMANDS, "help"])
    if close == [_STARTPOS]:
        _propose(word, "position", [*before, _STARTPOS, *after])
    if close:
        _propose(word, "command", [*close, *before, *after])


def check_position(words: Sequence[str], first: str) -> None:
    """Refuse a command, a mistyped one, an option or a Python file as the first word of a FEN. words: the whole command
    line."""
    at = words.index(first)
    if first.endswith(".py"):
        ways = (["game", first], ["--policy", first, _STARTPOS], ["--with", first, _STARTPOS])
        game, policy, rules = map(_command, ways)
        refuse(f"{quoted(first, 40)} is no position: did you mean {game}, {policy} or {rules}?")
    if first.startswith(tuple(_DASHES)):
        _propose(first, "option", [*words[:at], "--" + first.lstrip(_DASHES), *words[at + 1 :]])
    if first in COMMANDS:
        refuse(f"the command comes first: {_command([first, *words[:at], *words[at + 1 :]])}")
    check_command(words, at)


def check_moves(words: Sequence[str]) -> None:
    """Refuse moves or a web address given as the position, and suggest the right command line."""
    words = " ".join(words).split()
    base = [word for word in words if word.casefold() not in ("position", "fen")]
    at = base.index("moves") if "moves" in base else int(base[:1] == [_STARTPOS])
    moves = [word for word in base[at:] if word != "moves"]
    if moves and all(re.fullmatch(_MOVE, move) for move in moves):
        before = [] if base[:at] in ([], [_STARTPOS]) else [" ".join(base[:at])]
        meant = _command(["--moves", " ".join(moves), *before])
        refuse(f"{quoted(' '.join(words))} is no position: did you mean {meant}?")
    if words and "://" in words[0]:
        found = re.search(_IN_ADDRESS, " ".join(words))
        fen = re.sub("[_+]|%20", " ", f"{found[1]} {found[2]}") if found is not None else "FEN"
        address = quoted(words[0], 40)
        refuse(f"{address} is an address, which psearch does not open: give the position itself, {_command([fen])}")


def is_file(word: str) -> bool:
    """Tell whether a word given as the FEN names a file of games or positions."""
    is_named_so = re.search(r"\.(pgn|epd|fen)(\.(gz|bz2|zst))?$", word.lower()) is not None
    return word == "-" or (word != _STARTPOS and (is_named_so or os.path.isfile(word)))


def unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Return an error message about arguments that a parser does not know."""
    word = next((word for word in words if word.startswith("-")), None)
    if word is None:
        return f"{parser.prog} takes no {quoted(words[0], 40)} (see {parser.prog} --help)"
    option = word.partition("=")[0]
    stem = option.lstrip("-").lower().replace("_", "-")
    is_plain = re.fullmatch(r"-[\w-]{1,40}", option, re.ASCII)
    problem = f"no option {option if is_plain else quoted(option, 40)}"
    problem += "" if parser.prog == "psearch" else f" of {parser.prog}"
    if meant := _options_meant(stem, _options(parser)):
        return f"{problem}: did you mean {' or '.join(meant)}?"
    if option in ("--fen", "--position"):
        return f"{problem}: give the position without an option, as in psearch startpos"
    owners = [name for name in (SEARCH, *COMMANDS) if option in _options(parser_of(name))]
    if owners:
        commands = ("psearch FEN" if name == SEARCH else f"psearch {name}" for name in owners[:_MOST_SHOWN])
        return f"{problem}, which belongs to {', '.join(commands)}"
    return f"{problem} (see {parser.prog} --help)"


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [*re.findall(r"--[a-z][a-z-]*", parser.format_usage()), "--help"]


def _options_meant(stem: str, options: Sequence[str]) -> list[str]:
    """Return the options that a name may mean, or none if too many would match."""
    if longer := [option for option in options if stem and option[2:].startswith(stem)]:
        return longer if len(longer) <= _MOST_SHOWN else []
    if (other := _OTHER_OPTIONS.get(stem, "")) in options:
        return [other]
    return [f"--{name}" for name in _alike(stem, [option[2:] for option in options])]


def _alike(word: str, names: Sequence[str]) -> list[str]:
    """Return a name that begins with the word, else the most similar one, if any is similar enough."""
    import difflib  # only for mistakes

    longer = [name for name in names if len(word) >= _LEAST_PREFIX and name.startswith(word)]
    return longer[:1] or difflib.get_close_matches(word, names, n=1, cutoff=_ALIKE)


def _propose(word: str, kind: str, words: Sequence[str]) -> NoReturn:
    refuse(f"no {kind} {quoted(word, 40)}: did you mean {_command(words)}?")


def _command(words: Sequence[str]) -> str:
    """Quote a command line for a message, cut at the maximum length."""
    line = "psearch " + shlex.join(words)
    return f"`{line if len(line) <= _LONGEST_COMMAND else line[: _LONGEST_COMMAND - 3] + '...'}`"
