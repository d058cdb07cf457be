"""The fork server: a small process that forks workers for a program that cannot safely fork itself; both its sides.

A program with threads must not fork, and starting each worker from nothing would import the program's own `__main__`
and load the kernels once a worker. So such a program starts one fork server, which never sees that `__main__`, loads
the kernels once, has a single thread, and forks each worker in milliseconds. It is a `ChildProcess`, whose messages
are numbered requests and answers; the descriptors of memory and pipes come behind a request (SCM_RIGHTS). The workers
are its children; it keeps what they ended with until the program asks for it, so that a process number stays theirs.
When the program or its end of the channel goes, the fork server kills its workers and ends.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any

from psearch.arena.system_calls import refusal
from psearch.processes.child import spawned
from psearch.processes.lifetime import (
    GONE,
    GROUP_SIGNALS,
    ended_with_parent,
    fork_process,
    ignore_blocked,
    messages_of,
    signals_blocked,
)
from psearch.processes.patience import SERVER, SERVER_END_S, SERVER_REAP, Patience
from psearch.results import PsearchError, WorkerDied
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.toolchain import groups
from psearch_core.toolchain.compiler_client import NotPython, python_command

_PROGRAM = "import sys; sys.path[:] = {path!r}; from psearch.processes.fork_server import main; main({link}, {parent})"
_MARK = "PSEARCH_FORK_SERVER"
"""Environment variable of a fork server that starts. A program that finds it there must not start another."""
_MOST_DESCRIPTORS = 4
"""Descriptors with one request: pipe, arena, table, trace."""


class _NoAnswer(Exception):
    """From the fork server: it has ended, is stopped, or is late."""


class ForkServer:
    """The program's side of its fork server: starts it and sends it requests. For any thread.

    Raises PsearchError when it cannot be started.
    """

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.RLock()
        """of one request and its answer"""
        self._is_ready = False
        self._is_late = False
        """It has not told in time how a worker ended: it is not asked for that until it has answered something else."""
        self._sent = 0
        try:
            interpreter = python_command(_MARK)
        except NotPython as other:
            raise PsearchError(
                f"a program with threads needs a Python interpreter to start workers, and sys.executable is {other}: "
                "start the engine while the program has a single thread, or with start_method='fork'"
            ) from None
        environment = {
            **os.environ,
            **groups.cache_environment(),  # where this process has put its kernels
            "OPENBLAS_NUM_THREADS": "1",  # numpy starts no threads in a process that only forks
            _MARK: "1",
        }
        try:
            # blocked until it ignores them: a Ctrl-C meant for the program must not hit it while it starts
            with signals_blocked(GROUP_SIGNALS):
                self.process = spawned(
                    lambda link: [
                        *interpreter,
                        "-c",
                        _PROGRAM.format(path=sys.path, link=link, parent=self._owner),
                    ],
                    env=environment,
                )
        except OSError as error:
            raise PsearchError(f"cannot start the process that starts workers: {refusal(error)}") from error

    @property
    def is_usable(self) -> bool:
        """Whether it runs, not stopped, and is this process's own: not one inherited by a fork of the program."""
        if self._owner != os.getpid() or not self.process.is_alive():
            return False
        if self.process.is_halted:  # perhaps in the moment in which a stopped program goes on, with all its group
            time.sleep(SERVER.look_s)
        return not self.process.is_halted

    def is_ready(self, timeout_s: float = 0.0) -> bool:
        """Tell whether it has loaded the kernels and nothing else is asked of it; waits no longer than `timeout_s`.
        Raises PsearchError when it could not load them."""
        if not self._lock.acquire(timeout=timeout_s):
            return False
        try:
            if not self._is_ready and wait([self.process.pipe], timeout_s):
                self._answer(0, SERVER)
                self._is_ready = True
            return self._is_ready
        except _NoAnswer:
            raise self._gone() from None
        finally:
            self._lock.release()

    def fork(self, target: str, descriptors: Sequence[int], pipe: int) -> int:
        """Fork a process, and return its number; see `fork_process`. Raises OSError if the system refused, PsearchError
        when the server is gone."""
        with self._lock:
            try:
                self._send("fork", target, 1 + len(descriptors))
                with socket.fromfd(self.process.pipe.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as link:
                    socket.send_fds(link, [b"."], [pipe, *descriptors])
                return int(self._answer(self._sent, SERVER))
            except (_NoAnswer, BlockingIOError, BrokenPipeError, ConnectionResetError):
                raise self._gone() from None

    def exit_code(self, pid: int) -> int | None:
        """Return how a worker ended, None while it runs, `GONE` when the fork server does not tell at once: the caller
        has just found a worker dead, or is about to leave."""
        if self._is_late or self.process.is_halted or not self._lock.acquire(timeout=SERVER_REAP.look_s):
            self._is_late = True
            return GONE
        try:
            self._is_late = True  # until it has answered
            self._send("reap", pid)
            code: int | None = self._answer(self._sent, SERVER_REAP)
            return code
        except (_NoAnswer, OSError):
            return GONE
        finally:
            self._lock.release()

    def _send(self, do: str, *arguments: object) -> None:
        self._sent += 1
        self.process.send((self._sent, do, *arguments))
        if self.process.outgoing:
            raise _NoAnswer

    def _answer(self, number: int, patience: Patience) -> Any:
        """Return the answer to a request, or raise what it is; older ones, which came too late, are passed over.

        A time in which this program was stopped itself, with all its group, does not count.
        """
        poll = select.poll()
        poll.register(self.process.pipe, select.POLLIN)
        self.process.expect(self.process.heard)
        while not self.process.has_hung_up:
            if not poll.poll(patience.look_s * 1000) and self.process.why_lost(self.process.heard, patience):
                break
            for found, answer in self.process.receive():
                if found == number:
                    self._is_late = False
                    if isinstance(answer, Exception):
                        raise answer
                    return answer
        raise _NoAnswer

    def _gone(self) -> PsearchError:
        """End what is left of it, at once; its workers end with it. WorkerDied where it was killed or halted: another
        may do better."""
        if not self.process.is_halted:
            self.process.join(SERVER_REAP.look_s)
        kind = WorkerDied if self.process.exitcode in (None, -signal.SIGKILL) else PsearchError
        self.process.kill()
        self.close()
        return kind("the process that starts workers has ended")

    def close(self) -> None:
        """End it, with all its workers; in a fork of the program, to which it does not belong, let it be."""
        self.process.pipe.close()
        if self._owner == os.getpid():
            if self.process.is_halted:
                self.process.kill()
            self.process.join(SERVER_END_S)
            self.process.kill()
            self.process.join(SERVER_END_S)
        self.process.close()


_server: ForkServer | None = None
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
        _server.close()
        _server = None
    _server_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


# -- the fork server itself --------------------------------------------------------------------------------------------


def main(descriptor: int, parent: int) -> None:
    """Run the fork server on a socket, until the program goes; `parent` is the process number of the program."""
    ignore_blocked(GROUP_SIGNALS)
    os.environ.pop(_MARK, None)
    link, pipe = socket.socket(fileno=descriptor), Connection(descriptor)  # of one descriptor
    children: set[int] = set()
    try:
        with ended_with_parent(parent, link):
            load_kernels()
            import_module("psearch.processes.worker_main")  # once, not by each worker
        gc.collect()
        gc.freeze()  # workers share these pages as long as neither side writes to them
        pipe.send((0, None))
        for number, do, *arguments in messages_of(pipe, parent):
            if do == "fork":
                pipe.send((number, _forked(link, children, *arguments)))
            elif arguments[0] not in children:
                pipe.send((number, GONE))
            else:
                found, status = os.waitpid(arguments[0], os.WNOHANG)
                children.discard(found)
                pipe.send((number, os.waitstatus_to_exitcode(status) if found else None))
    except (BrokenPipeError, ConnectionResetError):
        return
    except (OSError, PsearchError) as error:
        pipe.send((0, PsearchError(f"cannot load the kernels: {error}")))
    finally:
        link.detach()
        for pid in children:  # none outlives this process
            os.kill(pid, signal.SIGKILL)


def _forked(link: socket.socket, children: set[int], target: str, count: int) -> int | Exception:
    """Return the number of a new child, which gets so many descriptors, or what the program is to raise."""
    _, descriptors, flags, _ = socket.recv_fds(link, 1, _MOST_DESCRIPTORS)
    try:
        if flags & socket.MSG_CTRUNC or len(descriptors) < count:  # some that came along found no room here
            return OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        pid = fork_process(target, descriptors[1:], descriptors[0])
        children.add(pid)
        return pid
    except OSError as error:
        return error
    except MemoryError:
        return OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    except ImportError as error:
        return PsearchError(f"cannot import {target}: {error}")
    finally:
        for descriptor in descriptors:  # only the process holds its pipe: that it ends is what the program sees
            os.close(descriptor)
