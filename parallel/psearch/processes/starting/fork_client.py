"""The program's side of the fork server: one a program, started when first needed, kept until the program ends."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any

from psearch.arena.system_calls import refusal
from psearch.processes.child import ChildProcess
from psearch.processes.lifetime import GONE, process_state
from psearch.processes.patience import SERVER_ANSWER_S, SERVER_LOOK_S, SERVER_REAP_S
from psearch.processes.program_signals import GROUP_SIGNALS, signals_blocked
from psearch.processes.starting.fork_server import MARK, MESSAGE_BYTES
from psearch.results import PsearchError, WorkerDied
from psearch_core.toolchain import groups
from psearch_core.toolchain.compiler_client import NotPython, python_command

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from psearch.processes.starting.fork_server import main; "
    "main({descriptor}, {parent})"
)


class _NoAnswer(Exception):
    """From the fork server: it has ended, is stopped, or is late."""


class ForkServer:
    """The program's side of its fork server: starts it and sends it requests. For any thread.

    Raises PsearchError when it cannot be started.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.RLock()
        """of one request and its answer"""
        self._is_ready = False
        self._is_late = False
        """It has not told in time how a worker ended: it is not asked for that until it has answered something else."""
        self._sent = 0
        interpreter = _interpreter()
        try:
            self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = self._start(interpreter, theirs)
        except OSError as error:
            raise PsearchError(f"cannot start the process that starts workers: {refusal(error)}") from error

    def _start(self, interpreter: list[str], theirs: socket.socket) -> subprocess.Popen[bytes]:
        program = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno(), parent=self.owner)
        environment = {
            **os.environ,
            **groups.cache_environment(),  # where this process has put its kernels
            "OPENBLAS_NUM_THREADS": "1",  # numpy starts no threads in a process that only forks
            MARK: "1",
        }
        # blocked until it ignores them: a Ctrl-C meant for the program must not hit it while it starts
        with signals_blocked(GROUP_SIGNALS):
            try:
                return subprocess.Popen(
                    [*interpreter, "-c", program],
                    env=environment,
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # the program's may be a protocol
                )
            except BaseException:
                self._link.close()
                raise

    @property
    def is_usable(self) -> bool:
        """Whether it runs, not stopped, and is this process's own: not one inherited by a fork of the program."""
        return self.owner == os.getpid() and self._process.poll() is None and not self._stays_stopped()

    def is_ready(self, timeout_s: float = 0.0) -> bool:
        """Tell whether it has loaded the kernels and nothing else is asked of it; waits no longer than `timeout_s`.
        Raises PsearchError when it could not load them."""
        if not self._lock.acquire(timeout=timeout_s):
            return False
        try:
            if not self._is_ready and select.select([self._link], [], [], timeout_s)[0]:
                self._answer(0, SERVER_ANSWER_S)
                self._is_ready = True
            return self._is_ready
        except _NoAnswer:
            raise self._gone() from None
        finally:
            self._lock.release()

    def request(self, do: str, descriptors: Sequence[int] = (), **arguments: Any) -> dict[str, Any]:
        """Return one request and its answer. Raises OSError if the system refused, PsearchError when the server is
        gone."""
        with self._lock:
            try:
                return self._answer(self._send(do, descriptors, arguments), SERVER_ANSWER_S)
            except _NoAnswer:
                raise self._gone() from None

    def exit_code(self, pid: int) -> int | None:
        """Return how a worker ended, None while it runs, `GONE` when the fork server does not tell at once: who asks
        has just found a worker dead, or is about to leave."""
        if self._is_late or self.is_stopped or not self._lock.acquire(timeout=SERVER_REAP_S):
            self._is_late = True
            return GONE
        try:
            self._is_late = True  # until it has answered
            code = self._answer(self._send("reap", (), {"pid": pid}), SERVER_REAP_S)["code"]
        except (_NoAnswer, OSError):
            return GONE
        finally:
            self._lock.release()
        return None if code is None else int(code)

    def _send(self, do: str, descriptors: Sequence[int], arguments: Mapping[str, Any]) -> int:
        """The number of the request."""
        self._sent += 1
        message = json.dumps({"do": do, "number": self._sent, **arguments}).encode()
        try:
            socket.send_fds(self._link, [message], descriptors)
        except OSError:
            raise _NoAnswer from None
        return self._sent

    def _answer(self, number: int, timeout_s: float) -> dict[str, Any]:
        """The answer to a request; older ones, that nobody has read, are passed over."""
        answer: dict[str, Any] = {"number": -1}
        while answer["number"] < number:
            answer = json.loads(self._receive(timeout_s))
        self._is_late = False
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]))
        if "error" in answer:
            raise PsearchError(answer["error"])
        return answer

    def _receive(self, timeout_s: float) -> bytes:
        """One message. Raises _NoAnswer when the fork server has ended, is stopped, or does not answer in time.

        A time in which this program was stopped itself, with all its group, does not count.
        """
        was_stopped = False
        self._link.settimeout(SERVER_LOOK_S)
        for _ in range(round(timeout_s / SERVER_LOOK_S)):
            try:
                message = self._link.recv(MESSAGE_BYTES)
            except TimeoutError:
                is_stopped = self.is_stopped
                if is_stopped and was_stopped:
                    break
                was_stopped = is_stopped
            except OSError:
                break
            else:
                if not message:
                    break
                return message
        raise _NoAnswer

    @property
    def is_stopped(self) -> bool:
        """Whether it is halted by a signal or a debugger."""
        return process_state(self._process.pid) in ("T", "t")

    def _stays_stopped(self) -> bool:
        """The first look may be in the moment in which a stopped program goes on, with all its group."""
        if not self.is_stopped:
            return False
        time.sleep(SERVER_LOOK_S)
        return self.is_stopped

    def _gone(self) -> PsearchError:
        """End what is left of it, at once; its workers end with it. WorkerDied where it was killed or halted: another
        may do better."""
        if not self.is_stopped:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(SERVER_REAP_S)
        kind = WorkerDied if self._process.poll() in (None, -signal.SIGKILL) else PsearchError
        self._process.kill()
        self.close()
        return kind("the process that starts workers has ended")

    def start(self, index: int, target: str, descriptors: Sequence[int] = ()) -> ChildProcess:
        """Fork a process that runs a function with a pipe and the descriptors; see `fork_process`. index: the caller's
        number for it."""
        ours, theirs = Pipe()
        try:
            with theirs:
                pid = self.request("fork", [theirs.fileno(), *descriptors], target=target)["pid"]
        except BaseException:
            ours.close()
            raise
        return ChildProcess(index, pid, ours, self)

    def close(self) -> None:
        """End it, with all its workers."""
        self._link.close()
        if self.owner != os.getpid():
            return
        if self.is_stopped:
            self._process.kill()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def disown(self) -> None:
        """Disown the fork server in a fork of the program: the fork server belongs to the original."""
        self._link.close()
        self._process.returncode = GONE  # not our child: nothing to wait for


def _interpreter() -> list[str]:
    """See `python_command`. Raises PsearchError."""
    try:
        return python_command(MARK)
    except NotPython as other:
        raise PsearchError(
            f"a program with threads needs a Python interpreter to start workers, and sys.executable is {other}: "
            "start the engine while the program has a single thread, or with start_method='fork'"
        ) from None


_server: ForkServer | None = None
_inherited: list[ForkServer] = []
"""Of a program that this one was forked from."""
_server_lock = threading.Lock()


def fork_server() -> ForkServer:
    """Return this program's fork server; started when there is none, or when it has ended or is stopped."""
    global _server
    with _server_lock:
        if _server is not None and not _server.is_usable:
            _server.close()
            _server = None
        if _server is None:
            _server = ForkServer()
        return _server


def close_server() -> None:
    """End this program's fork server, with all its workers."""
    if _server is not None:
        _server.close()


def _after_fork() -> None:
    """A fork of the program starts another fork server; locks may have been held by threads that it does not have."""
    global _server, _server_lock
    if _server is not None:
        _server.disown()
        _inherited.append(_server)
        _server = None
    _server_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
