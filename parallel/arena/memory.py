"""Memory from the system: how much there is to take, and blocks of it that processes share.

A block is anonymous (memfd): it has no name to leave behind, dies with the last process that maps it even after a
SIGKILL, and is not limited by the size of /dev/shm.
"""

from __future__ import annotations

import mmap
import os
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

MIB = 1 << 20
_PIECE = 64 * MIB
POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE, which `mmap` has no name for."""
_UNLIMITED = 1 << 62
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Of version 2 and 1: folder, limit, usage, and the field of `memory.stat` with the cached files, which give way."""


def available_memory() -> int:
    """Bytes that can be taken without swapping: what the kernel says, or what the control group leaves."""
    return min(_available_in_system(), _available_in_control_group())


def _available_in_system() -> int:
    meminfo = Path("/proc/meminfo")
    for line in meminfo.read_text().splitlines() if meminfo.exists() else ():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return _UNLIMITED


def _available_in_control_group() -> int:
    available = _UNLIMITED
    for folder, limit_file, usage_file, cache in _CONTROL_GROUPS:
        try:
            limit = int(Path(folder, limit_file).read_text())
            used = int(Path(folder, usage_file).read_text())
            fields = dict(line.split() for line in Path(folder, "memory.stat").read_text().splitlines())
            available = min(available, limit - used + int(fields[cache]))
        except (OSError, ValueError, KeyError):  # no such group, or "max"
            continue
    return available


class SharedBlock:
    """Anonymous memory that can be mapped by this process and its workers."""

    def __init__(self, size: int, fd: int | None = None) -> None:
        self.size = size
        if fd is None:
            fd = os.memfd_create("psearch", os.MFD_CLOEXEC)
            os.ftruncate(fd, size)
        self.fd = fd
        self.map = mmap.mmap(fd, size)

    def advise_huge_pages(self) -> None:
        """Ask for large pages: fewer TLB misses in a big table. A wish only."""
        advice = getattr(mmap, "MADV_HUGEPAGE", None)
        if advice is not None:
            try:
                self.map.madvise(advice)
            except OSError:
                return

    def populate(self, patience_s: float, share: float = 0.0) -> None:
        """Take all pages now and map them for this process: a page that a search has to ask for costs it 2 to 10 us.

        A wish only: what is not there after `patience_s`, or at all (Linux before 5.14), comes when it is touched. It
        begins behind a `share` of the block, 0 to 1, and does what is before that at the end.
        """
        since = time.monotonic()
        pieces = range(0, self.size, _PIECE)
        first = int(share * len(pieces))
        with suppress(OSError):
            for begin in (*pieces[first:], *pieces[:first]):
                if time.monotonic() - since > patience_s:
                    return
                self.map.madvise(POPULATE_WRITE, begin, min(_PIECE, self.size - begin))

    def clear(self) -> None:
        """All zero again. Pages stay where they are: to take new ones costs a search more than to write zeros here."""
        np.frombuffer(self.map, np.uint64)[:] = 0

    def close(self) -> None:
        """Drop the mapping; arrays made from it must not be used any more."""
        os.close(self.fd)
        try:
            self.map.close()
        except BufferError:
            # a view is still alive somewhere: the mapping goes when it does
            return
