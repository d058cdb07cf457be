"""The analysis of many positions, one after the other: searches, what is kept of them, and how they go on.

`Analysis` answers positions from the journal or by a search; `analyse_epd` and `analyse_pgn` say which positions, and
what to make of the answers; `Output` is where the result goes.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chess
import chess.engine

from psearch.analysis.journal import Journal
from psearch.notation.report import uci_line
from psearch.notation.source import STANDARD_STREAM
from psearch.results import Info, Limits, PsearchError

if TYPE_CHECKING:
    from threading import Event

    from psearch.arena.setup import SearchOptions
    from psearch.processes.supervisor import Supervisor

_MOST_PV_PLIES = 20
"""of a line that is kept"""


@dataclass(frozen=True)
class Choice:
    """From when on the search preferred a move."""

    move: str
    """UCI"""
    time_s: float
    depth: int
    nodes: int


@dataclass(frozen=True)
class Answer:
    """What is kept of one finished search. Scores are for the side to move; moves are UCI."""

    best: str
    cp: int | None
    """centipawns; None for a mate"""
    mate: int | None
    """moves to mate, negative when being mated; None otherwise"""
    depth: int
    seldepth: int
    nodes: int
    time_s: float
    pv: list[str]
    choices: list[Choice] = field(default_factory=list)
    """the best move and its predecessors, each where it became the best; the last one is `best`"""

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Answer:
        """From what `asdict` made of one."""
        return cls(**{**values, "choices": [Choice(**choice) for choice in values["choices"]]})

    @property
    def score(self) -> chess.engine.Score:
        """For the side to move."""
        return chess.engine.Cp(self.cp or 0) if self.mate is None else chess.engine.Mate(self.mate)


class Stopped(Exception):
    """A signal asked to stop: the position that was searched is not finished."""


class _Watch:
    """Notes when the preferred move changes, and passes reports on."""

    def __init__(self, board: chess.Board, on_info: Callable[[Info], None]) -> None:
        self.board = board
        self.on_info = on_info
        self.choices: list[Choice] = []

    def __call__(self, info: Info) -> None:
        if info.depth > 0 and info.pv:
            self.note(info.pv[0], info)
        self.on_info(info)

    def note(self, move: chess.Move, info: Info) -> None:
        word = self.board.uci(move)
        if not self.choices or self.choices[-1].move != word:
            self.choices.append(Choice(word, round(info.time_s, 4), info.depth, info.nodes))


class Analysis:
    """Answers positions, from the journal where it has them, else by a search on a supervisor.

    engine: newly started, so that its table is empty; stop: set to end the present search and the analysis; on_info:
    called while searching; on_answer: called with every answer, True if it comes from a search.
    """

    def __init__(
        self,
        engine: Supervisor,
        limits: Limits,
        options: SearchOptions,
        stop: Event,
        journal: Journal | None = None,
        on_info: Callable[[Info], None] = lambda info: None,
        on_answer: Callable[[bool], None] = lambda searched: None,
    ) -> None:
        self.engine = engine
        self.limits = limits
        self.options = options
        self.stop = stop
        self.journal = journal
        self.on_info = on_info
        self.on_answer = on_answer
        self._is_new = True
        self._forgets = False

    def forget(self) -> None:
        """The next search knows nothing of those before: empty table, no histories."""
        self._forgets = not self._is_new  # to empty gigabytes takes seconds

    def answer(self, key: str, board: chess.Board) -> Answer:
        """The answer for a position with a legal move. Raises Stopped, WorkerDied, and OSError for the journal."""
        if self.stop.is_set():
            raise Stopped
        kept = self.journal.get(key) if self.journal is not None else None
        if kept is not None:
            self.on_answer(False)
            return Answer.from_json(kept)
        answer = self._search(board)
        if self.journal is not None:
            self.journal.add(key, asdict(answer))
        self.on_answer(True)
        return answer

    def _search(self, board: chess.Board) -> Answer:
        if self._forgets:
            self.engine.arena.clear_table()
            self.engine.arena.clear_learning()
            self._forgets = False
        self._is_new = False
        watch = _Watch(board, self.on_info)
        result = self.engine.search(board, self.limits, on_info=watch, stop=self.stop, options=self.options)
        if result.interrupted:
            raise Stopped
        info = result.info
        if result.bestmove is None:
            raise ValueError("no legal move")
        watch.note(result.bestmove, info)
        score = info.score.pov(board.turn)
        return Answer(
            best=board.uci(result.bestmove),
            cp=score.score(),
            mate=score.mate(),
            depth=info.depth,
            seldepth=info.seldepth,
            nodes=info.nodes,
            time_s=round(info.time_s, 4),
            pv=uci_line(board, info.pv[:_MOST_PV_PLIES]),
            choices=watch.choices,
        )


def place_of(file: str | None) -> Path | None:
    """Where a result goes; None for standard output. Raises PsearchError for what cannot be replaced by a file."""
    if file is None or file == STANDARD_STREAM:
        return None
    place = Path(os.path.realpath(file))
    if place.exists() and not place.is_file():
        raise PsearchError(f"cannot write {file}: not a regular file")
    return place


class Output:
    """Where the result goes: standard output (None) as it comes, or a file that appears when it is complete.

    A file is written beside its place, as `FILE.part`, and moved there by `commit`. A context manager. Raises
    PsearchError when the place cannot be written.
    """

    def __init__(self, place: Path | None) -> None:
        self._place = place
        self._part: Path | None = None
        if place is None:
            # as in a file, whatever the locale says: names of players must not end the analysis
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")
            return
        part = Path(f"{place}.part")
        try:
            self._out = part.open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise PsearchError(f"cannot write {part}: {error.strerror}") from None
        self._part = part

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._part is not None:
            # a full disk has been reported when it was written
            with contextlib.suppress(OSError):
                self._out.close()
            self._part.unlink(missing_ok=True)

    def write(self, text: str) -> None:
        """Add to the result; on standard output at once."""
        if self._part is None:
            print(text, end="", flush=True)
        else:
            try:
                self._out.write(text)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(self._part)) from None

    def commit(self) -> None:
        """The result is complete: move it to its place, safe on the disk."""
        if self._part is None or self._place is None:
            return
        try:
            self._out.flush()
            os.fsync(self._out.fileno())
            self._out.close()
            if self._place.exists():
                shutil.copymode(self._place, self._part)
            os.replace(self._part, self._place)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._part)) from None
        self._part = None
