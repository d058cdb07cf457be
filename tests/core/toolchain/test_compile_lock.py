"""Who compiles and who waits: real locks, held by real processes."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import open_files
from programs import WAITING

from psearch.core.toolchain import compile_lock as module
from psearch.core.toolchain.compile_lock import compile_lock
from psearch.core.toolchain.trusted_folder import Folder, open_folder

HOLDER = """
import sys, time
from psearch.core.toolchain.compile_lock import compile_lock
from psearch.core.toolchain.trusted_folder import open_folder
with open_folder(sys.argv[1]) as folder, compile_lock(folder) as keep_turn:
    print("locked", flush=True)
    while True:
        time.sleep(0.05)
        keep_turn()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with open_folder(str(tmp_path / "cache"), make=True) as opened:
        yield opened


@pytest.fixture
def holder(folder: Folder) -> Iterator[subprocess.Popen[str]]:
    """A program that compiles, and never ends."""
    words = [sys.executable, "-c", HOLDER, folder.path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def is_locked(folder: Folder, name: str) -> bool:
    descriptor = folder.lock_file(name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_the_first_one_waits_for_nobody(folder):
    lines: list[str] = []
    with compile_lock(folder, lines.append) as keep_turn:
        keep_turn()
        assert is_locked(folder, "lock")
    assert not is_locked(folder, "lock")
    assert lines == []


def test_whoever_comes_later_waits_until_the_first_one_is_done(folder, holder):
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        holder.kill()

    with compile_lock(folder, tell):
        assert is_locked(folder, "lock")
        assert holder.wait() == -signal.SIGKILL
    assert lines == [WAITING]


def test_a_holder_that_compiles_for_long_is_waited_for(folder, holder, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 1.5)
    started = time.monotonic()

    def tell(line: str) -> None:
        assert holder.poll() is None

    holder_ends = subprocess.Popen(["sh", "-c", f"sleep 3; kill -9 {holder.pid}"])
    with compile_lock(folder, tell):
        assert is_locked(folder, "lock") and not is_locked(folder, "lock-2")
        assert time.monotonic() - started > 2.4
    holder_ends.wait()


def test_nobody_waits_for_a_holder_that_is_stopped(folder, holder, monkeypatch):
    """And of those who do not, one compiles and the others wait again."""
    monkeypatch.setattr(module, "_PATIENCE_S", 0.5)
    lines: list[str] = []
    holder.send_signal(signal.SIGSTOP)
    with compile_lock(folder, lines.append):
        assert is_locked(folder, "lock") and is_locked(folder, "lock-2")
        # none of the others is alive either: the last one has no lock, and compiles all the same
        with compile_lock(folder), compile_lock(folder):
            assert all(is_locked(folder, name) for name in module._NAMES)
    assert lines == [WAITING]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_nothing_can_be_locked_everybody_compiles(folder, monkeypatch, number):
    def fail(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    before = open_files()
    for _ in range(3):
        with compile_lock(folder) as keep_turn, compile_lock(folder):
            keep_turn()
    assert open_files() == before


def test_where_nothing_can_be_written_everybody_compiles(folder, monkeypatch):
    (Path(folder.path) / "lock").mkdir()
    with compile_lock(folder) as keep_turn:
        keep_turn()
    with compile_lock(None) as keep_turn:
        keep_turn()


def test_an_interrupt_while_waiting_leaves_nothing(folder, holder):
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    before = open_files()
    with pytest.raises(KeyboardInterrupt), compile_lock(folder, interrupt):
        pass
    assert open_files() == before
