"""Setup of a search in the arena, for chess or another game: position, history, options and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.defaults import DEFAULT_POLICY, MAX_DEPTH, POLICY_NAMES
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError
from psearch.text.values import shown
from psearch_core.chess.board.bridge import from_chess_move, set_position
from psearch_core.constants import AGES
from psearch_core.records import MAX_HISTORY, position_dtype
from psearch_core.toolchain.kernel_sets import KernelSet

PROVED_DEPTH = 7
"""Least depth at which null windows prove the value of the root. Below it, one worker finishes soon enough."""

_LARGEST_PERTURBATION = 32
"""Largest random number in a perturbed history: one sixty-fourth of what a deep cutoff adds."""


class Subject(Protocol):
    """A position of another game, with a legal move, which can be searched in place of a `chess.Board`.

    Moves are the numbers that the search uses (`psearch_core.game`), scores the game's own units, in reports too.
    """

    @property
    def kernels(self) -> KernelSet:
        """Kernels that search the position."""

    def write_root(self, record: np.ndarray) -> None:
        """Write the position, including its `key`, into a record of zeros."""

    def root_moves(self) -> list[int]:
        """Return the legal moves, best guess first."""

    def static_score(self) -> int:
        """Return the score of the position without a search."""

    def text(self) -> str:
        """Return the position as a user writes it."""


def board_text(board: chess.Board | Subject) -> str:
    """Return a position as text: a FEN, or the notation of its game."""
    return board.fen() if isinstance(board, chess.Board) else board.text()


def perturb_history(arena: Arena, seed: int) -> None:
    """Fill the history of quiet moves with small random numbers drawn from a seed. No search may be running.

    That changes the order of quiet moves about which nothing is known yet, and so the tree of a selective search. A
    comparison over many such searches does not depend on a single tree (docs/studies/study.md, "Method"). The old
    history is lost; everything else is kept, so call `Arena.forget` first.
    """
    quiet, most = arena.header[0]["learning"]["quiet"], _LARGEST_PERTURBATION
    quiet[...] = np.random.default_rng(seed).integers(-most, most, quiet.shape, endpoint=True)


def history_keys(tables: np.ndarray, board: chess.Board) -> list[int]:
    """Return the keys of the positions before the root that may be repeated, the latest first."""
    keys = []
    before = board.copy(stack=min(len(board.move_stack), board.halfmove_clock, MAX_HISTORY))
    scratch = np.zeros(1, position_dtype)
    while before.move_stack:
        before.pop()
        set_position(tables, scratch, before)
        keys.append(int(scratch[0]["key"]))
    return keys


@dataclass(frozen=True)
class Progress:
    """State of a search that continues with other workers."""

    depth: int
    """Depth of the last finished iteration."""
    moves: Sequence[Any]
    """Best moves so far, the best first, as in reports."""
    scores: Sequence[int]
    """Scores of the lines of the last finished iteration, in centipawns for the side to move."""


def write_search(
    arena: Arena,
    board: chess.Board | Subject,
    limits: Limits,
    options: SearchOptions,
    only: Sequence[chess.Move] | None = None,
    multipv: int = 1,
    progress: Progress | None = None,
) -> None:
    """Set up the root for worker 0, or for all workers if the policy splits nothing.

    Every worker must be idle, and the board must have a legal move. only: legal moves to choose from, None for all;
    multipv: number of lines to find, each without the first moves of the better ones; progress: state after which to
    begin, at a depth within the limits. A change of network, evaluation or pruning clears the table. Raises
    PsearchError if the network's file was replaced before it was read, and if these workers have other kernels than the
    options.
    """
    if not isinstance(board, chess.Board) and board.kernels.digest != arena.kernels.digest:
        raise PsearchError("a game of your own is searched by worker processes only, and there are none")
    if options.kernels != arena.kernels:
        raise PsearchError(f"{shown(options.with_ or options.policy)} needs workers of its own")
    header = arena.header[0]
    keys: list[int] = []
    if isinstance(board, chess.Board):
        set_position(arena.tables, arena.header["root"], board)
        legal = [from_chess_move(move, board) for move in board.legal_moves]
        moves = sorted({from_chess_move(move, board) for move in only} if only is not None else legal)
        keys = history_keys(arena.tables, board)
    else:
        arena.header["root"] = np.zeros((), position_dtype)
        board.write_root(arena.header["root"])
        legal = moves = board.root_moves()
    header["line_scores"] = 0
    if progress is not None:
        header["line_scores"][: len(progress.scores)] = progress.scores
        best = [from_chess_move(m, board) if isinstance(board, chess.Board) else int(m) for m in progress.moves]
        moves = [*dict.fromkeys(best), *(move for move in moves if move not in best)]
    header["root_count"] = len(moves)
    header["legal_root_moves"] = len(legal)
    header["multipv"] = min(multipv, len(moves))
    header["root_moves"][: len(moves)] = moves
    header["history_count"] = len(keys)
    header["history"][: len(keys)] = keys
    header["max_depth"] = limits.depth or MAX_DEPTH
    header["first_depth"] = 1 if progress is None else progress.depth + 1
    header["node_limit"] = limits.nodes or 0
    header["age"] = (int(header["age"]) + 1) % AGES
    record = header["options"]
    rules = options.rules
    arena.use_rules(options.read_network(), rules.record())
    record["null_windows"] = PROVED_DEPTH if options.proves(arena.workers, int(header["multipv"])) else 0
    record["early_evaluation"] = bool(rules.network) and "evaluation_of" not in options.kernels.hooks.split()
    record["roots"] = options.root_count(arena.workers, int(header["multipv"]), to_depth=limits.depth is not None)
    record["record"] = arena.workers > 1 if options.record is None else options.record
    told = {"policy", "pruning", "null_windows", "roots", "early_evaluation", "record"}
    for name in set(record.dtype.names) - told:
        record[name] = int(getattr(options, name) or 0)
    # parts that a user's policy file leaves out come from the default policy
    record["policy"] = POLICY_NAMES.index(options.policy if options.policy in POLICY_NAMES else DEFAULT_POLICY)
    if options.defer_depth is None:
        record["defer_depth"] = -1
    if options.own is not None:
        arena.plug_in[:] = 0
    arena.driver.function("begin_search")(arena.context)
