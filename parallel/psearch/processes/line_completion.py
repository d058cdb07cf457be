"""How a line of play goes on, as far as the transposition table knows.

A search ends with lines that stop short: of a move that failed high only the move itself is known, a line from the
iteration before is a ply shorter than the depth. The table has the rest, unless it has been written over.
"""

from __future__ import annotations

from collections.abc import Sequence

import chess
import chess.engine

from psearch.arena.arena import Arena
from psearch.arena.shared_results import StoredResult, TableReader
from psearch.results import Info
from psearch_core.chess.board.bridge import from_chess_move, to_chess_move
from psearch_core.constants import BOUND_LOWER, BOUND_UPPER, MATE, MATE_IN_MAX_PLY, NO_MOVE

_LEAST_PLIES = 2
"""A line shall have a reply, however shallow the search was."""
_PLIES_TAKEN_BACK = 4
"""Of a line that does not mate as it was told to."""


def whole_line(arena: Arena, board: chess.Board, info: Info, known: Sequence[chess.Move]) -> list[chess.Move]:
    """Return the longest line for the first move of a report: its own, or one known before, and what the table says
    next.

    It is legal, enters no position a second time, and ends where the game does; it goes no further than the depth of
    the report, or than the mate that its score tells of. board: the root, as written in the arena; known: a line from
    this search that begins with the same move, or none.
    """
    walk = _Walk(arena, board)
    mate = _Mate.told_by(info, board.turn)
    if mate is None:
        line = max(info.pv, known, key=len)
        return walk.extended(line, max(info.depth, _LEAST_PLIES))
    line = walk.mating(info.pv, mate)
    if len(line) > 1 or mate.plies == 1:
        return line
    return walk.extended(line, _LEAST_PLIES)  # the table has lost the mate, but may have a reply


class _Mate:
    """A mate that a score tells of: who gives it, and within how many plies."""

    def __init__(self, winner: chess.Color, plies: int) -> None:
        self.winner = winner
        self.plies = plies

    @classmethod
    def told_by(cls, info: Info, turn: chess.Color) -> _Mate | None:
        """Read the mate that a score tells of; None for another score, and for a bound that leaves open whether there
        is a mate."""
        moves = info.score.pov(turn).mate()
        if moves is None or info.bound == ("upper" if moves > 0 else "lower"):
            return None
        return cls(turn, 2 * moves - 1) if moves > 0 else cls(not turn, -2 * moves)

    def is_sure(self, entry: StoredResult, turn: chess.Color, plies: int) -> bool:
        """Tell whether an entry for a position with this side to move says that the mate comes within so many plies."""
        score = entry.score if turn == self.winner else -entry.score
        wrong_bound = BOUND_UPPER if turn == self.winner else BOUND_LOWER
        return score >= MATE_IN_MAX_PLY and MATE - score <= plies and entry.bound != wrong_bound


class _Walk:
    """Along a line from the root of a search, and on with moves from the table."""

    def __init__(self, arena: Arena, board: chess.Board) -> None:
        header = arena.header[0]
        self._board = board
        self._table = TableReader(arena) if header["options"]["tt"] else None
        self._history = set(header["history"][: int(header["history_count"])].tolist())

    def extended(self, line: Sequence[chess.Move], plies: int, mate: _Mate | None = None) -> list[chess.Move]:
        """Return a line and what follows, up to so many plies. mate: go where the table is sure of it only."""
        moves = list(line)
        if len(moves) >= plies or (self._table is None and mate is None):
            return moves
        board = self._board.copy(stack=False)
        seen = set(self._history)
        for move in moves:
            seen.add(self._key(board))
            board.push(move)
        key = self._key(board)
        while len(moves) < plies and key not in seen and not _is_drawn(board):
            seen.add(key)
            left = plies - len(moves)
            found = None if self._table is None else self._stored_move(self._table, board, key, left, mate)
            if found is None and self._table is not None and (mate is not None or len(moves) == 1):
                found = self._least_reply(self._table, board, left, mate)
            if found is None and mate is not None:
                found = _ending(board, left)
            if found is None:
                break
            board.push(found)
            key = self._key(board)
            if key in seen and len(moves) > 1:
                break  # a reply may repeat a position; to go in circles tells nothing
            moves.append(found)
        return moves

    def mating(self, line: Sequence[chess.Move], mate: _Mate) -> list[chess.Move]:
        """Return a line played out to the mate that a score tells of: where it does not mate in time, from a few plies
        before its end. A search has the value of a mate from a bound, too, and then not its last moves."""
        known = list(line[: mate.plies])
        for kept in range(len(known), max(0, len(known) - 1 - _PLIES_TAKEN_BACK), -1):
            moves = self.extended(known[:kept], mate.plies, mate)
            if _ends_in_mate(self._board, moves):
                return moves
        return self.extended(known, mate.plies, mate)

    def _key(self, board: chess.Board) -> int:
        """What tells positions apart; without a table any number does."""
        return hash(board._transposition_key()) if self._table is None else self._table.key(board)

    def _stored_move(
        self, table: TableReader, board: chess.Board, key: int, plies: int, mate: _Mate | None
    ) -> chess.Move | None:
        """The table's move, if it is legal here: entries for other positions may have the same key."""
        entry = table.entry(key)
        if entry is None or entry.move == NO_MOVE:
            return None
        if mate is not None and not mate.is_sure(entry, board.turn, plies):
            return None
        move = to_chess_move(entry.move, board)
        if not board.is_legal(move) or from_chess_move(move, board) != entry.move:
            return None
        # a result without a move keeps the move that an older one had
        return None if mate is not None and plies == 1 and not _mates(board, move) else move

    def _least_reply(self, table: TableReader, board: chess.Board, plies: int, mate: _Mate | None) -> chess.Move | None:
        """The move after which the table has the least score for the other side, or None if it knows none of them.

        For a node all of whose moves failed the table has no move, only what each of them leads to.
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
        # what was looked at in passing is no judgement
        enough = max(entry.depth for entry, _ in found) // 2
        return min((entry.score, -entry.depth, move.uci(), move) for entry, move in found if entry.depth >= enough)[-1]


def _mates(board: chess.Board, move: chess.Move) -> bool:
    board.push(move)
    mated = board.is_checkmate()
    board.pop()
    return mated


def _ends_in_mate(board: chess.Board, moves: Sequence[chess.Move]) -> bool:
    board = board.copy(stack=False)
    for move in moves:
        board.push(move)
    return board.is_checkmate()


def _ending(board: chess.Board, plies: int) -> chess.Move | None:
    """Any move that mates with so many plies left, or that lets itself be mated at once with two."""
    if plies > 2:
        return None
    for move in board.legal_moves:
        board.push(move)
        found = board.is_checkmate() if plies == 1 else _ending(board, 1) is not None
        board.pop()
        if found:
            return move
    return None


def _is_drawn(board: chess.Board) -> bool:
    """By the fifty-move rule or for want of material. Where there is no legal move the table has none."""
    return board.halfmove_clock >= 100 or board.is_insufficient_material()
