"""Programs that tests start, and what they leave running."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from paths import BENCH
from timing import wait_until

from psearch.faces.cli import main as cli

PSEARCH = [sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())"]
PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
"""Arguments of a program whose output and errors are read as text."""

needs_web = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("starlette", "uvicorn", "websockets"))),
    reason="the extra web is not installed",
)

WAITING = "waiting for another program that is compiling the kernels"


def run_bench(script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script, named by its path below `bench`, to its end."""
    command = [sys.executable, str(BENCH / script), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280)


@contextlib.contextmanager
def _instead_of(number: int, other: int) -> Iterator[None]:
    """Have another descriptor in the place of a standard one; it is closed at the end."""
    kept = os.dup(number)
    os.dup2(other, number)
    os.close(other)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def run_here(*words: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, its standard streams those of a pipe and of files: what `subprocess.run`
    would return, without the start of a program."""
    arguments = list(map(str, words))
    source, sink = os.pipe()
    writer = threading.Thread(target=_write, args=(sink, text.encode()))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, contextlib.ExitStack() as stack:
        writer.start()
        stack.callback(writer.join)  # when nobody can read any more
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, other in ((0, source), (1, os.dup(out.fileno())), (2, os.dup(err.fileno()))):
            stack.enter_context(_instead_of(number, other))
        streams = {
            name: stack.enter_context(open(number, mode, encoding="utf-8", closefd=False))
            for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))
        }
        for name, stream in streams.items():
            stack.enter_context(mock.patch.object(sys, name, stream))
        try:
            status = cli.main(arguments)
        except SystemExit as leaving:
            status = int(str(leaving.code))
        for name in ("stdout", "stderr"):
            streams[name].flush()
        found = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (out, err)]
    return subprocess.CompletedProcess(arguments, status, *found)


def _write(sink: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(sink, "wb") as pipe:
        pipe.write(data)


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


def assert_gone(session: int) -> None:
    """Nothing of a session is left, at the latest after a moment."""
    wait_until(lambda: not processes_in_session(session))
