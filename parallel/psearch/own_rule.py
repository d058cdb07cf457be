# ruff: noqa: F401  # the names are imported here for the files that import them from here
# mypy: implicit-reexport
"""Names that the file of your own pruning rule, reduction or evaluation imports; see docs/guides/own-rule.md.

The file works like that of a policy (`psearch.own_policy`), and one file may have both. Kernels marked
`@replaces(HOOK)` are called in place of hooks of `psearch_core.chess.search.decisions`. A replacement may call its own
hook, which then answers as the package does.

Hooks: `prunes_move`, `reduction_of`, `extension_of`, `prune_node`, `evaluation_of`; their docstrings say what each
decides. A kernel can use the fields of a node (`psearch_core/records/node_record.py`) and of a position
(`psearch_core/records/chess.py`), and the functions imported below. `count_tried(wk)` and `count_pruned(wk)` count for
`psearch --stats`.
"""

from psearch.own_policy import (
    ALL_NODE,
    CUT_NODE,
    PV_NODE,
    Context,
    Node,
    atomic_add,
    atomic_load,
    atomic_store,
    boolean,
    header_of,
    i64,
    kernel,
    replaces,
    word,
)
from psearch_core.arithmetic import clear_of_mates, is_mate_bound
from psearch_core.chess.board.attacks import move_from, move_kind, move_to
from psearch_core.chess.board.checks import gives_check
from psearch_core.chess.board.position import has_pieces, king_square, piece_on
from psearch_core.chess.ordering.history import is_quiet, quiet_history
from psearch_core.chess.ordering.see import see_at_least
from psearch_core.chess.pruning.counters import count_own_pruned as count_pruned
from psearch_core.chess.pruning.counters import count_own_tried as count_tried
from psearch_core.chess.pruning.node_pruning import PRUNE_NOTHING, PRUNE_NULL, PRUNE_RAZOR, PRUNE_RETURN
from psearch_core.chess.search.decisions import evaluation_of, extension_of, prune_node, prunes_move, reduction_of
from psearch_core.constants import BISHOP, KING, KNIGHT, NO_MOVE, NO_SCORE, NULL_MOVE, PAWN, QUEEN, ROOK
from psearch_core.toolchain.intrinsics import lowest_bit, popcount
from psearch_core.views import Position, Tables, Visit, Worker, tables_of, u64

__all__ = [name for name in dir() if not name.startswith("_")]
