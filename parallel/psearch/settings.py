"""What users can set, each declared once.

`PoolSettings` and `SearchSettings` have a field for each setting of an engine, with its `Option`. What the faces have
follows from them: the arguments of the command line (`add_to`), the options of UCI (`declaration`, `of_text`) and of
python-chess (`of_chess_engine`), the page's fields, the keywords of Python (`of_value`, `lists_settings`). Imports
nothing heavy: the UCI engine prints its options before python-chess or numba are loaded.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from inspect import Parameter
from inspect import signature as signature_of
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

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
from psearch.text.values import number, quoted, shown, text_of, whole, whole_number
from psearch_core import DEFAULT_PRUNING, PRUNING_MODES

if TYPE_CHECKING:
    import argparse

    import chess.engine

    from psearch.results import Limits

T = TypeVar("T")
Value = int | bool | str | None
EMPTY = "<empty>"
"""How UCI writes a string without characters."""
POLICIES, RULES = "psearch.policies", "psearch.rules"
"""Groups of entry points in which a package declares policies, and rules: a name, and the module that is the file."""
_MOST_NAMES = 64
"""Names of policies that are remembered. Whoever speaks UCI may ask for any."""
SPLITTING_POLICIES = tuple(name for name in POLICY_NAMES if name != "serial")
"""The policies for more than one worker."""


def is_code_file(name: str) -> bool:
    """Tell whether a policy or rules are named as a file: by its ending, or with a folder."""
    return name.endswith(".py") or os.sep in name


@lru_cache(_MOST_NAMES)
def declared_module(name: str, group: str) -> str:
    """Return the module that an installed package has declared by this name in a group; empty if none has."""
    from importlib.metadata import entry_points  # takes long: only for a name that is none of the package's

    return next((point.module for point in entry_points(group=group, name=name)), "")


def is_own_policy(policy: str) -> bool:
    """Tell whether a policy is named as a file, or by a name that an installed package has declared."""
    return is_code_file(policy) or bool(declared_module(policy, POLICIES))


class Face(enum.Flag):
    """Where a setting can be set."""

    COMMAND_LINE = enum.auto()
    UCI = enum.auto()
    PYTHON = enum.auto()
    PAGE = enum.auto()
    ALL = COMMAND_LINE | UCI | PYTHON | PAGE


@dataclass(frozen=True)
class Option:
    """One thing that can be set: how it is declared, and which values it takes."""

    name: str
    """as UCI has it; names do not depend on case"""
    kind: str
    """`spin`, `check`, `combo`, `string` or `button`"""
    default: Value = None
    low: int = 0
    high: int = 0
    choices: Sequence[str] = ()
    words: str = ""
    """what it is, for `--help` and for the help of Python"""
    flag: str = ""
    """argument of the command line; empty: by the field's name, or the option's"""
    metavar: str = "N"
    faces: Face = Face.ALL
    takes_file: bool = False
    """may name a policy that is none of its `choices`: a file, or one that a package has declared"""
    takes_changes: bool = False
    """behind a choice may stand changes to it, where they are no option of their own"""
    is_path: bool = False
    """names files"""
    check: Callable[[str], None] | None = None
    """raises ValueError for a string that will not do"""
    field: str = ""
    """name of the field that declares it; the keyword of Python"""

    @property
    def key(self) -> str:
        """The name, for comparisons."""
        return self.name.casefold()

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        if self.kind == "spin":
            return f"a whole number from {self.low} to {self.high}"
        file = ", or a file" if self.takes_file else ""
        return "true or false" if self.kind == "check" else f"one of {', '.join(self.choices)}{file}"

    def declaration(self) -> str:
        """Write the line that `uci` prints."""
        values = {
            "button": "",
            "check": f" default {str(self.default).lower()}",
            "spin": f" default {self.default} min {self.low} max {self.high}",
            "combo": " var ".join([f" default {self.default}", *self.choices]),
            "string": f" default {self.default or EMPTY}",
        }
        return f"option name {self.name} type {self.kind}{values[self.kind]}"

    def of_text(self, text: str) -> Value:
        """Convert what a GUI or a user writes. Raises ValueError, one line saying what would be right."""
        try:
            return self._read(text)
        except LookupError:
            raise ValueError(f"{self.name} must be {self.wanted}, not {quoted(text)}") from None

    def _read(self, text: str) -> Value:
        """Read a value. Raises LookupError for a text that is not `wanted`, ValueError for a string of no use."""
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
        """Convert what a Python program gives. name: in messages, if not the option's own. Raises PsearchError."""
        from psearch.results import PsearchError  # late: `psearch --help` does without

        name = name or self.name
        if self.kind == "spin":
            return whole(name, value, self.low, self.high)
        if self.kind == "check" and not isinstance(value, bool):
            raise PsearchError(f"{name} must be {self.wanted}, not {shown(value)}")
        if self.is_path:
            value = os.fspath(value) if isinstance(value, os.PathLike) else "" if value is None else value
        return value if self.kind in ("check", "button") else text_of(name, value)

    def of_chess_engine(self) -> chess.engine.Option:
        """Declare it as python-chess does."""
        from chess.engine import Option as ChessOption

        low, high = (self.low, self.high) if self.kind == "spin" else (None, None)
        if self.takes_changes or self.takes_file:
            return ChessOption(self.name, "string", self.default, None, None, None)
        return ChessOption(self.name, self.kind, self.default, low, high, list(self.choices) or None)

    def add_to(self, parser: argparse._ActionsContainer, words: str = "", **changes: Any) -> None:
        """Add it to the arguments of a command. words: the help, if another; changes: other keywords of argparse."""
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
        """Convert an argument; argparse puts its name before the message. Raises argparse.ArgumentTypeError."""
        from argparse import ArgumentTypeError

        try:
            return self._read(text)
        except LookupError:
            raise ArgumentTypeError(f"must be {self.wanted}, not {quoted(text, 40)}") from None


def _spin(name: str, default: int, low: int, high: int, words: str, **details: Any) -> Any:
    """Return a field that declares a whole number."""
    return _field(Option(name, "spin", default, low, high, words=words, **details))


def _combo(name: str, default: str, choices: Sequence[str], words: str, metavar: str = "NAME", **details: Any) -> Any:
    """Return a field that declares a choice."""
    return _field(Option(name, "combo", default, choices=choices, words=words, metavar=metavar, **details))


def _file(name: str, words: str) -> Any:
    """Return a field that declares the path of a file. The page has none: who opens it would have it run."""
    faces = Face.ALL ^ Face.PAGE
    return _field(Option(name, "string", "", words=words, metavar="FILE", is_path=True, faces=faces))


def _field(option: Option) -> Any:
    return field(default=option.default, metadata={"option": option})


@dataclass(frozen=True)
class PoolSettings:
    """What takes other workers when it changes. Each field declares a setting."""

    threads: int = _spin("Threads", 1, 1, MAX_THREADS, f"worker processes, 1 to {MAX_THREADS}")
    hash_mb: int = _spin(
        "Hash", DEFAULT_HASH_MB, 1, MAX_HASH_MB, "size of the transposition table in MiB", flag="--hash", metavar="MB"
    )


@dataclass(frozen=True)
class SearchSettings:
    """How to search, as users set it. Each field declares a setting.

    A setting that kernels read is a field of the same name in `options_dtype` (`psearch_core/records/header.py`), too.
    """

    policy: str = _combo(
        "Policy",
        DEFAULT_POLICY,
        POLICY_NAMES,
        f"how work is split: {', '.join(POLICY_NAMES)} (default {DEFAULT_POLICY}), or a file of your own",
        "NAME|FILE",
        takes_file=True,
    )
    pruning: str = _combo(
        "Pruning",
        DEFAULT_PRUNING,
        PRUNING_MODES,
        f"what is left out: {', '.join(PRUNING_MODES)} (default {DEFAULT_PRUNING}), and changes to its parameters",
        "MODE[,NAME=VALUE...]",
        takes_changes=True,
    )
    evaluation: str = _combo(
        "Evaluation",
        DEFAULT_EVALUATION,
        EVALUATIONS,
        "what evaluates positions: net, classic (handwritten), or auto (default): net with modern pruning, else the "
        "other",
    )
    net: str = _file("EvalFile", "the network that evaluates (default: the one that psearch comes with)")
    with_: str = _file(
        "Rules", "a file of your own with pruning rules, reductions or an evaluation (docs/guides/own-rule.md)"
    )
    driver: str = _combo(
        "Driver",
        DEFAULT_DRIVER,
        DRIVERS,
        "how the value is found: pvs (principal variation search), null (null windows), or auto (default): null for "
        f"one line from {PROVING_WORKERS} workers on",
    )
    split_depth: int = _spin("SplitDepth", 1, 1, MAX_DEPTH, "least depth to split at", faces=Face.UCI | Face.PYTHON)


class SearchKeywords(TypedDict, total=False):
    """The settings of a search as Python programs give them: `SearchSettings`, for type checkers."""

    policy: str
    pruning: str
    evaluation: str
    net: str | os.PathLike[str] | None
    with_: str | os.PathLike[str] | None
    driver: str
    split_depth: int


def _declared(settings: type) -> dict[str, Option]:
    return {one.name: replace(one.metadata["option"], field=one.name) for one in fields(settings)}


SETTINGS = _declared(PoolSettings) | _declared(SearchSettings)
"""The option of each field."""
SEARCH_SETTINGS = [option for name, option in SETTINGS.items() if name not in ("threads", "hash_mb")]
THREADS, HASH = SETTINGS["threads"], SETTINGS["hash_mb"]
CLEAR_HASH = Option("Clear Hash", "button")
ENGINE_OPTIONS = (THREADS, HASH, CLEAR_HASH, *SEARCH_SETTINGS)
"""The options of every engine, from Python, too."""

MULTIPV = Option("MultiPV", "spin", 1, 1, 1000, words="the N best moves with their lines")
"""The most is more than any position has moves."""
SYZYGY = Option(
    "SyzygyPath",
    "string",
    "",
    words="folder of Syzygy tables, or several with : between them",
    flag="--syzygy",
    metavar="PATH",
    is_path=True,
)
TRACE = Option("Trace", "string", "", is_path=True)


def lists_settings(function: T) -> T:
    """Show the settings of a search in the help of a function or class, in place of its keywords `**settings`."""
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
    return function


DEPTH = Option("depth", "spin", None, 1, MAX_DEPTH, words="plies", metavar="D")
NODES = Option("nodes", "spin", None, 1, MAX_NODES, words="nodes of all workers together")
MATE = Option("mate", "spin", None, 1, MAX_NODES, words="moves to a mate")
MOVETIME = Option("movetime", "spin", None, 1, MAX_MOVETIME_MS, words="milliseconds", metavar="TIME")


def checked_limits(
    depth: object = None, movetime_ms: object = None, nodes: object = None, mate: object = None
) -> Limits:
    """Return the limits that a Python program gives, checked; None: not given. Raises PsearchError."""
    from psearch.results import Limits  # late: `psearch --help` does without

    return Limits(
        depth=None if depth is None else DEPTH.of_value(depth),
        movetime_ms=None if movetime_ms is None else number("movetime_ms", movetime_ms, MOVETIME.low, MOVETIME.high),
        nodes=None if nodes is None else NODES.of_value(nodes),
        mate=None if mate is None else MATE.of_value(mate),
    )
