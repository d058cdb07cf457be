"""What users can set, each declared once: name, kind, range, default, words, and the field of `Settings` that it sets.

Rendered from here: the arguments of the command line (`add_to`), the options of UCI (`declaration`, `of_text`) and of
python-chess (`of_chess_engine`), the page's fields, and the arguments of the Python API (`of_value`). Imports nothing
heavy: the UCI engine prints its options before python-chess or numba are loaded.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psearch.defaults import (
    DEFAULT_DRIVER,
    DEFAULT_EVALUATION,
    DEFAULT_HASH_MB,
    DEFAULT_POLICY,
    DEFAULT_PRUNING,
    DEFAULT_SPLIT_DEPTH,
    DRIVERS,
    EVALUATIONS,
    MAX_DEPTH,
    MAX_HASH_MB,
    MAX_MOVETIME_MS,
    MAX_NODES,
    MAX_THREADS,
    POLICY_NAMES,
    PROVING_WORKERS,
    PRUNING_MODES,
)
from psearch.text.policy_names import is_own_policy
from psearch.text.values import quoted, text_of, whole, whole_number

if TYPE_CHECKING:
    import chess.engine

Value = int | bool | str | None
EMPTY = "<empty>"
"""How UCI writes a string without characters."""


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
    """what it is, for the help of the command line"""
    flag: str = ""
    """of the command line; empty: `--` and the name in small letters"""
    metavar: str = "N"
    field: str = ""
    """of `Settings`, or of its `search`, where it has one"""
    takes_file: bool = False
    """may name a policy that is none of its `choices`: a file, or one that a package has declared"""
    takes_changes: bool = False
    """behind a choice may stand changes to it, where they are no option of their own"""
    is_path: bool = False
    """names files"""
    check: Callable[[str], None] | None = None
    """raises ValueError for a string that will not do"""

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

    # -- UCI -----------------------------------------------------------------------------------------------------------

    def declaration(self) -> str:
        """Write the line that `uci` prints."""
        line = f"option name {self.name} type {self.kind}"
        if self.kind == "button":
            return line
        if self.kind == "check":
            return f"{line} default {'true' if self.default else 'false'}"
        if self.kind == "spin":
            return f"{line} default {self.default} min {self.low} max {self.high}"
        if self.kind == "combo":
            return f"{line} default {self.default}" + "".join(f" var {choice}" for choice in self.choices)
        return f"{line} default {self.default or EMPTY}"

    def of_text(self, text: str) -> Value:
        """Convert what a GUI or a user writes. Raises ValueError, one line saying what would be right."""
        try:
            return self._read(text)
        except LookupError:
            raise ValueError(f"{self.name} must be {self.wanted}, not {quoted(text)}") from None

    def _read(self, text: str) -> Value:
        """Raises LookupError for a text that is not `wanted`, ValueError for a string that will not do."""
        if self.kind == "spin":
            number = whole_number(text)
            if number is None or not self.low <= number <= self.high:
                raise LookupError
            return number
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

    def shown(self, value: Value) -> str:
        """Write a value, for a message."""
        if isinstance(value, bool):
            return "true" if value else "false"
        return "empty" if value == "" else str(value)

    # -- Python --------------------------------------------------------------------------------------------------------

    def of_value(self, value: object, name: str = "") -> Any:
        """Convert what a Python program gives. name: in messages, if not the option's own. Raises PsearchError."""
        if self.kind == "spin":
            return whole(name or self.name, value, self.low, self.high)
        return None if self.kind == "button" else text_of(name or self.name, value)

    def of_chess_engine(self) -> chess.engine.Option:
        """Declare it as python-chess does."""
        from chess.engine import Option as ChessOption

        low, high = (self.low, self.high) if self.kind == "spin" else (None, None)
        if self.takes_changes or self.takes_file:
            return ChessOption(self.name, "string", self.default, None, None, None)
        return ChessOption(self.name, self.kind, self.default, low, high, list(self.choices) or None)

    # -- the command line ----------------------------------------------------------------------------------------------

    def add_to(self, parser: argparse._ActionsContainer, words: str = "", **changes: Any) -> None:
        """Add it to the arguments of a command. words: the help, if another; changes: other keywords of argparse."""
        keywords: dict[str, Any] = {"metavar": self.metavar, "help": words or self.words}
        if self.kind == "spin" or self.takes_file:
            keywords["type"] = self.of_argument
        elif self.kind == "combo" and not self.takes_changes:
            keywords["choices"] = self.choices
        if self.kind == "combo":
            keywords["default"] = self.default
        parser.add_argument(self.flag or f"--{self.key}", **(keywords | changes))

    def of_argument(self, text: str) -> Value:
        """Convert an argument; argparse puts its name before the message. Raises argparse.ArgumentTypeError."""
        try:
            return self._read(text)
        except LookupError:
            raise argparse.ArgumentTypeError(f"must be {self.wanted}, not {quoted(text, 40)}") from None


# -- what an engine is set to ------------------------------------------------------------------------------------------

THREADS = Option("Threads", "spin", 1, 1, MAX_THREADS, words=f"worker processes, 1 to {MAX_THREADS}", field="threads")
HASH = Option(
    "Hash",
    "spin",
    DEFAULT_HASH_MB,
    1,
    MAX_HASH_MB,
    words="size of the transposition table in MiB",
    metavar="MB",
    field="hash_mb",
)
CLEAR_HASH = Option("Clear Hash", "button")
POLICY = Option(
    "Policy",
    "combo",
    DEFAULT_POLICY,
    choices=POLICY_NAMES,
    words=f"how work is split: {', '.join(POLICY_NAMES)} (default {DEFAULT_POLICY}), or a file of your own",
    metavar="NAME|FILE",
    field="policy",
    takes_file=True,
)
PRUNING = Option(
    "Pruning",
    "combo",
    DEFAULT_PRUNING,
    choices=PRUNING_MODES,
    words=f"what is left out: {', '.join(PRUNING_MODES)} (default {DEFAULT_PRUNING}), and changes to its parameters",
    metavar="MODE[,NAME=VALUE...]",
    field="pruning",
    takes_changes=True,
)
EVALUATION = Option(
    "Evaluation",
    "combo",
    DEFAULT_EVALUATION,
    choices=EVALUATIONS,
    words="what evaluates positions: net, classic (by hand), or auto (default): net with modern pruning, else classic",
    metavar="NAME",
    field="evaluation",
)
EVAL_FILE = Option(
    "EvalFile",
    "string",
    "",
    words="the network that evaluates (default: the one that psearch comes with)",
    flag="--net",
    metavar="FILE",
    field="network",
    is_path=True,
)
RULES = Option(
    "Rules",
    "string",
    "",
    words="a file of your own with pruning rules, reductions or an evaluation (docs/guides/own-rule.md)",
    flag="--with",
    metavar="FILE",
    field="with_",
    is_path=True,
)
DRIVER = Option(
    "Driver",
    "combo",
    DEFAULT_DRIVER,
    choices=DRIVERS,
    words="how the value is found: pvs (principal variation search), null (null windows), or auto (default): null for "
    f"one line from {PROVING_WORKERS} workers on",
    metavar="NAME",
    field="driver",
)
SPLIT_DEPTH = Option(
    "SplitDepth",
    "spin",
    DEFAULT_SPLIT_DEPTH,
    1,
    MAX_DEPTH,
    words="least depth to split at",
    flag="--split-depth",
    field="split_depth",
)
ENGINE_OPTIONS = (THREADS, HASH, CLEAR_HASH, POLICY, PRUNING, EVALUATION, EVAL_FILE, RULES, DRIVER, SPLIT_DEPTH)
"""Those of every engine, from Python, too."""

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

# -- when a search ends ------------------------------------------------------------------------------------------------

DEPTH = Option("depth", "spin", None, 1, MAX_DEPTH, words="plies", metavar="D")
NODES = Option("nodes", "spin", None, 1, MAX_NODES, words="nodes of all workers together")
MATE = Option("mate", "spin", None, 1, MAX_NODES, words="moves to a mate")
MOVETIME = Option("movetime", "spin", None, 1, MAX_MOVETIME_MS, words="milliseconds", metavar="TIME")
