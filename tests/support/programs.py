"""Programs that tests start, and what they leave running."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from paths import BENCH

PSEARCH = [sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())"]

needs_web = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("starlette", "uvicorn", "websockets"))),
    reason="the extra web is not installed",
)

WAITING = "waiting for another program that is compiling the kernels"


def run_bench(script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script, named by its path below `bench`, to its end."""
    command = [sys.executable, str(BENCH / script), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280)


def without_waiting(errors: str) -> str:
    """Return what a program has written to stderr, without the line that says that another one, of a test at the same
    time, is compiling."""
    return "".join(line for line in errors.splitlines(True) if line != f"{WAITING}\n")


def descendants(pid: int) -> set[int]:
    """Return the processes below one."""
    found = set()
    with contextlib.suppress(OSError):  # it may end meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found |= {child, *descendants(child)}
    return found


def processes_in_session(session: int) -> list[str]:
    """Return the command lines of what still runs in a session (its leader included)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # field 3 is the state, field 6 the session; the name in field 2 may contain blanks
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found.append((entry / "cmdline").read_text(errors="replace"))
            except OSError:
                continue
    return found
