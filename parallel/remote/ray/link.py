"""The program's side of its driver: a process that is started, given work, listened to, and ended.

The threads here only carry messages, so that neither side ever waits for the other to read.
"""

from __future__ import annotations

import os
import pickle
import queue
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import IO, Any

from psearch.arena.owner import Owner
from psearch.core.toolchain.interpreter import NotPython, python_command
from psearch.processes.tasks.task_messages import Alive, Give
from psearch.remote.ray.address import AUTO, CLIENT, LOCAL, check_reachable, cluster_address
from psearch.remote.ray.driver_messages import Close, Connected, Dismiss, Failed, HandsWanted
from psearch.remote.ray.identity import identity
from psearch.remote.ray.sources import Sources
from psearch.results import PsearchError

CONNECT_S = 15.0
"""A cluster that has not answered by then cannot be had."""
_START_S = 60.0
"""The same for one that has to be started here first."""
_SILENCE_S = 60.0
"""A driver that has not said anything for so long is given up."""
_CLOSE_S = 6.0
_AWAITED_S = 0.02
"""`messages` waits in a queue, and for nothing else at the same time."""
_LOOK_S = 0.1
"""between two looks at what Ray says on stderr while it connects"""
_STARTED_BY = "PSEARCH_CONNECTING"
"""Set in the driver's environment: where the interpreter is the program itself, it must not start another."""
_FOLDERS = "/tmp"
"""where the files of a cluster that is begun here are: the names of its sockets may have 107 bytes"""
_LAST_LINES = 30
"""of what Ray says on stderr"""


class Link:
    """A connection to a cluster; a context manager.

    address: what `cluster_address` takes; make: picklable, called once in each hand, gives what is called there with
    each piece of work; cores, memory (bytes): what each hand needs; most: hands at the same time; silence_s: a hand
    that has not answered for so long is lost; sources: modules that are not installed on the nodes. Raises PsearchError
    when the cluster cannot be had, within 15 seconds or so. All methods are for one thread.
    """

    def __init__(
        self,
        address: str,
        make: Callable[..., Callable[[Any], Any]],
        cores: int = 1,
        memory: int = 0,
        most: int | None = None,
        silence_s: float = 15.0,
        sources: Sources | None = None,
    ) -> None:
        self.address = cluster_address(address)
        try:
            python = python_command(_STARTED_BY)
        except NotPython as other:
            text = f"several machines need a Python interpreter to run Ray in, and sys.executable is {other}"
            raise PsearchError(text) from None
        check_reachable(self.address)
        self._incoming: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stderr: deque[str] = deque(maxlen=_LAST_LINES)
        self._is_open = True
        self._owner = Owner("connection to a cluster")
        self._is_connected = False
        """the driver does what it is told"""
        self._heard_at = time.monotonic()
        # Ray lets all users of the machine write into its folders, and has sockets there: nobody gets as far as that
        self._folder = tempfile.mkdtemp(prefix="psearch-", dir=_FOLDERS) if self.address == LOCAL else ""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [*python, "-P", "-m", "psearch.remote.ray.ray_driver", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # Ray prints there what it likes
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, **_QUIET, _STARTED_BY: "1", **(_closed() if self.address == LOCAL else {})},
                text=True,
                errors="replace",
            )
        self._connection = Connection(ours.detach())
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._receive, self._transmit, self._listen)
        ]
        for thread in self._threads:
            thread.start()
        made = pickle.dumps(make)
        self._outgoing.put(
            HandsWanted(self.address, made, sources or {}, cores, memory, most, silence_s, identity(), self._folder)
        )
        try:
            self._await_connection()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        """See `BackEnd`."""
        self._put(Give(process, number, pickle.dumps(work), limit_s))

    def dismiss(self, process: int, reason: str) -> None:
        """See `BackEnd`."""
        self._put(Dismiss(process, reason))

    def _put(self, message: object) -> None:
        self._owner.check()
        self._outgoing.put(message)

    def messages(self, timeout_s: float, awaited: int | None = None) -> list[Any]:
        """See `BackEnd`."""
        self._owner.check()
        messages: list[Any] = []
        end = time.monotonic() + (timeout_s if awaited is None else min(timeout_s, _AWAITED_S))
        while True:
            try:
                message = self._incoming.get(timeout=0 if messages else max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            if isinstance(message, Failed):
                if messages:
                    self._incoming.put(message)
                    break
                self._is_connected = False
                raise PsearchError(message.reason)
            messages.append(message)
        if not messages and time.monotonic() - self._heard_at > _SILENCE_S:
            self._is_connected = False
            raise PsearchError(f"the connection to the cluster has stalled for {_SILENCE_S:.0f} s")
        return messages

    def close(self) -> None:
        """End all hands and leave the cluster, in bounded time; at once where there is none. May be called twice."""
        if not self._is_open or not self._owner.is_here:
            return
        self._is_open = False
        if not self._is_connected:
            self._kill()
        self._outgoing.put(Close())
        self._outgoing.put(None)
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        for thread in self._threads:
            thread.join(1.0)
        self._connection.close()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _kill(self) -> None:
        """End the driver, with what it has begun on this machine: that is in its process group."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _await_connection(self) -> None:
        limit_s = _START_S if self.address == LOCAL else CONNECT_S
        end = time.monotonic() + limit_s
        reason = f"no answer within {limit_s:.0f} s"
        if self.address not in (AUTO, LOCAL) and not self.address.startswith(CLIENT):
            reason += f"; where no node of it runs, {CLIENT}HOST is the way"
        while time.monotonic() < end:
            with suppress(queue.Empty):
                message = self._incoming.get(timeout=_LOOK_S)
                if isinstance(message, Failed):
                    raise PsearchError(message.reason)
                assert isinstance(message, Connected)
                self._is_connected = True
                return
            if any("AuthToken" in line for line in list(self._stderr)):  # Ray tries again for long
                reason = "it wants another token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as there"
                break
        raise PsearchError(f"no Ray cluster can be had at {self.address}: {reason}")

    def _receive(self) -> None:
        try:
            while True:
                message = self._connection.recv()
                self._heard_at = time.monotonic()
                if not isinstance(message, Alive):
                    self._incoming.put(message)
        except (EOFError, OSError):
            last = self._stderr[-1].strip() if self._stderr else f"its driver ended ({self._process.poll()})"
            self._incoming.put(Failed(f"the connection to the cluster is lost: {last[-200:]}"))

    def _transmit(self) -> None:
        with suppress(OSError):
            while (message := self._outgoing.get()) is not None:
                self._connection.send(message)

    def _listen(self) -> None:
        stream: IO[str] | None = self._process.stderr
        assert stream is not None
        with suppress(ValueError, OSError):
            for line in stream:
                if line.strip():
                    self._stderr.append(line)


def _closed() -> dict[str, str]:
    """Environment of a cluster that nobody else may use, other users of this machine neither."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "PYTHONWARNINGS": "ignore",
}
"""Environment of the driver: no questions, no advice."""
