"""Writes a search into the arena, of chess or of another game: position, history, options, limits; or other luck."""

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
"""From here on null windows prove the value of the root, where they do. Below it, one worker is soon through."""

_LARGEST_LUCK = 32
"""Largest random number in a perturbed history: a sixty-fourth of what one deep cutoff adds."""


class Subject(Protocol):
    """A position of another game, which has a legal move: in place of a `chess.Board`, wherever one is searched.

    Its moves are the numbers that the search has for them (`psearch_core.game`), in reports, too; a score is in the
    game's own unit, which a report has in the place of centipawns.
    """

    @property
    def kernels(self) -> KernelSet:
        """Return the kernels that search it."""

    def write_root(self, record: np.ndarray) -> None:
        """Write it into a position's record, all zero, `key` included."""

    def root_moves(self) -> list[int]:
        """Return the legal moves, best guess first."""

    def static_score(self) -> int:
        """Return what it is worth without a search."""

    def text(self) -> str:
        """Return the position as a user writes it."""


def board_text(board: chess.Board | Subject) -> str:
    """Return what is searched as text: a FEN, or what a game has for it."""
    return board.fen() if isinstance(board, chess.Board) else board.text()


def perturb_history(arena: Arena, seed: int) -> None:
    """Fill the history of quiet moves with small random numbers, the same for the same seed. No search may be running.

    That changes the order of quiet moves about which nothing is known yet, and so the tree of a selective search: what
    is compared over many such searches does not hang on one of them (docs/studies/study.md, "How much of it is luck").
    What was in the history before is lost; everything else stays as it is, so call `Arena.forget` first.
    """
    quiet = arena.header[0]["learning"]["quiet"]
    quiet[...] = np.random.default_rng(seed).integers(-_LARGEST_LUCK, _LARGEST_LUCK, quiet.shape, endpoint=True)


def history_keys(tables: np.ndarray, board: chess.Board) -> list[int]:
    """Return keys of the positions before the root, the last one first, as far back as a repetition can lie."""
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
    """How far a search had come that goes on with other workers."""

    depth: int
    """of the last iteration that was finished"""
    moves: Sequence[Any]
    """as reports have them; the best so far, the best first"""
    scores: Sequence[int]
    """of the lines of the last iteration, centipawns for the side to move"""


def write_search(
    arena: Arena,
    board: chess.Board | Subject,
    limits: Limits,
    options: SearchOptions,
    only: Sequence[chess.Move] | None = None,
    multipv: int = 1,
    progress: Progress | None = None,
) -> None:
    """Set up the root and hand it to worker 0, or to all where nothing is split.

    Every worker must be idle, and the board must have a legal move. only: the legal moves to choose from, all if None;
    multipv: how many lines to find, each without the first moves of the better ones; progress: begin behind it, at a
    depth within the limits. What another network, or the other evaluation, has left in the table is forgotten. Raises
    PsearchError where the network has yet to be read and its file was replaced, and where these workers have other
    kernels than the options.
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
    if progress is not None:
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
    header["line_scores"] = 0
    if progress is not None:
        header["line_scores"][: len(progress.scores)] = progress.scores
    header["node_limit"] = limits.nodes or 0
    header["age"] = (int(header["age"]) + 1) % AGES
    record = header["options"]
    rules = options.rules
    arena.use_network(options.read_network(), is_used=bool(rules.network))
    record["pruning"] = rules.record()
    record["null_windows"] = PROVED_DEPTH if options.proves(arena.workers, int(header["multipv"])) else 0
    record["roots"] = options.root_count(arena.workers, int(header["multipv"]), to_depth=limits.depth is not None)
    for name in set(record.dtype.names) - {"policy", "pruning", "null_windows", "roots"}:
        record[name] = int(getattr(options, name) or 0)
    # what a file leaves out is as with the default policy
    record["policy"] = POLICY_NAMES.index(options.policy if options.policy in POLICY_NAMES else DEFAULT_POLICY)
    if options.defer_depth is None:
        record["defer_depth"] = -1
    if options.own is not None:
        arena.plug_in[:] = 0
    arena.driver.function("begin_search")(arena.context)
