"""The options that the UCI engine declares, and what they are set to.

Each does something; see docs/guides/uci.md. Nothing here imports python-chess or numba: the list is printed before
anything heavy is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from psearch.arena.control_groups import default_hash_mb
from psearch.defaults import (
    DEFAULT_POLICY,
    DEFAULT_PRUNING,
    MAX_DEPTH,
    MAX_HASH_MB,
    MAX_THREADS,
    POLICY_NAMES,
    PRUNING_MODES,
)
from psearch.faces.uci.notices import quoted
from psearch.faces.uci.strength import MAX_ELO, MIN_ELO
from psearch.faces.uci.uci_numbers import whole_number

MAX_MULTIPV = 256
DEFAULT_OVERHEAD_MS = 30
MAX_OVERHEAD_MS = 5000
EMPTY = "<empty>"
"""How UCI writes a string without characters."""


@dataclass(frozen=True)
class Option:
    """One option: how it is declared, and which values it takes."""

    name: str
    kind: str
    """`spin`, `check`, `combo`, `string` or `button`"""
    default: int | bool | str | None = None
    low: int = 0
    high: int = 0
    choices: Sequence[str] = ()
    is_path: bool = False
    """names files, or other machines"""
    check: Callable[[str], None] | None = None
    """raises ValueError for a string that will not do"""

    @property
    def key(self) -> str:
        """Option names do not depend on case."""
        return self.name.casefold()

    def declaration(self) -> str:
        """The line that `uci` prints."""
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

    def parse(self, text: str) -> int | bool | str | None:
        """The value that a GUI's text means. Raises ValueError, one line saying what would be right."""
        if self.kind == "spin":
            number = whole_number(text)
            if number is None or not self.low <= number <= self.high:
                raise ValueError(
                    f"{self.name} must be a whole number from {self.low} to {self.high}, not {quoted(text)}"
                )
            return number
        if self.kind == "check":
            if text.casefold() not in ("true", "false"):
                raise ValueError(f"{self.name} must be true or false, not {quoted(text)}")
            return text.casefold() == "true"
        if self.kind == "combo":
            for choice in self.choices:
                if choice.casefold() == text.casefold():
                    return choice
            raise ValueError(f"{self.name} must be one of {', '.join(self.choices)}, not {quoted(text)}")
        if self.kind == "string":
            if "\0" in text:
                raise ValueError(f"{self.name} must not hold a null character: {quoted(text)}")
            text = "" if text == EMPTY else text
            if self.check is not None:
                self.check(text)
            return text
        return None

    def shown(self, value: int | bool | str | None) -> str:
        """A value, for a message."""
        if isinstance(value, bool):
            return "true" if value else "false"
        return "empty" if value == "" else str(value)


def pruning_words(mode: str, parameters: str) -> str:
    """The two options for pruning as one text, which `parse_pruning` reads.

    >>> pruning_words("sound", "lmr=0, lmp_base=4")
    'sound,lmr=0,lmp_base=4'
    """
    return ",".join([mode, *parameters.replace(",", " ").split()])


def _check_parameters(text: str) -> None:
    """What a parameter may be does not depend on the mode."""
    if text:
        from psearch.core.chess.pruning.modes import (
            parse_pruning,  # brings numpy, which most conversations do without here
        )

        parse_pruning(pruning_words(DEFAULT_PRUNING, text))


OPTIONS = (
    Option("Threads", "spin", 1, 1, MAX_THREADS),
    Option("Hash", "spin", default_hash_mb(), 1, MAX_HASH_MB),
    Option("Clear Hash", "button"),
    Option("MultiPV", "spin", 1, 1, MAX_MULTIPV),
    Option("Ponder", "check", False),
    Option("Move Overhead", "spin", DEFAULT_OVERHEAD_MS, 0, MAX_OVERHEAD_MS),
    Option("UCI_Chess960", "check", False),
    Option("UCI_ShowWDL", "check", False),
    Option("UCI_LimitStrength", "check", False),
    Option("UCI_Elo", "spin", MAX_ELO, MIN_ELO, MAX_ELO),
    Option("UCI_AnalyseMode", "check", False),
    Option("SyzygyPath", "string", "", is_path=True),
    Option("OwnBook", "check", False),
    Option("BookFile", "string", "", is_path=True),
    Option("Policy", "combo", DEFAULT_POLICY, choices=POLICY_NAMES),
    Option("Pruning", "combo", DEFAULT_PRUNING, choices=PRUNING_MODES),
    Option("PruningParameters", "string", "", check=_check_parameters),
    Option("SplitDepth", "spin", 1, 1, MAX_DEPTH),
    Option("Trace", "string", "", is_path=True),
    Option("Cluster", "string", "", is_path=True),
)

NO_FILES = "PSEARCH_NO_FILES"
"""In the environment: if it is set, and not to 0, no option names a file, or other machines. For engines that anybody
may speak to."""

_BY_KEY = {option.key: option for option in OPTIONS}


def files_are_allowed() -> bool:
    """What the environment says."""
    return os.environ.get(NO_FILES, "0") in ("", "0")


@dataclass
class OptionValues:
    """What the options are set to. With `files` False those that name files stay empty."""

    files: bool = True
    _values: dict[str, int | bool | str | None] = field(
        default_factory=lambda: {option.name: option.default for option in OPTIONS}
    )

    def set(self, name: str, text: str) -> Option:
        """Set an option as a GUI says it. Raises ValueError with a line for the user: what is wrong, and what stays."""
        option = _BY_KEY.get(" ".join(name.split()).casefold())
        if option is None:
            raise ValueError(f"no option is called {quoted(name)}")
        try:
            value = option.parse(text)
        except ValueError as error:
            raise ValueError(f"{error}; {option.name} stays {option.shown(self._values[option.name])}") from None
        if option.is_path and value and not self.files:
            raise ValueError(f"{option.name} is not available: {NO_FILES} forbids all files")
        self._values[option.name] = value
        return option

    def declared(self) -> list[Option]:
        """The options that do something, in order."""
        return [option for option in OPTIONS if self.files or not option.is_path]

    def copy(self) -> OptionValues:
        """As they are now; later changes do not show."""
        return OptionValues(self.files, dict(self._values))

    def number(self, name: str) -> int:
        value = self._values[name]
        if not isinstance(value, int):
            raise KeyError(name)
        return value

    def flag(self, name: str) -> bool:
        return self._values[name] is True

    def text(self, name: str) -> str:
        value = self._values[name]
        return value if isinstance(value, str) else ""
