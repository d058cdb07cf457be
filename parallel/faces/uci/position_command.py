"""The position that the `position` command sets up, kept from one command to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import chess


class CurrentPosition:
    """What the next `go` searches. The initial position until something else is set up."""

    def __init__(self) -> None:
        self._base: tuple[str, ...] = ()
        self._moves: list[str] = []
        self._board: chess.Board | None = None

    def set_up(self, words: Sequence[str], chess960: bool) -> None:
        """Obey a `position` command. Raises PsearchError; the last good position stays then.

        Only the new moves are played if it goes on from the last one: games are sent whole, move after move.
        """
        from psearch.results import PsearchError

        cut = words.index("moves") if "moves" in words else len(words)
        base, moves = tuple(words[:cut]), list(words[cut + 1 :])
        known = len(self._moves)
        if self._board is not None and base == self._base and moves[:known] == self._moves:
            board = self._board.copy()
        else:
            known = 0
            board = _parse_base(base)
        board.chess960 = board.chess960 or chess960
        for number, word in enumerate(moves[known:], start=known + 1):
            try:
                move = board.parse_uci(word)
            except ValueError:
                move = None
            if not move:
                raise PsearchError(f"move {number}, {word[:10]!a}, is not legal in {board.fen()}")
            board.push(move)
        self._board, self._base, self._moves = board, base, moves

    def board(self, chess960: bool) -> chess.Board:
        """Return a copy, with the moves of the game so far. Castling is written as king takes rook if `chess960`."""
        if self._board is None:
            self.set_up(["startpos"], chess960)
        assert self._board is not None
        board = self._board.copy()
        board.chess960 = board.chess960 or chess960
        return board


def _parse_base(base: Sequence[str]) -> chess.Board:
    """`startpos` or `fen F`. Raises PsearchError."""
    from psearch.results import PsearchError
    from psearch.text.fen import parse_position

    if tuple(base) == ("startpos",):
        return parse_position("startpos")
    if base[:1] == ("fen",):
        return parse_position(list(base[1:]))
    raise PsearchError("startpos or fen is missing")
