"""What a search found, as plain data: for messages between processes, for journals, and for programs.

`Answer.as_json` and `Answer.from_json` are the one way from an answer to JSON and back. The results that
`psearch analyse` writes, its journal, and the older results that it merges are all read by `from_json`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import chess
import chess.engine

from psearch.text.report import score_object


@dataclass(frozen=True)
class Choice:
    """When the search began to prefer a move."""

    move: str
    """UCI"""
    time_s: float
    depth: int
    nodes: int

    def as_json(self) -> dict[str, Any]:
        """Return the time, the depth and the nodes."""
        return {"time": self.time_s, "depth": self.depth, "nodes": self.nodes}


@dataclass(frozen=True)
class Line:
    """One of the best lines. Scores are for the side to move."""

    cp: int | None
    """centipawns; None for a mate"""
    mate: int | None
    """moves to mate, negative when being mated, 0 on the board; None otherwise"""
    bound: str
    """`exact`, `lower` or `upper`, as in `Info`"""
    depth: int
    seldepth: int
    pv: list[str]
    """UCI"""

    @property
    def score(self) -> chess.engine.Score:
        """Score for the side to move."""
        return score_of(self.cp, self.mate)

    def as_json(self, plies: int | None = None) -> dict[str, Any]:
        """Return the score, the depth and the moves. plies: how many moves at most; None: all."""
        return {"score": score_object(self.score, self.bound), "depth": self.depth, "pv": self.pv[:plies]}


@dataclass(frozen=True)
class Comparison:
    """The best move beside the one that was played, both with exact scores of the same depth, for the side to move."""

    depth: int
    depths: int
    """how many of the last depths agree with these scores, or differ more"""
    best: str
    """UCI; may be the move that was played"""
    cp: int | None
    """centipawns of the best move; None for a mate, which is in `mate`"""
    mate: int | None
    played_cp: int | None
    played_mate: int | None
    pv: list[str]
    """the line of the best move, UCI"""

    @property
    def best_score(self) -> chess.engine.Score:
        """Score of the best move."""
        return score_of(self.cp, self.mate)

    @property
    def played_score(self) -> chess.engine.Score:
        """Score of the move that was played."""
        return score_of(self.played_cp, self.played_mate)

    def as_json(self) -> dict[str, Any]:
        """Return both moves' scores, and what else `Answer.from_json` needs."""
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
    """What a search found."""

    best: str | None
    """UCI; None when the game is over on the board"""
    lines: list[Line]
    """best first, at least one"""
    nodes: int
    time_s: float
    hashfull: int
    """share of the transposition table written by this search, in thousandths"""
    tbhits: int
    """root moves that were looked up in endgame tables"""
    choices: list[Choice]
    """the best move and its predecessors, each where it became the best; the last one is `best`"""
    exact_cp: int | None = None
    """the last exact score of the best move, where its score is a bound and there is one; a mate is in `exact_mate`"""
    exact_mate: int | None = None
    compared: Comparison | None = None
    """with the move that was played, where that may be a mistake"""
    notes: tuple[str, ...] = ()
    """what went wrong on the way and was mended, a line each"""
    version: str = ""
    """psearch's, where it was searched"""
    threads: int = 1
    """that searched at last"""

    @property
    def line(self) -> Line:
        """The best line."""
        return self.lines[0]

    @property
    def estimate(self) -> tuple[chess.engine.Score, str]:
        """The score for callers that cannot use bounds, and whether it is exact or which bound it is: the last exact
        score if it may still be right, else the bound."""
        score, bound = self.line.score, self.line.bound
        if self.exact_cp is None and self.exact_mate is None:
            return score, bound
        exact = score_of(self.exact_cp, self.exact_mate)
        holds = exact >= score if bound == "lower" else exact <= score
        return (exact, "exact") if holds else (score, bound)

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
        for word in (self.best, *(choice.move for choice in self.choices)):
            board.parse_uci(word)
        check_line(board, self.line.pv)
        if self.compared is not None:
            board.parse_uci(self.compared.best)
            check_line(board, self.compared.pv)

    def as_json(self, plies: int | None = None) -> dict[str, Any]:
        """Return what programs are told of it: moves are UCI, times seconds. plies: length of the lines at most."""
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
        """Return all that `from_json` takes, for a journal."""
        exact = None
        if self.exact_cp is not None or self.exact_mate is not None:
            exact = score_object(score_of(self.exact_cp, self.exact_mate), "exact")
        return {
            **self.as_json(),
            "choices": [{"move": choice.move, **choice.as_json()} for choice in self.choices],
            "exact": exact,
            "compared": None if self.compared is None else self.compared.as_json(),
            "hashfull": self.hashfull,
            "threads": self.threads,
            "notes": list(self.notes),
            "version": self.version,
        }

    @classmethod
    def from_json(cls, values: Any) -> Answer:
        """Return the answer that `as_json` or `as_record` has written. Raises ValueError for anything else."""
        try:
            return _read(values)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None

    @classmethod
    def from_record(cls, values: Any) -> Answer:
        """Return the answer that `as_record` has written, also with the names of before. Raises ValueError for anything
        else, and for anything more."""
        try:
            record = _renamed(values) if "best" in values else values
            answer = _read(record)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        if record is values and answer.as_record() != record:
            raise ValueError("there is more than an answer")
        return answer


def score_of(cp: int | None, mate: int | None) -> chess.engine.Score:
    """Return a score for the side to move, from the two numbers of which one is None."""
    return chess.engine.Cp(cp or 0) if mate is None else chess.engine.Mate(mate)


def check_line(board: chess.Board, words: list[str]) -> None:
    """Raise ValueError unless these moves, in UCI, can be played one after the other."""
    walk = board.copy(stack=False)
    for word in words:
        walk.push_uci(word)


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(values: Any) -> Answer:
    best = values["bestmove"]
    seldepth = _count(values["seldepth"])
    lines = [_line(line, seldepth) for line in values.get("lines", [values])]
    since = values.get("solution", values)
    choices = values.get("choices", [] if best is None else [{**since, "move": best}])
    exact, compared = values.get("exact"), values.get("compared")
    if not lines or (best is not None and not choices):
        raise ValueError("a move is missing")
    return Answer(
        best=None if best is None else _text(best),
        lines=lines,
        nodes=_count(values["nodes"]),
        time_s=_time(values["time"]),
        hashfull=_count(values.get("hashfull", 0)),
        tbhits=_count(values.get("tbhits", 0)),
        choices=[_choice(choice) for choice in choices],
        exact_cp=None if exact is None else _score(exact)[0],
        exact_mate=None if exact is None else _score(exact)[1],
        compared=None if compared is None else _comparison(compared),
        notes=tuple(map(str, values.get("notes", ()))),
        version=str(values.get("version", "")),
        threads=_count(values.get("threads", 1)),
    )


def _choice(values: Any) -> Choice:
    return Choice(_text(values["move"]), _time(values["time"]), _count(values["depth"]), _count(values["nodes"]))


def _line(values: Any, seldepth: int) -> Line:
    bound = values["score"].get("bound", "exact")
    if bound not in ("exact", "lower", "upper") or not isinstance(values["pv"], list):
        raise ValueError("its bound or pv is none")
    pv = [_text(word) for word in values["pv"]]
    return Line(*_score(values["score"]), bound, _count(values["depth"]), seldepth, pv)


def _comparison(values: Any) -> Comparison:
    best = _line(values, 0)
    if values["depths"] not in (1, 2, 3):
        raise ValueError("its depths are none")
    move, played = _text(values["bestmove"]), _score(values["played"])
    return Comparison(best.depth, values["depths"], move, best.cp, best.mate, *played, best.pv)


def _score(values: Any) -> tuple[int | None, int | None]:
    mate = values.get("mate")
    return (_count(values["cp"]), None) if mate is None else (None, _count(mate))


def _count(value: Any) -> int:
    if type(value) is not int or abs(value) >= 2**63:
        raise ValueError("a number is missing")
    return int(value)


def _time(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError("a time is missing")
    found: float = value
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is missing")
    return value


def _renamed(values: Any) -> dict[str, Any]:
    """Return a record with the names of today. Journals of 0.1 had the fields of Python objects: those of suites and
    games one line without a list, those of JSON lines a list."""

    def scored(line: Any, prefix: str = "", bound: str = "exact") -> dict[str, Any]:
        cp, mate = line[f"{prefix}cp"], line[f"{prefix}mate"]
        return {**({"cp": cp} if mate is None else {"mate": mate}), "bound": bound}

    old_lines, compared = values.get("lines", [values]), values.get("compared")
    lines = [{**line, "score": scored(line, bound=line["bound"])} for line in old_lines]
    has_exact = (values["exact_cp"], values["exact_mate"]) != (None, None)
    if compared is not None:
        compared = {
            **compared,
            "bestmove": compared["best"],
            "score": scored(compared),
            "played": scored(compared, "played_"),
        }
    return {
        **values,
        **lines[0],
        "bestmove": values["best"],
        "time": values["time_s"],
        "lines": lines,
        "choices": [{**choice, "time": choice["time_s"]} for choice in values["choices"]],
        "exact": scored(values, "exact_") if has_exact else None,
        "compared": compared,
    }
