"""Starts worker processes from any program, kills them, and knows how they ended.

With a single thread this process forks workers itself: they inherit the compiled kernels. With more (a GUI, Jupyter,
a server, the UCI loop) it asks a nursery (`nursery.py`) to do it; there is at most one for each program, started when
first needed and kept until the program ends. In neither case does a worker import the program's `__main__`.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from multiprocessing.connection import Connection, Pipe
from typing import Any

from psearch.arena.arena import Arena
from psearch.core import kernels
from psearch.processes.fork_server import GONE, MESSAGE_BYTES, STOP_SIGNALS, fork_worker, open_pidfd
from psearch.results import PsearchError

START_METHODS = ("fork", "nursery")
_START_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 10.0
_FILES_PER_WORKER = 4
_OTHER_FILES = 256
_REAP_INTERVAL_S = 0.002


def fork_is_safe() -> bool:
    """Fork is quick, but in a program with threads the copy may find locks held by threads that it does not have."""
    return threading.active_count() == 1


class WorkerProcess(ABC):
    """A worker process as its supervisor sees it: a pipe, a sentinel, and the way it ended."""

    def __init__(self, index: int, pid: int, pipe: Connection) -> None:
        self.index = index
        self.pid = pid
        self.pipe = pipe
        self.sentinel = open_pidfd(pid)
        """readable when the process has ended; None where the system has no such thing (then its pipe ends)"""
        self._exitcode: int | None = None
        self._reaping = threading.Lock()

    @property
    def exitcode(self) -> int | None:
        """None while it runs; else the exit status, or minus the number of the signal that killed it."""
        with self._reaping:  # it can be had once; a second thread would learn, and keep, that there is none
            if self._exitcode is None:
                self._exitcode = self._reap()
            return self._exitcode

    def is_alive(self) -> bool:
        return self.exitcode is None

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, but no longer than `timeout_s` seconds."""
        deadline = time.monotonic() + timeout_s
        if self.sentinel is not None:
            poll = select.poll()
            poll.register(self.sentinel, select.POLLIN)
            poll.poll(max(0.0, timeout_s) * 1000)
        while self.exitcode is None and time.monotonic() < deadline:
            time.sleep(_REAP_INTERVAL_S)

    def kill(self) -> None:
        """SIGKILL. Never hits another process that has got its number."""
        if self._exitcode is not None:
            return
        try:
            if self.sentinel is not None:
                signal.pidfd_send_signal(self.sentinel, signal.SIGKILL)
            elif self.is_alive():
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def close(self) -> None:
        """Give the descriptors back."""
        self.pipe.close()
        if self.sentinel is not None:
            os.close(self.sentinel)
            self.sentinel = None

    @abstractmethod
    def _reap(self) -> int | None:
        """The exit code if it has ended."""


class _ForkedWorker(WorkerProcess):
    """A child of this process."""

    def _reap(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return GONE
        return None if pid == 0 else os.waitstatus_to_exitcode(status)


class _NurseryWorker(WorkerProcess):
    """A child of the nursery."""

    def __init__(self, index: int, pid: int, pipe: Connection, nursery: _NurseryLink) -> None:
        super().__init__(index, pid, pipe)
        self._nursery = nursery

    def _reap(self) -> int | None:
        try:
            code = self._nursery.ask("reap", pid=self.pid)["code"]
        except PsearchError:
            return GONE  # workers end with their nursery
        return None if code is None else int(code)


def launch(arena: Arena, workers: list[WorkerProcess], start_method: str | None = None) -> None:
    """Start the workers of an arena and append them to `workers`, also those of a start that fails halfway.

    start_method: `fork`, `nursery`, or None to choose. Raises OSError or PsearchError when the system refuses.
    """
    _allow_open_files(_FILES_PER_WORKER * arena.workers)
    method = start_method or ("fork" if fork_is_safe() else "nursery")
    if method not in START_METHODS:
        raise PsearchError(f"start_method must be one of {', '.join(START_METHODS)}, not {method!r}")
    if method == "fork":
        for index in range(arena.workers):
            ours, theirs = Pipe()
            inherited = [*(worker.pipe for worker in workers), ours]
            with theirs:
                pid = fork_worker(arena, index, theirs, inherited)
            workers.append(_ForkedWorker(index, pid, ours))
    else:
        _nursery().launch(arena, workers)


def _allow_open_files(more: int) -> None:
    """Raise this process's own limit of open files, if it is in the way, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = more + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


# -- the nursery ---------------------------------------------------------------------------------------------------

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from psearch.processes.fork_server import main; main({descriptor}, {parent})"
)


class _NurseryLink:
    """The program's side of a nursery: starts it and talks to it. Any thread may ask."""

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
        self._asked = 0

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

    def ask(self, do: str, descriptors: list[int] | None = None, **arguments: int) -> dict[str, Any]:
        """One request and its answer. Raises OSError if the system refused, PsearchError when the nursery is gone."""
        with self._lock:
            self._asked += 1
            message = json.dumps({"do": do, "number": self._asked, **arguments}).encode()
            try:
                socket.send_fds(self._link, [message], descriptors or [])
            except OSError:
                raise self._gone() from None
            return self._answer(self._asked, _ANSWER_TIMEOUT_S)

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
            self.ask("attach", descriptors, **layout)
            try:
                for index in range(arena.workers):
                    ours, theirs = Pipe()
                    with theirs:
                        pid = self.ask("fork", [theirs.fileno()], index=index)["pid"]
                    workers.append(_NurseryWorker(index, pid, ours, self))
            finally:
                self.ask("detach")

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
        """In a fork of the program: the nursery belongs to the other one."""
        self._link.close()
        self._process.returncode = GONE  # not our child: nothing to wait for


_the_nursery: _NurseryLink | None = None
_inherited: list[_NurseryLink] = []
"""Of a program that this one was forked from."""
_nursery_lock = threading.Lock()


def _nursery() -> _NurseryLink:
    """This program's nursery; started when there is none, or when it has ended."""
    global _the_nursery
    with _nursery_lock:
        if _the_nursery is None or not _the_nursery.is_usable:
            _the_nursery = _NurseryLink()
        return _the_nursery


def prepare_launch() -> None:
    """Start the nursery if this program will need one, without waiting: its kernels load while ours do."""
    if not fork_is_safe():
        _nursery()


def _close_nursery() -> None:
    if _the_nursery is not None:
        _the_nursery.close()


def _after_fork() -> None:
    """A fork of the program starts a nursery of its own; locks may have been held by threads that it does not have."""
    global _the_nursery, _nursery_lock
    if _the_nursery is not None:
        _the_nursery.disown()
        _inherited.append(_the_nursery)
        _the_nursery = None
    _nursery_lock = threading.Lock()


atexit.register(_close_nursery)
os.register_at_fork(after_in_child=_after_fork)
