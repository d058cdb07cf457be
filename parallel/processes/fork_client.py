"""The program's side of the fork server: one a program, started when first needed, kept until the program ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from multiprocessing.connection import Connection, Pipe
from typing import Any

from psearch.arena.arena import Arena
from psearch.core import kernels
from psearch.processes.fork import STOP_SIGNALS
from psearch.processes.fork_server import MESSAGE_BYTES
from psearch.processes.lifetime import GONE
from psearch.processes.worker_process import WorkerProcess
from psearch.results import PsearchError

_START_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 10.0
_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from psearch.processes.fork_server import main; main({descriptor}, {parent})"
)


class ForkServer:
    """The program's side of its fork server: starts it and sends it requests. For any thread."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.RLock()
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno(), parent=self.owner)
        environment = {
            **os.environ,
            "PSEARCH_CACHE_DIR": str(kernels.folder().parent),  # where this process has put its kernels
            "OPENBLAS_NUM_THREADS": "1",  # numpy starts no threads in a process that only forks
        }
        # blocked until it ignores them: a Ctrl-C meant for the program must not hit it while it starts
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", program],
                    env=environment,
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # the program's may be a protocol
                )
        except BaseException:
            self._link.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._is_ready = False
        self._sent = 0

    @property
    def is_usable(self) -> bool:
        """Whether it runs, and is this process's own: not one inherited by a fork of the program."""
        return self.owner == os.getpid() and self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Raises PsearchError when it could not load the kernels."""
        with self._lock:
            if not self._is_ready:
                self._answer(0, _START_TIMEOUT_S)
                self._is_ready = True

    def request(self, do: str, descriptors: list[int] | None = None, **arguments: int) -> dict[str, Any]:
        """One request and its answer. Raises OSError if the system refused, PsearchError when the server is gone."""
        with self._lock:
            self._sent += 1
            message = json.dumps({"do": do, "number": self._sent, **arguments}).encode()
            try:
                socket.send_fds(self._link, [message], descriptors or [])
            except OSError:
                raise self._gone() from None
            return self._answer(self._sent, _ANSWER_TIMEOUT_S)

    def _answer(self, number: int, timeout_s: float) -> dict[str, Any]:
        """The answer to a request; older ones, that a Ctrl-C kept from being read, are passed over."""
        self._link.settimeout(timeout_s)
        answer: dict[str, Any] = {"number": -1}
        while answer["number"] < number:
            try:
                message = self._link.recv(MESSAGE_BYTES)
            except OSError:
                message = b""
            if not message:
                raise self._gone()
            answer = json.loads(message)
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"])
        if "error" in answer:
            raise PsearchError(answer["error"])
        return answer

    def _gone(self) -> PsearchError:
        self.close()
        return PsearchError("the process that starts workers has ended")

    def launch(self, arena: Arena, workers: list[WorkerProcess]) -> None:
        """Fork the workers of an arena. One arena at a time."""
        with self._lock:
            self.wait_until_ready()
            layout, descriptors = arena.layout(), arena.descriptors()
            self.request("attach", descriptors, **layout)
            try:
                for index in range(arena.workers):
                    ours, theirs = Pipe()
                    with theirs:
                        pid = self.request("fork", [theirs.fileno()], index=index)["pid"]
                    workers.append(_ServedWorker(index, pid, ours, self))
            finally:
                self.request("detach")

    def close(self) -> None:
        """End it, with all its workers."""
        self._link.close()
        if self.owner != os.getpid():
            return
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def disown(self) -> None:
        """In a fork of the program: the fork server belongs to the original."""
        self._link.close()
        self._process.returncode = GONE  # not our child: nothing to wait for


class _ServedWorker(WorkerProcess):
    """A child of the fork server."""

    def __init__(self, index: int, pid: int, pipe: Connection, server: ForkServer) -> None:
        super().__init__(index, pid, pipe)
        self._server = server

    def _reap(self) -> int | None:
        try:
            code = self._server.request("reap", pid=self.pid)["code"]
        except PsearchError:
            return GONE  # workers end with their fork server
        return None if code is None else int(code)


_server: ForkServer | None = None
_inherited: list[ForkServer] = []
"""Of a program that this one was forked from."""
_server_lock = threading.Lock()


def fork_server() -> ForkServer:
    """This program's fork server; started when there is none, or when it has ended."""
    global _server
    with _server_lock:
        if _server is None or not _server.is_usable:
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
