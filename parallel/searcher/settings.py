"""What an engine is set to, by the options that `psearch.searcher.declared` has.

Nothing here imports `chess.engine`, which takes long: `psearch.search` starts its workers first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from psearch.defaults import DEFAULT_DRIVER, DEFAULT_EVALUATION, DEFAULT_SPLIT_DEPTH
from psearch.options import SearchOptions, pruning_named
from psearch.results import PsearchError
from psearch.searcher.declared import (
    CLEAR_HASH,
    ENGINE_OPTIONS,
    EVAL_FILE,
    HASH,
    POLICY,
    PRUNING,
    RULES,
    THREADS,
    Option,
)
from psearch.text.values import shown, text_of, whole

Options = Mapping[str, str | int | bool | None]
"""Names, in any case, and values."""

_BY_KEY = {option.key: option for option in ENGINE_OPTIONS}
_MANAGED = {
    "multipv": "give the argument multipv",
    "ponder": "give the argument ponder",
    "uci_chess960": "the board says it",
    "uci_variant": "the board says it",
}
_MOST_SPLIT_DEPTH = 2**31 - 1


@dataclass(frozen=True)
class Settings:
    """Worker processes, MiB of table, and how to search."""

    threads: int
    hash_mb: int
    search: SearchOptions

    @classmethod
    def of(
        cls,
        threads: object,
        hash_mb: object,
        policy: object,
        pruning: object,
        split_depth: object = DEFAULT_SPLIT_DEPTH,
        evaluation: object = DEFAULT_EVALUATION,
        net: object = None,
        with_: object = None,
    ) -> Settings:
        """Check what a caller gives; hash_mb None: the default; net, with_: paths. Raises PsearchError."""
        search = SearchOptions(
            policy=text_of("policy", policy),
            split_depth=whole("split_depth", split_depth, 0, _MOST_SPLIT_DEPTH),
            pruning=pruning_named(text_of("pruning", pruning)),
            evaluation=text_of("evaluation", evaluation),
            network=_path_of("net", net),
            with_=_path_of("with_", with_),
            driver=DEFAULT_DRIVER,
        )
        size = HASH.default if hash_mb is None else hash_mb
        return cls(THREADS.of_value(threads, "threads"), HASH.of_value(size, "hash_mb"), search)

    def changed(self, options: Options) -> Settings:
        """Set these options; "Clear Hash" changes nothing here. Raises PsearchError for bad ones."""
        settings = self
        for name, value in _items(options):
            if isinstance(value, str) and value.strip().isdecimal():
                value = int(value)
            settings = settings._with(_option(name), value)
        return settings

    def for_one_search(self, options: Options) -> SearchOptions:
        """Return how to search once with these options. Raises PsearchError for those that need other workers."""
        settings = self.changed(options)
        if settings.needs_other_workers(self) or clears_hash(options):
            text = "Threads, Hash, Clear Hash, Rules and a file as Policy are for all searches: set them with configure"
            raise PsearchError(text)
        return settings.search

    def needs_other_workers(self, before: Settings) -> bool:
        """Tell whether the workers that there are with `before` will not do."""
        return (self.threads, self.hash_mb, self.search.kernels) != (
            before.threads,
            before.hash_mb,
            before.search.kernels,
        )

    def _with(self, option: Option, value: object) -> Settings:
        value = option.of_value(value)
        if option is PRUNING:
            value = pruning_named(str(value))
        if not option.field:
            return self
        change: dict[str, object] = {option.field: value}
        if option in (THREADS, HASH):
            return replace(self, **change)  # type: ignore[arg-type]  # mypy does not know the field
        if option in (POLICY, RULES):
            change["own"] = None  # a file that is named again is read again
        if option is EVAL_FILE:
            change["network_digest"] = ("", "")
        return replace(self, search=replace(self.search, **change))  # type: ignore[arg-type]


def _path_of(name: str, path: object) -> str:
    """Raises PsearchError for what is no path."""
    return text_of(name, "" if path is None else os.fspath(path) if isinstance(path, os.PathLike) else path)


def clears_hash(options: Options) -> bool:
    """Tell whether the button is among them."""
    return any(name.casefold() == CLEAR_HASH.key for name, _ in _items(options))


def _option(name: str) -> Option:
    key = name.casefold()
    if key in _MANAGED:
        raise PsearchError(f"{name} is not set as an option: {_MANAGED[key]}")
    if key not in _BY_KEY:
        raise PsearchError(
            f"no option {shown(name)}: there are {', '.join(option.name for option in ENGINE_OPTIONS)}; "
            "more has chess.engine.SimpleEngine.popen_uci(['psearch', 'uci'])"
        )
    return _BY_KEY[key]


def _items(options: object) -> list[tuple[str, object]]:
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise PsearchError(f"options must be a mapping such as {{'Hash': 128}}, not {shown(options)}")
    return list(options.items())
