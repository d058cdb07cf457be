"""Limits of the system, lowered for a while, and what a process has of it."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmSize:")[1].split()[0]) * 1024


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
