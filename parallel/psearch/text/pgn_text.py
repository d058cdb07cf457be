"""Reads games from PGN into the tree of `chess.pgn`: one game in memory at a time, in time linear in the text.

Files are joined, mailed, edited and cut, so the reader is tolerant. A game begins at a tag after moves, after a result,
or where the move numbers restart; an empty line alone means nothing. No text of a file is lost: unreadable text becomes
a comment of the game in or before which it stands, and is reported.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import chess
import chess.pgn

from psearch.results import PsearchError
from psearch.text.fen import parse_position
from psearch.text.moves import BLANK, BLANK_LINE, ENGLISH, MARK_NAGS, TOKEN, Letters, letters_of, read_move, readings
from psearch.text.source import Source, TextLine
from psearch.text.values import shown

_FARTHEST = 1 << 20
"""Most characters that are searched for the end of a comment in which another game seems to begin."""
_MOST_TAG_LINES = 3
_NAG_DIGITS = 9
"""Most digits of a glyph's number."""
_MOST_PLIES = 20_000
"""Most plies of a game; the longest that the rules allow has 17,697."""
_MOST_NODES = 1_000_000
"""Most moves of a game including its variations; each takes about a kilobyte."""
_LONGEST_SHOWN = 80
_LONGEST_PROBLEM = 200

_NAME = r"[A-Za-z0-9][A-Za-z0-9_+#=:-]*"
_TAG_BEGIN = re.compile(rf'\[\s*{_NAME}\s*"')
_MOVE = r"(?:[^\W\d_]{0,2}[a-h]?[1-8]?[-x]?[a-h][1-8]|[0Oo]-[0Oo]|--)"
_TAG = re.compile(
    rf"""
    \[\s*({_NAME})\s*"
    (?:((?:[^\[\n\r]|\[(?!\s*{_NAME}\s*"))*?)"\s*\](?=[{BLANK}]*(?:$|\[\s*{_NAME}\s*"|[0-9{{(*;]|{_MOVE}))|([^"\n\r]*)"\s*\])
    """,
    re.VERBOSE,
)
"""Pattern of a tag. Its value may contain quotes and brackets: it ends before a tag, moves or the end of the line."""
_MOVES_BEGIN = re.compile(rf"\s*[0-9]{{1,4}}\s*[.…]+\s*{_MOVE}")
_GAME_BEGIN = re.compile(rf"\s*1\s*\.\s*{_MOVE}")
_INDENT = "\ufeff\u200b \t\f\v"
_BRACE = re.compile("[{}]")
_STANDARD = re.compile("(standard.*|normal|regular|orthodox|classic|classical|fromposition|wild[0-8]a?)?(chess)?")
_CHESS960 = re.compile(".*960.*|fischer.*|freestyle.*|frc|wildfr")
"""Names of the two variants in the tag Variant, in lower case, without blanks and punctuation."""
_NO_FEN = ("", "?", "-", "startpos")
_IN_COMMENT = str.maketrans("{}", "()")


Token: TypeAlias = tuple[str, str, int, str]
"""A token after the tags: its kind (`san`, `word`, `number`, `comment`, `nag`, `mark`, `open`, `close` or `result`);
its text, without the braces of a comment; its line in the file, from 1; the number that is written before a move."""


class Where(Enum):
    """Part of a game that cannot be read, and the consequence."""

    GAME = "the game is kept unchanged"
    MAIN_LINE = "the rest of the game is kept as a comment"
    VARIATION = "the rest of that variation is kept as a comment"
    TEXT = "the game is read anyway"


@dataclass(frozen=True)
class Problem:
    """A problem of a game, in one line."""

    text: str
    where: Where
    line: int = 0
    """Line in the file, from 1."""

    @property
    def consequence(self) -> str:
        return self.where.value


@dataclass
class GameText:
    """A game as its tokens, with its first line in the file, from 1, and its begin and its end in bytes."""

    line: int
    begin: int
    end: int = 0
    tags: dict[str, str] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    """Problems that do not prevent the game from being read."""
    has_moves: bool = False
    """True if a move or a result has been read."""
    result: str = ""
    """Result after which the game ends."""

    @property
    def is_real(self) -> bool:
        return self.has_moves or bool(self.tags)


@dataclass(frozen=True)
class PgnGame:
    """A game of a file, with its number in the file, from 1, and its begin and its end in bytes."""

    number: int
    game: chess.pgn.Game
    """Tree of the game; it has no moves if its first position is not legal."""
    problems: tuple[Problem, ...]
    """Problems of the game, the worst first."""
    source: Source
    begin: int
    end: int

    @property
    def problem(self) -> Problem | None:
        return self.problems[0] if self.problems else None

    @property
    def readable(self) -> bool:
        """False if the first position of the game is not legal."""
        return self.problem is None or self.problem.where is not Where.GAME

    def original(self) -> str:
        """Return the text of the game in its file, without empty lines around it."""
        return self.source.text_between(self.begin, self.end).strip("\r\n\ufeff")


class BoardGame(chess.pgn.Game):
    """A game that begins on a given board, whatever its tags say, so that the tags can stay as they were written."""

    def __init__(self, board: chess.Board, headers: chess.pgn.Headers) -> None:
        super().__init__(headers)
        self._start = board

    def board(self) -> chess.Board:
        return self._start.copy()

    def ply(self) -> int:
        return self._start.ply()


def read_games(source: Source) -> Iterator[PgnGame]:
    for number, text in enumerate(split_games(source), start=1):
        game, problem = _read(text)
        found = ([] if problem is None else [problem]) + text.notes
        yield PgnGame(number, game, tuple(found), source, text.begin, text.end)


def split_games(source: Source) -> Iterator[GameText]:
    """Yield the games of a PGN as tokens, one after the other."""
    splitter = _Splitter(source)
    while splitter.take_line():
        while len(splitter.finished) > (not splitter.game.is_real):
            yield splitter.finished.popleft()
    splitter.end(source.size)
    yield from splitter.finished


class _Splitter:
    """Divides lines into tokens and games. `game` is the game being read, `finished` has those before it."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines()
        self._coming: deque[TextLine] = deque()
        """Lines that were read ahead."""
        self._line = TextLine(0, "")
        self._number = 0
        """Number of the line; one more at the end."""
        self._is_at_end = False
        self.game = GameText(1, 0)
        self.finished: deque[GameText] = deque()
        """Finished games. The last one waits until the next has begun, since text before that still belongs to it."""
        self._depth = 0
        """Number of open variations."""
        self._has_variation_moves = False
        self._first_move_number = self._move_number = 0
        """First and last move number of the main line."""
        self._is_after_blank = False
        self._before_blank = 0
        """Number of the game's tokens before the last empty line."""
        self._behind_blank = 0
        """Offset of the end of that line, in bytes."""
        self._is_text = False
        """True if the lines up to the next empty one are not PGN."""
        self._result_inside = False
        """True if the last token was a result inside a variation."""

    def take_line(self) -> bool:
        """Read the next line, and the further lines of its last comment. Return False at the end."""
        if not self._next_line():
            return False
        text = self._line.text
        if text.isspace() or BLANK_LINE.fullmatch(text):
            self._is_text = False
            if not self._is_after_blank:
                self._is_after_blank = True
                self._before_blank, self._behind_blank = len(self.game.tokens), self._line.end
            if self._result_inside:
                self._note("a ( without its )")
                self.game.result, self._depth, self._result_inside = "*", 0, False
        elif text.startswith(("%", "\ufeff%")):
            self._add("comment", text.lstrip("\ufeff").strip())
        else:
            begin = text.lstrip(_INDENT)
            self._is_text = self._is_text and not (_TAG_BEGIN.match(begin) or _MOVES_BEGIN.match(begin))
            if self._is_text:
                self._add("comment", " ".join(text.split()))
            else:
                self._take(text)
        return True

    def _next_line(self) -> bool:
        line = self._coming.popleft() if self._coming else next(self._lines, None)
        self._number += not self._is_at_end
        self._is_at_end = line is None
        self._line = line or self._line
        return line is not None

    def _look_ahead(self) -> Iterator[str]:
        """Yield the next lines without consuming them."""
        for line in self._coming:
            yield line.text
        for line in self._lines:
            self._coming.append(line)
            yield line.text

    def _take(self, text: str) -> None:
        begin = at = 0
        number = self._number
        while at < len(text):
            match = TOKEN.match(text, at)
            assert match is not None
            kind, game, at = match.lastgroup or "", self.game, match.end()
            is_plain = game.has_moves and not (game.result or self._is_after_blank)
            if kind == "san":  # the common case, treated first for speed
                if count := match["count"]:
                    move_number = int(count.rstrip("."))
                    if is_plain and 0 < self._first_move_number < move_number:
                        self._move_number = move_number if self._depth == 0 else self._move_number
                    else:
                        self._take_number(move_number, count, text, match.start("count"))
                        is_plain = False
                if is_plain:
                    self._has_variation_moves, self._result_inside = True, False
                    game.tokens.append((kind, match["san"], number, count or ""))
                else:
                    self._take_move(kind, match["san"], match.start(kind))
                continue
            word, place = match[kind], match.start(kind)
            is_in_moves = game.has_moves and (self._depth > 0 or not game.result)
            if kind in ("comment", "rest") and game.result and not self._depth and self._is_after_blank:
                self._begin_game(place)
            if kind == "number":
                self._take_number(int(word), text[place:at].strip(), text, place)
            elif kind == "comment":
                text, at = self._take_comment(text, at)
                if number != self._number:
                    begin, number = at, self._number
            elif kind == "rest":
                self._add("comment", word[1:].strip())
            elif kind == "tag":
                text, at = self._take_bracket(text, place)
                number = self._number
            elif kind == "result":
                self._take_result(word, place)
            elif kind == "end":
                break
            elif not is_in_moves and kind in ("open", "close", "mark", "nag"):
                at = self._take_text(text, place, begin)
            elif kind == "open":
                self._add("open", word)
                self._depth += 1
                self._has_variation_moves = False
            elif kind == "close":
                self._result_inside = False
                if self._depth == 0:
                    self._note("a ) without its (")
                else:
                    self._depth -= 1
                    self._add("close", ")")
            elif kind == "mark" or word in MARK_NAGS:
                self._add("mark", word)
            elif kind == "nag":
                self._add(*("nag", word) if len(word) <= _NAG_DIGITS else ("comment", f"${word}"))
            elif word == "}":
                self._note("a } without its {")
            elif letters_of(word) is not None:
                self._take_move("word", word, place)
            elif is_in_moves:
                self._add("word", word)
            else:
                at = self._take_text(text, place, begin)

    def _add(self, kind: str, text: str) -> None:
        self.game.tokens.append((kind, text, self._number, ""))

    def _note(self, text: str, line: int = 0) -> None:
        self.game.notes.append(Problem(text, Where.TEXT, line or self._number))

    def _take_move(self, kind: str, word: str, place: int) -> None:
        game = self.game
        if game.result and not self._depth:
            self._begin_game(place)
        elif self._is_after_blank and game.has_moves and not (self._depth or game.tags or self._move_number):
            self._begin_game(place, with_comments=True)
        self.game.has_moves = self._has_variation_moves = True
        self._is_after_blank = self._is_text = self._result_inside = False
        self._add(kind, word)

    def _take_number(self, number: int, word: str, text: str, place: int) -> None:
        """Process a move number, which may be the first of another game."""
        game = self.game
        is_black = "…" in word or word.count(".") > 1
        if game.result and not self._depth:
            if self._is_after_blank or (number <= self._move_number and not is_black) or not self._move_number:
                self._begin_game(place)
            else:
                game.result = ""
        elif game.has_moves and not is_black and number <= (self._first_move_number or 1):
            if self._is_after_blank and not (self._depth > 0 and not self._has_variation_moves):
                self._begin_game(place, with_comments=True)
            elif self._depth == 0 and not text[:place].strip():
                self._note("no result before the next game")
                self._begin_game(place)
        if self._depth == 0:
            self._first_move_number = self._first_move_number or number
            self._move_number = max(self._move_number, number)
        self._add("number", word)

    def _take_result(self, word: str, place: int) -> None:
        if self.game.result and not self._depth:
            if word == self.game.result and not self._is_after_blank:
                return
            self._begin_game(place)
        self._result_inside = self._depth > 0
        self.game.result = self.game.result if self._depth else word
        self.game.has_moves = True
        self._is_after_blank = self._is_text = False
        self._add("result", word)

    def _take_comment(self, text: str, at: int) -> tuple[str, int]:
        """Read a comment, which may contain braces. Return the line in which it ends, and the place after it."""
        first_line, inside, open_braces, is_closed = self._number, [""], 0, False
        while True:
            close = text.find("}", at)
            inside.append(text[at:] if close < 0 else text[at:close])
            open_braces += inside[-1].count("{")
            if close >= 0:
                at = close + 1
                if not open_braces:
                    break
                if self._next_brace(text, at, up_to_blank=True) != "}":
                    self._note("a { inside a comment", first_line)
                    break
                open_braces -= 1
                inside.append("}")
                continue
            is_left_open = not self._next_line()
            if is_left_open:
                at = len(text)
            else:
                text, at = self._line.text, 0
                is_after_blank = BLANK_LINE.fullmatch(inside[-1])
                begins = _TAG_BEGIN.match(text.lstrip(_INDENT)) or (is_after_blank and _GAME_BEGIN.match(text))
                if begins and not is_closed:
                    is_closed = self._next_brace(text, 0) == "}"
                    is_left_open = not is_closed
            if is_left_open:
                self._note("a { without its }", first_line)
                self._is_after_blank = True
                break
        self.game.tokens.append(("comment", "".join(inside).removeprefix(" ").removesuffix(" "), first_line, ""))
        return text, at

    def _next_brace(self, text: str, at: int, up_to_blank: bool = False) -> str:
        """Return the next brace after a place in a line; empty if there is none nearby."""
        if found := _BRACE.search(text, at):
            return found[0]
        searched = 0
        for text in self._look_ahead():
            if searched > _FARTHEST or (up_to_blank and (BLANK_LINE.fullmatch(text) or _TAG.match(text))):
                break
            if found := _BRACE.search(text):
                return found[0]
            searched += len(text)
        return ""

    def _take_bracket(self, text: str, place: int) -> tuple[str, int]:
        """Read a tag, or text that looks like one. Return the line, joined with further lines of the tag's value, and
        the place after the tag."""
        match, begin, count = _TAG.match(text, place), _TAG_BEGIN.match(text, place), 0
        if match is None and begin is not None:
            joined = text
            for count, following in enumerate(self._look_ahead(), start=1):
                if count >= _MOST_TAG_LINES or BLANK_LINE.fullmatch(following) or following.lstrip().startswith("["):
                    break
                joined = f"{joined.rstrip()} {following.lstrip()}"
                if match := _TAG.match(joined, place):
                    text = joined
                    break
        if match is None:
            end = len(text)
            if begin is not None:
                if self.game.has_moves:
                    self._begin_game(place)
                following_tag = _TAG_BEGIN.search(text, begin.end())
                end = following_tag.start() if following_tag else end
            elif self.game.has_moves:
                end = text.find("]", place) + 1 or end
            self._add_text(text[place:end])
            return text, end
        name, value = match[1], match[2] if match[2] is not None else match[3]
        if self.game.has_moves or (name in self.game.tags and (name == "Event" or self._is_after_blank)):
            self._begin_game(place)
        if count:
            first = self._line.begin
            for _ in range(count):
                self._next_line()
            self._line = self._line._replace(begin=first, text=text)
        self._is_after_blank = self._is_text = False
        tags = self.game.tags
        if tags.get(name, value) != value:
            self._note(f"the tag {name} occurs twice")
            self._add("comment", f'[{name} "{tags[name]}"]')
        tags[name] = value
        return text, match.end()

    def _take_text(self, text: str, place: int, begin: int) -> int:
        """Read text that is not PGN, with the numbers before it, and return the place after it."""
        if self.game.result and (self._is_after_blank or not text[begin:place].strip()):
            self._begin_game(place)
        following = _TAG_BEGIN.search(text, place)
        end = following.start() if following else len(text)
        if text[place] == "(" and not self.game.result:
            end = text.find(")", place) + 1 or end
        self._is_text = not self.game.result and end == len(text)
        tokens, numbers = self.game.tokens, ""
        while tokens and tokens[-1][0] == "number":
            numbers = f"{tokens.pop()[1]} {numbers}"
        self._add_text(numbers + text[place:end])
        return end

    def _add_text(self, text: str) -> None:
        self._note(f"{shown(' '.join(text[:_LONGEST_SHOWN].split()))} is not PGN")
        self._add("comment", " ".join(text.split()))

    def _begin_game(self, place: int, with_comments: bool = False) -> None:
        """End the game and begin another at a place in the line. with_comments: move the comments after the last empty
        line to the new game."""
        before, begin, line = self.game, self._line.offset(place), self._number
        comments = before.tokens[self._before_blank :] if with_comments else []
        if comments and all(kind == "comment" for kind, *_ in comments):
            del before.tokens[self._before_blank :]
            begin, line = self._behind_blank, comments[0][2]
        else:
            comments = []
        self._finish(begin)
        self.game = GameText(line, begin, tokens=comments)
        self._depth = self._first_move_number = self._move_number = 0
        self._is_after_blank = self._is_text = self._result_inside = False

    def _finish(self, end: int) -> None:
        if self._depth:
            self._note("a ( without its )")
        self.game.end = end
        self.finished.append(self.game)

    def end(self, size: int) -> None:
        """Finish the last game, to which the rest of the text belongs."""
        if self.game.is_real:
            self._finish(size)
        elif self.finished:
            last = self.finished[-1]
            last.end = size
            last.notes += self.game.notes
            last.tokens += [("comment", *token[1:]) for token in self.game.tokens]


def _read(text: GameText) -> tuple[chess.pgn.Game, Problem | None]:
    """Parse the moves of a game, in English or in the only other language in which all can be read."""
    headers = chess.pgn.Headers({})  # without defaults: missing tags stay missing
    headers.update(text.tags)
    variant, fen = headers.get("Variant", "").casefold(), headers.get("FEN", "")
    name = re.sub(r"[\W_]+", "", variant)
    is_chess960 = _CHESS960.fullmatch(name) is not None
    try:
        if not is_chess960 and not _STANDARD.fullmatch(name):
            raise PsearchError(f"{variant} is not supported, only chess and Chess960")
        board = parse_position("startpos" if fen.strip() in _NO_FEN else fen, chess960=is_chess960)
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


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST_PROBLEM else text[: _LONGEST_PROBLEM - 3] + "..."


class _Builder:
    """Builds the tree of a game from its tokens, and keeps only the worst problem. After an unreadable move the rest of
    its variation, or of the game, becomes a comment."""

    def __init__(self, board: chess.Board, headers: chess.pgn.Headers, letters: Letters) -> None:
        self._game = BoardGame(board, headers)
        self._board = board.copy()
        """Position after `_node`."""
        self._letters = letters
        self._node: chess.pgn.GameNode = self._game
        self._left: list[tuple[chess.pgn.GameNode, int, bool]] = []
        """Node before each open variation, its ply, and whether the variation around it had no move yet."""
        self._nodes = 0
        self._comments: list[str] = []
        """Comments on `_node`; if `_begins`, those before the next move."""
        self._begins = False
        """True if no move of this variation has been read."""
        self._skipped: list[str] | None = None
        """Skipped words; None: nothing is being skipped."""
        self._reason = ""
        """Reason for skipping."""
        self._inside = 0
        """Number of open variations within the skipped words."""
        self._problem: Problem | None = None

    def build(self, tokens: list[Token]) -> tuple[chess.pgn.Game, Problem | None]:
        """Return the game and its worst problem, if any."""
        for kind, text, line, number in tokens:
            if self._skipped is not None:
                self._skip_over(kind, f"{number} {text}" if number else text)
            elif kind == "san" or kind == "word":
                self._take_move(kind, text, line)
            elif kind == "comment":  # on the last move, on the game before any move, or on the next move of a variation
                if text:
                    self._comments.append(text.translate(_IN_COMMENT))
            elif kind == "number":
                continue
            elif kind == "open":
                if self._begins and self._left:  # another variation for the same move
                    self._left.append((*self._left[-1][:2], True))
                elif self._node.parent is not None:  # there is a move that the variation can replace
                    self._keep_comments()
                    self._left.append((self._node, len(self._board.move_stack), False))
                    self._node = self._node.parent
                    self._board.pop()
                    self._begins = True
            elif kind == "close":
                self._end_variation()
            elif kind == "result":
                self._take_result(text)
            elif kind == "nag":
                self._node.nags.add(int(text))
            elif text in MARK_NAGS:
                self._node.nags.add(MARK_NAGS[text])
            elif text[0] in "!?":
                self._comments.append(text)
        while self._skipped is not None or self._left:
            self._end_variation()
        self._begins = False
        self._keep_comments()
        return self._game, self._problem

    def _take_move(self, kind: str, text: str, line: int) -> None:
        try:
            if len(self._board.move_stack) >= _MOST_PLIES:
                raise ValueError(f"more than {_MOST_PLIES:,} plies")
            if self._nodes >= _MOST_NODES:
                self._left.clear()
                raise ValueError(f"more than {_MOST_NODES:,} moves")
            if kind == "san" and self._letters is ENGLISH:
                move = self._board.parse_san(text)
            else:
                move = read_move(self._board, text, self._letters)
        except ValueError as error:
            self._skipped, self._inside, self._reason = [text], 0, _one_line(error)
            if not self._left:
                self._problem = Problem(self._reason, Where.MAIN_LINE, line)
            elif self._problem is None:
                self._problem = Problem(f"in a variation, {self._reason}", Where.VARIATION, line)
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

    def _take_result(self, text: str) -> None:
        headers = self._game.headers
        text = re.sub("[^0-9/½*]", "-", text).replace("½", "1/2")
        text = "1/2-1/2" if text == "1/2" else text
        if self._left or headers.get("Result", text) not in (text, "*"):
            self._comments += [text] if self._left or text != "*" else []
        else:
            headers["Result"] = text

    def _keep_comments(self) -> None:
        """Add the latest comments to `_node`, unless they belong to the next move."""
        if self._comments and not self._begins:
            before = (self._node.comment,) if self._node.comment else ()
            self._node.comment = " ".join((*before, *self._comments))
            self._comments.clear()

    def _end_variation(self) -> None:
        if self._skipped is not None:
            rest = " ".join(self._skipped).replace("[%", "[ %")
            reason = self._reason.split(" in ")[0]  # without the position
            self._comments.append(f"psearch could not read on: {reason}: {rest}".translate(_IN_COMMENT))
            self._skipped = None
        self._keep_comments()
        if self._left:
            self._node, ply, self._begins = self._left.pop()
            while len(self._board.move_stack) >= ply:
                self._board.pop()
            assert isinstance(self._node, chess.pgn.ChildNode)
            if self._begins:
                self._node = self._node.parent
            else:
                self._board.push(self._node.move)

    def _skip_over(self, kind: str, text: str) -> None:
        assert self._skipped is not None
        self._inside += (kind == "open") - (kind == "close")
        if self._inside < 0 and self._left:
            self._end_variation()
        elif kind == "result" and not self._left and self._inside <= 0:
            self._take_result(text)
        else:
            self._skipped.append({"comment": "{%s}", "nag": "$%s"}.get(kind, "%s") % text)
