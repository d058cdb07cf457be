"""Reads moves in UCI notation, SAN and other common notations, alone, in sequence, or within a PGN.

`TOKEN` divides a text into words, for PGN, suites and `--moves`. Piece letters of other languages are accepted if only
one reading of the text is possible.
"""
# ruff: noqa: RUF001 (letters of other scripts are meant)

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

import chess

from psearch.results import PsearchError
from psearch.text.values import shown

T = TypeVar("T")
Letters = Mapping[str, str]
"""English piece letter for each letter of a language."""

BLANK = r"\s\x1a\u200b\u2060\ufeff,"
_WORD = rf"[^{BLANK}{{}}()\[\];$!?]"
_DASH = "[-\u2010-\u2015\u2212]"
BLANK_LINE = re.compile(rf"[{BLANK}]*")
TOKEN = re.compile(
    rf"""
    [{BLANK}]*(?:
    (?:(?P<count>[1-9][0-9]{{0,3}}\.(?:\.\.)?)\ ?)?
    (?P<san>(?:(?:(?:[KQRBN][a-h]?[1-8]?|[a-h])x?)?[a-h][1-8](?:=?[QRBN])?|O-O(?:-O)?)[+\#]?)(?!{_WORD}|\([^\W\d_]\))
    |(?P<result>(?:1{_DASH}0|0{_DASH}1|1/2(?:{_DASH}1/2)?|½(?:{_DASH}½)?|\*)(?!{_WORD}))
    |(?P<number>(?!0000)[0-9]{{1,9}}(?=\s*[.…]|(?![0-9/:\u2010-\u2015\u2212-])))(?:\s*[.…][.…\s]*)?
    |(?P<comment>\{{)
    |(?P<rest>;[^\r\n]*)
    |\$(?P<nag>[0-9]+)
    |(?P<open>\()
    |(?P<close>\))
    |(?P<mark>[!?]+|[.…]+|(?:e\.?p\.?|[+\#†‡]+)(?!{_WORD}))
    |(?P<tag>\[)
    |(?P<word>[KQRBN♔-♞](?:[a-h]?[1-8]?x|[a-h1-8])[ \t]+[a-h][1-8](?:=?[QRBN])?[+\#]?(?!{_WORD})
        |{_WORD}+(?:\([^\W\d_]\){_WORD}*)?|.)
    |(?P<end>\Z)
    )
    """,
    re.DOTALL | re.VERBOSE,
)
"""Pattern of a token, with the blanks before it and the number before a move; it matches at every place of a text.
`word` is any other word, which may be a move in another notation. `comment` and `tag` match only their beginning."""

MARK_NAGS = {
    "!": 1, "?": 2, "!!": 3, "??": 4, "!?": 5, "?!": 6, "□": 7, "=": 10, "∞": 13, "+=": 14, "+/=": 14, "⩲": 14,
    "=+": 15, "=/+": 15, "⩱": 15, "+/-": 16, "±": 16, "-/+": 17, "∓": 17, "+-": 18, "-+": 19,
}  # fmt: skip
"""Numbers of the PGN standard for glyphs that are written as words."""

_MOVE = re.compile(
    r"""
    (?P<piece>[^\W\d_]{0,2}?)
    (?P<origin>[a-h]?[1-8]?)[-x:]?\s*(?P<target>[a-h][1-8])
    (?:e\.?p\.?|[=/]?\(?(?P<promotion>[^\W\d_]{1,2})\)?)?
    (?:[+\#†‡]*|\+/?[-=]|[-=]/?\+|[=±∓⩲⩱∞])
    """,
    re.VERBOSE,
)
_CASTLING = re.compile(r"([O0oОо])-\1(-\1)?[+#†‡]*")
_NULL = ("--", "Z0", "0000", "@@@@", "<>")
_SAME = str.maketrans("♔♕♖♗♘♚♛♜♝♞×\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "KQRBNKQRBNx-------", "♙♟")

_TAG = re.compile(r'\[\w+\s+"[^"]*"\s*\]')
_LONGEST_SHOWN = 40
"""Most characters of an invalid text in a message."""

ENGLISH: Letters = {letter: letter for letter in "KQRBN"}
_OTHERS: tuple[Letters, ...] = tuple(
    dict(zip(letters.split(), "KQRBN", strict=True))
    for letters in (
        "K D T L S",  # German, Danish, Norwegian, Swedish, Croatian
        "K D T L P",  # Dutch
        "R D T F C",  # French
        "R D T A C",  # Spanish, Italian, Catalan
        "R D T B C",  # Portuguese
        "R D T N C",  # Romanian
        "K H W G S",  # Polish
        "K D V S J",  # Czech, Slovak
        "K V B F H",  # Hungarian
        "K D T L R",  # Finnish
        "Кр Ф Л С К",  # Russian
        "Кр Ф Т С К",  # Ukrainian
        "Ц Д Т О К",  # Bulgarian
        "К Д Т Л С",  # Serbian
    )
)
_LETTERS = frozenset(ENGLISH).union(*_OTHERS)


def letters_of(word: str) -> tuple[str, ...] | None:
    """Return the piece letters in a word that has the form of a move; None for any other word."""
    word = word.translate(_SAME)
    if _CASTLING.fullmatch(word) or word in _NULL:
        return ()
    match = _MOVE.fullmatch(word)
    if match is None:
        return None
    promotion = match["promotion"] or ""
    found = tuple(filter(None, (match["piece"], promotion if promotion in _LETTERS else promotion.capitalize())))
    return found if _LETTERS.issuperset(found) else None


def read_move(board: chess.Board, word: str, letters: Letters = ENGLISH) -> chess.Move:
    """Return the legal move, or the null move, that a word denotes. Raises ValueError."""
    plain = word.translate(_SAME)
    if plain in _NULL:
        return chess.Move.null()
    if castling := _CASTLING.fullmatch(plain):
        return board.parse_san("O-O-O" if castling[2] else "O-O")
    match, found = _MOVE.fullmatch(plain), letters_of(word)
    if match is None or found is None or not letters.keys() >= set(found):
        kind = "a move" if found is None else "a move in English notation"
        raise ValueError(f"{shown(word)} is not {kind}")
    piece = letters[match["piece"]] if match["piece"] else ""
    squares, promotion = match["origin"] + match["target"], letters[found[-1]] if match["promotion"] else ""
    if not piece and len(match["origin"]) == 2:
        return board.parse_uci(squares + promotion.lower())  # reads both notations of castling
    return board.parse_san(piece + squares + promotion)


def readings(words: Iterable[str]) -> list[Letters]:
    """Return the languages, except English, in which all words may be moves; one of those with the same letters."""
    by_word = [letters_of(word) for word in words]
    letters = sorted({letter for found in by_word for letter in found or ()})
    if None in by_word or ENGLISH.keys() >= set(letters):
        return []
    fitting: dict[tuple[str, ...], Letters] = {}
    for language in _OTHERS:
        if language.keys() >= set(letters):
            fitting.setdefault(tuple(language[letter] for letter in letters), language)
    return list(fitting.values())


def play_moves(board: chess.Board, text: str, where: str) -> None:
    """Play the moves of a text on the board.

    The text may have all elements of a PGN: numbers, dots, marks (`!?`, `$1`), comments, variations, which are not
    played, tags and a result. where: place of the text, for messages. Raises PsearchError for the first illegal move.
    """
    words = list(_words(text, where))

    def played(letters: Letters) -> list[chess.Move]:
        after = board.copy(stack=False)
        for number, word in enumerate(words, start=1):
            after.push(parse_move(after, word, f"{where}, move {number}", letters))
        return after.move_stack

    for move in _read_evident(words, played):
        board.push(move)


def choose_moves(board: chess.Board, text: str, where: str) -> list[chess.Move]:
    """Return the moves of a text, all for the same board, without repetitions. Raises PsearchError for an illegal move,
    and for a text without moves."""
    words = list(_words(text, where))
    moves = _read_evident(words, lambda letters: [parse_move(board, word, where, letters) for word in words])
    if not moves:
        raise PsearchError(f"{where} names no move")
    return list(dict.fromkeys(moves))


def parse_move(board: chess.Board, word: str, where: str, letters: Letters = ENGLISH) -> chess.Move:
    """Return the legal move that a word denotes. Raises PsearchError, whose text begins with `where`."""
    problem = "is not a legal move"
    try:
        move = read_move(board, word, letters)
    except chess.AmbiguousMoveError:
        problem = "may be several moves"
    except ValueError:
        pass
    else:
        if move:  # a null move cannot be searched
            return move
    raise PsearchError(f"{where}: {word[:_LONGEST_SHOWN]!a} {problem} in {board.fen()}")


def _words(text: str, where: str) -> Iterator[str]:
    """Yield the moves of the main line, as they are written."""
    at = depth = 0
    result = ""
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None
        kind, end = match.lastgroup or "", match.end()
        at, word = match.start(kind), match[kind]
        if kind == "comment":
            end = text.find("}", at) + 1
        elif kind == "tag":
            tag = _TAG.match(text, at)
            end = tag.end() if tag else 0
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth < 0:
                raise PsearchError(f"{where}: a ) without its (")
        elif kind == "result" and not depth:
            result = word
        elif (kind == "san" or (kind == "word" and word not in MARK_NAGS)) and not depth:
            if result:
                raise PsearchError(f"{where}: {word[:_LONGEST_SHOWN]!a} stands after the result {result}")
            yield word
        if end <= at and kind != "end":  # an unclosed bracket
            raise PsearchError(f"{where}: cannot read {text[at : at + _LONGEST_SHOWN]!a}")
        at = end
    if depth:
        raise PsearchError(f"{where}: a ( without its )")


def _read_evident(words: Iterable[str], read: Callable[[Letters], T]) -> T:
    """Return the result of `read` in English or, if that fails, in the other languages if they have only one result.
    Raises the PsearchError of `read` in English."""
    try:
        return read(ENGLISH)
    except PsearchError:
        found: list[T] = []
        for language in readings(words):
            with suppress(PsearchError):
                one = read(language)
                found += [one] if one not in found else []
        if len(found) == 1:
            return found[0]
        raise
