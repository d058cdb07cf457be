"""Finished games on disk: none is lost, at whatever moment a run ends, and `--resume` goes on behind the last.

A match has its games in PGN beside its journal. The PGN is written first, then its line in the journal, which says how
long the PGN file is; both reach the disk before the next game is dealt with. So a match that goes on cuts away a torn
line, and the game that the PGN has beyond the last; anything else that is not as it was written is refused, and both
files stay.
"""

from __future__ import annotations

import contextlib
import math
import os
from abc import ABC, abstractmethod
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from psearch.files.safe_files import DamagedLine, Journal
from psearch.text.values import shown

from .game import Complaint, Record, Usage
from .scripts import MatchError

_GAME = b'[Event "'
"""how a game begins in the PGN"""


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted names."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return found


class GameLog(ABC):
    """A journal of games, open and locked; a context manager.

    Its first line has the settings under `head`. `take` reads any other line, and raises for what is none.
    """

    what = "run"

    def __init__(self, path: Path, head: str, settings: dict[str, Any], *, resume: bool, every: bool = False) -> None:
        """Begin a log, or go on with one of the same settings; every: waits for the disk. Raises MatchError."""
        if resume and not path.exists():
            raise MatchError(f"{path} does not exist: there is no {self.what} to resume")
        if not resume and path.exists():
            raise MatchError(f"{path} exists: --resume goes on with it, --out names another {self.what}")
        self.path = path
        opening = b'{"%s": {' % head.encode()
        try:
            self._lines = Journal(path, opening, sync_interval_s=0 if every else math.inf)
        except BlockingIOError:
            raise MatchError(f"{path}: this {self.what} is being played") from None
        except OSError as error:
            raise MatchError(f"cannot write {path}: {error.strerror}") from None
        try:
            begun = self._read(head)
            was, now = _flat(settings if begun is None else begun), _flat(settings)
            for key in sorted(was.keys() | now.keys()):
                if was.get(key) != now.get(key) and (key in now or self.is_setting(key)):
                    name = key if key.isprintable() else shown(key)
                    text = f"{name} was {shown(was.get(key))}, is {now.get(key)}"
                    raise MatchError(f"{path} is another {self.what}: {text}")
            self.begin(begun is None)
        except BaseException:
            self._lines.close()
            raise

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self._lines.close()

    def is_setting(self, key: str) -> bool:
        """Tell whether a setting that the log has and this run has not makes it another."""
        return True

    @abstractmethod
    def take(self, entry: dict[str, Any]) -> None:
        """Take an entry of the journal: the logs of matches, odds and judgements each have their own."""

    def begin(self, is_new: bool) -> None:
        """Cut off what is torn, before anything is appended."""
        self._lines.cut()

    def _read(self, head: str) -> dict[str, Any] | None:
        """Take the lines and return the settings; None: there is nothing to go on with."""
        begun: dict[str, Any] | None = None
        number = 0
        try:
            for number, _, entry in self._lines.lines():
                if number == 1:
                    begun = dict(entry[head])
                else:
                    self.take(entry)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            number = error.number if isinstance(error, DamagedLine) else number
            raise MatchError(f"{self.path}, line {number}: not a line of a {self.what}") from None
        return begun

    def append(self, entry: dict[str, Any]) -> None:
        """Add a line. Raises MatchError when it cannot be kept."""
        try:
            self._lines.append(entry)
        except OSError as error:
            raise MatchError(f"cannot write {self.path}: {error.strerror}") from None


class MatchJournal(GameLog):
    """`PREFIX.jsonl` and `PREFIX.pgn`, open and locked; a context manager."""

    what = "match"

    def __init__(self, prefix: Path, settings: dict[str, Any], *, resume: bool) -> None:
        """Begin a match, or go on with one of the same settings. Raises MatchError."""
        self.pgn_path = prefix.with_name(prefix.name + ".pgn")
        self.records: list[Record] = []
        self.id_names: tuple[str, str] | None = None
        """Names by which the engines call themselves, once they have said them."""
        self._settings = settings
        self._pgn_end = 0
        for path in (self.pgn_path, prefix.with_name(prefix.name + ".json")):
            if not resume and path.exists():
                raise MatchError(f"{path} exists: --resume goes on with it, --out names another match")
        super().__init__(prefix.with_name(prefix.name + ".jsonl"), "match", settings, resume=resume, every=True)

    def __enter__(self) -> MatchJournal:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            with contextlib.suppress(OSError):  # a full disk has been told
                self._games.close()
        finally:
            super().__exit__()

    def take(self, entry: dict[str, Any]) -> None:
        if "engines" in entry:
            self.id_names = (entry["engines"][0], entry["engines"][1])
            return
        stored = entry["game"]
        known = {field.name for field in fields(Record)}
        record = Record(**{key: value for key, value in stored.items() if key in known})
        record.complaints = [Complaint(**one) for one in stored["complaints"]]
        record.usage = [Usage(**one) for one in stored["usage"]]
        if type(entry["pgn_end"]) is not int or entry["pgn_end"] < self._pgn_end:
            raise ValueError
        self.records.append(record)
        self._pgn_end = entry["pgn_end"]

    def begin(self, is_new: bool) -> None:
        """Open the PGN. Raises MatchError where there is more to be cut off than one game that was being written."""
        end = self._pgn_end
        try:
            games = self.pgn_path.read_bytes() if self.pgn_path.exists() else b""
            if len(games) < end:
                raise MatchError(f"{self.pgn_path} has {len(games):,} bytes, and {self.path.name} tells of {end:,}")
            torn = games[end:].rstrip(b"\0")
            is_a_game = torn[: len(_GAME)] == _GAME[: len(torn)] and b"\n" + _GAME not in torn
            if torn and (is_new or not is_a_game):
                raise MatchError(f"{self.pgn_path}, byte {end:,}: more follows than a game that was cut short")
            self._games = self.pgn_path.open("ab")
        except OSError as error:
            raise MatchError(f"cannot write {error.filename}: {error.strerror}") from None
        super().begin(is_new)
        self._games.truncate(end)
        if is_new:
            self.append({"match": self._settings})

    def name(self, id_names: tuple[str, str]) -> None:
        """Keep what the engines call themselves."""
        if id_names != self.id_names:
            self.id_names = id_names
            self.append({"engines": id_names})

    def remove(self) -> None:
        if not self.records:
            self.path.unlink()
            self.pgn_path.unlink()

    def add(self, record: Record) -> None:
        """Keep a finished game. Raises MatchError when that fails."""
        try:
            self._games.write(record.pgn.encode())
            self._games.flush()
            os.fsync(self._games.fileno())
        except OSError as error:
            raise MatchError(f"cannot write {self.pgn_path}: {error.strerror}") from None
        stored = asdict(record)
        del stored["pgn"]
        self.append({"game": stored, "pgn_end": self._games.seek(0, os.SEEK_END)})
        self.records.append(record)
