"""The settings of users, each declared once.

`EngineSettings` and `SearchSettings` have a field for each setting of an engine, with its `Option`. All interfaces
follow from them: the arguments of the command line (`add_to`), the options of UCI (`declaration`, `of_text`) and of
python-chess (`of_chess_engine`), the page's fields, the keywords of Python (`of_value`, `lists_settings`). The module
imports nothing heavy: the UCI engine prints its options before python-chess or numba are loaded.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, wraps
from inspect import Parameter
from inspect import signature as signature_of
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from psearch.defaults import (
    DEFAULT_DRIVER,
    DEFAULT_EVALUATION,
    DEFAULT_HASH_MB,
    DEFAULT_POLICY,
    DRIVERS,
    EVALUATIONS,
    MAX_DEPTH,
    MAX_HASH_MB,
    MAX_MOVETIME_MS,
    MAX_NODES,
    MAX_THREADS,
    POLICY_NAMES,
    PROVING_WORKERS,
)
from psearch.strength import MAX_ELO, MIN_ELO
from psearch.text.values import number, quoted, shown, text_of, whole, whole_number, without_short_forms
from psearch_core import DEFAULT_PRUNING, PRUNING_MODES

if TYPE_CHECKING:
    import argparse

    import chess.engine

    from psearch.results import Limits

T = TypeVar("T")
Value = int | bool | str | None
EMPTY = "<empty>"
"""The empty string in UCI."""
POLICIES, RULES = "psearch.policies", "psearch.rules"
"""Groups of entry points in which a package declares policies and rules: a name, and the module that is the file."""
_MOST_NAMES = 64
"""Number of policy names that are cached; a UCI client may ask for any number of names."""
SPLITTING_POLICIES = tuple(name for name in POLICY_NAMES if name != "serial")
"""The policies for more than one worker."""


def is_code_file(name: str) -> bool:
    """Tell whether the name of a policy or of rules is a path: it ends in `.py` or contains a folder."""
    return name.endswith(".py") or os.sep in name


@lru_cache(_MOST_NAMES)
def declared_module(name: str, group: str) -> str:
    """Return the module that an installed package has declared under this name in a group; empty if none has."""
    from importlib.metadata import entry_points  # a slow import, for unknown names only

    return next((point.module for point in entry_points(group=group, name=name)), "")


def is_own_policy(policy: str) -> bool:
    """Tell whether a policy is a file, or a name that an installed package has declared."""
    return is_code_file(policy) or bool(declared_module(policy, POLICIES))


class Face(enum.Flag):
    """Interfaces in which a setting appears."""

    COMMAND_LINE = enum.auto()
    UCI = enum.auto()
    PYTHON = enum.auto()
    PAGE = enum.auto()
    ALL = COMMAND_LINE | UCI | PYTHON | PAGE


@dataclass(frozen=True)
class Option:
    """Declaration of a setting and of its values."""

    name: str
    """Name in UCI; case does not matter."""
    kind: str
    """Type in UCI: `spin`, `check`, `combo`, `string` or `button`."""
    default: Value = None
    low: int = 0
    high: int = 0
    choices: Sequence[str] = ()
    words: str = ""
    """Description for `--help` and for Python's `help`."""
    flag: str = ""
    """Argument of the command line; empty: derived from the name of the field or of the option."""
    metavar: str = "N"
    faces: Face = Face.ALL
    takes_file: bool = False
    """True if the value may also be the file of a policy, or the name of one that a package has declared."""
    takes_changes: bool = False
    """True if changes may follow a choice, where they have no options of their own."""
    is_path: bool = False
    """True if the value names files."""
    check: Callable[[str], None] | None = None
    """Raises ValueError for an invalid string."""
    field: str = ""
    """Name of the field that declares the option; the keyword in Python."""

    @property
    def key(self) -> str:
        """The name without case, for comparisons."""
        return self.name.casefold()

    @property
    def wanted(self) -> str:
        """Description of the valid values, for messages."""
        if self.kind == "spin":
            return f"a whole number from {self.low} to {self.high}"
        file = ", or a file" if self.takes_file else ""
        return "true or false" if self.kind == "check" else f"one of {', '.join(self.choices)}{file}"

    def declaration(self) -> str:
        """Return the line that declares the option in UCI."""
        values = {
            "button": "",
            "check": f" default {str(self.default).lower()}",
            "spin": f" default {self.default} min {self.low} max {self.high}",
            "combo": " var ".join([f" default {self.default}", *self.choices]),
            "string": f" default {self.default or EMPTY}",
        }
        return f"option name {self.name} type {self.kind}{values[self.kind]}"

    def of_text(self, text: str) -> Value:
        """Convert the text of a GUI or a user. Raises ValueError with one line that says which values are valid."""
        try:
            return self._read(text)
        except LookupError:
            raise ValueError(f"{self.name} must be {self.wanted}, not {quoted(text)}") from None

    def _read(self, text: str) -> Value:
        """Convert a text. Raises LookupError for a text that is not `wanted`, ValueError for an invalid string."""
        if self.kind == "spin":
            found = whole_number(text)
            if found is None or not self.low <= found <= self.high:
                raise LookupError
            return found
        if self.kind == "check":
            return {"true": True, "false": False}[text.casefold()]
        if self.kind == "combo":
            known = {choice.casefold(): choice for choice in self.choices}
            is_own = self.takes_file and text.casefold() not in known and is_own_policy(text)
            return text if is_own else known[text.casefold()]
        if self.kind == "string":
            if "\0" in text:
                raise ValueError(f"{self.name} must not hold a null character: {quoted(text)}")
            text = "" if text == EMPTY else text
            if self.check is not None:
                self.check(text)
            return text
        return None

    def of_value(self, value: object, name: str = "") -> Any:
        """Convert the argument of a Python program. name: the name in messages, if not the option's. Raises
        PsearchError."""
        from psearch.results import PsearchError  # not at the top: `psearch --help` does not need it

        name = name or self.name
        if value is None and self.kind == "spin" and self.default is None:
            return None
        if self.kind == "spin":
            return whole(name, value, self.low, self.high)
        if self.kind == "check" and not isinstance(value, bool):
            raise PsearchError(f"{name} must be {self.wanted}, not {shown(value)}")
        if self.is_path:
            value = os.fspath(value) if isinstance(value, os.PathLike) else "" if value is None else value
        return value if self.kind in ("check", "button") else text_of(name, value)

    def of_chess_engine(self) -> chess.engine.Option:
        """Return python-chess's declaration of the option."""
        from chess.engine import Option as ChessOption

        low, high = (self.low, self.high) if self.kind == "spin" else (None, None)
        if self.takes_changes or self.takes_file:
            return ChessOption(self.name, "string", self.default, None, None, None)
        return ChessOption(self.name, self.kind, self.default, low, high, list(self.choices) or None)

    def add_to(self, parser: argparse._ActionsContainer, words: str = "", **changes: Any) -> None:
        """Add the option to a command. words: another help text; changes: other keywords for argparse."""
        keywords: dict[str, Any] = {"metavar": self.metavar, "help": words or self.words}
        if self.kind in ("spin", "check") or self.takes_file:
            keywords["type"] = self.of_argument
        elif self.kind == "combo" and not self.takes_changes:
            keywords["choices"] = self.choices
        if self.kind == "combo":
            keywords["default"] = self.default
        flag = self.flag or "--" + (self.field or self.key).strip("_").replace("_", "-")
        parser.add_argument(flag, **(keywords | changes))

    def of_argument(self, text: str) -> Value:
        """Convert an argument of the command line, where `1M` is a number, too. Raises argparse.ArgumentTypeError;
        argparse adds the name."""
        from argparse import ArgumentTypeError

        try:
            return self._read(without_short_forms(text) if self.kind == "spin" else text)
        except LookupError:
            raise ArgumentTypeError(f"must be {self.wanted}, not {quoted(text, 40)}") from None


def _spin(name: str, default: int | None, low: int, high: int, words: str, **details: Any) -> Any:
    return _field(Option(name, "spin", default, low, high, words=words, **details))


def _combo(name: str, default: str, choices: Sequence[str], words: str, metavar: str = "NAME", **details: Any) -> Any:
    return _field(Option(name, "combo", default, choices=choices, words=words, metavar=metavar, **details))


def _file(name: str, words: str) -> Any:
    """Return a field that declares the path of a file. The page has none: anybody who opens it could run a file."""
    faces = Face.ALL ^ Face.PAGE
    return _field(Option(name, "string", "", words=words, metavar="FILE", is_path=True, faces=faces))


def _field(option: Option) -> Any:
    return field(default=option.default, metadata={"option": option})


_TABLES = "folder of Syzygy tables, or several with : between them"


@dataclass(frozen=True)
class EngineSettings:
    """Settings of an engine besides those of its searches. Each field declares a setting."""

    threads: int = _spin("Threads", 1, 1, MAX_THREADS, f"worker processes, 1 to {MAX_THREADS}")
    hash_mb: int = _spin(
        "Hash", DEFAULT_HASH_MB, 1, MAX_HASH_MB, "size of the transposition table in MiB", flag="--hash", metavar="MB"
    )
    syzygy: str = _field(
        Option("SyzygyPath", "string", "", words=_TABLES, flag="--syzygy", metavar="PATH", is_path=True)
    )


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search. Each field declares a setting.

    A setting that kernels read is also a field of the same name in `options_dtype` (`psearch_core/records/header.py`).
    """

    policy: str = _combo(
        "Policy",
        DEFAULT_POLICY,
        POLICY_NAMES,
        f"how to split work: {', '.join(POLICY_NAMES)} (default {DEFAULT_POLICY}), or a file of your own",
        "NAME|FILE",
        takes_file=True,
    )
    pruning: str = _combo(
        "Pruning",
        DEFAULT_PRUNING,
        PRUNING_MODES,
        f"how to prune: {', '.join(PRUNING_MODES)} (default {DEFAULT_PRUNING}), and changes to its parameters",
        "MODE[,NAME=VALUE...]",
        takes_changes=True,
    )
    evaluation: str = _combo(
        "Evaluation",
        DEFAULT_EVALUATION,
        EVALUATIONS,
        "how to evaluate: net, classic (handcrafted), or auto (default): net with modern pruning, classic with others",
    )
    net: str = _file("EvalFile", "file of the network that evaluates positions (default: the one in psearch)")
    with_: str = _file(
        "Rules", "a file of your own with pruning rules, reductions or an evaluation (docs/guides/own-rule.md)"
    )
    driver: str = _combo(
        "Driver",
        DEFAULT_DRIVER,
        DRIVERS,
        "how to find the value: pvs (principal variation search), null (null windows), or auto (default): null for "
        f"one line with at least {PROVING_WORKERS} workers",
    )
    split_depth: int = _spin(
        "SplitDepth", 1, 1, MAX_DEPTH, "nodes of less depth, in plies, are never shared", faces=Face.UCI | Face.PYTHON
    )
    elo: int | None = _spin(
        "UCI_Elo",
        None,
        MIN_ELO,
        MAX_ELO,
        f"Elo of the play, {MIN_ELO} to {MAX_ELO} (default: full strength)",
        faces=Face.PYTHON,
    )
    limit_strength: bool = _field(
        Option("UCI_LimitStrength", "check", True, words="False: full strength whatever elo says", faces=Face.PYTHON)
    )


class SearchKeywords(TypedDict, total=False):
    """Keywords of Python programs for `SearchSettings`, for type checkers."""

    policy: str
    pruning: str
    evaluation: str
    net: str | os.PathLike[str] | None
    with_: str | os.PathLike[str] | None
    driver: str
    split_depth: int
    elo: int | None
    limit_strength: bool
    syzygy: str | os.PathLike[str] | None


def _declared(settings: type) -> dict[str, Option]:
    return {one.name: replace(one.metadata["option"], field=one.name) for one in fields(settings)}


SEARCH_SETTINGS = list(_declared(SearchSettings).values())
SETTINGS = _declared(EngineSettings) | _declared(SearchSettings)
"""Options of all settings, by the name of the field."""
THREADS, HASH, SYZYGY = (SETTINGS[name] for name in ("threads", "hash_mb", "syzygy"))
ELO, LIMIT_STRENGTH = SETTINGS["elo"], SETTINGS["limit_strength"]
HUMAN_DELAY = Option("HumanDelay", "check", False)
"""Whether a limited strength answers after a delay like a person's (`psearch.strength.human_delay_s`)."""
MARK_RULES = ("lichess", "psearch")
"""Rules of the marks of moves (`psearch.text.marks`)."""
CLEAR_HASH = Option("Clear Hash", "button")
ENGINE_OPTIONS = (THREADS, HASH, CLEAR_HASH, *SEARCH_SETTINGS, SYZYGY)
"""Options of every engine, in UCI and in Python."""

MULTIPV = Option("MultiPV", "spin", 1, 1, 1000, words="the N best moves with their lines")
"""Number of best lines; no position has as many as 1000 moves."""
TRACE = Option("Trace", "string", "", is_path=True)


def lists_settings(function: T) -> T:
    """Show the settings of a search in the help of a function or class, instead of its keywords `**settings`."""
    made: Any = vars(function)["__init__"] if isinstance(function, type) else function
    signature = signature_of(made)
    shown = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    lines = []
    for name, kind in SearchKeywords.__annotations__.items():
        option, annotation = SETTINGS[name], getattr(kind, "__forward_arg__", kind)
        shown.append(Parameter(name, Parameter.KEYWORD_ONLY, default=option.default, annotation=annotation))
        lines.append(f"    - {name}: {option.words}.\n")
    made.__signature__ = signature.replace(parameters=shown)
    if function.__doc__ is not None:
        function.__doc__ = function.__doc__.replace("    SETTINGS\n", "".join(lines))
    checked = names_keywords(made)
    if isinstance(function, type):
        setattr(function, "__init__", checked)  # noqa: B010  # type checkers refuse the assignment
        return function
    return cast("T", checked)


def names_keywords(function: T) -> T:
    """Let a function tell which keyword is probably meant when it gets one that it does not have."""
    call: Any = function

    @wraps(call)
    def checked(*arguments: Any, **named: Any) -> Any:
        check_keywords(call, named)
        return call(*arguments, **named)

    return cast("T", checked)


@lru_cache
def _keywords_of(function: Callable[..., object]) -> list[str]:
    return [name for name in signature_of(function).parameters if name != "self"]


def check_keywords(function: Callable[..., object], named: Iterable[str]) -> None:
    """Raise TypeError for a keyword that a function does not have, with the one that is probably meant."""
    known = _keywords_of(function)
    for name in named:
        if name not in known:
            from difflib import get_close_matches

            import chess.engine

            close = get_close_matches(name.lower(), known, 1)
            if name in vars(chess.engine.Limit()):
                meant = f"limits are given as chess.engine.Limit({name}=...)"
            elif close:
                meant = f"did you mean {close[0]!r}?"
            else:
                meant = f"its arguments are {', '.join(known)}"
            given = function.__qualname__.removesuffix(".__init__")
            raise TypeError(f"{given}() got an unexpected keyword argument {name!r}: {meant}")


DEPTH = Option("depth", "spin", None, 1, MAX_DEPTH, words="plies", metavar="D")
NODES = Option("nodes", "spin", None, 1, MAX_NODES, words="nodes of all workers together")
MATE = Option("mate", "spin", None, 1, MAX_NODES, words="moves to a mate")
MOVETIME = Option("movetime", "spin", None, 1, MAX_MOVETIME_MS, words="milliseconds", metavar="TIME")


def checked_limits(
    depth: object = None, movetime_ms: object = None, nodes: object = None, mate: object = None
) -> Limits:
    """Return checked limits; None: no limit. Raises PsearchError."""
    from psearch.results import Limits  # not at the top: `psearch --help` does not need it

    return Limits(
        depth=DEPTH.of_value(depth),
        movetime_ms=None if movetime_ms is None else number("movetime_ms", movetime_ms, MOVETIME.low, MOVETIME.high),
        nodes=NODES.of_value(nodes),
        mate=MATE.of_value(mate),
    )
