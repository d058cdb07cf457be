"""Perft suites: EPD files with expected move path counts, such as `FEN ;D1 20 ;D2 400`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

import chess

from psearch.defaults import MAX_DEPTH
from psearch.results import PsearchError
from psearch.text.fen import parse_position
from psearch.text.source import Source, parse_lines, read_source
from psearch.text.values import quoted

_COUNT = re.compile(r"D([0-9]{1,3})\s+([0-9]{1,40})", re.IGNORECASE)
_MOST_PIECES = 16
"""per side; a position with more can have more moves than a move list holds"""


@dataclass(frozen=True)
class PerftCase:
    """One line of a suite."""

    source: str
    """file and line number, for messages"""
    board: chess.Board
    counts: dict[int, int]
    """expected number of move paths by depth"""


class PerftOutcome(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    TOO_BIG = "too big"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class PerftCheck:
    """One expected count, and what became of it."""

    case: PerftCase
    depth: int
    outcome: PerftOutcome
    nodes: int = 0
    """what perft counted; 0 when it was not run"""
    seconds: float = 0.0

    @property
    def failure_line(self) -> str:
        expected = self.case.counts[self.depth]
        counts = f"depth {self.depth}, expected {expected}, counted {self.nodes}"
        return f"FAIL {self.case.source}: {counts}: {self.case.board.fen()}"


def read_perft_suite(file: str) -> list[PerftCase]:
    """Return the cases of a suite file; `-` is standard input. Raises PsearchError naming file and line."""
    return parse_perft_suite(read_source(file))


def parse_perft_suite(source: Source) -> list[PerftCase]:
    """Return the cases of a suite; lines that are empty or begin with # are left out.

    Raises PsearchError for the first line that is malformed, with its number, and when there is no case.
    """

    def parse(line: str, number: int) -> PerftCase:
        board, counts = _parse_line(line)
        return PerftCase(f"{source.name}, line {number}", board, counts)

    cases = list(parse_lines(source, parse))
    if not cases:
        raise PsearchError(f"{source.name} contains no positions")
    return cases


def _parse_line(line: str) -> tuple[chess.Board, dict[int, int]]:
    """A position and its expected counts by depth."""
    position, *operations = line.split(";")
    counts: dict[int, int] = {}
    for operation in filter(None, map(str.strip, operations)):
        match = _COUNT.fullmatch(operation)
        if match is None:
            raise PsearchError(f"expected a count like D4 197281, not {quoted(operation, 60)}")
        depth, count = int(match[1]), int(match[2])
        if not 1 <= depth <= MAX_DEPTH:
            raise PsearchError(f"depth {depth} is not in 1 to {MAX_DEPTH}")
        if counts.setdefault(depth, count) != count:
            raise PsearchError(f"two different counts for depth {depth}")
    board = parse_position(position, strict=False)
    if not counts:
        raise PsearchError("no expected counts (;D1 20 ;D2 400)")
    return board, counts


def check_suite(
    perft: Callable[[chess.Board, int], tuple[dict[chess.Move, int], float]],
    cases: Iterable[PerftCase],
    max_nodes: int,
) -> Iterator[PerftCheck]:
    """Run every expected count up to `max_nodes`, in the order of lines and depths.

    `perft` gives the counts per root move and the seconds it took. Positions with more than 16 pieces of one
    colour are reported as unsupported.
    """
    for case in cases:
        board = case.board
        crowded = any(chess.popcount(board.occupied_co[color]) > _MOST_PIECES for color in chess.COLORS)
        for depth, expected in sorted(case.counts.items()):
            if crowded:
                yield PerftCheck(case, depth, PerftOutcome.UNSUPPORTED)
            elif expected > max_nodes:
                yield PerftCheck(case, depth, PerftOutcome.TOO_BIG)
            else:
                divide, seconds = perft(board, depth) if any(board.legal_moves) else ({}, 0.0)
                nodes = sum(divide.values())
                outcome = PerftOutcome.RIGHT if nodes == expected else PerftOutcome.WRONG
                yield PerftCheck(case, depth, outcome, nodes, seconds)
