"""A match on disk: a journal of finished games, and their PGN. No finished game is lost, at whatever moment it ends.

A game's PGN is written first, then its line in the journal, which says how long the PGN file is; both reach the disk
before the next game is dealt with. So a match that goes on cuts away a torn line, and the game that the PGN has beyond
the last; anything else that is not as it was written is refused, and both files stay.
"""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from psearch.files.safe_files import DamagedLine, Journal
from psearch.text.values import shown

from .errors import MatchError
from .game import Complaint, Record, Usage

_GAME = b'[Event "'
"""how a game begins in the PGN"""


def _record(stored: dict[str, Any]) -> Record:
    known = {entry.name for entry in fields(Record)}
    record = Record(**{key: value for key, value in stored.items() if key in known})
    record.complaints = [Complaint(**entry) for entry in stored["complaints"]]
    record.usage = [Usage(**entry) for entry in stored["usage"]]
    return record


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return found


class MatchJournal:
    """`PREFIX.jsonl` and `PREFIX.pgn`, open and locked; a context manager."""

    def __init__(self, prefix: Path, settings: dict[str, Any], *, resume: bool) -> None:
        """Begin a match, or go on with one of the same settings. Raises MatchError."""
        self.path = prefix.with_name(prefix.name + ".jsonl")
        self.pgn_path = prefix.with_name(prefix.name + ".pgn")
        self.records: list[Record] = []
        self.id_names: tuple[str, str] | None = None
        """what the engines call themselves, once they have said it"""
        for path in (self.path, self.pgn_path, prefix.with_name(prefix.name + ".json")):
            if not resume and path.exists():
                raise MatchError(f"{path} exists: --resume goes on with it, --out names another match")
        if resume and not self.path.exists():
            raise MatchError(f"{self.path} does not exist: there is no match to resume")
        try:
            self._lines = Journal(self.path, b'{"match": {', sync_interval_s=0)
            pgn_end = self._read(settings)
            self._games = self.pgn_path.open("ab")
        except BlockingIOError:
            raise MatchError(f"{self.path}: this match is being played") from None
        except OSError as error:
            raise MatchError(f"cannot write {error.filename}: {error.strerror}") from None
        self._lines.cut()
        self._games.truncate(pgn_end or 0)
        if pgn_end is None:
            self._append({"match": settings})

    def __enter__(self) -> MatchJournal:
        return self

    def __exit__(self, *exception: object) -> None:
        self._games.close()
        self._lines.close()

    def _read(self, settings: dict[str, Any]) -> int | None:
        """Read the games; how many bytes of PGN they are, None: there is nothing to go on with. Raises MatchError where
        there is more to be cut off than one game that was being written."""
        pgn_end = number = 0
        begun: dict[str, Any] | None = None
        try:
            for number, _, entry in self._lines.lines():
                if number == 1:
                    begun = entry["match"]
                elif "engines" in entry:
                    self.id_names = (entry["engines"][0], entry["engines"][1])
                else:
                    self.records.append(_record(entry["game"]))
                    if type(entry["pgn_end"]) is not int or entry["pgn_end"] < pgn_end:
                        raise ValueError
                    pgn_end = entry["pgn_end"]
        except DamagedLine as error:
            raise self._no_match(error.number) from None
        except (ValueError, LookupError, TypeError, AttributeError):
            raise self._no_match(number) from None
        was, now = _flat(settings if begun is None else begun), _flat(settings)
        for key in sorted(was.keys() | now.keys()):
            if was.get(key) != now.get(key):
                name = key if key.isprintable() else shown(key)
                raise MatchError(f"{self.path} is another match: {name} was {shown(was.get(key))}, is {now.get(key)}")
        games = self.pgn_path.read_bytes() if self.pgn_path.exists() else b""
        if len(games) < pgn_end:
            raise MatchError(f"{self.pgn_path} has {len(games):,} bytes, and {self.path.name} tells of {pgn_end:,}")
        torn = games[pgn_end:].rstrip(b"\0")
        is_a_game = torn[: len(_GAME)] == _GAME[: len(torn)] and b"\n" + _GAME not in torn
        if torn and (begun is None or not is_a_game):
            raise MatchError(f"{self.pgn_path}, byte {pgn_end:,}: more follows than a game that was cut short")
        return pgn_end if begun is not None else None

    def _no_match(self, number: int) -> MatchError:
        return MatchError(f"{self.path}, line {number}: not a line of a match")

    def _append(self, entry: dict[str, Any]) -> None:
        try:
            self._lines.append(entry)
        except OSError as error:
            raise MatchError(f"cannot write {self.path}: {error.strerror}") from None

    def _append_pgn(self, text: str) -> int:
        """A game; how long the file is then."""
        try:
            self._games.write(text.encode())
            self._games.flush()
            os.fsync(self._games.fileno())
        except OSError as error:
            raise MatchError(f"cannot write {self.pgn_path}: {error.strerror}") from None
        return self._games.seek(0, os.SEEK_END)

    def name(self, id_names: tuple[str, str]) -> None:
        """Keep what the engines call themselves."""
        if id_names != self.id_names:
            self.id_names = id_names
            self._append({"engines": id_names})

    def remove(self) -> None:
        """Of a match that never began."""
        if not self.records:
            self.path.unlink()
            self.pgn_path.unlink()

    def add(self, record: Record) -> None:
        """A finished game. Raises MatchError when it cannot be kept."""
        pgn_end = self._append_pgn(record.pgn)
        stored = asdict(record)
        del stored["pgn"]
        self._append({"game": stored, "pgn_end": pgn_end})
        self.records.append(record)
