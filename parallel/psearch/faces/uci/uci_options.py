"""The options that the UCI engine declares, those of every engine and its own, and what they are set to.

Each does something; see docs/guides/uci.md. Nothing here imports python-chess or numba: the list is printed before
anything heavy is loaded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from psearch.defaults import DEFAULT_POLICY, POLICY_NAMES
from psearch.faces.uci.strength import MAX_ELO, MIN_ELO
from psearch.settings import (
    CLEAR_HASH,
    HASH,
    MULTIPV,
    SEARCH_SETTINGS,
    SYZYGY,
    THREADS,
    TRACE,
    Face,
    Option,
    Value,
)
from psearch.text.values import quoted
from psearch_core import DEFAULT_PRUNING

if TYPE_CHECKING:
    from psearch.options import Own, SearchOptions

DEFAULT_OVERHEAD_MS = 30
MAX_OVERHEAD_MS = 5000


def pruning_words(mode: str, parameters: str) -> str:
    """Put the two options for pruning together as one text, which `parse_pruning` reads.

    >>> pruning_words("sound", "lmr=0, lmp_base=4")
    'sound,lmr=0,lmp_base=4'
    """
    return ",".join([mode, *parameters.replace(",", " ").split()])


def _check_parameters(text: str) -> None:
    """Raise ValueError for parameters that are wrong, in whatever mode."""
    if text:
        from psearch_core.records.pruning_record import (
            parse_pruning,  # brings numpy, which most conversations do without here
        )

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
    Option("UCI_LimitStrength", "check", False),
    Option("UCI_Elo", "spin", MAX_ELO, MIN_ELO, MAX_ELO),
    Option("UCI_AnalyseMode", "check", False),
    SYZYGY,
    Option("OwnBook", "check", False),
    Option("BookFile", "string", "", is_path=True),
    TRACE,
    *_OF_SEARCH,
    Option("PruningParameters", "string", "", check=_check_parameters),
)

NO_FILES = "PSEARCH_NO_FILES"
"""Variable of the environment: if it is set, and not to 0, no option names a file. For engines that anybody may speak
to."""

_BY_KEY = {option.key: option for option in OPTIONS}


@dataclass
class OptionValues:
    """Keeps what the options are set to. With `files` False those that name files stay empty."""

    files: bool = True
    _values: dict[str, Value] = field(default_factory=lambda: {option.name: option.default for option in OPTIONS})
    _times: Counter[str] = field(default_factory=Counter)

    def set(self, name: str, text: str) -> Option:
        """Set an option as a GUI says it. Raises ValueError with a line for the user: what is wrong, and what stays."""
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
        """Return the options that do something, in order."""
        return [option for option in OPTIONS if self.files or not option.is_path]

    def copy(self) -> OptionValues:
        """Return them as they are now; later changes do not show."""
        return OptionValues(self.files, dict(self._values), Counter(self._times))

    def search_options(self, network: tuple[str, str] = ("", ""), own: Own | None = None) -> SearchOptions:
        """Return how to search. network: the path of a file that has been read, and its digest; own: the kernels of
        files, which have been compiled. Without them such a policy is the default one, and there are no rules."""
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
        """Return how often these options were set: a file that is named again may have been edited."""
        return sum(self._times[name] for name in names)

    def __getitem__(self, name: str) -> Any:
        """Return the value of an option, of the type of its kind."""
        return self._values[name]
