"""The options of the UCI engine (docs/guides/uci.md), and their values.

This module imports neither python-chess nor numba, because the list is printed before anything heavy is loaded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from psearch.defaults import DEFAULT_POLICY, POLICY_NAMES
from psearch.settings import (
    CLEAR_HASH,
    ELO,
    HASH,
    HUMAN_DELAY,
    LIMIT_STRENGTH,
    MULTIPV,
    SEARCH_SETTINGS,
    SYZYGY,
    THREADS,
    TRACE,
    Face,
    Option,
    Value,
)
from psearch.strength import MAX_ELO
from psearch.text.values import quoted
from psearch_core import DEFAULT_PRUNING

if TYPE_CHECKING:
    from psearch.options import Own, SearchOptions

DEFAULT_OVERHEAD_MS = 30
MAX_OVERHEAD_MS = 5000


def pruning_words(mode: str, parameters: str) -> str:
    """Combine the two options for pruning into one text for `parse_pruning`.

    >>> pruning_words("sound", "lmr=0, lmp_base=4")
    'sound,lmr=0,lmp_base=4'
    """
    return ",".join([mode, *parameters.replace(",", " ").split()])


def _check_parameters(text: str) -> None:
    """Raise ValueError for parameters that are wrong in every mode."""
    if text:
        from psearch_core.records.pruning_record import parse_pruning  # imports numpy, which is slow

        parse_pruning(pruning_words(DEFAULT_PRUNING, text))


_OF_SEARCH = [option for option in SEARCH_SETTINGS if Face.UCI in option.faces]
OPTIONS = (
    THREADS,
    HASH,
    CLEAR_HASH,
    MULTIPV,
    Option("Ponder", "check", False),
    Option("Move Overhead", "spin", DEFAULT_OVERHEAD_MS, 0, MAX_OVERHEAD_MS),
    Option("UCI_Chess960", "check", False),
    Option("UCI_ShowWDL", "check", False),
    replace(LIMIT_STRENGTH, default=False),
    replace(ELO, default=MAX_ELO),
    HUMAN_DELAY,
    Option("UCI_AnalyseMode", "check", False),
    SYZYGY,
    Option("OwnBook", "check", False),
    Option("BookFile", "string", "", is_path=True),
    TRACE,
    *_OF_SEARCH,
    Option("PruningParameters", "string", "", check=_check_parameters),
)

NO_FILES = "PSEARCH_NO_FILES"
"""Environment variable: if set, and not to 0, no option may name a file. Meant for engines that strangers may use."""

_BY_KEY = {option.key: option for option in OPTIONS}


@dataclass
class OptionValues:
    """Values of the options. files: False to keep the options that name files empty."""

    files: bool = True
    _values: dict[str, Value] = field(default_factory=lambda: {option.name: option.default for option in OPTIONS})
    _times: Counter[str] = field(default_factory=Counter)

    def set(self, name: str, text: str) -> Option:
        """Set an option from the text of a GUI. Raises ValueError, whose message names the error and the value kept."""
        option = _BY_KEY.get(" ".join(name.split()).casefold())
        if option is None:
            raise ValueError(f"no option is called {quoted(name)}")
        try:
            value = option.of_text(text)
        except ValueError as error:
            value = self._values[option.name]
            former = str(value).lower() if isinstance(value, bool) else "empty" if value == "" else value
            raise ValueError(f"{error}; {option.name} stays {former}") from None
        names_file = option.is_path or (option.takes_file and value not in option.choices)
        if names_file and value and not self.files:
            raise ValueError(f"{option.name} is not available: {NO_FILES} forbids all files")
        self._values[option.name] = value
        self._times[option.name] += 1
        return option

    def declared(self) -> list[Option]:
        """Return the options to declare, in order."""
        return [option for option in OPTIONS if self.files or not option.is_path]

    def copy(self) -> OptionValues:
        """Return a copy, which later changes do not affect."""
        return OptionValues(self.files, dict(self._values), Counter(self._times))

    def search_options(self, network: tuple[str, str] = ("", ""), own: Own | None = None) -> SearchOptions:
        """Return the options of a search. network: path and digest of the network file, if one was read; own: compiled
        kernels of files, without which a file as policy is replaced by the default, and rules are ignored."""
        from psearch.options import SearchOptions

        values: dict[str, Any] = {option.field: self._values[option.name] for option in _OF_SEARCH}
        values["pruning"] = pruning_words(self["Pruning"], self["PruningParameters"])
        values |= {"net": network[0], "network_digest": network, "own": own, "with_": "" if own is None else own.with_}
        if own is not None:
            values["policy"] = own.policy
        elif values["policy"] not in POLICY_NAMES:
            values["policy"] = DEFAULT_POLICY
        return SearchOptions(**values)

    def times(self, *names: str) -> int:
        """Return how often the options were set: a file that is set again may have changed."""
        return sum(self._times[name] for name in names)

    def __getitem__(self, name: str) -> Any:
        """Return the value of an option."""
        return self._values[name]
