"""What was probably meant: names of commands and options that are nearly right, files in the place of a position."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from psearch.faces.cli.command_list import COMMANDS, SEARCH, load, parser_of
from psearch.faces.cli.output import refuse
from psearch.text.values import quoted

ANALYSE = "analyse"
_GAMES_AND_SUITES = (".pgn", ".epd", ".fen")
_STARTPOS = "startpos"
_OTHER_NAMES = {"analyze": ANALYSE}
_MOVED = {"calibrate": "is a script of the repository: python bench/study/calibrate.py --out FILE"}
"""Commands of earlier versions, and where they went."""
_OTHER_OPTIONS = {
    "cores": "--threads",
    "cpus": "--threads",
    "jobs": "--threads",
    "lines": "--multipv",
    "memory": "--hash",
    "output": "--out",
    "plies": "--depth",
    "processes": "--threads",
    "seconds": "--movetime",
    "time": "--movetime",
    "workers": "--threads",
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


def spelled_out(words: Sequence[str]) -> list[str]:
    """Return the command line in the words that the commands know: without `help` and other spellings."""
    first, rest = words[0], list(words[1:])
    if first == "help":
        name = _OTHER_NAMES.get(rest[0], rest[0]) if rest else SEARCH
        if name not in (*COMMANDS, SEARCH):
            close = _alike(name.lower(), list(COMMANDS))
            if close:
                _propose(name, "command", ["help", close[0]])
            refuse(f"no command {_shown(name)} (see psearch help)")
        return ["--help"] if name == SEARCH else [name, "--help"]
    if first == SEARCH:
        return rest
    return [_OTHER_NAMES.get(first, first), *rest]


def check_command(words: Sequence[str], at: int = 0) -> None:
    """Refuse a word in the place of a command, or of a position, that is nearly one; with what was probably meant."""
    word, others = words[at], [*words[:at], *words[at + 1 :]]
    if word in _MOVED:
        refuse(f"{word} {_MOVED[word]}")
    if not word.isascii() or " " in word or word in (_STARTPOS, *COMMANDS) or is_file(word):
        return
    close = _alike(word.lower(), [_STARTPOS, *COMMANDS, "help"])
    if close == [_STARTPOS]:
        _propose(word, "position", [*words[:at], _STARTPOS, *words[at + 1 :]])
    if close:
        _propose(word, "command", [close[0], *others])


def check_position(words: Sequence[str], first: str) -> None:
    """Refuse a command, or nearly one, or a file of Python, as the first word of a FEN; words: the command line of a
    search."""
    at = words.index(first)
    if first.endswith(".py"):
        ways = (["game", first], ["--policy", first, _STARTPOS], ["--with", first, _STARTPOS])
        refuse(
            f"{_shown(first)} is no position: did you mean {', '.join(map(_command, ways[:2]))} or {_command(ways[2])}?"
        )
    if first in COMMANDS:
        refuse(f"the command comes first: {_command([first, *words[:at], *words[at + 1 :]])}")
    check_command(words, at)


def check_moves(words: Sequence[str]) -> None:
    """Refuse moves behind a position or in place of one, and an address; with the command line that was meant."""
    words = " ".join(words).split()
    base = [word for word in words if word.casefold() not in ("position", "fen")]
    if "moves" in base:
        at = base.index("moves")
    else:
        at = 1 if base[:1] == [_STARTPOS] else 0
    moves = [word for word in base[at:] if word != "moves"]
    if moves and all(re.fullmatch(_MOVE, move) for move in moves):
        before = [] if base[:at] == [_STARTPOS] else base[:at]
        meant = ["--moves", " ".join(moves), *([" ".join(before)] if before else [])]
        refuse(f"{quoted(' '.join(words))} is no position: did you mean {_command(meant)}?")
    if words and "://" in words[0]:
        found = re.search(_IN_ADDRESS, " ".join(words))
        fen = re.sub("[_+]|%20", " ", f"{found[1]} {found[2]}") if found is not None else "FEN"
        refuse(f"{_shown(words[0])} is an address, which is not read: psearch takes the position, {_command([fen])}")


def is_file(word: str) -> bool:
    """Tell whether the first word in the place of a FEN means a file of games or positions."""
    return word == "-" or (
        word != _STARTPOS and (Path(word).suffix.lower() in _GAMES_AND_SUITES or os.path.isfile(word))
    )


def unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Return a line about arguments that a parser does not know."""
    word = next((word for word in words if word.startswith("-")), None)
    if word is None:
        return f"{parser.prog} takes no {_shown(words[0])} (see {parser.prog} --help)"
    option = word.partition("=")[0]
    stem = option.lstrip("-").lower().replace("_", "-")
    meant = _options_meant(stem, _options(parser))
    problem = f"no option {_plain(option)}" + ("" if parser.prog == "psearch" else f" of {parser.prog}")
    if meant:
        return f"{problem}: did you mean {' or '.join(meant)}?"
    if option in ("--fen", "--position"):
        return f"{problem}: the position stands by itself, as in psearch startpos"
    if stem in _OF_UCI:
        return f"{problem}: it is of UCI's go (psearch uci); here --movetime, --depth and --nodes limit a search"
    owners = [name for name in (SEARCH, *COMMANDS) if option in _options(parser_of(name, load(name)))]
    if owners:
        commands = ("psearch FEN" if name == SEARCH else f"psearch {name}" for name in owners[:_MOST_SHOWN])
        return f"{problem}, which belongs to {', '.join(commands)}"
    return f"{problem} (see {parser.prog} --help)"


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [*re.findall(r"--[a-z][a-z-]*", parser.format_usage()), "--help"]


def _options_meant(stem: str, options: Sequence[str]) -> list[str]:
    """The options that a name may mean; none where it may mean anything."""
    longer = [option for option in options if stem and option[2:].startswith(stem)]
    if longer:
        return longer if len(longer) <= _MOST_SHOWN else []
    other = _OTHER_OPTIONS.get(stem)
    if other in options:
        return [str(other)]
    return [f"--{name}" for name in _alike(stem, [option[2:] for option in options])]


def _alike(word: str, names: Sequence[str]) -> list[str]:
    """The one that begins like the word, else the one most like it, if any is."""
    import difflib  # only for mistakes

    longer = [name for name in names if len(word) >= _LEAST_PREFIX and name.startswith(word)]
    return longer[:1] or difflib.get_close_matches(word, names, n=1, cutoff=_ALIKE)


def _propose(word: str, kind: str, words: Sequence[str]) -> NoReturn:
    refuse(f"no {kind} {_shown(word)}: did you mean {_command(words)}?")


def _command(words: Sequence[str]) -> str:
    """A command line, cut where it is long."""
    line = "psearch " + shlex.join(words)
    return f"`{line if len(line) <= _LONGEST_COMMAND else line[: _LONGEST_COMMAND - 3] + '...'}`"


def _shown(word: str) -> str:
    return quoted(word, 40)


def _plain(word: str) -> str:
    """An option as it was written, unless it is odd."""
    return word if re.fullmatch(r"-[\w-]{1,40}", word, re.ASCII) else _shown(word)
