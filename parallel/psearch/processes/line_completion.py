"""Completion of principal lines from the transposition table.

A search ends with lines that are too short: for a move that failed high only the move itself is known, and a line from
the previous iteration is one ply shorter than the depth. The table has the rest, unless it has been overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import chess
import chess.engine

from psearch.arena.arena import Arena
from psearch.arena.shared_results import StoredResult, TableReader
from psearch.results import Info
from psearch_core.chess.board.bridge import from_chess_move, to_chess_move
from psearch_core.constants import BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY, NO_MOVE

_LEAST_PLIES = 2
"""Least plies of a line, however shallow the search was: it shall contain a reply."""
_PLIES_TAKEN_BACK = 4
"""Plies that are taken back from a line that does not end in the mate its score announces."""


def whole_line(arena: Arena, board: chess.Board, info: Info, known: Sequence[chess.Move]) -> list[chess.Move]:
    """Return the longest line for the first move of a report: its own line, or a known one, extended from the table.

    The line is legal, repeats no position, ends where the game does, and is no longer than the depth of the report, or
    than the mate that its score announces. board: the root, as written in the arena; known: a line from this search
    that begins with the same move, or an empty one.
    """
    walk = _Walk(arena, board)
    moves = info.score.pov(board.turn).mate()
    if moves is None or info.bound == ("upper" if moves > 0 else "lower"):  # the bound does not prove the mate
        return walk.extended(max(info.pv, known, key=len), max(info.depth, _LEAST_PLIES))
    mate = _Mate(board.turn, 2 * moves - 1) if moves > 0 else _Mate(not board.turn, -2 * moves)
    line = walk.mating(info.pv, mate)
    if len(line) > 1 or mate.plies == 1:
        return line
    return walk.extended(line, _LEAST_PLIES)  # the table has lost the mate, but may have a reply


class _Mate(NamedTuple):
    """A mate that a score announces: the winner, and the plies within which it comes."""

    winner: chess.Color
    plies: int

    def is_sure(self, entry: StoredResult, turn: chess.Color, plies: int) -> bool:
        """Tell whether an entry for a position with `turn` to move proves that the mate comes within `plies`."""
        score = entry.score if turn == self.winner else -entry.score
        wrong_bound = BOUND_UPPER if turn == self.winner else BOUND_LOWER
        return score >= MATE_IN_MAX_PLY and MATE - score <= plies and entry.bound != wrong_bound


class _Walk:
    """Extends lines from the root of a search with moves from the table."""

    def __init__(self, arena: Arena, board: chess.Board) -> None:
        header = arena.header[0]
        self._board = board
        self._table = TableReader(arena) if header["options"]["tt"] else None
        self._history = set(header["history"][: int(header["history_count"])].tolist())

    def extended(self, line: Sequence[chess.Move], plies: int, mate: _Mate | None = None) -> list[chess.Move]:
        """Return a line extended up to `plies`. mate: take only moves for which the table proves that mate."""
        moves, table = list(line), self._table
        if len(moves) >= plies or (table is None and mate is None):
            return moves
        board = self._board.copy(stack=False)

        def key() -> int:  # distinguishes positions; without a table any hash will do
            return hash(board._transposition_key()) if table is None else table.key(board)

        seen = set(self._history)
        for move in moves:
            seen.add(key())
            board.push(move)
        here = key()
        while len(moves) < plies and here not in seen:
            if board.halfmove_clock >= 100 or board.is_insufficient_material():
                break
            seen.add(here)
            left, found = plies - len(moves), None
            if table is not None:
                found = _stored_move(table.entry(here), board, left, mate)
                if found is None and (mate is not None or len(moves) == 1):
                    found = _least_reply(table, board, left, mate)
            if found is None and mate is not None:
                found = _ending(board, left)
            if found is None:
                break
            board.push(found)
            here = key()
            if here in seen and len(moves) > 1:
                break  # only the reply, the second move, may repeat a position
            moves.append(found)
        return moves

    def mating(self, line: Sequence[chess.Move], mate: _Mate) -> list[chess.Move]:
        """Return a line extended to the mate that its score announces. Where it does not mate in time, take back a few
        plies and try again: a search may have a mate score from a bound, without the last moves."""
        known = list(line[: mate.plies])
        for kept in range(len(known), max(0, len(known) - 1 - _PLIES_TAKEN_BACK), -1):
            moves = self.extended(known[:kept], mate.plies, mate)
            board = self._board.copy(stack=False)
            for move in moves:
                board.push(move)
            if board.is_checkmate():
                return moves
        return self.extended(known, mate.plies, mate)


def _stored_move(entry: StoredResult | None, board: chess.Board, plies: int, mate: _Mate | None) -> chess.Move | None:
    """Return the table's move if it is legal here: an entry for another position may have the same key."""
    if entry is None or entry.move == NO_MOVE or (mate is not None and not mate.is_sure(entry, board.turn, plies)):
        return None
    move = to_chess_move(entry.move, board)
    if not board.is_legal(move) or from_chess_move(move, board) != entry.move:
        return None
    # an entry whose newest result has no move keeps the older move, which may not mate
    return None if mate is not None and plies == 1 and not _mates(board, move) else move


def _least_reply(table: TableReader, board: chess.Board, plies: int, mate: _Mate | None) -> chess.Move | None:
    """Return the move after which the table has the lowest score for the opponent; None if it has no such entry.

    For a node all of whose moves failed, the table has no move, only entries for the positions after them.
    """
    found: list[tuple[StoredResult, chess.Move]] = []
    for move in board.legal_moves:
        board.push(move)
        entry = table.entry(table.key(board))
        if entry is not None and (mate is None or mate.is_sure(entry, board.turn, plies - 1)):
            found.append((entry, move))
        board.pop()
    if not found:
        return None
    # entries of much shallower searches do not count
    enough = max(entry.depth for entry, _ in found) // 2
    return min((entry.score, -entry.depth, move.uci(), move) for entry, move in found if entry.depth >= enough)[-1]


def _mates(board: chess.Board, move: chess.Move) -> bool:
    board.push(move)
    mated = board.is_checkmate()
    board.pop()
    return mated


def _ending(board: chess.Board, plies: int) -> chess.Move | None:
    """Return a move that mates (one ply left) or allows an immediate mate (two plies left); None if there is none."""
    if plies > 2:
        return None
    for move in board.legal_moves:
        board.push(move)
        found = board.is_checkmate() if plies == 1 else _ending(board, 1) is not None
        board.pop()
        if found:
            return move
    return None
