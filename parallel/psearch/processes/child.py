"""Child processes seen from the program: messages to and from each, whether it still runs, and how it ended."""

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
"""Length prefix of a message below 2 GiB. The child's end of the pipe is a `Connection`, which uses this format."""


class Parent(Protocol):
    """Interface of the fork server, as far as a process that it forked needs it."""

    @property
    def is_usable(self) -> bool: ...
    def exit_code(self, pid: int) -> int | None: ...


class ChildProcess:
    """A child process. Messages in both directions are pickled. The program never blocks on the pipe: a child that
    itself waits for the program would never read.

    index: the caller's number for the process; server: the fork server that forked it, None if this process did.
    """

    def __init__(self, index: int, pid: int, pipe: Connection, server: Parent | None = None) -> None:
        self.index = index
        self.pid = pid
        self.pipe = pipe
        os.set_blocking(pipe.fileno(), False)
        self.sentinel = open_pidfd(pid)
        """Descriptor that becomes readable when the process ends; None without pidfds (then only its pipe tells)."""
        self.has_hung_up = False
        """Whether the process has closed its end of the pipe and all its messages have been received."""
        self.heard = 0
        """Number of messages received."""
        self.outgoing = bytearray()
        self._incoming = bytearray()
        self._silent = self._halted = 0
        """Number of consecutive checks at which the process was silent, or stopped."""
        self._beat = -1
        self._server = server
        self._oom_kills = oom_kills()
        """Out-of-memory kills in the system before this process began."""
        self._exitcode: int | None = None
        self._reaping = threading.Lock()

    def send(self, message: object) -> None:
        """Queue a message and send as much as the pipe takes; `flush` sends the rest."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self.outgoing += _HEAD.pack(len(data)) + data
        self.flush()

    def flush(self) -> None:
        """Send as much as the pipe takes. Drop everything if the process has ended, which `receive` reports."""
        try:
            while self.outgoing:
                del self.outgoing[: os.write(self.pipe.fileno(), self.outgoing)]
        except BlockingIOError:
            return
        except OSError:
            self.outgoing.clear()

    def receive(self) -> list[Any]:
        """Return the messages that have arrived; more may come unless `has_hung_up`."""
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

    def why_lost(self, beat: int, patience: Patience) -> str | None:
        """Check the process, and return why it counts as lost, or None. Call this every `patience.look_s` seconds.

        beat: a number that changes while the process makes progress.
        """
        self._silent = self._silent + 1 if beat == self._beat else 0
        self._beat = beat
        self._halted = self._halted + 1 if self._silent and self.is_halted else 0
        if self._halted >= patience.halted_looks:
            return "it was stopped"
        if self._silent >= patience.silent_looks:
            return f"it has sent nothing for {patience.silent_looks * patience.look_s:.0f} s"
        return None

    def expect(self, beat: int = -1) -> None:
        """Start counting silence now: the process has been given work."""
        self._silent = self._halted = 0
        self._beat = beat

    @property
    def is_halted(self) -> bool:
        """Whether the process is stopped now, by a signal or by a debugger."""
        return process_state(self.pid) in ("T", "t")

    def is_alive(self) -> bool:
        return self.exitcode is None

    @property
    def exitcode(self) -> int | None:
        """Exit status, or minus the number of the signal that killed the process, or `GONE`; None while it runs."""
        with self._reaping:  # the status can be read only once: a second thread would find none, and store that
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
        """The end of the process in words: `exited with code 1`."""
        code = self.exitcode
        if self.lacked_memory:
            return "was killed by the system, which is short of memory"
        return f"was killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"

    @property
    def lacked_memory(self) -> bool:
        """Whether the system has probably killed the process because memory ran out."""
        return self.exitcode == -signal.SIGKILL and oom_kills() > self._oom_kills

    def _may_have_ended(self, timeout_s: float) -> bool:
        """Wait for the end of the process where there are pidfds; return whether it may have ended."""
        if self.sentinel is None:
            return process_state(self.pid) in ("Z", None)
        poll = select.poll()
        poll.register(self.sentinel, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout_s) * 1000))

    def join(self, timeout_s: float) -> None:
        """Wait until the process has ended, for at most `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        self._may_have_ended(timeout_s)
        while self.exitcode is None and time.monotonic() < deadline:
            time.sleep(_REAP_INTERVAL_S)

    def kill(self) -> None:
        """Send SIGKILL, never to another process that has been given the same number since."""
        if self._exitcode is not None:
            return
        with suppress(ProcessLookupError):
            if self.sentinel is not None:
                system_calls.pidfd_send_signal(self.sentinel, signal.SIGKILL)
            # without pidfds the number may have been given away: `is_alive` reaps safely here, and a fork server keeps
            # the number until it is asked for the exit code
            elif self.is_alive() if self._server is None else self._server.is_usable:
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self.pipe.close()
        if self.sentinel is not None:
            os.close(self.sentinel)
            self.sentinel = None


class Children:
    """The set of child processes that one thread listens to. Raises OSError when the system refuses."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._by_descriptor: dict[int, ChildProcess] = {}
        self.was_woken = False
        """Whether the last `wait` ended because another watched descriptor became readable."""

    def add(self, child: ChildProcess) -> None:
        for descriptor in (child.pipe.fileno(), child.sentinel):
            if descriptor is not None:
                self._poll.register(descriptor, select.EPOLLIN)
                self._by_descriptor[descriptor] = child

    def remove(self, child: ChildProcess) -> None:
        for descriptor in (child.pipe.fileno(), child.sentinel):
            if descriptor is not None:
                self._poll.unregister(descriptor)
                del self._by_descriptor[descriptor]

    def watch(self, descriptor: int) -> None:
        """Let `wait` end also when this descriptor becomes readable. Raises PermissionError for a file."""
        self._poll.register(descriptor, select.EPOLLIN)

    def ignore(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)

    def send(self, child: ChildProcess, message: object) -> None:
        """Send a message; `wait` sends the part that the pipe does not take now."""
        child.send(message)
        if child.outgoing:
            self._poll.modify(child.pipe.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def wait(self, timeout_s: float) -> list[tuple[ChildProcess, list[Any], bool]]:
        """Wait up to `timeout_s` seconds; return children with news, their messages, and whether each has ended."""
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
        """Return a descriptor that becomes readable when there is news."""
        return self._poll.fileno()

    def close(self) -> None:
        self._poll.close()


def end(killed: Sequence[ChildProcess], patience_s: float = DEATH_S) -> None:
    """Wait for killed processes to end and close their descriptors. After the first that is late, wait for no other."""
    for child in killed:
        child.join(patience_s)
        if child.is_alive():  # stuck in the kernel, as others may be
            patience_s = 0.0
        child.close()


def reap(killed: Sequence[ChildProcess]) -> list[ChildProcess]:
    """Close the descriptors of killed processes that have ended; return the others."""
    left = [child for child in killed if child.is_alive()]
    for child in killed:
        if child not in left:
            child.close()
    return left


def spawned(command: Callable[[int], Sequence[str]], **options: Any) -> ChildProcess:
    """Start another program with its stdout discarded and a socket to this process. Raises OSError.

    command: returns the command line for a given descriptor of that socket; options: those of `subprocess.Popen`.
    """
    import subprocess  # only here: most children are forks

    ours, theirs = socket.socketpair()
    with ours, theirs:
        # the program's own stdout may carry a protocol
        options |= {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "pass_fds": (theirs.fileno(),)}
        started = subprocess.Popen(command(theirs.fileno()), **options)
        started.returncode = GONE  # so that Popen does not reap the process: ChildProcess does
        return ChildProcess(0, started.pid, Connection(ours.detach()))
