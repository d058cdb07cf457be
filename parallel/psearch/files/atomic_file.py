"""A file that is replaced as a whole: who reads it sees the old one or the new one, at any moment."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


class AtomicFile:
    """A text file that is written beside its place and moved there by `commit`; a context manager.

    place: where it goes, not a link; part: where it is written, in the same folder. Without `commit` the part is
    deleted at the end and what is in the place stays. What an earlier run left in the place of the part goes; where
    somebody put a link there, the link. An OSError names the part.
    """

    def __init__(self, place: Path, part: Path) -> None:
        self._place = place
        self._part: Path | None = part
        self.stream = _new_file(part)

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._part is not None:
            # a full disk has been reported when it was written
            with contextlib.suppress(OSError):
                self.stream.close()
            self._part.unlink(missing_ok=True)

    def write(self, text: str) -> None:
        """Add to the file."""
        with self._naming():
            self.stream.write(text)

    def commit(self) -> None:
        """Move the complete file to its place, safe on the disk, with the permissions of the old one."""
        assert self._part is not None
        with self._naming():
            self.stream.flush()
            os.fsync(self.stream.fileno())
            self.stream.close()
            if self._place.exists():
                shutil.copymode(self._place, self._part)
            os.replace(self._part, self._place)
        self._part = None

    @contextlib.contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._part)) from None


def _new_file(path: Path) -> TextIO:
    """A text file that nobody else has made, opened for writing."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError:
        path.unlink()
        descriptor = os.open(path, flags, 0o666)
    return open(descriptor, "w", encoding="utf-8", newline="\n")
