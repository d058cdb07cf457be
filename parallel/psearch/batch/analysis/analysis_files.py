"""The files of an analysis: JSON lines that it reads (positions to search, and older results), its journal, with which
an interrupted run continues, and its result.

The first line of a journal says what is analysed and how; each further line is one finished position with its key.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import chess

from psearch.batch.analysis.tables import CsvTable, ParquetTable, ending_of
from psearch.batch.positions.task import Answer, Task, uci_words
from psearch.closing import Closing
from psearch.files.safe_files import AtomicFile, DamagedLine, Journal, json_object
from psearch.results import Limits, PsearchError
from psearch.settings import DEPTH, MOVETIME, MULTIPV, NODES, Option
from psearch.terminal.streams import is_terminal, printable
from psearch.text.source import STANDARD_STREAM, Source, Stream, parse_lines, parse_stream
from psearch.text.values import shown

_MOST_MOVES = 20_000
_LONGEST_FEN = 200
_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][nbrq]?")
_LIMITS = {option.name: option for option in (DEPTH, NODES, MOVETIME)}
_FORMAT = "psearch analysis 4"
_OPENING = json.dumps({"journal": _FORMAT})[:-1].encode()
_SYNC_INTERVAL_S = 1.0
"""Least seconds between two waits for the disk, which can be longer than a search."""


@dataclass(frozen=True)
class Asked:
    """A position to search, from one line of the input."""

    id: str | int
    task: Task
    """Task of the position; its id is the key in the journal."""


def read_asked(source: Source | Stream, file: int, default: Limits, lines: int = 1) -> Iterator[Asked | None]:
    """Yield the positions of a file or a pipe; None while the next line of a pipe has not arrived.

    file: its number; default, lines: limits and `multipv` of a line without them. docs/guides/analyse.md has the names
    of the values; others are ignored. Raises PsearchError, which names the line, for a bad line.
    """

    def parse(text: str, number: int) -> Asked:
        values = json_object(text)
        name = values.get("id", number)
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise PsearchError(f"id must be text or a whole number, not {shown(name)}")
        fen = values.get("fen", chess.STARTING_FEN)
        if not isinstance(fen, str) or len(fen) > _LONGEST_FEN:
            raise PsearchError(f"fen must be text, not {shown(fen)}")
        key = f"file {file} line {number}"
        multipv = _whole(MULTIPV, values.get("multipv", lines))
        return Asked(name, Task(key, fen, _moves(values.get("moves", [])), _limits(values, default), multipv))

    return parse_stream(source, parse) if isinstance(source, Stream) else parse_lines(source, parse)


def _moves(value: Any) -> tuple[str, ...]:
    moves = value.split() if isinstance(value, str) else value
    if not isinstance(moves, list) or len(moves) > _MOST_MOVES:
        raise PsearchError(f"moves must be a list of moves in UCI notation, not {shown(value)}")
    for move in moves:
        if not isinstance(move, str) or not _MOVE.fullmatch(move):
            raise PsearchError(f"moves must be in UCI notation, such as e2e4, not {shown(move)}")
    return tuple(moves)


def _limits(values: dict[str, Any], default: Limits) -> Limits:
    given = values.get("limits")
    if given is None:
        return default
    if not isinstance(given, dict) or not given or not set(given) <= set(_LIMITS):
        raise PsearchError(f"limits must be an object with depth, nodes or movetime, not {shown(given)}")
    numbers = {name: _whole(_LIMITS[name], value) for name, value in given.items()}
    return Limits(numbers.get("depth"), numbers.get("movetime"), numbers.get("nodes"))


def _whole(option: Option, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PsearchError(f"{option.key} must be {option.wanted}, not {shown(value)}")
    found: int = option.of_value(value, option.key)
    return found


class _OlderResult(NamedTuple):
    """Place of a result in its file: the number of its line, from 1, and its first byte and end."""

    number: int
    begin: int
    end: int
    depth: int
    """Depth of a position, or sum of the depths of a game."""


class OlderResults:
    """Older results of positions and games, by position or game. Only their places are in memory; the file is read
    again when a result is wanted. Raises PsearchError for a line that is not a JSON object."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._deepest: dict[bytes, _OlderResult] = {}
        """Deepest result of each position or game."""
        for number, line in enumerate(source.lines(), start=1):
            if not line.text.strip():
                continue
            try:
                values = json_object(line.text)
            except ValueError as error:
                text = f"{source.name}, line {number}: {error}"
                raise PsearchError(f"{text}; merged files must hold JSON lines, or the output of --json") from None
            key, depth = _key_and_depth(values)
            if key is not None and (key not in self._deepest or self._deepest[key].depth < depth):
                self._deepest[key] = _OlderResult(number, line.begin, line.end, depth)

    def __len__(self) -> int:
        return len(self._deepest)

    def of_position(self, task: Task, fen: str | None = None) -> Answer | None:
        """Return the older result of a position, if it has enough lines. fen: the position as it was written, without
        moves, if that differs from the task. Raises PsearchError for an invalid result."""
        place = self._deepest.get(_key("position", fen or task.fen, [] if fen else list(task.moves)))
        if place is None:
            return None
        board = task.board()
        answer = self._answer(place, self._values(place), board)
        return answer if _has_lines(answer, board, task.multipv) else None

    def of_game(self, board: chess.Board, moves: Iterable[chess.Move], multipv: int = 1) -> dict[int, Answer]:
        """Return the older results of a game with this first position and these moves, by ply, where they have enough
        lines. Raises PsearchError for an invalid result."""
        words = list(uci_words(board, moves))
        place = self._deepest.get(_key("game", board.fen(), words))
        if place is None:
            return {}
        walk = board.copy(stack=False)
        found = {}
        for ply, values in enumerate(self._values(place)["positions"]):
            # results of versions without comparisons are searched again, since they would give no marks
            if _has_result(values) and (ply >= len(words) or "compared" in values):
                answer = self._answer(place, values, walk)
                if _has_lines(answer, walk, multipv):
                    found[ply] = answer
            if ply < len(words):
                walk.push_uci(words[ply])
        return found

    def _values(self, place: _OlderResult) -> dict[str, Any]:
        return json_object(self._source.text_between(place.begin, place.end).removeprefix("\ufeff"))

    def _answer(self, place: _OlderResult, values: dict[str, Any], board: chess.Board) -> Answer:
        try:
            answer = Answer.from_json(values)
            answer.check(board)
        except ValueError as error:
            text = f"not a result for {board.fen()}: {error}"
            raise PsearchError(f"{self._source.name}, line {place.number}: {text}") from None
        return answer


def _has_lines(answer: Answer, board: chess.Board, multipv: int) -> bool:
    return len(answer.lines) >= min(multipv, board.legal_moves.count())


def _key_and_depth(values: dict[str, Any]) -> tuple[bytes | None, int]:
    """Return the key of a result and its depth; None: the object is not a result."""
    positions, moves = values.get("positions"), values.get("moves", [])
    if isinstance(positions, list):
        if not positions or not all(isinstance(one, dict) for one in positions):
            return None, 0
        moves = [one["move"] for one in positions if "move" in one]
        depth = sum(one["depth"] for one in positions if _has_result(one))
        return _key("game", positions[0].get("fen"), moves), depth
    moves = moves.split() if isinstance(moves, str) else moves
    if not _has_result(values) or not isinstance(moves, list):
        return None, 0
    return _key("position", values.get("fen"), moves), values["depth"]


def _has_result(values: dict[str, Any]) -> bool:
    return type(values.get("depth")) is int and isinstance(values.get("score"), dict)


def _key(kind: str, fen: Any, moves: list[Any]) -> bytes:
    return hashlib.blake2b(json.dumps([kind, fen, moves]).encode(), digest_size=12).digest()


class AnalysisJournal(Closing):
    """An open journal; a context manager.

    about: everything that the answers depend on, as JSON values by name. An existing journal is continued if its
    `about` is equal. Raises PsearchError, and does not change the file, if it holds positions of another analysis, is
    not a journal, or is in use by another process. A link is not followed: psearch has made up the name, so nobody
    meant the link. A journal without positions is started anew, and deleted when it is closed. An OSError names the
    file.
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self._offsets: dict[str, int] = {}
        try:
            self._lines = Journal(path, _OPENING, sync_interval_s=_SYNC_INTERVAL_S, flags=os.O_NOFOLLOW)
        except BlockingIOError:
            raise PsearchError(f"another psearch is writing {path}") from None
        except OSError as error:
            raise PsearchError(f"cannot write the journal {path}: {error.strerror}") from None
        try:
            if not self._lines.is_regular:
                raise PsearchError(f"cannot write the journal {path}: not a regular file")
            if not self._can_continue(about):
                self._lines.cut(0)
                self._lines.append({"journal": _FORMAT, "about": about})
        except BaseException:
            self._lines.close()
            raise

    def close(self) -> None:
        if not self._offsets:
            self.path.unlink(missing_ok=True)
        self._lines.close()

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return key in self._offsets

    def get(self, key: str) -> Answer:
        """Return the answer of a key that is in the journal. It is read from the file, so that a large collection does
        not fill the memory."""
        try:
            return Answer.from_json(self._lines.value_at(self._offsets[key])["answer"], is_record=True)
        except (ValueError, TypeError, KeyError):
            raise PsearchError(f"{self.path} was changed by another program while it was in use") from None

    def add(self, key: str, answer: Answer) -> None:
        self._offsets[key] = self._lines.append({"key": key, "answer": answer.as_record()})

    def remove(self) -> None:
        """Delete the file, when the analysis is complete and its result safe."""
        self.path.unlink()

    def _can_continue(self, about: dict[str, Any]) -> bool:
        """Index the journal and cut off an incomplete line. Return False if there is nothing to continue."""
        number, head = 1, None
        different: list[str] = []
        try:
            for line in self._lines.lines():
                number = line.number
                if head is None:
                    head = line.value
                    if head["journal"] != _FORMAT:
                        raise ValueError
                    found = dict(head["about"])
                    different = [name for name in {**about, **found} if found.get(name) != about.get(name)]
                    continue
                Answer.from_json(line.value["answer"], is_record=True)
                self._offsets[str(line.value["key"])] = line.offset
                if different:
                    names = ", ".join(name if name.isprintable() else shown(name) for name in different)
                    raise PsearchError(
                        f"{self.path} is the journal of another analysis (different: {names}); "
                        "finish that one, delete the journal, or choose another --out"
                    )
        except (DamagedLine, ValueError, TypeError, KeyError) as error:
            number = error.number if isinstance(error, DamagedLine) else number
            raise PsearchError(f"{self.path}, line {number}: not a journal of psearch analyse") from None
        self._lines.cut()
        return head is not None and not different


def place_of(file: str | None) -> Path | None:
    """Return the path of the result; None for standard output. Raises PsearchError if it exists and is not a regular
    file."""
    if file is None or file == STANDARD_STREAM:
        return None
    place = Path(os.path.realpath(file))
    if place.exists() and not place.is_file():
        raise PsearchError(f"cannot write {file}: not a regular file")
    return place


class Output(Closing):
    """The output of the result: standard output (None), which gets it piece by piece, or a file, which appears when
    it is complete. A context manager.

    columns: those of a table. A file is written as `FILE.part` and moved to its place by `commit`. A terminal gets no
    control characters. Raises PsearchError when the file cannot be written.
    """

    def __init__(self, place: Path | None, columns: Sequence[str] = ()) -> None:
        self._file: AtomicFile | None = None
        self.table: CsvTable | ParquetTable | None = None
        """Table, if the ending of the place says so: the result is its rows, and text is left out."""
        self._filters = place is None and is_terminal(sys.stdout)
        if place is None:
            # UTF-8 as in a file, whatever the locale: the name of a player must not end the analysis
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")
            return
        part = Path(f"{place}.part")
        try:
            self._file = AtomicFile(place, part)
        except OSError as error:
            raise PsearchError(f"cannot write {part}: {error.strerror}") from None
        ending = ending_of(place.name)
        if ending == ".csv":
            self.table = CsvTable(self._file, columns)
        elif ending:
            try:
                self.table = ParquetTable(cast(BinaryIO, self._file.stream.buffer), columns)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, text: str) -> None:
        """Write a part of the result; standard output gets it at once, a table leaves it out."""
        if self.table is not None:
            return
        if self._file is None:
            print(printable(text) if self._filters else text, end="", flush=True)
        else:
            self._file.write(text)

    def commit(self) -> None:
        """Move the complete result to its place, safe on the disk."""
        if self.table is not None:
            self.table.end()
        if self._file is not None:
            self._file.commit()
