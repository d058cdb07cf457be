"""Writes a search into the arena: position, moves, game history, options, limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch.core.chess.board.bridge import from_chess_move, set_position
from psearch.core.constants import AGES
from psearch.core.records import MAX_HISTORY, position_dtype
from psearch.defaults import DEFAULT_POLICY, MAX_DEPTH, POLICY_NAMES
from psearch.options import SearchOptions, network_named
from psearch.results import Limits, PsearchError
from psearch.text.values import shown


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
    moves: Sequence[chess.Move]
    """the best so far, the best first"""
    scores: Sequence[int]
    """of the lines of the last iteration, centipawns for the side to move"""


def write_search(
    arena: Arena,
    board: chess.Board,
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
    PsearchError where the network cannot be read any more, and where these workers have other kernels than the policy.
    """
    if options.kernels != arena.kernels:
        raise PsearchError(f"the policy {shown(options.policy)} needs workers of its own")
    header = arena.header[0]
    set_position(arena.tables, arena.header["root"], board)
    legal = list(board.legal_moves)
    moves = sorted({from_chess_move(move, board) for move in (legal if only is None else only)})
    if progress is not None:
        best = [from_chess_move(move, board) for move in progress.moves]
        moves = [*dict.fromkeys(best), *(move for move in moves if move not in best)]
    header["root_count"] = len(moves)
    header["legal_root_moves"] = len(legal)
    header["multipv"] = min(multipv, len(moves))
    header["root_moves"][: len(moves)] = moves
    keys = history_keys(arena.tables, board)
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
    arena.use_network(network_named(options.network), is_used=bool(rules.network))
    record["pruning"] = rules.record()
    for name in set(record.dtype.names) - {"pruning"}:
        record[name] = _policy_number(options) if name == "policy" else int(getattr(options, name) or 0)
    if options.defer_depth is None:
        record["defer_depth"] = -1
    if options.own is not None:
        arena.plug_in[:] = 0
    arena.driver.function("begin_search")(arena.context)


def _policy_number(options: SearchOptions) -> int:
    """What a file leaves out is as with the default policy."""
    return POLICY_NAMES.index(options.policy if options.own is None else DEFAULT_POLICY)
