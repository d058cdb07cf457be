"""The journal of a long analysis: every finished position, one JSON object a line, so that nothing is searched twice.

The first line says what is analysed and how; each further line is one finished position under its key. A line is handed
to the system before the next search begins, so a kill at any moment loses no finished position, and a power cut no more
than the last few. A last line cut short by a kill or a full disk is dropped; the position is searched again.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from psearch.results import PsearchError

_FORMAT = "psearch analysis 1"
_SYNC_INTERVAL_S = 1.0
"""least time between two waits for the disk: searches can be shorter than those"""
_BLOCK = 1 << 14


class Journal:
    """An open journal; a context manager.

    about: what the answers depend on, JSON values by name. A journal that is already there goes on if it is about the
    same; raises PsearchError, and leaves the file as it is, if it holds positions of something else, is no journal, or
    in use by another process. A journal without a position is worth nothing: it is begun anew, and deleted when it is
    closed. An OSError names the file.
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self._offsets: dict[str, int] = {}
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise PsearchError(f"cannot write the journal {path}: {error.strerror}") from None
        try:
            self._lock()
            self._end = self._read(about)
            self._synced_at = time.monotonic()
            if self._end == 0:
                self._append({"journal": _FORMAT, "about": about})
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._offsets:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def __len__(self) -> int:
        """Finished positions."""
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return key in self._offsets

    def get(self, key: str) -> dict[str, Any] | None:
        """What was noted under a key. Read from the file: a long game collection must not fill the memory."""
        if key not in self._offsets:
            return None
        line = bytearray()
        while b"\n" not in line:
            line += os.pread(self._file, _BLOCK, self._offsets[key] + len(line))
        answer: dict[str, Any] = json.loads(line.split(b"\n", 1)[0])["answer"]
        return answer

    def add(self, key: str, answer: dict[str, Any]) -> None:
        """Note a finished position."""
        offset = self._end
        self._append({"key": key, "answer": answer})
        self._offsets[key] = offset

    def remove(self) -> None:
        """Delete the file: the analysis is complete, and its result safe."""
        self.path.unlink()

    def _lock(self) -> None:
        """For this process alone. Record locks are not inherited: workers that outlive a killed parent hold none."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PsearchError(f"another psearch is writing {self.path}") from None

    def _read(self, about: dict[str, Any]) -> int:
        """Index what is there and cut off what is incomplete; the offset at which the next line goes."""
        offset = 0
        different: list[str] | None = None
        # closing any descriptor of the file would give the lock up
        with open(self._file, "rb", closefd=False) as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    break
                try:
                    values = json.loads(line)
                    if different is not None:
                        _ = values["answer"]
                        self._offsets[str(values["key"])] = offset
                        self._refuse(different)
                    elif values["journal"] != _FORMAT:
                        raise ValueError
                    else:
                        found = dict(values["about"])
                        different = [name for name in {**about, **found} if found.get(name) != about.get(name)]
                except (ValueError, TypeError, KeyError):
                    raise PsearchError(f"{self.path}, line {number}: not a journal of psearch analyse") from None
                offset += len(line)
            else:
                line = b""
        if different is None and not _begins_like_ours(line):
            raise PsearchError(f"{self.path}, line 1: not a journal of psearch analyse")
        offset = 0 if different else offset
        os.ftruncate(self._file, offset)
        return offset

    def _refuse(self, different: list[str]) -> None:
        if different:
            raise PsearchError(
                f"{self.path} is the journal of another analysis (different: {', '.join(different)}); "
                "finish that one, delete the journal, or choose another --out"
            )

    def _append(self, values: dict[str, Any]) -> None:
        line = memoryview(json.dumps(values).encode() + b"\n")
        at = self._end
        try:
            while line:
                written = os.pwrite(self._file, line, at)
                at += written
                line = line[written:]
            if time.monotonic() - self._synced_at >= _SYNC_INTERVAL_S:
                os.fdatasync(self._file)
                self._synced_at = time.monotonic()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self._end = at


def _begins_like_ours(line: bytes) -> bool:
    """Whether a first line without an end is one that we began to write."""
    head = json.dumps({"journal": _FORMAT}).encode()[:-1]
    return line.startswith(head) or head.startswith(line)
