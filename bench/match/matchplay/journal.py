"""A match on disk: a journal of finished games, and their PGN. No finished game is lost, at whatever moment it ends.

A game's PGN is written first, then its line in the journal, which says how long the PGN file is; both reach the disk
before the next game is dealt with. So a match that goes on cuts away a torn line, and what the PGN has beyond the last.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from .errors import MatchError
from .game import Complaint, Record, Usage


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


class Journal:
    """`PREFIX.jsonl` and `PREFIX.pgn`, open and locked; a context manager."""

    def __init__(self, prefix: Path, settings: dict[str, Any], *, resume: bool) -> None:
        """Begin a match, or go on with one of the same settings. Raises MatchError."""
        self.path = prefix.with_name(prefix.name + ".jsonl")
        self.pgn_path = prefix.with_name(prefix.name + ".pgn")
        self.records: list[Record] = []
        self.id_names: tuple[str, str] | None = None
        """what the engines call themselves, once they have said it"""
        for path in (self.path, self.pgn_path):
            if not resume and path.exists():
                raise MatchError(f"{path} exists: --resume goes on with it, --out names another match")
        if resume and not self.path.exists():
            raise MatchError(f"{self.path} does not exist: there is no match to resume")
        try:
            self._lines = self.path.open("a+b")
            self._games = self.pgn_path.open("a+b")
            fcntl.flock(self._lines, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MatchError(f"{self.path}: this match is being played") from None
        except OSError as error:
            raise MatchError(f"cannot write {error.filename}: {error.strerror}") from None
        if resume:
            self._read(settings)
        else:
            self._write({"match": settings})

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self._games.close()
        self._lines.close()

    def _read(self, settings: dict[str, Any]) -> None:
        self._lines.seek(0)
        kept = pgn_end = 0
        begun: dict[str, Any] | None = None
        for number, line in enumerate(self._lines.read().splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                break  # torn by what ended the match
            try:
                entry = json.loads(line)
                if number == 1:
                    begun = entry["match"]
                elif "engines" in entry:
                    self.id_names = (entry["engines"][0], entry["engines"][1])
                else:
                    self.records.append(_record(entry["game"]))
                    pgn_end = entry["pgn_end"]
            except (ValueError, KeyError, TypeError):
                raise MatchError(f"{self.path}, line {number}: not a line of a match") from None
            kept += len(line)
        if begun is None:  # ended before it began
            begun = settings
        was, now = _flat(begun), _flat(settings)
        for key in sorted(was.keys() | now.keys()):
            if was.get(key) != now.get(key):
                raise MatchError(f"{self.path} is another match: {key} was {was.get(key)}, is {now.get(key)}")
        self._lines.truncate(kept)
        self._games.truncate(pgn_end)
        if not kept:
            self._write({"match": settings})

    def _write(self, entry: dict[str, Any]) -> None:
        self._append(self._lines, json.dumps(entry).encode() + b"\n")

    @staticmethod
    def _append(file: Any, text: bytes) -> None:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise MatchError(f"cannot write {file.name}: {error.strerror}") from None

    def name(self, id_names: tuple[str, str]) -> None:
        """Keep what the engines call themselves."""
        if id_names != self.id_names:
            self.id_names = id_names
            self._write({"engines": id_names})

    def remove(self) -> None:
        """Of a match that never began."""
        if not self.records:
            self.path.unlink()
            self.pgn_path.unlink()

    def add(self, record: Record) -> None:
        """A finished game. Raises MatchError when it cannot be kept."""
        self._append(self._games, record.pgn.encode())
        stored = asdict(record)
        del stored["pgn"]
        self._games.seek(0, os.SEEK_END)
        self._write({"game": stored, "pgn_end": self._games.tell()})
        self.records.append(record)
