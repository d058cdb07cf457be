"""Moves as the user writes them: UCI or SAN, one after the other, or as they stand in a PGN."""

from __future__ import annotations

import re
from collections.abc import Iterator

import chess

from psearch.results import PsearchError
from psearch.text.movetext import ENGLISH, MARK_NAGS, TOKEN, Letters, read_evident, read_move

_TAG = re.compile(r'\[\w+\s+"[^"]*"\s*\]')
_LONGEST_SHOWN = 40
"""characters of what is wrong"""


def play_moves(board: chess.Board, text: str, where: str) -> None:
    """Play the moves of a text on the board.

    Beside moves it may have what a PGN has: numbers, dots, marks (`!?`, `$1`), comments, variations, which are not
    played, tags, a result. where: for messages. Raises PsearchError for the first move that is not legal.
    """
    words = list(_words(text, where))

    def played(letters: Letters) -> list[chess.Move]:
        after = board.copy(stack=False)
        for number, word in enumerate(words, start=1):
            after.push(parse_move(after, word, f"{where}, move {number}", letters))
        return after.move_stack

    for move in read_evident(words, played):
        board.push(move)


def choose_moves(board: chess.Board, text: str, where: str) -> list[chess.Move]:
    """Return the moves of a text, each legal on the board, each once. Raises PsearchError where one is not, and for
    none."""
    words = list(_words(text, where))
    moves = read_evident(words, lambda letters: [parse_move(board, word, where, letters) for word in words])
    if not moves:
        raise PsearchError(f"{where} names no move")
    return list(dict.fromkeys(moves))


def parse_move(board: chess.Board, word: str, where: str, letters: Letters = ENGLISH) -> chess.Move:
    """Return a legal move in UCI or standard algebraic notation. Raises PsearchError, which begins with `where`."""
    problem = "is not a legal move"
    try:
        move = read_move(board, word, letters)
    except chess.AmbiguousMoveError:
        problem = "may be several moves"
    except ValueError:
        pass
    else:
        if move:  # a null move is no move to search
            return move
    raise PsearchError(f"{where}: {word[:_LONGEST_SHOWN]!a} {problem} in {board.fen()}")


def _words(text: str, where: str) -> Iterator[str]:
    """The moves of the main line, as they are written."""
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
        if end <= at and kind != "end":  # a bracket that nothing closes
            raise PsearchError(f"{where}: cannot read {text[at : at + _LONGEST_SHOWN]!a}")
        at = end
    if depth:
        raise PsearchError(f"{where}: a ( without its )")
