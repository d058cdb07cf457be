"""The options of an engine as python-chess declares them."""

from __future__ import annotations

import chess.engine

from psearch.arena.control_groups import default_hash_mb
from psearch.defaults import (
    DEFAULT_POLICY,
    DEFAULT_PRUNING,
    MAX_DEPTH,
    MAX_HASH_MB,
    MAX_THREADS,
    POLICY_NAMES,
)
from psearch.options import DEFAULT_SPLIT_DEPTH

_OPTIONS = (
    chess.engine.Option("Threads", "spin", 1, 1, MAX_THREADS, None),
    chess.engine.Option("Hash", "spin", default_hash_mb(), 1, MAX_HASH_MB, None),
    chess.engine.Option("Clear Hash", "button", None, None, None, None),
    chess.engine.Option("Policy", "combo", DEFAULT_POLICY, None, None, list(POLICY_NAMES)),
    chess.engine.Option("Pruning", "string", DEFAULT_PRUNING, None, None, None),
    chess.engine.Option("SplitDepth", "spin", DEFAULT_SPLIT_DEPTH, 1, MAX_DEPTH, None),
)


def option_map() -> chess.engine.UciOptionMap[chess.engine.Option]:
    """The options there are, by name; a new mapping each time."""
    return chess.engine.UciOptionMap((option.name, option) for option in _OPTIONS)
