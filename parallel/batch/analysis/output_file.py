"""Where the result of an analysis goes."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

from psearch.files.atomic_file import AtomicFile
from psearch.results import PsearchError
from psearch.terminal.streams import is_terminal, printable
from psearch.text.source import STANDARD_STREAM


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
