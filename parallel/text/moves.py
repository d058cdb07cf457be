"""Moves as the user writes them: UCI or SAN, one after the other, or as they stand in a PGN."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import chess

from psearch.results import PsearchError

_TOKEN = re.compile(
    r"""
    (?P<blank>[\s,]+)
    |(?P<comment>\{[^}]*\}|;[^\n]*)
    |(?P<tag>\[\w+\s+"[^"]*"\s*\])
    |(?P<nag>\$[0-9]+)
    |(?P<open>\()
    |(?P<close>\))
    |(?P<result>(?:1-0|0-1|1/2-1/2|½-½|\*)(?![^\s)]))
    |(?P<number>[1-9][0-9]{0,3}(?:\s*(?:\.+|…)|(?=[\s)]|$)))
    |(?P<mark>[!?]+|\.+|…|e\.p\.|(?:\+/?[-=]|[-=]/?\+|[=±∓⩲⩱∞])(?=[\s)]|$))
    |(?P<move>[^\s,{}()\[\];$!?]+)
    """,
    re.VERBOSE,
)
_FIGURINES = str.maketrans("♔♕♖♗♘♚♛♜♝♞", "KQRBNKQRBN", "♙♟")
_LONGEST_SHOWN = 40
"""characters of what is wrong"""


def play_moves(board: chess.Board, text: str, where: str) -> None:
    """Play the moves of a text on the board.

    Beside moves it may have what a PGN has: numbers, dots, marks (`!?`, `$1`), comments, variations, which are not
    played, tags, a result. where: for messages. Raises PsearchError for the first move that is not legal.
    """
    for number, word in enumerate(_words(text, where), start=1):
        board.push(parse_move(board, word, f"{where}, move {number}"))


def choose_moves(board: chess.Board, text: str, where: str) -> list[chess.Move]:
    """Return the moves of a text, each legal on the board, each once. Raises PsearchError where one is not, and for
    none."""
    moves = [parse_move(board, word, where) for word in _words(text, where)]
    if not moves:
        raise PsearchError(f"{where} names no move")
    return list(dict.fromkeys(moves))


def parse_move(board: chess.Board, word: str, where: str) -> chess.Move:
    """Return a legal move in UCI or standard algebraic notation. Raises PsearchError, which begins with `where`."""
    parsers: tuple[Callable[[str], chess.Move], ...] = (board.parse_uci, board.parse_san)
    problem = "is not a legal move"
    for parse in parsers:
        try:
            move = parse(word.translate(_FIGURINES))
        except chess.AmbiguousMoveError:
            problem = "may be several moves"
        except ValueError:
            continue
        else:
            if move:  # a null move is no move to search
                return move
    raise PsearchError(f"{where}: {word[:_LONGEST_SHOWN]!a} {problem} in {board.fen()}")


def _words(text: str, where: str) -> Iterator[str]:
    """The moves of the main line, as they are written."""
    at = depth = 0
    result = ""
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:  # a bracket that nothing closes, or that nothing opened
            raise PsearchError(f"{where}: cannot read {text[at : at + _LONGEST_SHOWN]!a}")
        at = match.end()
        if match.lastgroup == "open":
            depth += 1
        elif match.lastgroup == "close":
            depth -= 1
            if depth < 0:
                raise PsearchError(f"{where}: a ) without its (")
        elif match.lastgroup == "result" and not depth:
            result = match[0]
        elif match.lastgroup == "move" and not depth:
            if result:
                raise PsearchError(f"{where}: {match[0][:_LONGEST_SHOWN]!a} stands after the result {result}")
            yield match[0]
    if depth:
        raise PsearchError(f"{where}: a ( without its )")
