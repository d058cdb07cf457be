"""Suites of positions in EPD or FEN, one per line, with the solutions, or with expected counts of perft (`FEN ;D1 20
;D2 400`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

import chess

from psearch.defaults import MAX_DEPTH
from psearch.results import PsearchError
from psearch.text.fen import parse_position, split_position
from psearch.text.moves import choose_moves, parse_move
from psearch.text.source import Source, parse_lines, read_source
from psearch.text.values import quoted, shown

_OPERATION = re.compile(r'\s*([A-Za-z][\w-]*)\s*[:=]?(?:\s*"((?:[^"\\]|\\.)*)(?:"|$)|([^;]*))')
"""Pattern of an operation: a text in quotes, or anything up to the next semicolon."""
_MISSED_END = re.compile(r"\s(?=(?:[abd]m|id|ce|ac[dns]|pv|eco)\s)")
"""Pattern of the place after moves where a semicolon was forgotten."""
REMARK = re.compile(r"\s*(?://|[#%;])")
_MATE = re.compile(r"[+#M]*(-?)[+#M]*([0-9]{1,3})")
"""Pattern of a distance to mate: `2`, `#2`, `#-2`."""
_NUMBER = re.compile(r"[0-9]{1,9}")
_COUNT = re.compile(r"D([0-9]{1,3})\s+([0-9]{1,40})", re.IGNORECASE)
_MOST_PIECES = 16
"""Most pieces per side; a position with more can have more moves than a move list holds."""
_POINTS = re.compile(r"\s*[^\s=,]+(?:=[QRBNqrbn])?[+#]?\s*=\s*[0-9]{1,6}\s*")
"""Pattern of one move of `Nf3=10, e8=Q+=7`, the comment c0 of the Strategic Test Suite."""


@dataclass(frozen=True)
class SuitePosition:
    """One position of a suite."""

    name: str
    """Operation `id`, or `line N`."""
    board: chess.Board
    best: tuple[chess.Move, ...] = ()
    """Best moves (`bm`)."""
    avoid: tuple[chess.Move, ...] = ()
    """Moves to avoid (`am`)."""
    mate: int | None = None
    """Moves to mate, negative for the side that is mated (`dm`, or `bm #2`)."""
    points: dict[chess.Move, int] = field(default_factory=dict)
    """Points by move, as in the Strategic Test Suite."""
    line: int = 0
    """Number of the line in the file, from 1."""

    @property
    def is_about_moves(self) -> bool:
        """True if the goal is a move; else it is the distance to mate, if anything."""
        return bool(self.best or self.avoid)

    @property
    def scored(self) -> bool:
        """True if the position has a goal."""
        return self.is_about_moves or self.mate is not None

    @property
    def most_points(self) -> int:
        return max(self.points.values(), default=0)

    def accepts(self, move: chess.Move) -> bool:
        """Tell whether a move counts as a solution."""
        return move not in self.avoid and (not self.best or move in self.best)


def read_positions(source: Source, refuse: Callable[[str], None] | None = None) -> Iterator[SuitePosition]:
    """Yield the positions of a suite; empty lines and remarks are left out. A malformed line is left out, and `refuse`
    is called with a message; without `refuse` this raises PsearchError."""
    return parse_lines(source, _parse_line, REMARK, refuse)


def parse_suite(source: Source, refuse: Callable[[str], None] | None = None) -> list[SuitePosition]:
    """Return all positions of a suite, as `read_positions` does. Raises PsearchError, also when there are none."""
    found = list(read_positions(source, refuse))
    if not found:
        raise PsearchError(f"{source.name} has no positions")
    return found


def read_suite(file: str, refuse: Callable[[str], None] | None = None) -> list[SuitePosition]:
    """Return the positions of a file that have a legal move; `-` is standard input. refuse: see `read_positions`.
    Raises PsearchError, which names file and line."""
    positions = parse_suite(read_source(file), refuse)
    found = [position for position in positions if any(position.board.legal_moves)]
    if not found:
        raise PsearchError(f"{file} has no position with a legal move")
    return found


def _parse_line(text: str, number: int) -> SuitePosition:
    """Parse a position and its operations; the two counters of a FEN may stand between them."""
    board, rest = split_position(text)
    operations = _operations(rest)
    announced = _MATE.fullmatch(operations.get("bm", ""))
    is_mate = announced is not None and "#" in announced[0]
    given = operations.get("dm", operations.get("bm") if is_mate else None)
    distance = _MATE.fullmatch(given.strip()) if given is not None else None
    if given is not None and distance is None:
        raise ValueError(f"{shown(given)} is not a distance to mate")
    return SuitePosition(
        name=operations.get("id") or f"line {number}",
        board=board,
        best=() if is_mate else _moves(board, operations, "bm"),
        avoid=_moves(board, operations, "am"),
        mate=(int(distance[1] + distance[2]) or None) if distance else None,
        points=_read_points(board, operations),
        line=number,
    )


def _operations(text: str) -> dict[str, str]:
    """Return the values of the operations, without quotes, by name. Raises ValueError for any other text."""
    found = {}
    at = 0
    while at < len(text):
        if text[at] in "; \t":
            at += 1
        elif match := _OPERATION.match(text, at):
            name, quoted, plain = match[1].lower(), match[2], match[3]
            at = match.end()
            if quoted is None:
                plain = re.split(r"\s//|//\s", plain.strip())[0].strip()
                missed = _MISSED_END.search(plain) if name in ("bm", "am") else None
                if missed:
                    at, plain = match.start(3) + match[3].index(plain) + missed.end(), plain[: missed.start()]
            found[name] = plain.strip() if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        elif REMARK.match(text, at):
            break
        else:
            raise ValueError(f"{shown(text[at:])} is not an operation")
    return found


def _moves(board: chess.Board, operations: dict[str, str], name: str) -> tuple[chess.Move, ...]:
    if name not in operations:
        return ()
    try:
        return tuple(choose_moves(board, operations[name], name))
    except PsearchError as error:
        raise ValueError(str(error).removesuffix(f" in {board.fen()}")) from None


def _read_points(board: chess.Board, operations: dict[str, str]) -> dict[chess.Move, int]:
    """Return points by move, from the lists c8 (points) and c9 (UCI) or c7 (SAN), or else from c0 such as `Nf3=10,
    e5=4`. Other comments give no points."""
    numbers = operations.get("c8", "").split()
    parts = operations.get("c0", "").split(",")
    for name in ("c9", "c7"):
        words = operations.get(name, "").split()
        if words and len(words) == len(numbers):
            break
    else:
        pairs = [part.rpartition("=") for part in parts if _POINTS.fullmatch(part)]
        words = [word.strip() for word, _, _ in pairs] if len(pairs) == len(parts) else []
        numbers = [number.strip() for _, _, number in pairs]
    try:
        moves = [parse_move(board, word, "points") for word in words]
    except PsearchError:
        return {}
    if not all(map(_NUMBER.fullmatch, numbers)):
        return {}
    return {move: int(number) for move, number in zip(moves, numbers, strict=False)}


@dataclass(frozen=True)
class PerftCase:
    """A position with expected counts of perft."""

    source: str
    """File and number of the line, for messages."""
    board: chess.Board
    counts: dict[int, int]
    """Expected count by depth."""


class PerftOutcome(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    TOO_BIG = "too big"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class PerftCheck:
    """The check of one expected count."""

    case: PerftCase
    depth: int
    outcome: PerftOutcome
    nodes: int = 0
    """Count of perft; 0 when it was not run."""
    seconds: float = 0.0

    @property
    def failure_line(self) -> str:
        expected = self.case.counts[self.depth]
        counts = f"depth {self.depth}, expected {expected}, counted {self.nodes}"
        return f"FAIL {self.case.source}: {counts}: {self.case.board.fen()}"


def parse_perft_suite(source: Source) -> list[PerftCase]:
    """Return the cases of a suite; empty lines and lines that begin with # are left out. Raises PsearchError for the
    first malformed line, and when there is no case."""

    def parse(line: str, number: int) -> PerftCase:
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
        return PerftCase(f"{source.name}, line {number}", board, counts)

    cases = list(parse_lines(source, parse))
    if not cases:
        raise PsearchError(f"{source.name} contains no positions")
    return cases


def check_suite(
    perft: Callable[[chess.Board, int], tuple[dict[chess.Move, int], float]],
    cases: Iterable[PerftCase],
    max_nodes: int,
) -> Iterator[PerftCheck]:
    """Check every expected count up to `max_nodes`, in the order of lines and depths. `perft` returns the counts by
    root move, and the seconds. Positions with more than 16 pieces of one colour are reported as unsupported."""
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
