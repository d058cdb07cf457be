"""Processes on the nodes of a Ray cluster that do tasks for the program; addresses of clusters, and their errors.

Ray prints to the standard streams, starts dozens of threads, sets signal handlers, and ends its process when the
cluster is lost. So it runs in a child process, the driver (`psearch.remote.ray_driver`), not in the program.
"""

from __future__ import annotations

import os
import pickle
import re
import secrets
import shutil
import signal
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from importlib import metadata
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeVar

from psearch.arena.system_calls import Owner
from psearch.processes.child import spawned
from psearch.processes.lifetime import process_state
from psearch.processes.patience import END_S, TASK_TRIES
from psearch.processes.task_processes import share_out_to
from psearch.processes.tasks import Alive, BackEnd, Give, ProcessJoined
from psearch.remote.ray_actors import Dismiss, Wanted
from psearch.remote.task_actor import Sources
from psearch.results import PsearchError
from psearch_core.toolchain.compiler_client import NotPython, python_command

Task = TypeVar("Task")
Answer = TypeVar("Answer")

AUTO = "auto"
"""Address of the cluster that this machine is a node of."""
LOCAL = "local"
"""Address of a temporary cluster that consists of this machine only."""
CLIENT = "ray://"
_CLIENT_PORT = 10001
_OLDEST_RAY = (2, 60)
"""Oldest Ray version that passes the tests; with 2.50.1 one with a stopped process did not end."""
_INSTALL = "pip install 'ray[client]>=2.60'"
_REACH_S = 5.0
CONNECT_S = 15.0
"""Seconds to wait for the answer of a running cluster."""
_START_S = 60.0
"""Seconds to wait for a cluster that is started here."""
_SILENCE_S = 60.0
"""Seconds without a message after which the driver has stalled."""
_CLOSE_S = 6.0
_LATE_S = 2.0
"""Seconds for the processes of a cluster on this machine to end after the driver."""
_STARTED_BY = "PSEARCH_CONNECTING"
"""Environment variable of the driver: if its interpreter is the program itself, it must not start another driver."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "PYTHONWARNINGS": "ignore",
}
"""Environment variables that keep the driver from asking questions and printing advice."""


def end_session(session: int, patience_s: float, spared: int = 0) -> None:
    """Wait at most `patience_s` seconds for all processes of a session to end but one, then kill those that are left. A
    Ray worker, which has a process group of its own but no session, would make its folders again.

    spared: process that may go on.
    """
    end = time.monotonic() + patience_s
    while left := [pid for pid in _members(session) if pid != spared]:
        late_s = time.monotonic() - end
        if late_s > END_S:
            return
        for pid in left if late_s >= 0 else ():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _members(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for pid in (int(path.name) for path in Path("/proc").glob("[0-9]*")):
        with suppress(OSError):
            if os.getsid(pid) == session and process_state(pid) not in (None, "Z"):
                found.append(pid)
    return found


class ClusterProcesses(BackEnd):
    """Processes on a cluster that do tasks; see `BackEnd`.

    address: as for `cluster_address`; make: picklable function, called once in each process, which returns the function
    that does the tasks; cores, memory (bytes): needed by each process; most: most processes at the same time; on_note:
    called with a line for people when a process or a node is lost; sources: modules that are not installed on the
    nodes. Raises PsearchError when the cluster does not answer, within about 15 seconds.
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
        self._messages: list[Any] = []
        """Messages for the next call of `messages`."""
        self._node_of: dict[int, str] = {}
        """Name of the node of each process, lost ones included."""
        self._done: Counter[str] = Counter()
        """Work done by each node, in units of the program."""
        # only this user can enter this folder, where Ray opens sockets (with names of at most 107 bytes) to all users
        self._folder = Path(tempfile.mkdtemp(prefix="psearch-", dir="/tmp"))
        environment = {**os.environ, **_QUIET, _STARTED_BY: "1"}
        if self._address == LOCAL:  # closed to other users of this machine
            environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            # else Ray replaces 127.0.0.1 by an address that other machines see; not so where it supports no clusters
            environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        command = [*python, "-P", "-m", "psearch.remote.ray_driver"]
        try:
            with (self._folder / "stderr").open("wb") as stderr:
                self._driver = spawned(
                    lambda link: [*command, str(link)], stderr=stderr, start_new_session=True, env=environment
                )
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        try:
            folder = str(self._folder)
            self._put(Wanted(self._address, pickle.dumps(make), sources or {}, cores, memory, most, folder))
            self._connect(_START_S if self._address == LOCAL else CONNECT_S)
        except BaseException:
            self.close()
            raise

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        self._put(Give(process, number, pickle.dumps(work), limit_s))

    def dismiss(self, process: int, reason: str) -> None:
        self._put(Dismiss(process, reason))

    def messages(self, timeout_s: float, awaited: int | None = None) -> list[Any]:
        self._owner.check()
        self._driver.flush()
        if not self._messages:
            wait([self._driver.pipe] if awaited is None else [self._driver.pipe, awaited], timeout_s)
            self._listen()
        if time.monotonic() - self._heard_at > _SILENCE_S:
            self._failure = PsearchError(f"the connection to the cluster has stalled for {_SILENCE_S:.0f} s")
        if self._failure is not None and not self._messages:
            raise self._failure
        messages, self._messages = self._messages, []
        return messages

    def close(self) -> None:
        """End all processes and leave the cluster, in bounded time. May be called twice."""
        if not self._is_open or not self._owner.is_here:
            return
        self._is_open = False
        is_well = self._is_connected and self._failure is None
        was_there = not self._driver.has_hung_up  # else its number may be another process' by now
        if is_well:
            self._put(None)
        self._driver.join(_CLOSE_S if is_well else 0.0)
        if was_there:
            end_session(self._driver.pid, 0.0 if self._driver.is_alive() else _LATE_S)
        self._driver.join(END_S)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._driver.close()

    def count(self, process: int, number: int) -> str:
        """Add to the work done by the node of a process. Return the name of the node."""
        node = self._node_of[process]
        self._done[node] += number
        return node

    def work_done(self) -> str:
        """Return the work done by the busiest nodes, lost ones included: `a 120, b 61`."""
        return ", ".join(f"{name} {number:,}" for name, number in self._done.most_common(16))

    def _connect(self, limit_s: float) -> None:
        end = time.monotonic() + limit_s
        while not self._is_connected:
            wait([self._driver.pipe], 0.1)
            self._listen()
            if self._failure is not None:
                raise self._failure
            if "AuthToken" in self._stderr():  # Ray itself would retry for a long time
                raise PsearchError(explain(self._stderr(), self._address))
            if time.monotonic() > end and not self._is_connected:
                reason = f"no answer within {limit_s:.0f} s"
                if self._address not in (AUTO, LOCAL) and not self._address.startswith(CLIENT):
                    reason += f"; from a machine outside the cluster, use {CLIENT}HOST"
                raise PsearchError(f"no Ray cluster is available at {self._address}: {reason}")

    def _put(self, message: object) -> None:
        self._owner.check()
        self._driver.send(message)

    def _listen(self) -> None:
        for message in self._driver.receive():
            self._heard_at = time.monotonic()
            match message:
                case PsearchError():
                    self._failure = message
                case str():
                    self._on_note(message)
                case Alive():
                    self._is_connected = True
                case _:
                    if isinstance(message, ProcessJoined):
                        self._node_of[message.process] = message.name
                    self._messages.append(message)
        if self._driver.has_hung_up and self._failure is None:
            self._driver.join(END_S)
            end_session(self._driver.pid, 0.0)
            last = self._stderr().strip().rpartition("\n")[2][-200:] or f"its driver {self._driver.ending}"
            self._failure = PsearchError(f"the connection to the cluster is lost: {last}")

    def _stderr(self) -> str:
        with suppress(OSError):  # the driver has removed the file
            return (self._folder / "stderr").read_text(errors="replace")
        return ""


def share_out_on(
    address: str,
    make: Callable[[], Callable[[Task], Answer]],
    tasks: Iterable[Task],
    stopped: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Generator[tuple[int, Answer], None, None]:
    """Distribute tasks to processes of a cluster, as `psearch.processes.task_processes.share_out` does on this machine.

    The task of a lost process is tried up to three times; then WorkerDied is raised. Tasks are read when needed.
    stopped: called five times a second, ends this early; options: those of `ClusterProcesses`.
    """
    with ClusterProcesses(address, make, **options) as processes:
        yield from share_out_to(processes, tasks, TASK_TRIES, is_stopped=stopped)


def cluster_address(text: str, name: str = "--on ") -> str:
    """Return the complete address. name: the option, for messages. Raises PsearchError if the text is no address, or if
    Ray is missing or too old; only Ray's metadata is read."""
    word = text.strip()
    if word not in (AUTO, LOCAL):
        host, port = _host_and_port(word, name)
        host = f"[{host}]" if ":" in host else host
        word = f"{CLIENT * word.startswith(CLIENT)}{host}:{port}"
    try:
        version = metadata.version("ray")
    except metadata.PackageNotFoundError:
        raise PsearchError(f"several machines need Ray, which is not installed: {_INSTALL}") from None
    if tuple(map(int, re.findall(r"[0-9]+", version)[:2])) < _OLDEST_RAY:
        oldest = ".".join(map(str, _OLDEST_RAY))
        raise PsearchError(f"Ray {version} is too old, {oldest} or later is needed: {_INSTALL}")
    return word


def check_reachable(address: str) -> None:
    """Raise PsearchError if nothing listens at a `cluster_address`. Wait 5 s, or as long as the name resolver takes."""
    if address in (AUTO, LOCAL):
        return
    try:
        socket.create_connection(_host_and_port(address), _REACH_S).close()
    except OSError as error:
        obstacle = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise PsearchError(f"no Ray cluster can be reached at {address}: {obstacle}") from None


def explain(text: str, address: str) -> str:
    """Return a one-line message for Ray's error when it cannot connect."""
    if "AuthToken" in text or "uthentication" in text:
        return f"the Ray cluster at {address} needs another token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to it"
    if "Could not find any running Ray instance" in text:
        return "no Ray cluster runs on this machine: `ray start --head` starts one"
    return f"no Ray cluster is available at {address}: {' '.join(text.split())[:300]}"


def _host_and_port(address: str, name: str = "") -> tuple[str, int]:
    is_client = address.startswith(CLIENT)
    form = re.fullmatch(r"(\[[0-9A-Fa-f:.%a-z]+\]|[^\s\[\]:/@]+)(?::([0-9]{1,5}))?", address.removeprefix(CLIENT))
    port = int(form[2] or _CLIENT_PORT * is_client) if form is not None else 0
    if form is None or not 0 < port < 2**16:
        raise PsearchError(f"{name}{address}: neither auto nor local, nor HOST:PORT or ray://HOST[:PORT]")
    return form[1].strip("[]"), port
