"""The position that the `position` command sets up, kept from one command to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import chess

NO_POSITION = "there is no position: the last one was refused"


class CurrentPosition:
    """Holds the position that the next `go` searches: the initial one until another is set up, none where that was
    refused."""

    def __init__(self) -> None:
        self._base: tuple[object, ...] = ()
        self._moves: list[str] = []
        self._board: chess.Board | None = None
        self._is_refused = False

    def set_up(self, words: Sequence[str], chess960: bool) -> None:
        """Obey a `position` command. Raises PsearchError; there is no position then.

        Only the new moves are played if it goes on from the last good one: games are sent whole, move after move.
        """
        from psearch.results import PsearchError
        from psearch.text.fen import parse_position
        from psearch.text.moves import parse_move

        self._is_refused = True
        cut = words.index("moves") if "moves" in words else len(words)
        base, moves = (chess960, *words[:cut]), list(words[cut + 1 :])
        if not cut:
            raise PsearchError("startpos or fen is missing")
        known = len(self._moves)
        if self._board is not None and base == self._base and moves[:known] == self._moves:
            board = self._board.copy()
        else:
            known = 0
            board = parse_position(words[:cut], chess960=chess960)
        for number, word in enumerate(moves[known:], start=known + 1):
            board.push(parse_move(board, word, f"move {number}"))
        self._board, self._base, self._moves = board, base, moves
        self._is_refused = False

    def board(self, chess960: bool) -> chess.Board:
        """Return a copy, with the moves of the game so far; after a refusal a board without pieces, for an answer would
        be one for another position. Castling is written as king takes rook if `chess960`."""
        import chess

        if self._is_refused:
            return chess.Board(None)
        if self._board is None:
            self.set_up(["startpos"], chess960)
        assert self._board is not None
        board = self._board.copy()
        board.chess960 = board.chess960 or chess960
        return board
