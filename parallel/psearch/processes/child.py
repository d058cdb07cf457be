"""A child process seen from the program: what is sent and heard, whether it still runs, and how it ended."""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Protocol

from psearch.arena import system_calls
from psearch.arena.control_groups import oom_kills
from psearch.processes.lifetime import GONE, open_pidfd, process_state
from psearch.processes.patience import DEATH_S, Patience

_REAP_INTERVAL_S = 0.002
_READ_BYTES = 1 << 18
_HEAD = struct.Struct("!i")
"""Length of a message, as `Connection`, which the child has at its end, puts it before one of less than 2 GiB."""


class Parent(Protocol):
    """The fork server of this process, which has forked a child for it."""

    @property
    def is_usable(self) -> bool:
        """Whether it runs."""

    def exit_code(self, pid: int) -> int | None:
        """Return how a child of it ended; None while it runs."""


class ChildProcess:
    """A child process. Messages either way are pickled, and the program never waits for the pipe: a child that waits
    for the program would never read.

    index: the caller's number for it; server: the fork server whose child it is, None if it is this process's.
    """

    def __init__(self, index: int, pid: int, pipe: Connection, server: Parent | None = None) -> None:
        self.index = index
        self.pid = pid
        self.pipe = pipe
        os.set_blocking(pipe.fileno(), False)
        self.sentinel = open_pidfd(pid)
        """readable when the process has ended; None where the system has no such thing (then its pipe ends)"""
        self.has_hung_up = False
        """its end of the pipe is closed, and all that it has said is heard"""
        self.heard = 0
        """messages"""
        self.outgoing = bytearray()
        self._incoming = bytearray()
        self._silent = self._halted = 0
        """looks in a row"""
        self._beat = -1
        self._server = server
        self._oom_kills = oom_kills()
        """of the system, before it began"""
        self._exitcode: int | None = None
        self._reaping = threading.Lock()

    # -- messages ------------------------------------------------------------------------------------------------------

    def send(self, message: object) -> None:
        """Send a message behind those that have not gone out yet; what there is no room for waits for `flush`."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self.outgoing += _HEAD.pack(len(data)) + data
        self.flush()

    def flush(self) -> None:
        """Send what there is room for. Nothing goes to a process that has ended, which `receive` tells."""
        try:
            while self.outgoing:
                del self.outgoing[: os.write(self.pipe.fileno(), self.outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self.outgoing.clear()

    def receive(self) -> list[Any]:
        """Return the messages that are there; `has_hung_up` says whether more may come."""
        try:
            while data := os.read(self.pipe.fileno(), _READ_BYTES):
                self._incoming += data
            self.has_hung_up = True
        except BlockingIOError:
            pass
        except OSError:
            self.has_hung_up = True
        found, start, size = [], 0, len(self._incoming)
        while size - start >= _HEAD.size:
            begin = start + _HEAD.size
            end = begin + _HEAD.unpack_from(self._incoming, start)[0]
            if end > size:
                break
            found.append(pickle.loads(memoryview(self._incoming)[begin:end]))
            start = end
        del self._incoming[:start]
        self.heard += len(found)
        return found

    # -- whether it runs -----------------------------------------------------------------------------------------------

    def why_lost(self, beat: int, patience: Patience) -> str | None:
        """Look at the process, and return why it is to be given up, if it is. Call it every `patience.look_s`.

        beat: a number that changes as long as the process does something.
        """
        self._silent = self._silent + 1 if beat == self._beat else 0
        self._beat = beat
        self._halted = self._halted + 1 if self._silent and self.is_halted else 0
        if self._halted >= patience.halted_looks:
            return "it was stopped"
        if self._silent >= patience.silent_looks:
            return f"it has said nothing for {patience.silent_looks * patience.look_s:.0f} s"
        return None

    def expect(self, beat: int = -1) -> None:
        """Count silence from now on: there is something to do."""
        self._silent = self._halted = 0
        self._beat = beat

    @property
    def is_halted(self) -> bool:
        """Whether it is stopped now, by a signal or by a debugger."""
        return process_state(self.pid) in ("T", "t")

    def is_alive(self) -> bool:
        return self.exitcode is None

    # -- its end -------------------------------------------------------------------------------------------------------

    @property
    def exitcode(self) -> int | None:
        """None while it runs; else the exit status, or minus the number of the signal that killed it, or `GONE`."""
        with self._reaping:  # it can be read once; a second thread would find, and keep, that there is none
            if self._exitcode is None and self._may_have_ended(0.0):
                if self._server is not None:
                    self._exitcode = self._server.exit_code(self.pid)
                else:
                    try:
                        pid, status = os.waitpid(self.pid, os.WNOHANG)
                        self._exitcode = None if pid == 0 else os.waitstatus_to_exitcode(status)
                    except ChildProcessError:
                        self._exitcode = GONE
            return self._exitcode

    @property
    def ending(self) -> str:
        """How it ended, in words: `exited with code 1`."""
        code = self.exitcode
        if self.lacked_memory:
            return "was killed by the system, which is short of memory"
        return f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"

    @property
    def lacked_memory(self) -> bool:
        """Whether the system has killed it for want of memory, as far as that can be known."""
        return self.exitcode == -signal.SIGKILL and oom_kills() > self._oom_kills

    def _may_have_ended(self, timeout_s: float) -> bool:
        """Wait for the end, if the system lets us."""
        if self.sentinel is None:
            return process_state(self.pid) in ("Z", None)
        poll = select.poll()
        poll.register(self.sentinel, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout_s) * 1000))

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, but no longer than `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        self._may_have_ended(timeout_s)
        while self.exitcode is None and time.monotonic() < deadline:
            time.sleep(_REAP_INTERVAL_S)

    def kill(self) -> None:
        """Send SIGKILL. Never hits another process that has got its number."""
        if self._exitcode is not None:
            return
        with suppress(ProcessLookupError):
            if self.sentinel is not None:
                system_calls.pidfd_send_signal(self.sentinel, signal.SIGKILL)
            # without pidfds: a fork server waits for a process only when asked for the exit code, and in the program
            # another thread may wait for any child
            elif self.is_alive() if self._server is None else self._server.is_usable:
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give the descriptors back."""
        self.pipe.close()
        if self.sentinel is not None:
            os.close(self.sentinel)
            self.sentinel = None


class Children:
    """Child processes that one thread listens to. Raises OSError when the system refuses."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._by_descriptor: dict[int, ChildProcess] = {}
        self.was_woken = False
        """whether `wait` has ended since another descriptor can be read"""

    def add(self, child: ChildProcess) -> None:
        """Listen to a child."""
        for descriptor in (child.pipe.fileno(), child.sentinel):
            if descriptor is not None:
                self._poll.register(descriptor, select.EPOLLIN)
                self._by_descriptor[descriptor] = child

    def remove(self, child: ChildProcess) -> None:
        """Listen to a child no more."""
        for descriptor in (child.pipe.fileno(), child.sentinel):
            if descriptor is not None:
                self._poll.unregister(descriptor)
                del self._by_descriptor[descriptor]

    def watch(self, descriptor: int) -> None:
        """End `wait` when this can be read, too. Raises PermissionError for a file."""
        self._poll.register(descriptor, select.EPOLLIN)

    def ignore(self, descriptor: int) -> None:
        """Undo `watch`."""
        self._poll.unregister(descriptor)

    def send(self, child: ChildProcess, message: object) -> None:
        """Send a message; `wait` sends what there is no room for now."""
        child.send(message)
        if child.outgoing:
            self._poll.modify(child.pipe.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def wait(self, timeout_s: float) -> list[tuple[ChildProcess, list[Any], bool]]:
        """Return children of which there is news, what they have said, and whether they have ended. Waits for the
        first, but no longer than `timeout_s` seconds."""
        found: dict[ChildProcess, bool] = {}
        self.was_woken = False
        for descriptor, events in self._poll.poll(timeout_s, 1 + len(self._by_descriptor)):
            child = self._by_descriptor.get(descriptor)
            if child is None:
                self.was_woken = True
                continue
            if events & select.EPOLLOUT:
                child.flush()
                if not child.outgoing:
                    self._poll.modify(descriptor, select.EPOLLIN)
            if events & ~select.EPOLLOUT:
                found[child] = found.get(child, False) or descriptor == child.sentinel
        return [(child, child.receive(), has_ended or child.has_hung_up) for child, has_ended in found.items()]

    def fileno(self) -> int:
        """Return a descriptor for a poll, readable when there is news."""
        return self._poll.fileno()

    def close(self) -> None:
        """Listen no more."""
        self._poll.close()


def end(killed: Sequence[ChildProcess], patience_s: float = DEATH_S) -> None:
    """Wait for the ends of processes that were killed, until one is late, and give their descriptors back."""
    for child in killed:
        child.join(patience_s)
        if child.is_alive():  # the kernel does not let it go, nor others perhaps
            patience_s = 0.0
        child.close()


def reap(killed: Sequence[ChildProcess]) -> list[ChildProcess]:
    """Give back what is left of processes that were killed. Those that have not ended yet are returned."""
    left = [child for child in killed if child.is_alive()]
    for child in killed:
        if child not in left:
            child.close()
    return left


def spawned(command: Callable[[int], Sequence[str]], **options: Any) -> ChildProcess:
    """Start another program, which says nothing on stdout and has the other end of a channel.

    command: the words, given that descriptor; options: of `subprocess.Popen`. Raises OSError.
    """
    import subprocess  # only here: most children are forks

    ours, theirs = socket.socketpair()
    with ours, theirs:
        # silent, for the program's stdout may be a protocol
        options |= {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "pass_fds": (theirs.fileno(),)}
        started = subprocess.Popen(command(theirs.fileno()), **options)
        started.returncode = GONE  # the child waits for it
        return ChildProcess(0, started.pid, Connection(ours.detach()))
