"""What is dropped from the cache, and when."""

from __future__ import annotations

import contextlib
import re
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from psearch.core.toolchain.trusted_folder import NEW, Folder, open_folder

MOST_BYTES = 512 << 20
"""Of the whole cache: some hundred versions, processors and switches."""
_SPARED_S = 86400.0
"""What was used so lately stays, however much there is: it may be in use."""
_FOLDER = re.compile(r"kernels-[0-9a-f]{24}")
_FILE = re.compile(r"[\w.-]+-[0-9a-f]{32}\.o|[0-9a-f]{32}\.bc|[\w.-]+-[0-9a-f]{12}\.json")
_LOCK = re.compile(r"lock(-\d)?")


class _File(NamedTuple):
    used_s: float
    """when it was last read, or written; to the hour"""
    size: int
    folder: str
    name: str


def prune(root: str) -> None:
    """Drop the least recently used files of a cache beyond its size, and folders that become empty.

    What has another name than the files of the cache is left alone. Other programs may use the cache meanwhile, and
    prune it too; what cannot be done is left.
    """
    with contextlib.suppress(OSError), open_folder(root) as outer:
        files = sorted(_files(outer), reverse=True)
        spared = time.time() - _SPARED_S
        size = 0
        for file in files:
            size += file.size
            is_left_over = file.name.startswith(NEW)
            if file.used_s < spared and (is_left_over or size > MOST_BYTES):
                _drop(outer, file)


def _files(outer: Folder) -> Iterator[_File]:
    for name in outer.names():
        if not _FOLDER.fullmatch(name):
            continue
        with contextlib.suppress(OSError), outer.inner(name) as folder:
            for file in folder.names():
                if _FILE.fullmatch(file) or file.startswith(NEW):
                    with contextlib.suppress(OSError):
                        status = folder.status(file)
                        if stat.S_ISREG(status.st_mode):
                            yield _File(status.st_mtime, status.st_size, name, file)


def _drop(outer: Folder, file: _File) -> None:
    """A file, and its folder if that has nothing else but locks."""
    with contextlib.suppress(OSError), outer.inner(file.folder) as folder:
        folder.remove(file.name)
        left = folder.names()
        if all(_LOCK.fullmatch(name) for name in left):
            for name in left:
                folder.remove(name)
            outer.remove_folder(file.folder)
