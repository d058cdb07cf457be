"""Writes a search into the arena: position, moves, game history, options, limits; or other luck."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.arena.subject import Subject
from psearch.defaults import DEFAULT_POLICY, MAX_DEPTH, POLICY_NAMES
from psearch.options import SearchOptions
from psearch.results import Limits, PsearchError
from psearch.text.values import shown
from psearch_core.chess.board.bridge import from_chess_move, set_position
from psearch_core.constants import AGES
from psearch_core.records import MAX_HISTORY, position_dtype

PROVED_DEPTH = 7
"""From here on null windows prove the value of the root, where they do. Below it, one worker is soon through."""

_LARGEST_LUCK = 32
"""Largest random number in a perturbed history: a sixty-fourth of what one deep cutoff adds."""


def perturb_history(arena: Arena, seed: int) -> None:
    """Fill the history of quiet moves with small random numbers, the same for the same seed. No search may be running.

    That changes the order of quiet moves about which nothing is known yet, and so the tree of a selective search: what
    is compared over many such searches does not hang on one of them (docs/studies/study.md, "How much of it is luck").
    What was in the history before is lost; everything else stays as it is, so call `Arena.forget` first.
    """
    quiet = arena.header[0]["learning"]["quiet"]
    quiet[...] = np.random.default_rng(seed).integers(-_LARGEST_LUCK, _LARGEST_LUCK, quiet.shape, endpoint=True)


def history_keys(tables: np.ndarray, board: chess.Board) -> list[int]:
    """Keys of the positions before the root, the last one first, as far back as a repetition can lie."""
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
    root = _chess_root(arena, board, only) if isinstance(board, chess.Board) else _root_of(arena, board)
    moves = root.moves
    if progress is not None:
        best = [root.code(move) for move in progress.moves]
        moves = [*dict.fromkeys(best), *(move for move in moves if move not in best)]
    header["root_count"] = len(moves)
    header["legal_root_moves"] = root.legal
    header["multipv"] = min(multipv, len(moves))
    header["root_moves"][: len(moves)] = moves
    header["history_count"] = len(root.history)
    header["history"][: len(root.history)] = root.history
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
    for name in set(record.dtype.names) - {"pruning", "null_windows", "roots"}:
        record[name] = _policy_number(options) if name == "policy" else int(getattr(options, name) or 0)
    if options.defer_depth is None:
        record["defer_depth"] = -1
    if options.own is not None:
        arena.plug_in[:] = 0
    arena.driver.function("begin_search")(arena.context)


class _Root(NamedTuple):
    """What a search has to know of the root besides its position."""

    moves: list[int]
    """to be searched"""
    legal: int
    """how many there are"""
    history: list[int]
    """keys of the positions before, the last one first"""
    code: Callable[[Any], int]
    """from a move in a report to its number"""


def _chess_root(arena: Arena, board: chess.Board, only: Sequence[chess.Move] | None) -> _Root:
    """Write the position; returns the rest."""
    set_position(arena.tables, arena.header["root"], board)
    legal = list(board.legal_moves)

    def code(move: chess.Move) -> int:
        return from_chess_move(move, board)

    moves = sorted({code(move) for move in (legal if only is None else only)})
    return _Root(moves, len(legal), history_keys(arena.tables, board), code)


def _root_of(arena: Arena, subject: Subject) -> _Root:
    """The same of another game."""
    arena.header["root"] = np.zeros((), position_dtype)
    subject.write_root(arena.header["root"])
    moves = subject.root_moves()
    return _Root(moves, len(moves), [], int)


def _policy_number(options: SearchOptions) -> int:
    """What a file leaves out is as with the default policy."""
    return POLICY_NAMES.index(options.policy if options.policy in POLICY_NAMES else DEFAULT_POLICY)
