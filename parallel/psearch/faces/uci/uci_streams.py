"""Standard input and output of the engine, which a slow or silent client cannot hang; `info string` lines."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from psearch.text.values import escaped

LONGEST_LINE = 1 << 18
"""Longest line that is read, in bytes: twice the length of the longest possible game."""
_READ = 1 << 16
_WRITE = select.PIPE_BUF
"""Most bytes that a write can take without blocking once `poll` reports room."""
_PATIENCE_S = 1.0
"""Time that the ending engine waits for the client to read its last lines, in seconds."""
_LOOK_S = 0.1
Say = Callable[[str], None]
"""Prints whole lines, given without the last newline. May be called from any thread."""
_LONGEST = 1000
"""Longest text of an `info string`, in characters."""
NO_POSITION = "there is no position: the last one was refused"


def info_string(text: str) -> str:
    """Return any text as one `info string` line.

    >>> info_string("no file a\\rbestmove e2e4")
    'info string no file a\\\\rbestmove e2e4'
    """
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return "info string " + escaped(text)


class Streams:
    """Reads and writes lines; a context manager. In the main thread signals end the wait for a line.

    stdin, stdout: descriptors; is_over: tells whether a signal has asked for the end. Any thread may call `say`, one
    thread `lines`.
    """

    def __init__(self, stdin: int, stdout: int, is_over: Callable[[], bool]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._is_over = is_over
        self._over_since: float | None = None
        self._failure: OSError | None = None
        """Error of the output, after which nothing is written."""
        self._writing = threading.Lock()
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._former_wakeup: int | None = None

    def __enter__(self) -> Streams:
        if threading.current_thread() is threading.main_thread():
            # otherwise a signal just before `poll` would be noticed only at the next line
            self._former_wakeup = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._former_wakeup is not None:
            signal.set_wakeup_fd(self._former_wakeup)
        # the pipe stays open: another thread may be about to write

    def lines(self, complain: Callable[[str], None]) -> Iterator[str]:
        """Yield lines until the end of the input or a signal.

        Undecodable bytes are kept as in file names (`os.fsdecode`). Lines that are too long are skipped and reported to
        `complain`. Raises OSError when the output can no longer be written.
        """
        rest = b""
        is_too_long = False
        while (data := self._read()) is not None:
            *ended, begun = data.split(b"\n")
            for line in ended:
                if is_too_long or len(rest) + len(line) > LONGEST_LINE:
                    complain(f"a line of more than {LONGEST_LINE:,} bytes was ignored")
                else:
                    yield os.fsdecode(rest + line)
                rest, is_too_long = b"", False
                if self._must_end():
                    return
            if is_too_long or len(rest) + len(begun) > LONGEST_LINE:
                rest, is_too_long = b"", True
            else:
                rest += begun
        if rest and not self._must_end():
            yield os.fsdecode(rest)

    def _read(self) -> bytes | None:
        """Wait for input and return it; None at its end."""
        poll = select.poll()
        poll.register(self._stdin, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while not self._must_end():
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._woken in ready:
                with suppress(BlockingIOError):
                    os.read(self._woken, _READ)
            elif self._stdin in ready:
                try:
                    return os.read(self._stdin, _READ) or None
                except BlockingIOError:  # another process has read it
                    continue
        return None

    def _must_end(self) -> bool:
        """Tell whether a signal has asked for the end. Raises OSError when the output has failed."""
        if self._is_over():
            return True
        if self._failure is not None:
            raise self._failure
        return False

    def say(self, text: str) -> None:
        """Write whole lines, given without the last newline. After a failure `lines` raises the error."""
        with self._writing:
            if self._failure is not None:
                return
            try:
                self._write((text + "\n").encode("utf-8", "backslashreplace"))
            except OSError as error:
                self._failure = error
                os.write(self._wake, b"\0")

    def _write(self, data: bytes) -> None:
        poll = select.poll()
        poll.register(self._stdout, select.POLLOUT)
        while data:
            if poll.poll(_LOOK_S * 1000):
                with suppress(BlockingIOError):
                    data = data[os.write(self._stdout, data[:_WRITE]) :]
                continue
            if self._over_since is None and self._is_over():
                self._over_since = time.monotonic()
            if self._over_since is not None and time.monotonic() > self._over_since + _PATIENCE_S:
                raise BlockingIOError("the output is not read")
