"""Test suites: EPD or FEN, one position a line, with what is right to play there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import chess

from psearch.results import PsearchError
from psearch.text.fen import CASTLING, EN_PASSANT, check_clocks, parse_position
from psearch.text.source import Source, parse_lines, read_source

_POSITION_FIELDS = 4
_LEAST_FIELDS = 2
_OPCODE = re.compile(r"[abds]m|p[mv]|ac[dns]|c[0-9]|ce|eco|fmvn|hmvc|id|nic|noop|rc|v[0-9]")
"""The operations of the standard that suites have: the third word of a line without castling and en passant. Any other
word there is a mistake in one of these."""
_NUMBER = re.compile(r"[0-9]{1,9}")
_POINTS = re.compile(r"\s*[^\s=,]+(?:=[QRBNqrbn])?[+#]?\s*=\s*[0-9]{1,6}\s*")
"""one of `Nf3=10, e8=Q+=7`: the comment c0 of the Strategic Test Suite"""


class _Board960(chess.Board):
    """Reads castling in the moves of a Chess960 position: python-chess makes the board for them by its class."""

    def __init__(self, fen: str | None = chess.STARTING_FEN, *, chess960: bool = True) -> None:
        super().__init__(fen, chess960=chess960)


@dataclass(frozen=True)
class SuitePosition:
    """One line of a suite."""

    name: str
    """the operation `id`, or `line N`"""
    board: chess.Board
    best: tuple[chess.Move, ...] = ()
    """`bm`"""
    avoid: tuple[chess.Move, ...] = ()
    """`am`"""
    points: dict[chess.Move, int] = field(default_factory=dict)
    """points by move, in the manner of the Strategic Test Suite"""
    line: int = 0
    """its number in the file, from 1"""

    @property
    def scored(self) -> bool:
        """Whether there is a right and a wrong."""
        return bool(self.best or self.avoid)

    @property
    def most_points(self) -> int:
        return max(self.points.values(), default=0)

    def accepts(self, move: chess.Move) -> bool:
        """Tell whether a move counts as a solution."""
        return move not in self.avoid and (not self.best or move in self.best)


def read_positions(source: Source) -> Iterator[SuitePosition]:
    """Return the positions of a suite, one after the other; lines that are empty or begin with # are left out.

    Raises PsearchError for the first line that is malformed, with its number.
    """
    return parse_lines(source, _parse_line)


def parse_suite(source: Source) -> list[SuitePosition]:
    """Return every position of a suite. Raises PsearchError as `read_positions` does, and when there is no position."""
    found = list(read_positions(source))
    if not found:
        raise PsearchError(f"{source.name} has no positions")
    return found


def _parse_line(text: str, number: int) -> SuitePosition:
    """A position and its operations; a FEN's two counters may stand between them."""
    if text.split(maxsplit=1)[0].rstrip(";") == "startpos":
        text = text.replace("startpos", chess.STARTING_FEN, 1)
    count = _fields_of_position(text)
    fields = text.split(maxsplit=count)
    rest = fields[count] if len(fields) > count else ""
    position = fields[:count]
    counters = rest.split(maxsplit=2)
    if len(counters) >= 2 and all(_NUMBER.fullmatch(word.rstrip(";")) for word in counters[:2]):
        position += [word.rstrip(";") for word in counters[:2]]
        rest = counters[2] if len(counters) > 2 else ""
    board = parse_position([word.rstrip(";") for word in position])
    operations = _operations(board, rest.lstrip("; "))
    for name, attribute in (("hmvc", "halfmove_clock"), ("fmvn", "fullmove_number")):
        if isinstance(operations.get(name), int):
            setattr(board, attribute, operations[name])
    check_clocks(board)
    best, avoid = (_moves(operations, name) for name in ("bm", "am"))
    return SuitePosition(
        name=str(operations.get("id") or f"line {number}"),
        board=board,
        best=best,
        avoid=avoid,
        points=_read_points(board, operations),
        line=number,
    )


def _fields_of_position(text: str) -> int:
    """2 where the third word is an operation, else what there is of 4; `ce` is an operation, and castling."""
    words = text.split(maxsplit=_POSITION_FIELDS)
    third, fourth = ([word.rstrip(";") for word in words[_LEAST_FIELDS:_POSITION_FIELDS]] + ["", ""])[:2]
    if _OPCODE.fullmatch(third) and not (CASTLING.fullmatch(third) and EN_PASSANT.fullmatch(fourth)):
        return _LEAST_FIELDS
    return _POSITION_FIELDS


def _operations(board: chess.Board, text: str) -> dict[str, Any]:
    if not text:
        return {}
    reader = _Board960() if board.chess960 else chess.Board()
    placement = " ".join(board.fen(en_passant="fen").split()[:_POSITION_FIELDS])
    return dict(reader.set_epd(f"{placement} {text}"))


def _moves(operations: dict[str, Any], name: str) -> tuple[chess.Move, ...]:
    if name not in operations:
        return ()
    moves = operations[name]
    if not isinstance(moves, list) or not moves:
        raise ValueError(f"{name} names no move")
    return tuple(moves)


def _read_points(board: chess.Board, operations: dict[str, Any]) -> dict[chess.Move, int]:
    """Points by move: the lists c8 (points) and c9 (UCI) or c7 (SAN), or else c0 like `Nf3=10, e5=4`.

    Comments that are not of that form are comments.
    """
    numbers = str(operations.get("c8", "")).split()
    for name, parse in (("c9", board.parse_uci), ("c7", board.parse_san)):
        words = str(operations.get(name, "")).split()
        if words and numbers and all(_NUMBER.fullmatch(number) for number in numbers):
            if len(words) != len(numbers):
                raise ValueError(f"{len(numbers)} points in c8 for {len(words)} moves in {name}")
            return {parse(word): int(number) for word, number in zip(words, numbers, strict=True)}
    parts = str(operations.get("c0", "")).split(",")
    if not all(_POINTS.fullmatch(part) for part in parts):
        return {}
    pairs = (part.rpartition("=") for part in parts)
    return {board.parse_san(word.strip()): int(number) for word, _, number in pairs}


def read_suite(file: str) -> list[SuitePosition]:
    """Return positions of a file, `-` for standard input, without those that have no legal move.

    Raises PsearchError naming file and line.
    """
    found = [position for position in parse_suite(read_source(file)) if any(position.board.legal_moves)]
    if not found:
        raise PsearchError(f"{file} has no position with a legal move")
    return found
