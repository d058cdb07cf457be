"""Games from PGN, in the tree of `chess.pgn`: one game in memory at a time, in time linear in the text.

`psearch.text.pgn_split` parts the games and their tokens, `psearch.text.movetext` says what is a move. Nothing that a
game has is lost: what cannot be read is a comment, and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import chess
import chess.pgn

from psearch.results import PsearchError
from psearch.text.fen import parse_position
from psearch.text.movetext import ENGLISH, MARK_NAGS, Letters, read_move, readings
from psearch.text.pgn_split import GameText, Token, split_games
from psearch.text.source import Source

_MOST_PLIES = 20_000
"""The longest game that the rules allow has 17,697."""
_MOST_NODES = 1_000_000
"""Moves of a game with those of its variations; each takes about a kilobyte."""
_LONGEST_PROBLEM = 200
"""characters"""
_STANDARD = re.compile("(standard.*|normal|regular|orthodox|classic|classical|fromposition|wild[0-8]a?)?(chess)?")
_CHESS960 = re.compile(".*960.*|fischer.*|freestyle.*|frc|wildfr")
"""What programs call the two in the tag Variant, in small letters without blanks and signs."""
_NO_FEN = ("", "?", "-", "startpos")


class Where(Enum):
    """Where a game cannot be read."""

    GAME = "it is left as it is"
    MAIN_LINE = "what comes after that is kept as a comment"
    VARIATION = "the rest of that variation is kept as a comment"
    TEXT = "the game is read all the same"


@dataclass(frozen=True)
class Problem:
    """What is wrong with a game."""

    text: str
    """one line"""
    where: Where
    line: int = 0
    """of the file, from 1"""

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
    problems: tuple[Problem, ...]
    """what is wrong with it, the worst first"""
    source: Source
    begin: int
    end: int
    """where it stands, in bytes"""

    @property
    def problem(self) -> Problem | None:
        """The worst that is wrong with it."""
        return self.problems[0] if self.problems else None

    @property
    def readable(self) -> bool:
        """False when not even its first position is one of chess."""
        return self.problem is None or self.problem.where is not Where.GAME

    def original(self) -> str:
        """Return the text it was read from, without empty lines around it."""
        return self.source.text_between(self.begin, self.end).strip("\r\n\ufeff")


class BoardGame(chess.pgn.Game):
    """A game that begins on a board, whatever its tags say, and so can keep them as they were written."""

    def __init__(self, board: chess.Board, headers: chess.pgn.Headers) -> None:
        super().__init__(headers)
        self._start = board

    def board(self) -> chess.Board:
        return self._start.copy()

    def ply(self) -> int:
        return self._start.ply()


def read_games(source: Source) -> Iterator[PgnGame]:
    """Yield the games of a PGN, one after the other."""
    for number, text in enumerate(split_games(source), start=1):
        game, problem = _read(text)
        notes = [Problem(note.text, Where.TEXT, note.line) for note in text.notes]
        found = ([] if problem is None else [problem]) + notes
        yield PgnGame(number, game, tuple(found), source, text.begin, text.end)


def _read(text: GameText) -> tuple[chess.pgn.Game, Problem | None]:
    """The moves of a game, in English or the one other language in which all of them can be read."""
    headers = chess.pgn.Headers({})  # what was not there is not written
    for name, value in text.tags.items():
        headers[name] = value
    try:
        board = _first_position(headers)
    except (PsearchError, ValueError) as error:
        return chess.pgn.Game(headers), Problem(_one_line(error), Where.GAME, text.line)
    game, problem = _Builder(board, headers, ENGLISH).build(text.tokens)
    if problem is not None:
        words = (word for kind, word, *_ in text.tokens if kind in ("san", "word"))
        others = [_Builder(board, headers.copy(), language).build(text.tokens) for language in readings(words)]
        whole = {
            str(list(other.mainline_moves())): (other, trouble)
            for other, trouble in others
            if trouble is None or trouble.where is Where.VARIATION
        }
        if len(whole) == 1:
            return next(iter(whole.values()))
    return game, problem


def _first_position(headers: chess.pgn.Headers) -> chess.Board:
    variant, fen = headers.get("Variant", "").casefold(), headers.get("FEN", "")
    name = re.sub(r"[\W_]+", "", variant)
    is_chess960 = _CHESS960.fullmatch(name) is not None
    if not is_chess960 and not _STANDARD.fullmatch(name):
        raise PsearchError(f"{variant} is not supported, only chess and Chess960")
    return parse_position("startpos" if fen.strip() in _NO_FEN else fen, chess960=is_chess960)


class _Builder:
    """Makes the tree of a game from its tokens, and keeps the worst problem and no other.

    After a move that cannot be read the rest of its variation, or of the game, is a comment.
    """

    def __init__(self, board: chess.Board, headers: chess.pgn.Headers, letters: Letters) -> None:
        self._game = BoardGame(board, headers)
        self._board = board.copy()
        """the position after `_node`"""
        self._letters = letters
        self._node: chess.pgn.GameNode = self._game
        self._left: list[tuple[chess.pgn.GameNode, int]] = []
        """for each variation that is open: the node after which it stands, and its ply"""
        self._nodes = 0
        self._comments: list[str] = []
        """of `_node`, or before the next move where `_begins`"""
        self._begins = False
        """no move of this variation was read yet"""
        self._skipped: list[str] | None = None
        """the words that are left out, where they are"""
        self._reason = ""
        """why"""
        self._inside = 0
        """variations that are open in what is left out"""
        self._problem: Problem | None = None

    def build(self, tokens: list[Token]) -> tuple[chess.pgn.Game, Problem | None]:
        """Return the game, and what is wrong with it."""
        for kind, text, line, number in tokens:
            if self._skipped is not None:
                self._skip_over(kind, f"{number} {text}" if number else text)
            elif kind == "san" or kind == "word":
                self._take_move(kind, text, line)
            elif kind == "comment":  # of the last move, of the game where none was read, of the next in a variation
                if text:
                    self._comments.append(text)
            elif kind == "number":
                continue
            elif kind == "open":
                self._begin_variation()
            elif kind == "close":
                self._end_variation()
            elif kind == "result":
                self._take_result(text)
            elif kind == "nag":
                self._node.nags.add(int(text))
            elif kind == "mark":
                self._take_mark(text)
        while self._skipped is not None or self._left:
            self._end_variation()
        self._begins = False
        self._keep_comments()
        return self._game, self._problem

    def _take_mark(self, text: str) -> None:
        if text in MARK_NAGS:
            self._node.nags.add(MARK_NAGS[text])
        elif text[0] in "!?":
            self._comments.append(text)

    def _take_result(self, text: str) -> None:
        headers = self._game.headers
        text = re.sub("[^0-9/½*]", "-", text).replace("½", "1/2")
        text = "1/2-1/2" if text == "1/2" else text
        if self._left or headers.get("Result", text) not in (text, "*"):
            self._comments += [text] if self._left or text != "*" else []
        else:
            headers["Result"] = text

    def _keep_comments(self) -> None:
        """Give `_node` the comments read since it was reached, unless they are for the next move."""
        if self._comments and not self._begins:
            before = (self._node.comment,) if self._node.comment else ()
            self._node.comment = " ".join((*before, *self._comments))
            self._comments.clear()

    def _take_move(self, kind: str, text: str, line: int) -> None:
        if len(self._board.move_stack) >= _MOST_PLIES:
            self._skip(text, line, f"more than {_MOST_PLIES:,} plies")
            return
        if self._nodes >= _MOST_NODES:
            self._left.clear()
            self._skip(text, line, f"more than {_MOST_NODES:,} moves")
            return
        try:
            if kind == "san" and self._letters is ENGLISH:
                move = self._board.parse_san(text)
            else:
                move = read_move(self._board, text, self._letters)
        except ValueError as error:
            self._skip(text, line, _one_line(error))
            return
        starting_comment = ""
        if self._comments:
            self._keep_comments()
            starting_comment = " ".join(self._comments)
            self._comments.clear()
        self._node = self._node.add_variation(move, starting_comment=starting_comment)
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
        if self._skipped is not None:
            rest = " ".join(self._skipped).replace("[%", "[ %")
            reason = self._reason.split(" in ")[0]  # without the position
            self._comments.append(f"psearch could not read on: {reason}: {rest}".translate(_IN_COMMENT))
            self._skipped = None
        self._keep_comments()
        if not self._left:
            return
        self._node, ply = self._left.pop()
        while len(self._board.move_stack) >= ply:
            self._board.pop()
        assert isinstance(self._node, chess.pgn.ChildNode)
        self._board.push(self._node.move)
        self._begins = False

    def _skip(self, text: str, line: int, reason: str) -> None:
        self._skipped, self._inside, self._reason = [text], 0, reason
        if not self._left:
            self._problem = Problem(reason, Where.MAIN_LINE, line)
        elif self._problem is None:
            self._problem = Problem(f"in a variation, {reason}", Where.VARIATION, line)

    def _skip_over(self, kind: str, text: str) -> None:
        assert self._skipped is not None
        self._inside += (kind == "open") - (kind == "close")
        if self._inside < 0 and self._left:
            self._end_variation()
        elif kind == "result" and not self._left and self._inside <= 0:
            self._take_result(text)
        else:
            self._skipped.append({"comment": "{%s}", "nag": "$%s"}.get(kind, "%s") % text)


_IN_COMMENT = str.maketrans("{}", "()")


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST_PROBLEM else text[: _LONGEST_PROBLEM - 3] + "..."
