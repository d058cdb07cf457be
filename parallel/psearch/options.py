"""Options of a search, as plain data, which callers choose before any kernel is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from psearch.defaults import (
    DEFAULT_DRIVER,
    DEFAULT_EVALUATION,
    DEFAULT_POLICY,
    MANY_ROOTS,
    MANY_ROOTS_WORKERS,
    MAX_DEPTH,
    POLICY_NAMES,
    PROVING_WORKERS,
)
from psearch.results import PsearchError
from psearch.settings import (
    CLEAR_HASH,
    ENGINE_OPTIONS,
    POLICIES,
    RULES,
    SEARCH_SETTINGS,
    SETTINGS,
    EngineSettings,
    Option,
    SearchSettings,
    declared_module,
    is_code_file,
)
from psearch.text.values import shown
from psearch_core import DEFAULT_PRUNING
from psearch_core.chess.evaluation.network_file import (
    EvaluationNetwork,
    NetworkError,
    default_network,
    read_network,
)
from psearch_core.records.pruning_record import MODES, Pruning, parse_pruning, pruning_text
from psearch_core.toolchain.kernel_cache import PlugInError, content_hash
from psearch_core.toolchain.kernel_sets import STANDARD, KernelSet, hooks_of, read_plug_in, words_of

_MOST = 2**31 - 1
RULE_HOOKS = {"evaluation_of", "extension_of", "prune_node", "prunes_move", "reduction_of"}
"""Names of the hooks of `psearch_core.chess.search.decisions`."""


def pruning_named(text: str) -> Pruning:
    """Return the pruning parameters that a text names: a mode, and changes to it. Raises PsearchError."""
    try:
        return parse_pruning(text)
    except ValueError as error:
        raise PsearchError(str(error)) from None


_networks: dict[str, EvaluationNetwork] = {}
"""Networks that this process has read, by digest; at most `_MOST_NETWORKS`."""
_MOST_NETWORKS = 8


def network_named(path: str, digest: str = "") -> EvaluationNetwork:
    """Return the network of a file; "" is that of the package.

    digest: digest of the network that the file must hold (`EvaluationNetwork.name`); empty: any. A network that this
    process has already read under its digest is not read again, so the file may change or vanish. Raises PsearchError
    for a file that cannot be used or that holds another network.
    """
    try:
        if not path:
            return default_network()
        if digest in _networks:
            return _networks[digest]
        network = read_network(path)
    except NetworkError as error:
        raise PsearchError(str(error)) from None
    if digest not in ("", network.name):
        text = f"the network {path!a} was replaced: it is {network.name} now, and was {digest} when it was named"
        raise PsearchError(text)
    if len(_networks) >= _MOST_NETWORKS and network.name not in _networks:
        _networks.pop(next(iter(_networks)), None)
    return _networks.setdefault(network.name, network)


def network_digest(path: str) -> tuple[str, str]:
    """Return the absolute path of a network's file and the digest of its present content; ("", "") for "". Raises
    PsearchError."""
    return (os.path.abspath(path), network_named(path).name) if path else ("", "")


def kernels_of(policy: str, with_: str = "") -> KernelSet:
    """Return the kernels of a policy, together with those of the rules `with_`, if any.

    policy: one of `POLICY_NAMES`, the path of a file, or a name that an installed package has declared (entry points
    `psearch.policies`); with_: the path of a file, or such a name (entry points `psearch.rules`). No file is run here:
    mistakes in it are reported when its kernels are loaded, before a search. Raises PsearchError for an unknown name,
    and for two different files, since a set of kernels is one file.
    """
    kernels = STANDARD
    if policy not in POLICY_NAMES:
        wanted = f"one of {', '.join(POLICY_NAMES)}, or a file such as my_policy.py"
        kernels = _own_kernels(policy, "policy", POLICIES, wanted)
    if not with_:
        return kernels
    rules = _own_kernels(with_, "file", RULES, "such as my_rule.py, or a name that an installed package has declared")
    if kernels.file not in ("", rules.file):
        raise PsearchError(f"{shown(policy)} and {shown(with_)} cannot be used together: put both into one file")
    return rules


def check_printable(path: str, kind: str, named: str) -> None:
    """Raise PsearchError for a path that cannot be kept in the cache of kernels and shown in one line. kind, named:
    what it is the path of, and how the user gave it."""
    if not path.isprintable():
        raise PsearchError(f"the path of a {kind} must have only printable characters, not {shown(named)}")


def _own_kernels(named: str, kind: str, group: str, wanted: str) -> KernelSet:
    """Return the kernels of a file, or of a declared name. kind: `policy` or `file`, for messages; group: its entry
    points; wanted: the valid names, for messages. Raises PsearchError."""
    module = "" if is_code_file(named) else declared_module(named, group)
    file = os.path.abspath(named) if is_code_file(named) else _file_of(module) if module else None
    if file is None:
        raise PsearchError(f"{kind} must be {wanted}, not {shown(named)}")
    check_printable(file, kind, named)
    try:
        content = read_plug_in(file)
        return KernelSet(file, module, content_hash(content), words_of(file, content), hooks_of(content))
    except PlugInError as error:
        raise PsearchError(str(error)) from None
    except (OSError, ValueError) as error:  # ValueError: a null character
        reason = error.strerror if isinstance(error, OSError) else error
        raise PsearchError(f"cannot read the {kind} {shown(named)}: {reason}") from None


def options_with(options: SearchOptions, policy: str, kernels: Mapping[str, KernelSet]) -> SearchOptions:
    """Return the options with another policy. kernels: kernels of the policies that are not the package's own, as they
    were when they were read."""
    own = Own(policy, options.with_, kernels[policy]) if policy in kernels else None
    return replace(options, policy=policy, own=own)


class Own(NamedTuple):
    """Kernels that are not the package's own, with the policy and the rules that they were read for."""

    policy: str
    with_: str
    kernels: KernelSet


def _file_of(module: str) -> str | None:
    """Return a module's file, found as Python does but without importing the packages that contain it."""
    place: Sequence[str] | None = None
    found = None
    name = ""
    for part in module.split("."):
        if name and place is None:
            return None
        name = f"{name}.{part}" if name else part
        specs = (finder.find_spec(name, place) for finder in sys.meta_path if hasattr(finder, "find_spec"))
        found = next((spec for spec in specs if spec is not None), None)
        place = None if found is None else found.submodule_search_locations
    return None if found is None else found.origin


@dataclass(frozen=True)
class SearchOptions(SearchSettings):
    """Options of a search: the settings of users, and switches of studies and tests.

    The defaults are for play; `plain()` searches for the pure minimax value. Raises PsearchError for an unknown policy
    or two files that cannot be used together (`kernels_of`), for a user's rules with sound pruning, and for a number
    that is out of range.
    """

    pruning: Pruning = MODES[DEFAULT_PRUNING]  # type: ignore[assignment]  # a text is converted
    driver: str = "pvs"
    """Driver; the default is not `auto`, so that all searches of a study use the same one."""
    tt: bool = True
    """False: the transposition table is neither probed nor stored to."""
    see_pruning: bool = True
    """False: quiescence also searches captures that lose material by exchange."""
    mate_distance: bool = True
    """False: no mate distance pruning."""
    aspiration: int = 25
    """Half width of the first window, in centipawns; 0: the full window."""
    wait: bool = False
    """True if no node opens before its first move is done: young brothers wait, under every policy."""
    open_busy: int = 25
    open_idle: int = 10
    """Least P(needed), in percent, for which `calibrated` opens a node while all workers are busy (`open_busy`) and
    while one is idle (`open_idle`)."""
    join_cost: int = 0
    """Cost of joining a node, in nodes; 0: as measured during the search."""
    defer_depth: int | None = None
    """Least remaining depth of a child at which its move is deferred while another worker searches the same position,
    with any policy but lazy; 0: never; None: 3 with abdada, else never."""
    record: bool | None = None
    """Whether outcomes of nodes are counted, from which the prediction learns; None: with several workers only, since
    it steers nothing but splits."""
    roots: int = 0
    """Number of roots that workers of one search search at once; 0: one, or with the driver `auto` by their number."""
    network_digest: tuple[str, str] = ("", "")
    """`net`, and the digest of the file's content when it was first named. Set here and kept by `dataclasses.replace`,
    so that no process evaluates by a file that was replaced meanwhile."""
    own: Own | None = None
    """Kernels of a policy that is not in `POLICY_NAMES`, or of `with_`, as they were when first named. Set here and
    kept by `dataclasses.replace`, so that a file edited meanwhile changes nothing."""

    def __post_init__(self) -> None:
        if isinstance(self.pruning, str):
            object.__setattr__(self, "pruning", pruning_named(self.pruning))
        if self.own is None or self.own[:2] != (self.policy, self.with_):
            kernels = kernels_of(self.policy, self.with_)
            object.__setattr__(self, "own", None if kernels == STANDARD else Own(self.policy, self.with_, kernels))
        replaced = sorted(RULE_HOOKS & set(self.kernels.hooks.split()))
        if replaced and self.pruning.sound:
            raise PsearchError(
                "sound pruning leaves out only what cannot change the value, and proves it with the package's rules: "
                f"it cannot be used with a file's {replaced[0]}"
            )
        for name, value in vars(self).items():
            if isinstance(value, int) and not 0 <= value <= _MOST:
                raise PsearchError(f"{name} must be from 0 to {_MOST}, not {shown(value)}")
        for option in SEARCH_SETTINGS:
            value = getattr(self, option.field)
            if option.kind == "combo" and not (option.takes_file or option.takes_changes or value in option.choices):
                raise PsearchError(f"{option.field} must be {option.wanted}, not {shown(value)}")
        if self.network_digest[0] != self.net:
            object.__setattr__(self, "network_digest", network_digest(self.net))
            object.__setattr__(self, "net", self.network_digest[0])
        try:
            _ = self.rules
        except ValueError as error:
            raise PsearchError(str(error)) from None

    @property
    def kernels(self) -> KernelSet:
        """Kernels that the search runs."""
        return STANDARD if self.own is None else self.own.kernels

    def read_network(self) -> EvaluationNetwork:
        """Return the network that evaluates, as it was when its file was named. Raises PsearchError if this process has
        to read the file and finds another network."""
        return network_named(*self.network_digest)

    def standard(self) -> SearchOptions:
        """Return these options with the package's kernels: the default policy instead of a user's, and no rules."""
        if self.own is None:
            return self
        policy = self.policy if self.policy in POLICY_NAMES else DEFAULT_POLICY
        return replace(self, policy=policy, with_="", own=None)

    def alone(self) -> SearchOptions:
        """Return these options for a search by one worker: it has one root and opens no node, which would only cost
        time. A policy from a file is asked as always."""
        if self.policy not in POLICY_NAMES:
            return self
        gives_each_a_root = self.own is None and self.policy in ("lazy", "abdada")
        policy = "serial" if gives_each_a_root else self.policy
        return replace(self, policy=policy, roots=1, split_depth=MAX_DEPTH + 1)

    def proves(self, workers: int, lines: int) -> bool:
        """Tell whether the search finds the value of the root by null windows (docs/decisions/033). `auto` does so for
        one line and many workers that share a search."""
        if self.driver == "auto":
            return workers >= PROVING_WORKERS and lines == 1 and self.policy not in ("serial", "lazy", "abdada")
        return self.driver == "null"

    def root_count(self, workers: int, lines: int, *, to_depth: bool) -> int:
        """Return the number of roots of workers that share a search. `auto` uses several for one line and many workers,
        but one for a search to a given depth, where one is the fastest (docs/decisions/033)."""
        if lines > 1:
            return 1
        if self.roots > 0:
            return min(self.roots, workers)
        return MANY_ROOTS if self.driver == "auto" and workers >= MANY_ROOTS_WORKERS and not to_depth else 1

    @property
    def strength(self) -> int | None:
        """Elo that the play is limited to; None: full strength."""
        return self.elo if self.limit_strength else None

    @property
    def pruning_words(self) -> str:
        """Description of the pruning, and the name of the file that changes it."""
        return pruning_text(self.rules) + (f" with {os.path.basename(self.with_)}" if self.with_ else "")

    @property
    def rules(self) -> Pruning:
        """Pruning parameters, with the evaluation that the options choose."""
        if self.evaluation == DEFAULT_EVALUATION:
            return self.pruning
        return replace(self.pruning, network=int(self.evaluation == "net"))

    @classmethod
    def plain(cls, policy: str = DEFAULT_POLICY, split_depth: int = 1) -> SearchOptions:
        """Return options without table and selective search: any number of workers must find the minimax value."""
        off: dict[str, Any] = dict.fromkeys(("tt", "see_pruning", "mate_distance"), False)
        return cls(**off, pruning=MODES["plain"], aspiration=0, policy=policy, split_depth=split_depth)


Options = Mapping[str, str | int | bool | None]
"""Values of options by name; case does not matter."""
_BY_KEY = {option.key: option for option in ENGINE_OPTIONS}
_MANAGED = {
    "multipv": "give the argument multipv",
    "ponder": "give the argument ponder",
    "uci_chess960": "the board says it",
    "uci_variant": "the board says it",
}


@dataclass(frozen=True)
class Settings(EngineSettings):
    """Settings of an engine: its workers, its table, what is done at the root, and the options of its searches."""

    search: SearchOptions = field(default_factory=lambda: SearchOptions(driver=DEFAULT_DRIVER))

    @classmethod
    def of(cls, **given: object) -> Settings:
        """Return the settings that a Python program gives as keywords; hash_mb None: the default. Raises PsearchError
        for bad values, TypeError for other keywords."""
        if given.get("hash_mb", 0) is None:
            del given["hash_mb"]
        for name in given.keys() - SETTINGS.keys():
            raise TypeError(f"got an unexpected keyword argument {name!r}")
        return cls()._with({name: SETTINGS[name].of_value(value, name) for name, value in given.items()})

    def changed(self, options: Options) -> Settings:
        """Return the settings with these options set; "Clear Hash" changes nothing. Raises PsearchError for bad
        options."""
        values = {}
        for option, value in _declared(options):
            is_number = isinstance(value, str) and value.strip().isdecimal()
            values[option.field] = option.of_value(int(str(value)) if is_number else value)
        values.pop(CLEAR_HASH.field, None)
        return self._with(values)

    def for_one_search(self, options: Options) -> SearchOptions:
        """Return the options of one search with these options set. Raises PsearchError for options that need new
        workers."""
        settings = self.changed(options)
        if settings.needs_other_workers(self) or settings.syzygy != self.syzygy or clears_hash(options):
            text = (
                "Threads, Hash, Clear Hash, Rules, SyzygyPath and a file as Policy are for all searches: "
                "set them with configure"
            )
            raise PsearchError(text)
        return settings.search

    def needs_other_workers(self, before: Settings) -> bool:
        """Tell whether these settings need other workers than the settings `before`."""
        had, wanted = ((one.threads, one.hash_mb, one.search.kernels) for one in (before, self))
        return had != wanted

    def _with(self, values: dict[str, Any]) -> Settings:
        """Return the settings with these values, by field."""
        own = ("threads", "hash_mb", "syzygy")
        workers = {name: values.pop(name) for name in own if name in values}
        if not values.keys().isdisjoint(("policy", "with_")):
            values["own"] = None  # a file that is named again is read again
        if "net" in values:
            values["network_digest"] = ("", "")
        return replace(self, **workers, search=replace(self.search, **values))


def clears_hash(options: Options) -> bool:
    """Tell whether the options press the button "Clear Hash"."""
    return any(option is CLEAR_HASH for option, _ in _declared(options))


def _declared(options: object) -> list[tuple[Option, object]]:
    """Return the declaration and the value of each option. Raises PsearchError for unknown options."""
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise PsearchError(f"options must be a mapping such as {{'Hash': 128}}, not {shown(options)}")
    found = []
    for name, value in options.items():
        key = name.casefold()
        if key in _MANAGED:
            raise PsearchError(f"{name} is not set as an option: {_MANAGED[key]}")
        if key not in _BY_KEY:
            raise PsearchError(
                f"there is no option {shown(name)}, only {', '.join(option.name for option in ENGINE_OPTIONS)}; "
                "more options need chess.engine.SimpleEngine.popen_uci(['psearch', 'uci'])"
            )
        found.append((_BY_KEY[key], value))
    return found
