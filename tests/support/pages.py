"""What of shared memory a process has mapped: for the tests of how a table is taken."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from psearch.arena.blocks import LARGE_PAGE, POPULATE_WRITE


def _can_populate() -> bool:
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        try:
            page.madvise(POPULATE_WRITE)
        except OSError:
            return False
        return True


NEEDS_POPULATE = pytest.mark.skipif(not _can_populate(), reason="Linux before 5.14 cannot take pages in advance")


def resident_kb(pid: int, size_kb: int) -> list[int]:
    """How much is mapped of each of a process's shared blocks of this size."""
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
