"""Reads test suites: EPD or FEN, one position a line."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import chess

from psearch.results import PsearchError


@dataclass(frozen=True)
class SuitePosition:
    """One line of a suite."""

    name: str
    """the EPD id, or the line number"""
    board: chess.Board
    best: list[chess.Move] = field(default_factory=list)
    avoid: list[chess.Move] = field(default_factory=list)


def _parse(line: str, where: str) -> SuitePosition:
    board = chess.Board()
    try:
        operations = board.set_epd(line)
    except ValueError:
        words = line.split(";")[0].split()
        try:
            board = chess.Board(" ".join(words[:6]))
            operations = {}
        except ValueError as error:
            raise PsearchError(f"{where}: {error}") from None
    if not board.is_valid():
        raise PsearchError(f"{where}: not a legal position")
    moves = {key: value for key, value in operations.items() if key in ("bm", "am") and isinstance(value, list)}
    return SuitePosition(str(operations.get("id", where)), board, moves.get("bm", []), moves.get("am", []))


def read_suite(file: str) -> list[SuitePosition]:
    """Positions of an EPD or FEN file, `-` for stdin. Positions without a legal move are left out.

    Raises PsearchError naming file and line.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise PsearchError(f"cannot read {file}: {reason}") from None
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            position = _parse(line.strip(), f"{Path(file).name}:{number}")
            if any(position.board.legal_moves):
                found.append(position)
    if not found:
        raise PsearchError(f"{file} has no positions")
    return found
