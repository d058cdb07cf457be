"""Tasks and answers as plain data: for messages between processes, for journals and for programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import chess
import chess.engine

from psearch.results import Limits, PsearchError
from psearch.text.fen import drop_impossible, parse_position
from psearch.text.marks import Scores
from psearch.text.report import chances, score_object
from psearch.text.values import shown
from psearch_core.records import MAX_HISTORY


@dataclass(frozen=True)
class Task:
    """One position to search. At least one limit must be set."""

    id: str | int
    """Name that the caller gave the task."""
    fen: str
    """Position before `moves`."""
    moves: tuple[str, ...] = ()
    """Moves from `fen` to the position to search, in UCI notation."""
    limits: Limits = field(default_factory=Limits)
    multipv: int = 1
    """Number of lines to find; there are fewer where there are fewer moves."""
    root_moves: tuple[str, ...] | None = None
    """Moves to choose from, in UCI notation; None: all."""
    line: tuple[str, ...] = ()
    """The next few moves of the game, in UCI notation, when its positions are searched from the last to the first: if
    the first of them may be a mistake it is compared with the best move. Empty: no comparison."""
    chess960: bool = False
    """True if moves write castling as king takes rook, in standard positions, too."""

    @classmethod
    def of_board(
        cls, id: str | int, board: chess.Board, limits: Limits, line: Sequence[chess.Move] = (), multipv: int = 1
    ) -> Task:
        """Return the task of a board, with as many of its last moves as a search uses. line: the field `line`."""
        fen, moves = from_board(board)
        return cls(id, fen, moves, limits, multipv, line=tuple(uci_words(board, line)), chess960=board.chess960)

    def board(self) -> chess.Board:
        """Return the position, with the moves before it. Raises PsearchError for an illegal position or move."""
        board = parse_position(self.fen)
        board.chess960 = board.chess960 or self.chess960
        for move in self.moves:
            try:
                board.push_uci(move)
            except ValueError:
                raise PsearchError(f"{move} is not a legal move in {board.fen()}") from None
        return board


TaskList: TypeAlias = Iterable[Task]
"""Tasks that one worker searches in order, keeping its table, as the positions of a game; read once, on demand. A
worker forgets everything between two lists."""


class Pause(Enum):
    """Stands for a list of tasks that is not available yet; the value says when to read on."""

    ROUND = "after the outcomes so far have been returned"
    OUTCOME = "after the next outcome"
    INPUT = "after more input"


@dataclass(frozen=True)
class Part:
    """Consecutive tasks of one list, with their numbers."""

    list_number: int
    begins: bool
    """True if the worker must first forget everything: the list begins, or another worker was lost with it."""
    tasks: list[tuple[int, Task]]


Batch: TypeAlias = list[Part]
"""Tasks that a worker gets in one message: about a second of work."""


def from_board(board: chess.Board) -> tuple[str, tuple[str, ...]]:
    """Return a FEN, and the moves from there to the board: as many of the last moves as a search uses."""
    count = min(len(board.move_stack), board.halfmove_clock, MAX_HISTORY)
    if count:
        before = board.copy(stack=count).root()
        drop_impossible(before)
        if before.is_valid():  # not after a null move, or in a game that began with an illegal position
            return _fen(before), tuple(uci_words(before, board.move_stack[-count:]))
    return _fen(board), ()


def uci_words(board: chess.Board, moves: Iterable[chess.Move]) -> Iterator[str]:
    """Yield consecutive moves in UCI notation; castling is written as the board writes it."""
    walk = board.copy(stack=False)
    for move in moves:
        yield walk.uci(move)
        walk.push(move)


def _fen(board: chess.Board) -> str:
    return board.shredder_fen() if board.chess960 else board.fen()


@dataclass(frozen=True)
class Choice:
    """A move (in UCI notation), and when the search began to prefer it, or to see another mate with it."""

    move: str
    time_s: float
    depth: int
    nodes: int
    mate: int | None = None
    """Moves to the mate that the search saw, negative for its own side; None: no mate."""

    def as_json(self) -> dict[str, Any]:
        return {"time": self.time_s, "depth": self.depth, "nodes": self.nodes}

    def as_journal(self) -> dict[str, Any]:
        mate = {} if self.mate is None else {"mate": self.mate}
        return {"move": self.move, **self.as_json(), **mate}


@dataclass(frozen=True)
class Line:
    """One of the best lines."""

    score: chess.engine.Score
    """Score for the side to move."""
    bound: str
    """Kind of the score: `exact`, `lower` or `upper`, as in `Info`."""
    depth: int
    seldepth: int
    pv: list[str]
    """Moves of the line, in UCI notation."""

    def as_json(self, plies: int | None = None) -> dict[str, Any]:
        """Return the score, the depth and the moves. plies: most moves; None: all."""
        return {"score": score_object(self.score, self.bound), "depth": self.depth, "pv": self.pv[:plies]}


@dataclass(frozen=True)
class Comparison:
    """The best move and the played move, with exact scores of the same depth for the side to move."""

    depth: int
    depths: int
    """Number of the last depths whose scores differ at least as much as these."""
    best: str
    """Best move in UCI notation; it may be the played move."""
    best_score: chess.engine.Score
    played_score: chess.engine.Score
    pv: list[str]
    """Line of the best move, in UCI notation."""

    @property
    def scores(self) -> Scores:
        return Scores(self.best_score, self.played_score)

    def as_json(self) -> dict[str, Any]:
        """Return both scores, and all else that `Answer.from_json` needs."""
        return {
            "depth": self.depth,
            "depths": self.depths,
            "bestmove": self.best,
            "score": score_object(self.best_score, "exact"),
            "played": score_object(self.played_score, "exact"),
            "pv": self.pv,
        }


@dataclass(frozen=True)
class Answer:
    """The answer of a search. Its methods convert it to JSON and back, for the results of `psearch analyse`, for its
    journal, and for the older results that it merges."""

    best: str | None
    """Best move in UCI notation; None when the game is over on the board."""
    lines: list[Line]
    """Best lines, best first; at least one."""
    nodes: int
    time_s: float
    hashfull: int
    """Share of the transposition table that this search has written, in thousandths."""
    tbhits: int
    """Number of root moves that were looked up in endgame tables."""
    choices: list[Choice]
    """Best moves during the search, each with the time when it became the best; the last is `best`."""
    exact: chess.engine.Score | None = None
    """Last exact score of the best move, if its final score is a bound."""
    compared: Comparison | None = None
    """Comparison with the played move, if that may be a mistake."""
    notes: tuple[str, ...] = ()
    """Problems that were solved during the search, one line each."""
    version: str = ""
    """Version of psearch that searched."""
    threads: int = 1
    """Number of threads that searched at the end."""

    @property
    def line(self) -> Line:
        return self.lines[0]

    @property
    def estimate(self) -> tuple[chess.engine.Score, str]:
        """Best guess of the score, and its kind (`exact`, `lower` or `upper`): that of a comparison of about the same
        depth, or the last exact score if no bound has refuted it, else the bound."""
        if self.compared is not None and self.compared.depth >= self.line.depth - 1:
            return self.compared.best_score, "exact"
        score, bound = self.line.score, self.line.bound
        if self.exact is not None and (self.exact >= score if bound == "lower" else self.exact <= score):
            return self.exact, "exact"
        return score, bound

    def move(self, board: chess.Board) -> chess.Move:
        """Return the best move on this board. Raises ValueError where there is none."""
        if self.best is None:
            raise ValueError("no legal move")
        return board.parse_uci(self.best)

    def check(self, board: chess.Board) -> None:
        """Raise ValueError unless the moves can be played on this board."""
        if self.best is None:
            if any(board.legal_moves):
                raise ValueError("no move")
            return
        compared = () if self.compared is None else (self.compared,)
        first = [self.best, *(choice.move for choice in self.choices), *(one.best for one in compared)]
        for pv in (*([word] for word in first), *(one.pv for one in (*self.lines, *compared))):
            walk = board.copy(stack=False)
            for word in pv:
                if not walk.push_uci(word):
                    raise ValueError("a null move")

    def as_json(self, plies: int | None = None) -> dict[str, Any]:
        """Return the answer for programs: moves in UCI notation, times in seconds. plies: most moves of a line."""
        first = self.line
        values: dict[str, Any] = {
            "bestmove": self.best,
            "score": score_object(first.score, first.bound),
            "depth": first.depth,
            "seldepth": first.seldepth,
            "nodes": self.nodes,
            "time": self.time_s,
            "tbhits": self.tbhits,
            "pv": first.pv[:plies],
        }
        if len(self.lines) > 1:
            values["lines"] = [line.as_json(plies) for line in self.lines]
        return values

    def as_record(self) -> dict[str, Any]:
        """Return the whole answer for a journal."""
        return {
            **self.as_json(),
            "choices": [choice.as_journal() for choice in self.choices],
            "exact": None if self.exact is None else score_object(self.exact, "exact"),
            "compared": None if self.compared is None else self.compared.as_json(),
            "hashfull": self.hashfull,
            "threads": self.threads,
            "notes": list(self.notes),
            "version": self.version,
        }

    @classmethod
    def from_json(cls, values: Any, is_record: bool = False) -> Answer:
        """Return the answer that `as_json` or `as_record` has converted. Raises ValueError for anything else.
        is_record: only accept what `as_record` returns."""
        try:
            answer = _read(values)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        if is_record and answer.as_record() != values:
            raise ValueError("the record has unknown values")
        return answer


@dataclass(frozen=True)
class Outcome:
    """The outcome of a task: an answer, or the reason why there is none."""

    number: int
    """Number of the task, from 0, in the order in which tasks are read."""
    id: str | int
    answer: Answer | None
    error: str | None = None
    """Reason why there is no answer, in one line; None where there is one."""
    worker: str = ""
    """Worker that searched: its machine, or the number of its process."""


def answer_object(answer: Answer, board: chess.Board, plies: int | None = None) -> dict[str, Any]:
    """Return an answer for programs, with the chances of the side to move to win, draw and lose, per mille. plies: most
    moves of a line."""
    values = answer.as_json(plies)
    for line, found in zip(answer.lines, values.get("lines", [values]), strict=True):
        found["wdl"] = chances(chess.engine.PovScore(line.score, board.turn), board)
    return {**values, "wdl": chances(chess.engine.PovScore(answer.line.score, board.turn), board)}


def result_object(id: Any, task: Task, answer: Answer | None, error: str | None) -> dict[str, Any]:
    """Return the object of a JSON line: scores for the side to move, moves in UCI notation, times in seconds."""
    values: dict[str, Any] = {"id": id, "fen": task.fen}
    if task.moves:
        values["moves"] = list(task.moves)
    if answer is None:
        return {**values, "error": error}
    values |= answer_object(answer, task.board())
    if answer.notes:
        values["notes"] = list(answer.notes)
    return {**values, "version": answer.version}


def _read(values: Any) -> Answer:
    best, seldepth = values["bestmove"], _checked(values["seldepth"], int)
    lines = [_line(line, seldepth) for line in values.get("lines", [values])]
    since = values.get("solution", values)
    choices = values.get("choices", [] if best is None else [{**since, "move": best}])
    exact, compared = values.get("exact"), values.get("compared")
    if not lines or (best is not None and not choices):
        raise ValueError("a move is missing")
    nodes, time_s = _fields(values, nodes=int, time=float)
    return Answer(
        best=None if best is None else _checked(best, str),
        lines=lines,
        nodes=nodes,
        time_s=time_s,
        hashfull=_checked(values.get("hashfull", 0), int),
        tbhits=_checked(values.get("tbhits", 0), int),
        choices=[_choice(one) for one in choices],
        exact=None if exact is None else _score(exact),
        compared=None if compared is None else _comparison(compared),
        notes=tuple(map(str, values.get("notes", ()))),
        version=str(values.get("version", "")),
        threads=_checked(values.get("threads", 1), int),
    )


def _choice(values: Any) -> Choice:
    mate = values.get("mate")
    move, time_s, depth, nodes = _fields(values, move=str, time=float, depth=int, nodes=int)
    return Choice(move, time_s, depth, nodes, None if mate is None else _checked(mate, int))


def _line(values: Any, seldepth: int) -> Line:
    bound, pv = values["score"].get("bound", "exact"), values["pv"]
    if bound not in ("exact", "lower", "upper") or not isinstance(pv, list):
        raise ValueError("invalid bound or pv")
    depth, moves = _checked(values["depth"], int), [_checked(word, str) for word in pv]
    return Line(_score(values["score"]), bound, depth, seldepth, moves)


def _comparison(values: Any) -> Comparison:
    if values["depths"] not in (1, 2, 3):
        raise ValueError("invalid depths")
    best = _line(values, 0)
    move, played = _checked(values["bestmove"], str), _score(values["played"])
    return Comparison(best.depth, values["depths"], move, best.score, played, best.pv)


def _score(values: Any) -> chess.engine.Score:
    mate = values.get("mate")
    return chess.engine.Cp(_checked(values["cp"], int)) if mate is None else chess.engine.Mate(_checked(mate, int))


def _fields(values: Any, **kinds: type) -> list[Any]:
    return [_checked(values[name], kind) for name, kind in kinds.items()]


def _checked(value: Any, kind: type) -> Any:
    """Return a value that has this type; a float is a time. Raises ValueError for any other value."""
    is_right = type(value) is kind or (kind is float and type(value) is int)
    if not is_right or (kind is int and abs(value) >= 2**63) or (kind is float and not 0 <= value < math.inf):
        raise ValueError(f"{shown(value)} is not of type {kind.__name__}")
    return value
