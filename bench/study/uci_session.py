"""An engine behind the UCI protocol as a process, for long runs: lines with the time at which they came."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple

PSEARCH = (sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())", "uci")
START_S = 300.0
"""Kernels may have to be compiled."""
_LEAVING_S = 5.0


class NoAnswer(Exception):
    """The engine has not said in time what was expected, or is gone."""


class Line(NamedTuple):
    """What the engine said."""

    at: float
    """on `time.perf_counter`"""
    text: str


class UciSession:
    """A running engine. A context manager: at its end the engine is told to quit, and killed if it does not."""

    def __init__(self, command: Sequence[str] = PSEARCH, options: Mapping[str, object] | None = None) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to_engine, self._from_engine = self._process.stdin, self._process.stdout
        self._lines: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.send("uci")
            self.until("uciok", START_S)
            self.set_options(options or {})
        except BaseException:
            self.close(0.0)
            raise

    @property
    def pid(self) -> int:
        """Of the engine, and of the session that all its processes are in."""
        return self._process.pid

    def _read(self) -> None:
        for text in self._from_engine:
            self._lines.put(Line(time.perf_counter(), text.rstrip("\n")))
        self._lines.put(None)

    def __enter__(self) -> UciSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, timeout_s: float = 20.0) -> int | None:
        """End the engine; its exit status, None if it had to be killed."""
        try:
            self.send("quit")
            status: int | None = self._process.wait(timeout_s)
        except (NoAnswer, subprocess.TimeoutExpired):
            status = None
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):  # it was gone before it had read all
            self._to_engine.close()
        self._reader.join(_LEAVING_S)
        if not self._reader.is_alive():  # else something that outlives the engine holds the other end
            self._from_engine.close()
        return status

    def send(self, *lines: str) -> float:
        """Send lines; when, on `time.perf_counter`."""
        try:
            self._to_engine.write("".join(line + "\n" for line in lines))
            self._to_engine.flush()
        except (OSError, ValueError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise NoAnswer(f"the engine has ended, status {self._process.wait(1)}") from None
            raise NoAnswer(f"the engine does not read: {error}") from None
        return time.perf_counter()

    def until(self, first_word: str, timeout_s: float) -> list[Line]:
        """What it says up to a line with this first word. Raises NoAnswer."""
        found: list[Line] = []
        deadline = time.monotonic() + timeout_s
        while not found or found[-1].text.split(maxsplit=1)[:1] != [first_word]:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise NoAnswer(f"no {first_word} within {timeout_s:g} s") from None
            if line is None:
                raise NoAnswer(f"the engine has ended, status {self._process.wait()}")
            found.append(line)
        return found

    def ready(self, timeout_s: float = START_S) -> float:
        """Wait until all that was sent is done; the seconds it took."""
        sent = self.send("isready")
        return self.until("readyok", timeout_s)[-1].at - sent

    def set_options(self, options: Mapping[str, object]) -> None:
        """Set options, and wait until they are in force."""
        self.send(*(f"setoption name {name} value {value}" for name, value in options.items()))
        self.ready()

    def go(self, position: str, limits: str, timeout_s: float) -> tuple[float, list[Line]]:
        """Search: when `go` was sent, and all lines up to the answer. Raises NoAnswer."""
        sent = self.send(f"position {position}", f"go {limits}")
        return sent, self.until("bestmove", timeout_s)
