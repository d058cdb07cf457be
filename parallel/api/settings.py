"""What python-chess calls options, under the names that `psearch uci` has, and what they are set to.

Nothing here imports `chess.engine`, which takes long: `psearch.search` starts its workers first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from psearch.api.checked_arguments import whole
from psearch.arena.control_groups import default_hash_mb
from psearch.defaults import MAX_DEPTH, MAX_HASH_MB, MAX_THREADS
from psearch.options import SearchOptions, pruning_named, shown
from psearch.results import PsearchError

Options = Mapping[str, str | int | bool | None]
"""Names, in any case, and values."""

NAMES = ("Threads", "Hash", "Clear Hash", "Policy", "Pruning", "SplitDepth")
_MANAGED = {
    "multipv": "give the argument multipv",
    "ponder": "give the argument ponder",
    "uci_chess960": "the board says it",
    "uci_variant": "the board says it",
}
_MOST_SPLIT_DEPTH = 2**31 - 1


@dataclass(frozen=True)
class Settings:
    """What an engine is set to: worker processes, MiB of table, and how it searches."""

    threads: int
    hash_mb: int
    search: SearchOptions

    @classmethod
    def of(cls, threads: object, hash_mb: object, policy: object, pruning: object, split_depth: object) -> Settings:
        """From what a caller gives; hash_mb None: what the memory gives. Raises PsearchError."""
        search = SearchOptions(
            policy=_text("policy", policy),
            split_depth=whole("split_depth", split_depth, 0, _MOST_SPLIT_DEPTH),
            pruning=pruning_named(_text("pruning", pruning)),
        )
        size = default_hash_mb() if hash_mb is None else whole("hash_mb", hash_mb, 1, MAX_HASH_MB)
        return cls(whole("threads", threads, 1, MAX_THREADS), size, search)

    def changed(self, options: Options) -> Settings:
        """With these options set; "Clear Hash" changes nothing here. Raises PsearchError for bad ones."""
        settings = self
        for name, value in _items(options):
            settings = settings._with(name, value)
        return settings

    def for_one_search(self, options: Options) -> SearchOptions:
        """How to search once with these options. Raises PsearchError for those that need other workers."""
        settings = self.changed(options)
        if (settings.threads, settings.hash_mb) != (self.threads, self.hash_mb) or clears_hash(options):
            raise PsearchError("Threads, Hash and Clear Hash are for all searches: set them with configure")
        return settings.search

    def _with(self, name: str, value: object) -> Settings:
        key = name.casefold()
        if key in _MANAGED:
            raise PsearchError(f"{name} is not set as an option: {_MANAGED[key]}")
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if key == "threads":
            return replace(self, threads=whole("Threads", value, 1, MAX_THREADS))
        if key == "hash":
            return replace(self, hash_mb=whole("Hash", value, 1, MAX_HASH_MB))
        if key == "clear hash":
            return self
        if key == "policy":
            return replace(self, search=replace(self.search, policy=_text("Policy", value)))
        if key == "pruning":
            return replace(self, search=replace(self.search, pruning=pruning_named(_text("Pruning", value))))
        if key == "splitdepth":
            return replace(self, search=replace(self.search, split_depth=whole("SplitDepth", value, 1, MAX_DEPTH)))
        raise PsearchError(
            f"no option {shown(name)}: there are {', '.join(NAMES)}; "
            "more has chess.engine.SimpleEngine.popen_uci(['psearch', 'uci'])"
        )


def clears_hash(options: Options) -> bool:
    """Whether the button is among them."""
    return any(name.casefold() == "clear hash" for name, _ in _items(options))


def _items(options: object) -> list[tuple[str, object]]:
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise PsearchError(f"options must be a mapping such as {{'Hash': 128}}, not {shown(options)}")
    return list(options.items())


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise PsearchError(f"{name} must be a string, not {shown(value)}")
    return value
