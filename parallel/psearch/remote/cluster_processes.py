"""Processes on the nodes of a Ray cluster that do tasks for the program, and a list of tasks shared out to them.

Ray prints where it likes, has dozens of threads, sets signal handlers and ends its process when the cluster is gone.
None of that may happen to the program, so Ray runs in a process of its own, the driver (`psearch.remote.ray_driver`).
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from psearch.arena.owner import Owner
from psearch.processes.tasks.task_messages import Alive, Give, ProcessJoined
from psearch.processes.tasks.task_sharing import share_out_to
from psearch.remote.address import AUTO, CLIENT, LOCAL, cluster_address, explain
from psearch.remote.node_code import Sources
from psearch.remote.ray_actors import Dismiss, Wanted
from psearch.results import PsearchError
from psearch_core.toolchain.compiler_client import NotPython, python_command

Task = TypeVar("Task")
Answer = TypeVar("Answer")

CONNECT_S = 15.0
"""A cluster that has not answered by then cannot be had."""
_START_S = 60.0
"""The same for one that has to be started here first."""
_SILENCE_S = 60.0
"""A driver that has not said anything for so long is given up."""
_CLOSE_S = 6.0
_MOST_TRIES = 3
"""A task whose process was lost so often is not given again."""
_STARTED_BY = "PSEARCH_CONNECTING"
"""Set in the driver's environment: where the interpreter is the program itself, it must not start another."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "PYTHONWARNINGS": "ignore",
}
"""Environment of the driver: no questions, no advice."""


class ClusterProcesses:
    """Processes on a cluster that do tasks: a `BackEnd`, and a context manager.

    address: what `cluster_address` takes; make: picklable, called once in each process, gives what is called there with
    each task; cores, memory (bytes): what each process needs; most: processes at the same time; on_note: called with a
    line for people when a process or a node is lost; sources: modules that are not installed on the nodes. Raises
    PsearchError when the cluster cannot be had, within 15 seconds or so.
    """

    def __init__(
        self,
        address: str,
        make: Callable[..., Callable[[Any], Any]],
        cores: int = 1,
        memory: int = 0,
        most: int | None = None,
        on_note: Callable[[str], None] = lambda note: None,
        sources: Sources | None = None,
    ) -> None:
        self._address = cluster_address(address)
        try:
            python = python_command(_STARTED_BY)
        except NotPython as other:
            text = f"several machines need a Python interpreter to run Ray in, and sys.executable is {other}"
            raise PsearchError(text) from None
        self._on_note = on_note
        self._owner = Owner("connection to a cluster")
        self._is_open = True
        self._is_connected = False
        self._failure: PsearchError | None = None
        self._heard_at = time.monotonic()
        self._node_of: dict[int, str] = {}
        """by process, those that are lost included"""
        self._done: Counter[str] = Counter()
        """by node, of what the program counts"""
        # nobody else gets into this folder, where Ray has sockets (with names of at most 107 bytes) for all users
        self._folder = Path(tempfile.mkdtemp(prefix="psearch-", dir="/tmp"))
        try:
            self._driver, self._connection = self._start(python)
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        try:
            self._put(Wanted(self._address, pickle.dumps(make), sources or {}, cores, memory, most, str(self._folder)))
            self._connect(_START_S if self._address == LOCAL else CONNECT_S)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ClusterProcesses:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        """See `BackEnd`."""
        self._put(Give(process, number, pickle.dumps(work), limit_s))

    def dismiss(self, process: int, reason: str) -> None:
        """See `BackEnd`."""
        self._put(Dismiss(process, reason))

    def messages(self, timeout_s: float, awaited: int | None = None) -> list[Any]:
        """See `BackEnd`."""
        self._owner.check()
        wait([self._connection] if awaited is None else [self._connection, awaited], timeout_s)
        messages: list[Any] = []
        while self._failure is None and self._connection.poll():
            match message := self._receive():
                case PsearchError():
                    self._failure = message
                case str():
                    self._on_note(message)
                case ProcessJoined(process, _, name):
                    self._node_of[process] = name
                    messages.append(message)
                case _:
                    messages += [] if isinstance(message, Alive) else [message]
        if time.monotonic() - self._heard_at > _SILENCE_S:
            self._failure = PsearchError(f"the connection to the cluster has stalled for {_SILENCE_S:.0f} s")
        if self._failure is not None and not messages:
            raise self._failure
        return messages

    def close(self) -> None:
        """End all processes and leave the cluster, in bounded time; at once where it is lost. May be called twice."""
        if not self._is_open or not self._owner.is_here:
            return
        self._is_open = False
        is_well = self._is_connected and self._failure is None
        if is_well:
            self._put(None)
        try:
            self._driver.wait(_CLOSE_S if is_well else 0)
        except subprocess.TimeoutExpired:
            os.killpg(self._driver.pid, signal.SIGKILL)  # with what it has begun on this machine
            self._driver.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._connection.close()

    def count(self, process: int, number: int) -> str:
        """Count what a process has done more. Return the name of its node."""
        node = self._node_of[process]
        self._done[node] += number
        return node

    def work_done(self) -> str:
        """Return what the busiest machines have done, those that are gone included: `a 120, b 61`."""
        return ", ".join(f"{name} {number:,}" for name, number in self._done.most_common(16))

    def _start(self, python: list[str]) -> tuple[subprocess.Popen[bytes], Connection[Any, Any]]:
        """Return the driver, and the program's end of its socket."""
        ours, theirs = socket.socketpair()
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):  # a driver that is halted does not halt the program
            ours.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", int(_SILENCE_S), 0))
        with theirs, (self._folder / "stderr").open("wb") as stderr:
            driver = subprocess.Popen(
                [*python, "-P", "-m", "psearch.remote.ray_driver", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # Ray prints there what it likes
                stderr=stderr,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, **_QUIET, _STARTED_BY: "1", **(_closed() if self._address == LOCAL else {})},
            )
        return driver, Connection(ours.detach())

    def _connect(self, limit_s: float) -> None:
        end = time.monotonic() + limit_s
        while not self._connection.poll(0.1):
            if "AuthToken" in self._said():  # Ray tries again for long
                raise PsearchError(explain(self._said(), self._address))
            if time.monotonic() > end:
                reason = f"no answer within {limit_s:.0f} s"
                if self._address not in (AUTO, LOCAL) and not self._address.startswith(CLIENT):
                    reason += f"; where no node of it runs, {CLIENT}HOST is the way"
                raise PsearchError(f"no Ray cluster can be had at {self._address}: {reason}")
        first = self._receive()
        if isinstance(first, PsearchError):
            raise first
        self._is_connected = True

    def _put(self, message: object) -> None:
        self._owner.check()
        with suppress(OSError):  # `messages` tells of a driver that is gone, or halted
            self._connection.send(message)

    def _receive(self) -> Any:
        self._heard_at = time.monotonic()
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            last = self._said().strip().rpartition("\n")[2][-200:] or f"its driver ended ({self._driver.poll()})"
            return PsearchError(f"the connection to the cluster is lost: {last}")

    def _said(self) -> str:
        """Return what Ray has said last on stderr."""
        with suppress(OSError):  # the driver has removed it
            return (self._folder / "stderr").read_text(errors="replace")
        return ""


def share_out_on(
    address: str,
    make: Callable[[], Callable[[Task], Answer]],
    tasks: Iterable[Task],
    stopped: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Generator[tuple[int, Answer], None, None]:
    """Share tasks out as `psearch.processes.tasks.task_sharing.share_out` does, to processes of a cluster.

    A task whose process was lost is done again, three times in all; then WorkerDied is raised. Tasks are read as they
    are given away. stopped: whether to end early, asked five times a second; options: of `ClusterProcesses`.
    """
    with ClusterProcesses(address, make, **options) as processes:
        yield from share_out_to(processes, tasks, _MOST_TRIES, is_stopped=stopped)


def _closed() -> dict[str, str]:
    """Return the environment of a cluster that nobody else may use, other users of this machine neither."""
    # Ray replaces 127.0.0.1 by the address that other machines see, but for systems on which it has no clusters
    loopback = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), **loopback}
