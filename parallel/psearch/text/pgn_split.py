"""Where the games of a PGN begin and end: its text as games of tags and tokens, one game in memory at a time.

Files are joined, mailed, edited and cut, so nothing is taken for granted. A game begins at a tag behind moves, behind a
result, or where the numbers of the moves begin again; empty lines alone say nothing. What is no PGN stays a comment of
the game that it stands in or before, with a note. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from psearch.text.movetext import BLANK, BLANK_LINE, MARK_NAGS, TOKEN, letters_of
from psearch.text.source import Source, TextLine
from psearch.text.values import shown

_FARTHEST = 1 << 20
"""Characters that are searched for the end of a comment in which another game seems to begin."""
_MOST_TAG_LINES = 3
_NAG_DIGITS = 9
"""What is longer is no glyph of anything."""
_LONGEST_SHOWN = 80
"""characters"""
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
"""A value may have quotes and brackets in it: it ends where a tag, moves or the end of the line follow."""
_MOVES_BEGIN = re.compile(rf"\s*[0-9]{{1,4}}\s*[.…]+\s*{_MOVE}")
_GAME_BEGIN = re.compile(rf"\s*1\s*\.\s*{_MOVE}")
_INDENT = "\ufeff\u200b \t\f\v"
_ESCAPES = ("%", "\ufeff%")
_BRACE = re.compile("[{}]")


Token: TypeAlias = tuple[str, str, int, str]
"""A piece of the text behind the tags: its kind (`san`, `word`, `number`, `comment`, `nag`, `mark`, `open`, `close` or
`result`); the text, of a comment what is inside; its line in the file, from 1; the number that is written before a
move."""


class Note(NamedTuple):
    """Something that is no PGN, and does not keep the game from being read."""

    text: str
    line: int


@dataclass
class GameText:
    """A game of a file as it is written."""

    line: int
    """where it begins, from 1"""
    begin: int
    """bytes before it"""
    end: int = 0
    moves_begin: int = 0
    """bytes before what is behind its tags"""
    tags: dict[str, str] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    has_moves: bool = False
    """whether a move or a result was read"""
    result: str = ""
    """behind which it ends"""


def split_games(source: Source) -> Iterator[GameText]:
    """Yield the games of a PGN, one after the other."""
    splitter = _Splitter(source)
    while splitter.take_line():
        if splitter.has_finished:
            yield from splitter.finished()
    yield from splitter.finished(is_end=True)


class _Lines:
    """The lines of a source, and those to come."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines()
        self._coming: deque[TextLine] = deque()
        self.number = 0

    def next(self) -> TextLine | None:
        self.number += 1
        return self._coming.popleft() if self._coming else next(self._lines, None)

    def coming(self) -> Iterator[str]:
        """Yield the lines to come, which stay."""
        for line in self._coming:
            yield line.text
        for line in self._lines:
            self._coming.append(line)
            yield line.text


class _Splitter:
    """Takes lines, and parts games. The game that is being read is none before it has a tag, a move or a result."""

    def __init__(self, source: Source) -> None:
        self._lines = _Lines(source)
        self._size = source.size
        self._line = TextLine(0, "")
        self._game = GameText(1, 0)
        self._finished: deque[GameText] = deque()
        """the last one waits until it is known whether another follows, for what is behind it"""
        self._depth = 0
        """variations that are open"""
        self._has_variation_moves = False
        self._first_number = self._number = 0
        """of the moves of the main line"""
        self._is_after_blank = False
        self._before_blank = 0
        """tokens of the game before the last empty line"""
        self._behind_blank = 0
        """bytes of the file up to the end of that line"""
        self._is_text = False
        """whether the lines up to the next empty one are no PGN"""
        self._result_inside = False
        """whether the last token was a result inside a variation"""
        self._comment: list[str] | None = None
        """the parts of an open comment"""
        self._comment_line = 0
        self._braces = 0
        """that were opened inside of it"""
        self._is_comment_closed = False
        """whether it is known that its end comes before another comment begins"""

    @property
    def has_finished(self) -> bool:
        """Whether a game may be complete."""
        return bool(self._finished)

    def finished(self, is_end: bool = False) -> Iterator[GameText]:
        """Yield the games that are complete."""
        if is_end:
            self._end()
        while len(self._finished) > (0 if is_end or self._is_real else 1):
            yield self._finished.popleft()

    def take_line(self) -> bool:
        """Take the next line; False at the end."""
        line = self._lines.next()
        if line is None:
            return False
        self._line = line
        text, at = line.text, 0
        if self._comment is not None:
            if self._begins_in_comment(text):
                self._note("a { without its }", self._comment_line)
                self._end_comment()
                self._is_after_blank = True
            else:
                at = self._go_on_with_comment(text, 0)
        elif text.isspace() or BLANK_LINE.fullmatch(text):
            self._take_blank()
            return True
        elif text.startswith(_ESCAPES):
            self._add("comment", text.lstrip("\ufeff").strip())
            return True
        if self._is_text and self._comment is None and not self._ends_text(text):
            self._add_text(text)
        else:
            self._take(text, at)
        return True

    # -- lines ---------------------------------------------------------------------------------------------------------

    def _take_blank(self) -> None:
        self._is_text = False
        if not self._is_after_blank:
            self._is_after_blank = True
            self._before_blank, self._behind_blank = len(self._game.tokens), self._line.end
        if self._result_inside:
            self._note("a ( without its )")
            self._game.result, self._depth, self._result_inside = "*", 0, False

    def _take(self, text: str, at: int) -> None:
        """Take a line from this character on."""
        begin, number = at, self._lines.number
        while at < len(text):
            match = TOKEN.match(text, at)
            assert match is not None
            kind, game, at = match.lastgroup or "", self._game, match.end()
            is_plain = game.has_moves and not (game.result or self._is_after_blank)
            if kind == "san":  # by the million
                if count := match["count"]:
                    move_number = int(count.rstrip("."))
                    if is_plain and 0 < self._first_number < move_number:
                        self._number = move_number if self._depth == 0 else self._number
                    else:
                        place = match.start("count")
                        self._take_number(move_number, count, place, not text[:place].strip())
                        is_plain = False
                if is_plain:
                    self._has_variation_moves, self._result_inside = True, False
                    game.tokens.append((kind, match["san"], number, count or ""))
                else:
                    self._take_move(kind, match["san"], match.start(kind))
                continue
            word, place = match[kind], match.start(kind)
            if kind == "number":
                self._take_number(int(word), text[place:at].strip(), place, not text[:place].strip())
            elif kind == "comment":
                close = text.find("}", at)
                if is_plain and close >= 0 and text.find("{", at, close) < 0:
                    game.tokens.append((kind, text[at:close].removeprefix(" ").removesuffix(" "), number, ""))
                    at = close + 1
                else:
                    self._begin_comment(place)
                    at = self._go_on_with_comment(text, at)
            elif kind == "rest":
                self._begin_comment(place)
                self._comment = None
                self._add("comment", word[1:].strip())
            elif kind == "tag":
                text, at = self._take_bracket(text, place)
            elif kind == "result":
                self._take_result(word, place)
            elif kind == "end":
                break
            elif not self._is_in_moves and kind in ("open", "close", "mark", "nag"):
                at = self._take_text(text, place, begin)
            elif kind == "open":
                self._add("open", word)
                self._depth += 1
                self._has_variation_moves = False
            elif kind == "close":
                self._take_close()
            elif kind == "mark" or word in MARK_NAGS:
                self._add("mark", word)
            elif kind == "nag":
                self._add(*("nag", word) if len(word) <= _NAG_DIGITS else ("comment", f"${word}"))
            elif word == "}":
                self._note("a } without its {")
            else:
                at = self._take_word(text, place, at, begin)

    def _take_word(self, text: str, place: int, end: int, begin: int) -> int:
        """Take what may be a move in another form; returns where to go on."""
        word = text[place:end]
        try:
            letters_of(word)
        except ValueError:
            if not self._is_in_moves:
                return self._take_text(text, place, begin)
            self._add("word", word)
            return end
        self._take_move("word", word, place)
        return end

    @property
    def _is_in_moves(self) -> bool:
        return self._game.has_moves and (self._depth > 0 or not self._game.result)

    @property
    def _is_real(self) -> bool:
        """Whether what is read is a game."""
        return self._game.has_moves or bool(self._game.tags)

    # -- tokens --------------------------------------------------------------------------------------------------------

    def _add(self, kind: str, text: str) -> None:
        self._game.tokens.append((kind, text, self._lines.number, ""))

    def _note(self, text: str, line: int = 0) -> None:
        self._game.notes.append(Note(text, line or self._lines.number))

    def _take_move(self, kind: str, word: str, place: int) -> None:
        game = self._game
        if game.result and not self._depth:
            self._begin_game(self._offset(place))
        elif self._is_after_blank and game.has_moves and not (self._depth or game.tags or self._number):
            self._begin_game(self._offset(place), with_comments=True)
        self._game.has_moves = self._has_variation_moves = True
        self._is_after_blank = self._is_text = self._result_inside = False
        self._add(kind, word)

    def _take_number(self, number: int, word: str, place: int, is_first: bool) -> None:
        game = self._game
        is_black = "…" in word or word.count(".") > 1
        if game.result and not self._depth:
            if self._is_after_blank or (number <= self._number and not is_black) or not self._number:
                self._begin_game(self._offset(place))
            else:
                game.result = ""
        elif game.has_moves and not is_black and number <= (self._first_number or 1):
            is_open = self._depth > 0 and not self._has_variation_moves
            if self._is_after_blank and not is_open:
                self._begin_game(self._offset(place), with_comments=True)
            elif is_first and self._depth == 0:
                self._note("no result before the next game")
                self._begin_game(self._offset(place))
        if self._depth == 0:
            self._first_number = self._first_number or number
            self._number = max(self._number, number)
        self._game.tokens.append(("number", word, self._lines.number, ""))

    def _take_result(self, word: str, place: int) -> None:
        game = self._game
        if game.result and not self._depth:
            if word == game.result and not self._is_after_blank:
                return
            self._begin_game(self._offset(place))
        self._result_inside = self._depth > 0
        if self._depth == 0:
            self._game.result = word
        self._game.has_moves = True
        self._is_after_blank = self._is_text = False
        self._add("result", word)

    def _take_close(self) -> None:
        self._result_inside = False
        if self._depth == 0:
            self._note("a ) without its (")
            return
        self._depth -= 1
        self._add("close", ")")

    # -- comments ------------------------------------------------------------------------------------------------------

    def _begin_comment(self, place: int) -> None:
        if self._game.result and not self._depth and self._is_after_blank:
            self._begin_game(self._offset(place))
        self._comment, self._comment_line = [], self._lines.number
        self._braces, self._is_comment_closed = 0, False

    def _go_on_with_comment(self, text: str, at: int) -> int:
        """Take what is inside a comment; returns where it ends in this line."""
        assert self._comment is not None
        while True:
            close = text.find("}", at)
            inside = text[at:] if close < 0 else text[at:close]
            self._comment.append(inside)
            self._braces += inside.count("{")
            if close < 0:
                return len(text)
            at = close + 1
            if not self._braces:
                break
            if self._next_brace(text, at, up_to_blank=True) != "}":
                self._note("a { inside a comment", self._comment_line)
                break
            self._braces -= 1
            self._comment.append("}")
        self._end_comment()
        return at

    def _end_comment(self) -> None:
        inside = "".join(self._comment or ()).removeprefix(" ").removesuffix(" ")
        self._comment = None
        self._game.tokens.append(("comment", inside, self._comment_line, ""))

    def _begins_in_comment(self, text: str) -> bool:
        """Whether a comment that is open was never closed, for another game begins with this line."""
        assert self._comment is not None
        if self._is_comment_closed:
            return False
        if not _TAG_BEGIN.match(text.lstrip(_INDENT)):
            is_after_blank = bool(self._comment) and BLANK_LINE.fullmatch(self._comment[-1])
            if not is_after_blank or not _GAME_BEGIN.match(text):
                return False
        self._is_comment_closed = self._next_brace(text, 0) == "}"
        return not self._is_comment_closed

    def _next_brace(self, text: str, at: int, up_to_blank: bool = False) -> str:
        """The next brace from this place in a line on; nothing where there is none near."""
        if found := _BRACE.search(text, at):
            return found[0]
        searched = 0
        for text in self._lines.coming():
            if searched > _FARTHEST or (up_to_blank and (BLANK_LINE.fullmatch(text) or _TAG.match(text))):
                break
            if found := _BRACE.search(text):
                return found[0]
            searched += len(text)
        return ""

    # -- tags ----------------------------------------------------------------------------------------------------------

    def _take_bracket(self, text: str, place: int) -> tuple[str, int]:
        """Take a tag, or what looks like one; returns the line, to which others may have been joined, and where to go
        on."""
        match = _TAG.match(text, place)
        begin, offset = _TAG_BEGIN.match(text, place), self._offset(place)
        if match is None and begin is not None:
            joined = self._with_next_lines(text, place)
            if joined is not None:
                text, match = joined, _TAG.match(joined, place)
        if match is not None:
            self._take_tag(match[1], match[2] if match[2] is not None else match[3], offset)
            self._game.moves_begin = self._line.end if match.end() >= len(text.rstrip()) else self._offset(match.end())
            return text, match.end()
        end = len(text)
        if begin is not None:
            if self._game.has_moves:
                self._begin_game(offset)
            following = _TAG_BEGIN.search(text, begin.end())
            end = following.start() if following else end
        elif self._game.has_moves:
            end = text.find("]", place) + 1 or end
        self._note_text(text[place:end])
        self._add_text(text[place:end])
        return text, end

    def _with_next_lines(self, text: str, place: int) -> str | None:
        """A line to which those are joined that a tag's value goes on in."""
        for count, following in enumerate(self._lines.coming(), start=1):
            if count >= _MOST_TAG_LINES or BLANK_LINE.fullmatch(following) or following.lstrip().startswith("["):
                return None
            text = f"{text.rstrip()} {following.lstrip()}"
            if _TAG.match(text, place):
                begin = self._line.begin
                for _ in range(count):
                    self._line = self._lines.next() or self._line
                self._line = self._line._replace(begin=begin, text=text)
                return text
        return None

    def _take_tag(self, name: str, value: str, begin: int) -> None:
        tags = self._game.tags
        is_again = name in tags and (name == "Event" or self._is_after_blank)
        if self._game.has_moves or is_again:
            self._begin_game(begin)
            tags = self._game.tags
        self._is_after_blank = self._is_text = False
        if name in tags and tags[name] != value:
            self._note(f"the tag {name} stands there twice")
            self._add("comment", f'[{name} "{tags[name]}"]')
        tags[name] = value

    # -- what is no PGN ------------------------------------------------------------------------------------------------

    def _take_text(self, text: str, place: int, begin: int) -> int:
        """Take the rest of a line that is no PGN, with numbers before it; returns where to go on."""
        if self._game.result and (self._is_after_blank or not text[begin:place].strip()):
            self._begin_game(self._offset(place))
        following = _TAG_BEGIN.search(text, place)
        end = following.start() if following else len(text)
        if text[place] == "(" and not self._game.result:
            end = text.find(")", place) + 1 or end
        self._is_text = not self._game.result and end == len(text)
        tokens = self._game.tokens
        numbers = ""
        while tokens and tokens[-1][0] == "number":
            numbers = f"{tokens.pop()[1]} {numbers}"
        self._note_text(numbers + text[place:end])
        self._add_text(numbers + text[place:end])
        return end

    def _note_text(self, text: str) -> None:
        self._note(f"{shown(' '.join(text[:_LONGEST_SHOWN].split()))} is no PGN")

    def _add_text(self, text: str) -> None:
        self._add("comment", " ".join(text.split()))

    def _ends_text(self, text: str) -> bool:
        line = text.lstrip(_INDENT)
        if not _TAG_BEGIN.match(line) and not _MOVES_BEGIN.match(line):
            return False
        self._is_text = False
        return True

    # -- games ---------------------------------------------------------------------------------------------------------

    def _begin_game(self, begin: int, with_comments: bool = False) -> None:
        """End the game, begin another at this byte; with the comments behind the last empty line."""
        before = self._game
        self._game = GameText(self._lines.number, begin, moves_begin=begin)
        last = before.tokens[self._before_blank :]
        if with_comments and last and all(kind == "comment" for kind, *_ in last):
            del before.tokens[self._before_blank :]
            begin = self._behind_blank
            self._game = GameText(last[0][2], begin, moves_begin=begin, tokens=last)
        self._finish(before, begin)
        self._depth = self._first_number = self._number = 0
        self._is_after_blank = self._is_text = self._result_inside = False

    def _finish(self, game: GameText, end: int) -> None:
        if self._depth:
            game.notes.append(Note("a ( without its )", self._lines.number))
        game.end = end
        self._finished.append(game)

    def _end(self) -> None:
        """Finish the last game, to which belongs what is behind it."""
        if self._comment is not None:
            self._note("a { without its }", self._comment_line)
            self._end_comment()
        if self._is_real:
            self._finish(self._game, self._size)
        elif self._finished:
            last = self._finished[-1]
            last.end = self._size
            last.notes += self._game.notes
            last.tokens += [("comment", *token[1:]) for token in self._game.tokens]

    def _offset(self, place: int) -> int:
        return self._line.offset(min(place, len(self._line.text)))
