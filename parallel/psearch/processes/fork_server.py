"""The fork server, both the process itself and the program's side of it.

A program with threads must not fork, and a worker started from scratch would import the program's `__main__` and load
the kernels again. So such a program starts one fork server. That process never imports `__main__`, loads the kernels
once, has a single thread, and forks each worker in milliseconds. Messages are numbered requests and answers; the
descriptors of memory and pipes follow a request (SCM_RIGHTS). The workers are children of the fork server. It reaps one
only when the program asks for the exit code, so that no other process gets the same number before. When the program
ends, or closes its end of the channel, the fork server kills its workers and ends.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import socket
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
from psearch_core.toolchain.compiler_client import NotPython, module_places, python_command

_PROGRAM = "import sys; sys.path[:] = {path!r}; from psearch.processes.fork_server import main; main({link}, {parent})"
_MARK = "PSEARCH_FORK_SERVER"
"""Environment variable of a fork server while it starts. A program that finds it set must not start another."""
_MOST_DESCRIPTORS = 4
"""Most descriptors that come with one request: pipe, arena, table, trace."""


class _NoAnswer(Exception):
    """The fork server has ended, is stopped, or is late."""


class ForkServer:
    """The program's connection to its fork server, which it starts. Any thread may use it.

    Raises PsearchError when the process cannot be started.
    """

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.RLock()
        """Lock held from a request until its answer."""
        self._is_ready = False
        self._is_late = False
        """Whether an exit code did not come in time: none is asked for until another request has been answered."""
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
            # blocked until the server ignores them: a Ctrl-C for the program must not end the server during its start
            with signals_blocked(GROUP_SIGNALS):
                self.process = spawned(
                    lambda link: [
                        *interpreter,
                        "-c",
                        _PROGRAM.format(path=module_places(), link=link, parent=self._owner),
                    ],
                    env=environment,
                )
        except OSError as error:
            raise PsearchError(f"cannot start the process that starts workers: {refusal(error)}") from error

    @property
    def is_usable(self) -> bool:
        """Whether the server runs, is not stopped, and belongs to this process, not to one that this is a fork of."""
        if self._owner != os.getpid() or not self.process.is_alive():
            return False
        if self.process.is_halted:  # the whole process group may have been stopped and be about to continue
            time.sleep(SERVER.look_s)
        return not self.process.is_halted

    def is_ready(self, timeout_s: float = 0.0) -> bool:
        """Tell whether the kernels are loaded and no other request is running; wait for at most `timeout_s` seconds.
        Raises PsearchError when the server could not load them."""
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
        """Fork a process; see `fork_process`. Raises OSError if the system refuses, PsearchError without a server."""
        with self._lock:
            try:
                self._send("fork", target, 1 + len(descriptors))
                with socket.fromfd(self.process.pipe.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as link:
                    socket.send_fds(link, [b"."], [pipe, *descriptors])
                return int(self._answer(self._sent, SERVER))
            except (_NoAnswer, BlockingIOError, BrokenPipeError, ConnectionResetError):
                raise self._gone() from None

    def exit_code(self, pid: int) -> int | None:
        """Return the exit code of a worker; None while it runs, `GONE` if the fork server does not answer at once: the
        caller has just found a worker dead, or is about to end, and cannot wait."""
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
        """Return the answer to a request, or raise the exception that it holds; skip late answers to older requests.

        Time in which this program itself was stopped does not count.
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
        """Kill the server and return the error to raise: WorkerDied if it was killed or stopped, else PsearchError."""
        if not self.process.is_halted:
            self.process.join(SERVER_REAP.look_s)
        kind = WorkerDied if self.process.exitcode in (None, -signal.SIGKILL) else PsearchError
        self.process.kill()
        self.close()
        return kind("the process that starts workers has ended")

    def close(self) -> None:
        """End the server with all its workers. In a fork of the program, which does not own it, only close the pipe."""
        self.process.pipe.close()
        if self._owner == os.getpid():
            self.process.join(0.0 if self.process.is_halted else SERVER_END_S)
            self.process.kill()
            self.process.join(SERVER_END_S)
        self.process.close()


_server: ForkServer | None = None
_server_lock = threading.Lock()


def fork_server() -> ForkServer:
    """Return this program's fork server; start one if there is none, or if the last one has ended or is stopped."""
    global _server
    with _server_lock:
        if _server is not None and not _server.is_usable:
            _server.close()
            _server = None
        if _server is None:
            _server = ForkServer()
        return _server


def close_server() -> None:
    """End this program's fork server with all its workers."""
    if _server is not None:
        _server.close()


def _after_fork() -> None:
    """Forget the server in a fork of the program, and replace the lock, which another thread may have held."""
    global _server, _server_lock
    if _server is not None:
        _server.close()
        _server = None
    _server_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


# -- the fork server itself --------------------------------------------------------------------------------------------


def main(descriptor: int, parent: int) -> None:
    """Run the fork server on a socket until the program, whose process number is `parent`, has ended."""
    ignore_blocked(GROUP_SIGNALS)
    os.environ.pop(_MARK, None)
    link, pipe = socket.socket(fileno=descriptor), Connection(descriptor)  # two views of one descriptor
    children: set[int] = set()
    try:
        with ended_with_parent(parent, link):
            load_kernels()
            import_module("psearch.processes.worker_main")  # once here, not in each worker
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
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def _forked(link: socket.socket, children: set[int], target: str, count: int) -> int | Exception:
    """Fork a child with `count` descriptors; return its process number, or the error that the program is to raise."""
    _, descriptors, flags, _ = socket.recv_fds(link, 1, _MOST_DESCRIPTORS)
    try:
        if flags & socket.MSG_CTRUNC or len(descriptors) < count:  # this process has too many open files
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
        for descriptor in descriptors:  # only the child may hold its pipe: the program sees its end by the pipe's
            os.close(descriptor)
