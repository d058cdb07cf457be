"""Lines of a user's game, in its own words."""

from __future__ import annotations

from typing import NamedTuple

from psearch.games.game import GamePosition
from psearch.results import PsearchError


class GameLine(NamedTuple):
    """A `NodeLine` of a game."""

    codes: tuple[int, ...]
    moves: tuple[str, ...]
    position: GamePosition
    legal: tuple[int, ...]
    """codes"""

    @property
    def fen(self) -> str:
        """Return nothing: no board of chess can show it."""
        return ""

    @property
    def words(self) -> tuple[str, ...]:
        """Return the moves: a game has one way to write them."""
        return self.moves

    @property
    def choices(self) -> int:
        """Return the number of legal moves."""
        return len(self.legal)

    def named(self, code: int) -> tuple[str, str] | None:
        """Return a move from here, twice; None if it is not legal."""
        if code not in self.legal:
            return None
        word = self.position.name_of(code)
        return word, word


class GameLines:
    """`Lines` of a game, from the position that is searched."""

    fen = ""

    def __init__(self, root: GamePosition) -> None:
        self._start = _line_to(root, (), ())

    def line(self, codes: tuple[int, ...], near: GameLine | None = None) -> GameLine | None:
        """Return the line of these moves; None if one is not legal. near: a line that may be the beginning of it."""
        found = near if near is not None and codes[: len(near.codes)] == near.codes else self._start
        for code in codes[len(found.codes) :]:
            named = found.named(code)
            if named is None:
                return None
            found = _line_to(found.position.after(code - 1), (*found.codes, code), (*found.moves, named[0]))
        return found


def _line_to(position: GamePosition, codes: tuple[int, ...], moves: tuple[str, ...]) -> GameLine:
    try:
        legal = tuple(position.root_moves())
    except PsearchError:  # the file finds none, or too many: the search says so
        legal = ()
    return GameLine(codes, moves, position, legal)
