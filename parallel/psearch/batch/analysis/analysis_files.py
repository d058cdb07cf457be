"""The files of a long analysis: its journal, so that nothing is searched twice, and its result.

The first line of a journal says what is analysed and how; each further line is one finished position under its key.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from psearch.batch.positions.answer import Answer
from psearch.files.safe_files import AtomicFile, DamagedLine, Journal
from psearch.results import PsearchError
from psearch.terminal.streams import is_terminal, printable
from psearch.text.source import STANDARD_STREAM
from psearch.text.values import shown

_FORMAT = "psearch analysis 4"
_OPENING = json.dumps({"journal": _FORMAT})[:-1].encode()
_SYNC_INTERVAL_S = 1.0
"""Least time between two waits for the disk: searches can be shorter than those."""


class AnalysisJournal:
    """An open journal; a context manager.

    about: what the answers depend on, JSON values by name. A journal that is already there goes on if it is about the
    same; raises PsearchError, and leaves the file as it is, if it holds positions of something else, is no journal, or
    in use by another process. A link is not followed: nobody names a journal, so none was meant. A journal without a
    position is worth nothing: it is begun anew, and deleted when it is closed. An OSError names the file.
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
            if not self._goes_on(about):
                self._lines.cut(0)
                self._lines.append({"journal": _FORMAT, "about": about})
        except BaseException:
            self._lines.close()
            raise

    def __enter__(self) -> AnalysisJournal:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._offsets:
            self.path.unlink(missing_ok=True)
        self._lines.close()

    def __len__(self) -> int:
        """Finished positions."""
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return key in self._offsets

    def get(self, key: str) -> Answer:
        """Return the answer of a key that is there. It is read from the file: a long game collection must not fill the
        memory."""
        try:
            return Answer.from_record(self._lines.value_at(self._offsets[key])["answer"])
        except (ValueError, TypeError, KeyError):
            raise PsearchError(f"{self.path} was changed by another program while it was in use") from None

    def add(self, key: str, answer: Answer) -> None:
        """Note a finished position."""
        self._offsets[key] = self._lines.append({"key": key, "answer": answer.as_record()})

    def remove(self) -> None:
        """Delete the file: the analysis is complete, and its result safe."""
        self.path.unlink()

    def _goes_on(self, about: dict[str, Any]) -> bool:
        """Index what is there and cut off what is incomplete; False: there is nothing to go on with."""
        number = 1
        different: list[str] | None = None
        try:
            for line in self._lines.lines():
                number = line.number
                if different is None:
                    different = _differences(line.value, about)
                else:
                    Answer.from_record(line.value["answer"])
                    self._offsets[str(line.value["key"])] = line.offset
                    self._refuse(different)
        except DamagedLine as error:
            raise self._no_journal(error.number) from None
        except (ValueError, TypeError, KeyError):
            raise self._no_journal(number) from None
        self._lines.cut()
        return different == []

    def _no_journal(self, number: int) -> PsearchError:
        return PsearchError(f"{self.path}, line {number}: not a journal of psearch analyse")

    def _refuse(self, different: list[str]) -> None:
        if different:
            raise PsearchError(
                f"{self.path} is the journal of another analysis (different: {', '.join(different)}); "
                "finish that one, delete the journal, or choose another --out"
            )


def _differences(head: Any, about: dict[str, Any]) -> list[str]:
    """Return in what the analysis of a first line differs. Raises what a line that is none of ours leads to."""
    if head["journal"] != _FORMAT:
        raise ValueError
    found = dict(head["about"])
    names = [name for name in {**about, **found} if found.get(name) != about.get(name)]
    return [name if name.isprintable() else shown(name) for name in names]


# -- the result -------------------------------------------------------------------------------------------------------


def place_of(file: str | None) -> Path | None:
    """Return where a result goes; None for standard output. Raises PsearchError for what cannot be replaced by a
    file."""
    if file is None or file == STANDARD_STREAM:
        return None
    place = Path(os.path.realpath(file))
    if place.exists() and not place.is_file():
        raise PsearchError(f"cannot write {file}: not a regular file")
    return place


def part_of(place: Path) -> Path:
    """Return where a result is while it is being made."""
    return Path(f"{place}.part")


class Output:
    """Where the result goes: standard output (None) as it comes, or a file that appears when it is complete.

    A file is written beside its place, as `FILE.part`, and moved there by `commit`; a terminal is sent nothing that
    steers it. A context manager. Raises PsearchError when the place cannot be written.
    """

    def __init__(self, place: Path | None) -> None:
        self._file: AtomicFile | None = None
        self._filters = place is None and is_terminal(sys.stdout)
        if place is None:
            # as in a file, whatever the locale says: names of players must not end the analysis
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")
            return
        part = part_of(place)
        try:
            self._file = AtomicFile(place, part)
        except OSError as error:
            raise PsearchError(f"cannot write {part}: {error.strerror}") from None

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.__exit__(*exception)

    def write(self, text: str) -> None:
        """Add to the result; on standard output at once."""
        if self._file is None:
            print(printable(text) if self._filters else text, end="", flush=True)
        else:
            self._file.write(text)

    def commit(self) -> None:
        """Move the complete result to its place, safe on the disk."""
        if self._file is not None:
            self._file.commit()
