"""Games from PGN, in the tree of `chess.pgn`: one game in memory at a time, in time linear in the text.

The syntax is that of `chess.pgn.read_game` (python-chess 1.11). That function copies the rest of a line for each
comment and the board for each variation, lets numbers of any length into `int`, and after an unreadable move in a
variation goes on with the wrong board.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import chess
import chess.pgn

from psearch.results import PsearchError
from psearch.text.fen import check_position
from psearch.text.source import Source, TextLine

_MOST_PLIES = 20_000
"""The longest game that the rules allow has 17,697."""
_MOST_NODES = 1_000_000
"""Moves of a game with those of its variations; each takes about a kilobyte."""
_LONGEST_PROBLEM = 200
"""characters"""

_TOKEN = re.compile(
    r"""
    (?P<san>
        [NBKRQ]?[a-h]?[1-8]?[\-x]?[a-h][1-8](?:=?[nbrqkNBRQK])?
        |[PNBRQK]?@[a-h][1-8]
        |--|Z0|0000|@@@@
        |O-O(?:-O)?|0-0(?:-0)?
    )
    |(?P<comment>\{)
    |(?P<rest>;.*)
    |\$(?P<nag>[0-9]+)
    |(?P<open>\()
    |(?P<close>\))
    |(?P<result>\*|1-0|0-1|1/2-1/2)
    |(?P<mark>[?!]{1,2})
    """,
    re.DOTALL | re.VERBOSE,
)
_MARK_NAGS = {
    "!": chess.pgn.NAG_GOOD_MOVE,
    "?": chess.pgn.NAG_MISTAKE,
    "!!": chess.pgn.NAG_BRILLIANT_MOVE,
    "??": chess.pgn.NAG_BLUNDER,
    "!?": chess.pgn.NAG_SPECULATIVE_MOVE,
    "?!": chess.pgn.NAG_DUBIOUS_MOVE,
}
_NAG_DIGITS = 9
"""What is longer is no glyph of anything, and left out."""


class Where(Enum):
    """Where a game cannot be read."""

    GAME = "it is left as it is"
    MAIN_LINE = "what comes after that is left out"
    VARIATION = "the rest of that variation is left out"


@dataclass(frozen=True)
class Problem:
    """What is wrong with a game."""

    text: str
    """one line"""
    where: Where

    @property
    def consequence(self) -> str:
        """What becomes of the game."""
        return self.where.value


@dataclass(frozen=True)
class PgnGame:
    """A game of a file."""

    number: int
    """in the file, from 1"""
    game: chess.pgn.Game
    """without moves where not even the first position can be read"""
    problem: Problem | None
    """the worst that is wrong with it"""
    source: Source
    begin: int
    end: int
    """where it stands, in bytes"""

    @property
    def readable(self) -> bool:
        """False when not even its first position is one of chess."""
        return self.problem is None or self.problem.where is not Where.GAME

    def original(self) -> str:
        """Return the text it was read from, without empty lines around it."""
        return self.source.text_between(self.begin, self.end).strip("\r\n")


def read_games(source: Source) -> Iterator[PgnGame]:
    """Yield the games of a PGN, one after the other."""
    cursor = _Cursor(source)
    number = 0
    while cursor.skip_to_game():
        number += 1
        begin = cursor.begin
        game = chess.pgn.Game.without_tag_roster()  # what was not there is not written
        _read_headers(cursor, game.headers)
        problem = _read_moves(cursor, game)
        yield PgnGame(number, game, problem, source, begin, cursor.begin)


class _Cursor:
    """The present line of a text, empty at its end."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines()
        self._end = TextLine(source.size, "")
        self.begin, self.text = next(self._lines, self._end)

    def advance(self) -> None:
        """Advance to the next line."""
        self.begin, self.text = next(self._lines, self._end)

    @property
    def is_remark(self) -> bool:
        """Whether the whole line is meant for nobody."""
        return self.text.startswith(("%", ";"))

    def skip_to_game(self) -> bool:
        """Skip over empty lines and remarks; False at the end."""
        while self.text and (self.text.isspace() or self.is_remark):
            self.advance()
        return bool(self.text)


def _read_headers(cursor: _Cursor, headers: chess.pgn.Headers) -> None:
    """The tags in front of a game, among which there may be single empty lines."""
    after_empty = False
    while cursor.text:
        if cursor.text.isspace() and not after_empty:
            after_empty = True
        elif cursor.text.startswith("["):
            after_empty = False
            if match := chess.pgn.TAG_REGEX.match(cursor.text):
                headers[match[1]] = match[2]
        elif not cursor.is_remark:
            return
        cursor.advance()


def _read_moves(cursor: _Cursor, game: chess.pgn.Game) -> Problem | None:
    """What follows the tags, up to an empty line outside comments; what is wrong with the game."""
    try:
        board = game.board()
        check_position(board)
    except (PsearchError, ValueError) as error:
        _read_tokens(cursor, None)
        return Problem(_one_line(error), Where.GAME)
    builder = _Builder(game, board)
    _read_tokens(cursor, builder)
    return builder.finish()


def _read_tokens(cursor: _Cursor, builder: _Builder | None) -> None:
    """Hand the tokens of a game to its builder, if it has one."""
    comment: list[str] | None = None
    while cursor.text:
        line, at = cursor.text, 0
        if comment is None and (cursor.is_remark or line.isspace()):
            if line.isspace():
                return
            at = len(line)
        while at < len(line):
            if comment is not None:
                close = line.find("}", at)
                comment.append(line[at:] if close < 0 else line[at:close])
                if close < 0:
                    break
                if builder is not None:
                    builder.take_comment("".join(comment).removeprefix(" ").removesuffix(" "))
                comment, at = None, close + 1
            elif match := _TOKEN.search(line, at):
                at = match.end()
                if match.lastgroup == "comment":
                    comment = []
                elif builder is not None:
                    builder.take(str(match.lastgroup), match[match.lastgroup or 0])
            else:
                break
        cursor.advance()
    if comment and builder is not None:
        builder.take_comment("".join(comment).removeprefix(" "))


class _Builder:
    """Makes the tree of a game from its tokens, and keeps the worst problem and no other.

    After a move that cannot be read the rest of its variation, or of the game, is skipped.
    """

    def __init__(self, game: chess.pgn.Game, board: chess.Board) -> None:
        self._game = game
        self._board = board
        """the position after `_node`"""
        self._node: chess.pgn.GameNode = game
        self._left: list[tuple[chess.pgn.GameNode, int]] = []
        """for each variation that is open: the node after which it stands, and its ply"""
        self._nodes = 0
        self._comments: list[str] = []
        """of `_node`, or before the next move where `_begins`"""
        self._begins = False
        """no move of this variation was read yet"""
        self._skips = False
        self._skipped = 0
        """variations that are open in what is skipped"""
        self._problem: Problem | None = None

    def take(self, kind: str, text: str) -> None:
        """Take the next token, of a kind that `_TOKEN` names."""
        if kind == "result":
            if not self._left and self._game.headers.get("Result", "*") == "*":
                self._game.headers["Result"] = text
        elif kind == "open":
            if self._skips:
                self._skipped += 1
            else:
                self._begin_variation()
        elif kind == "close":
            if self._skips and self._skipped:
                self._skipped -= 1
            elif self._left:
                self._end_variation()
        elif self._skips:
            return
        elif kind == "san":
            self._take_move(text)
        elif kind == "mark":
            self._node.nags.add(_MARK_NAGS[text])
        elif kind == "nag" and len(text) <= _NAG_DIGITS:
            self._node.nags.add(int(text))

    def take_comment(self, text: str) -> None:
        """Take a comment of the last move, of the game where none was read, of the next where a variation begins."""
        if text and not self._skips:
            self._comments.append(text)

    def finish(self) -> Problem | None:
        """End the game; returns what is wrong with it."""
        self._begins = False
        self._keep_comments()
        return self._problem

    def _keep_comments(self) -> None:
        """Give `_node` the comments read since it was reached, unless they are for the next move."""
        if not self._begins:
            self._node.comment = " ".join(filter(None, (self._node.comment, *self._comments)))
            self._comments.clear()

    def _take_move(self, text: str) -> None:
        if len(self._board.move_stack) >= _MOST_PLIES:
            self._skip(f"more than {_MOST_PLIES:,} plies")
            return
        if self._nodes >= _MOST_NODES:
            self._left.clear()
            self._skip(f"more than {_MOST_NODES:,} moves")
            return
        try:
            move = self._board.parse_san(text)
        except ValueError as error:
            self._skip(_one_line(error))
            return
        self._keep_comments()
        self._node = self._node.add_variation(move, starting_comment=" ".join(self._comments))
        self._comments.clear()
        self._board.push(move)
        self._nodes += 1
        self._begins = False

    def _begin_variation(self) -> None:
        if self._node.parent is None:
            return  # there is no move that another could stand for
        self._keep_comments()
        self._left.append((self._node, len(self._board.move_stack)))
        self._node = self._node.parent
        self._board.pop()
        self._begins = True

    def _end_variation(self) -> None:
        self._keep_comments()
        self._node, ply = self._left.pop()
        while len(self._board.move_stack) >= ply:
            self._board.pop()
        assert isinstance(self._node, chess.pgn.ChildNode)
        self._board.push(self._node.move)
        self._begins = self._skips = False

    def _skip(self, reason: str) -> None:
        self._skips, self._skipped = True, 0
        if not self._left:
            self._problem = Problem(reason, Where.MAIN_LINE)
        elif self._problem is None:
            self._problem = Problem(f"in a variation, {reason}", Where.VARIATION)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST_PROBLEM else text[: _LONGEST_PROBLEM - 3] + "..."
