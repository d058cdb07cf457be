"""Engines as programs, and what a program and the processes below it hold of the machine, read from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import chess
import chess.engine

PSEARCH = (sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())", "uci")
START_S = 300.0
"""Kernels may have to be compiled."""
_PROC = Path("/proc")
_PARENT, _SESSION, _THREADS = 1, 3, 17
"""Fields of /proc/PID/stat behind the name."""


def start(command: Sequence[str], options: Mapping[str, Any], patience_s: float = START_S) -> chess.engine.SimpleEngine:
    """Start a UCI engine in a session of its own. Raises EngineError, and TimeoutError when it says nothing."""
    engine = chess.engine.SimpleEngine.popen_uci(list(command), timeout=START_S, start_new_session=True)
    try:
        engine.configure(options)
        engine.play(chess.Board(), chess.engine.Limit(nodes=1), game="before")  # what a first game takes is taken
    except BaseException:
        stop(engine, 0.0)
        raise
    engine.timeout = patience_s
    return engine


def pid_of(engine: chess.engine.SimpleEngine) -> int:
    """Return the process number of an engine, and of the session that all its processes are in."""
    return int(engine.transport.get_pid())


def stop(engine: chess.engine.SimpleEngine, timeout_s: float = 20.0) -> int | None:
    """End an engine; its exit status, None if it had to be killed."""
    engine.timeout = timeout_s
    try:
        engine.quit()
        return engine.returncode.result(timeout_s)
    except (chess.engine.EngineError, TimeoutError):
        if engine.protocol.returncode.done():
            return engine.returncode.result(timeout_s)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid_of(engine), signal.SIGKILL)
        engine.close()
        return None


def _stat_fields(pid: int) -> list[str] | None:
    """Return the fields behind the name; None for a process that has gone or is a zombie."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields


def _all_fields() -> dict[int, list[str]]:
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return {pid: fields for pid in pids if (fields := _stat_fields(pid)) is not None}


def family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    processes = _all_fields()
    for pid, fields in processes.items():
        children.setdefault(int(fields[_PARENT]), []).append(pid)
    found = [root] if root in processes else []
    for pid in found:
        found += children.get(pid, [])
    return found


def in_session(session: int) -> list[int]:
    """Return the processes of a session: what an engine has left behind, too."""
    return [pid for pid, fields in _all_fields().items() if int(fields[_SESSION]) == session]


def workers_of(engine: int) -> list[int]:
    """Return the worker processes of a psearch program: the children of its fork server, else its own."""
    processes = _all_fields()

    def children(parent: int) -> list[int]:
        return [pid for pid, fields in processes.items() if int(fields[_PARENT]) == parent]

    def is_server(pid: int) -> bool:
        try:
            return b"fork_server" in (_PROC / str(pid) / "cmdline").read_bytes()
        except OSError:
            return False

    servers = list(filter(is_server, children(engine)))
    return [worker for server in servers for worker in children(server)] if servers else children(engine)


def holdings(root: int) -> dict[str, int]:
    """Return what a process and those below it hold now. One that ends meanwhile counts in part, or not.

    program_kb and workers_kb are anonymous pages of the program and of all processes below it; shared_kb are pages of
    the anonymous files that they have open, each file once.
    """
    pids = family(root)
    shared: dict[int, int] = {}
    descriptors = threads = 0
    memory = []
    for pid in pids:
        folder = _PROC / str(pid)
        with contextlib.suppress(OSError):
            lines = (folder / "status").read_text().splitlines()
            memory.append(next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0))
            threads += int((_stat_fields(pid) or [0] * (_THREADS + 1))[_THREADS])
            for name in os.listdir(folder / "fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(folder / "fd" / name).startswith("/memfd:"):
                        status = (folder / "fd" / name).stat()
                        shared[status.st_ino] = status.st_blocks // 2
                    descriptors += 1
    return {
        "processes": len(pids),
        "threads": threads,
        "descriptors": descriptors,
        "program_kb": sum(memory[:1]),
        "workers_kb": sum(memory[1:]),
        "shared_kb": sum(shared.values()),
    }
