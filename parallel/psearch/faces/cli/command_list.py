"""Every command by name, with its parser, and what was probably meant by a name that is nearly one; the module of a
command is imported when the command is given."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, Protocol, cast

from psearch.faces.cli.output import refuse
from psearch.faces.cli.signals import Signals
from psearch.text.values import quoted

SEARCH = "search"
"""The command without a name: `psearch FEN`."""
ANALYSE = "analyse"
COMMANDS = {
    ANALYSE: "search every position of a test suite, or of a collection of games",
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
_STARTPOS = "startpos"
_OTHER_NAMES = {"analyze": ANALYSE}
_MOVED = {"calibrate": "is a script of the repository: python bench/study/calibrate.py --out FILE"}
"""Commands of earlier versions, and where they went."""
_OTHER_OPTIONS = {
    **dict.fromkeys(("cores", "cpus", "jobs", "processes", "workers"), "--threads"),
    **dict.fromkeys(("seconds", "time"), "--movetime"),
    "lines": "--multipv",
    "memory": "--hash",
    "output": "--out",
    "plies": "--depth",
}
"""How other programs call what we have; only where we have no option of that name ourselves."""
_OF_UCI = ("binc", "btime", "infinite", "mate", "movestogo", "ponder", "winc", "wtime")
"""Words of UCI's `go` that the command line does not have."""
_ALIKE = 0.7
"""difflib's ratio from which two names are taken for the same"""
_LEAST_PREFIX = 3
_MOST_SHOWN = 3
_MOVE = (
    r"[1-9][0-9]*\.*|(?:[1-9][0-9]*\.+)?"
    r"(?:[NBRQK]?[a-h]?[1-8]?[x-]?[a-h][1-8](?:=?[nbrqNBRQ])?|O-O(?:-O)?|0-0(?:-0)?)[+#!?]*"
)
_ROW = "[1-8pnbrqkPNBRQK]+"
_IN_ADDRESS = rf"((?:{_ROW}/){{7}}{_ROW})(?:[_ +]|%20)([wb](?:(?:[_ +]|%20)[^_ +%/?#]+)*)"
"""A FEN in the address of a page."""
_LONGEST_COMMAND = 120
"""characters of a command line that is proposed"""


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
    """Return the command line in the words that the commands know: without `help` and other spellings."""
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
    """Refuse a word in the place of a command, or of a position, that is nearly one; with what was probably meant."""
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
    """Refuse a command, or nearly one, or a file of Python, as the first word of a FEN; words: the command line of a
    search."""
    at = words.index(first)
    if first.endswith(".py"):
        ways = (["game", first], ["--policy", first, _STARTPOS], ["--with", first, _STARTPOS])
        game, policy, rules = map(_command, ways)
        refuse(f"{quoted(first, 40)} is no position: did you mean {game}, {policy} or {rules}?")
    if first in COMMANDS:
        refuse(f"the command comes first: {_command([first, *words[:at], *words[at + 1 :]])}")
    check_command(words, at)


def check_moves(words: Sequence[str]) -> None:
    """Refuse moves behind a position or in place of one, and an address; with the command line that was meant."""
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
        refuse(f"{address} is an address, which is not read: psearch takes the position, {_command([fen])}")


def is_file(word: str) -> bool:
    """Tell whether the first word in the place of a FEN means a file of games or positions."""
    is_named_so = Path(word).suffix.lower() in (".pgn", ".epd", ".fen")
    return word == "-" or (word != _STARTPOS and (is_named_so or os.path.isfile(word)))


def unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Return a line about arguments that a parser does not know."""
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
        return f"{problem}: the position stands by itself, as in psearch startpos"
    if stem in _OF_UCI:
        return f"{problem}: it is of UCI's go (psearch uci); here --movetime, --depth and --nodes limit a search"
    owners = [name for name in (SEARCH, *COMMANDS) if option in _options(parser_of(name))]
    if owners:
        commands = ("psearch FEN" if name == SEARCH else f"psearch {name}" for name in owners[:_MOST_SHOWN])
        return f"{problem}, which belongs to {', '.join(commands)}"
    return f"{problem} (see {parser.prog} --help)"


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [*re.findall(r"--[a-z][a-z-]*", parser.format_usage()), "--help"]


def _options_meant(stem: str, options: Sequence[str]) -> list[str]:
    """Return the options that a name may mean; none where it may mean anything."""
    if longer := [option for option in options if stem and option[2:].startswith(stem)]:
        return longer if len(longer) <= _MOST_SHOWN else []
    if (other := _OTHER_OPTIONS.get(stem, "")) in options:
        return [other]
    return [f"--{name}" for name in _alike(stem, [option[2:] for option in options])]


def _alike(word: str, names: Sequence[str]) -> list[str]:
    """Return the name that begins like the word, else the one most like it, if any is."""
    import difflib  # only for mistakes

    longer = [name for name in names if len(word) >= _LEAST_PREFIX and name.startswith(word)]
    return longer[:1] or difflib.get_close_matches(word, names, n=1, cutoff=_ALIKE)


def _propose(word: str, kind: str, words: Sequence[str]) -> NoReturn:
    refuse(f"no {kind} {quoted(word, 40)}: did you mean {_command(words)}?")


def _command(words: Sequence[str]) -> str:
    """Return a command line for a message, cut where it is long."""
    line = "psearch " + shlex.join(words)
    return f"`{line if len(line) <= _LONGEST_COMMAND else line[: _LONGEST_COMMAND - 3] + '...'}`"
