"""Limits of the system, lowered for a while, and what memory and files a process has."""

from __future__ import annotations

import gc
import mmap
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from psearch.arena.blocks import LARGE_PAGE, POPULATE_WRITE


@contextmanager
def lowered(kind: int, soft: int, pid: int = 0) -> Iterator[None]:
    """The soft limit of this process, or of another."""
    before = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, kind, before)


def address_space(pid: int | str = "self") -> int:
    """Bytes in use, as RLIMIT_AS counts them."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmSize:")[1].split()[0]) * 1024


def open_files(pid: int | str = "self") -> int:
    """Descriptors that a process holds, without those of its garbage if it is this one."""
    if pid == "self":
        gc.collect()  # what tests before have dropped would be closed sooner or later
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def next_descriptor() -> int:
    """The number of the file that is opened next: as a limit, it keeps any from being opened."""
    descriptor = os.dup(1)
    os.close(descriptor)
    return descriptor


PEAK_KIB = """
def peak_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
"""
"""Source of a function. Of the program alone: `getrusage` remembers what the process had been before `exec`, a test."""


def _can_populate() -> bool:
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        try:
            page.madvise(POPULATE_WRITE)
        except OSError:
            return False
        return True


NEEDS_POPULATE = pytest.mark.skipif(not _can_populate(), reason="Linux before 5.14 cannot take pages in advance")


def resident_kb(pid: int, size_kb: int) -> list[int]:
    """Return how much is mapped of each of a process's shared blocks of this size."""
    return [int(words[0]) for words in block_facts(pid, size_kb, "Rss:")]


def block_facts(pid: int, size_kb: int, name: str) -> list[list[str]]:
    """The words behind `name` in /proc/PID/smaps, for each of a process's shared blocks of this size."""
    found: list[list[str]] = []
    is_block = is_wanted = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        fields = line.split()
        if not fields[0].endswith(":"):
            is_block = "memfd:psearch" in line
        elif fields[0] == "Size:":
            # a mapping may be longer than its block by less than a large page
            is_wanted = is_block and 0 <= int(fields[1]) - size_kb < LARGE_PAGE // 1024
        elif fields[0] == name and is_wanted:
            found.append(fields[1:])
    return found
