"""What a program and the processes below it hold of the machine, read from /proc: for runs that look for leaks."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _SESSION, _THREADS = 1, 3, 17
"""Fields of /proc/PID/stat behind the name."""


def _stat_fields(pid: int) -> list[str] | None:
    """Behind the name; None for a process that has gone or is a zombie."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields


def _all_fields() -> dict[int, list[str]]:
    """Of every process there is."""
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return {pid: fields for pid in pids if (fields := _stat_fields(pid)) is not None}


def family(root: int) -> list[int]:
    """A process and those below it, parents first."""
    children: dict[int, list[int]] = {}
    processes = _all_fields()
    for pid, fields in processes.items():
        children.setdefault(int(fields[_PARENT]), []).append(pid)
    found = [root] if root in processes else []
    for pid in found:
        found += children.get(pid, [])
    return found


def in_session(session: int) -> list[int]:
    """The processes of a session: what a program started with `start_new_session` has left behind, too."""
    return [pid for pid, fields in _all_fields().items() if int(fields[_SESSION]) == session]


def _command(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def workers_of(engine: int) -> list[int]:
    """The worker processes of a psearch program: its children, or those of its fork server."""
    found = []
    children = {pid for pid in family(engine) if _is_child_of(pid, engine)}
    for child in children:
        if b"fork_server" in _command(child):
            found += [pid for pid in family(child) if _is_child_of(pid, child)]
        else:
            found.append(child)
    return found


def _is_child_of(pid: int, parent: int) -> bool:
    fields = _stat_fields(pid)
    return fields is not None and int(fields[_PARENT]) == parent


@dataclass(frozen=True)
class Holdings:
    """What a family of processes holds at one moment."""

    processes: int
    threads: int
    descriptors: int
    program_kb: int
    """memory of the program that is its own: anonymous pages"""
    workers_kb: int
    """the same of all processes below it together"""
    shared_kb: int
    """pages of the anonymous files that they have open, each file once"""

    def as_dict(self) -> dict[str, int]:
        """For a log."""
        return asdict(self)


def holdings(root: int) -> Holdings:
    """What a process and those below it hold now. One that ends meanwhile counts in part, or not."""
    pids = family(root)
    shared: dict[int, int] = {}
    descriptors = threads = 0
    for pid in pids:
        fields = _stat_fields(pid)
        threads += int(fields[_THREADS]) if fields else 0
        try:
            names = os.listdir(_PROC / str(pid) / "fd")
        except OSError:
            continue
        for name in names:
            descriptors += _count_descriptor(_PROC / str(pid) / "fd" / name, shared)
    memory = [_anonymous_kb(pid) for pid in pids]
    return Holdings(len(pids), threads, descriptors, sum(memory[:1]), sum(memory[1:]), sum(shared.values()))


def _count_descriptor(path: Path, shared: dict[int, int]) -> int:
    """1, or 0 for one that is closed by now; `shared` gets the size of an anonymous file by its inode."""
    try:
        if os.readlink(path).startswith("/memfd:"):
            status = path.stat()
            shared[status.st_ino] = status.st_blocks // 2
    except OSError:
        return 0
    return 1


def _anonymous_kb(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)
