"""The nursery: a small process of ours that forks workers for a program that cannot safely fork itself.

A program with threads must not fork, and starting each worker from nothing would import the program's own `__main__`
and load the kernels once a worker. So such a program starts one nursery, which never sees that `__main__`, loads the
kernels once, has a single thread, and forks each worker in milliseconds. It takes requests on a socket, with the
descriptors of memory and pipes beside them (SCM_RIGHTS). The workers are its children; it keeps what they ended with
until it is asked, so that a process number stays theirs. When the program or its end of the socket goes, the nursery
kills its workers and ends. The other side is `launcher.py`.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from psearch.arena.arena import Arena

MESSAGE_BYTES = 4096
MOST_DESCRIPTORS = 4
GONE = 255
"""Exit code of a worker whose real one nobody can know any more: somebody else reaped it, the answer that held it was
never read, or the nursery is gone."""
STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
"""What a terminal or a service manager sends to the whole group. Workers leave it to the program to stop them."""


class Closable(Protocol):
    """A pipe or a socket."""

    def close(self) -> None: ...


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has none (Linux before 5.3)."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def ignore_stop_signals() -> None:
    """For a process begun with these signals blocked: what arrived meanwhile is forgotten."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _forget_handlers() -> None:
    """Signal handlers of the program that was forked are its own business."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)) and number not in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)


def fork_worker(arena: Arena, index: int, pipe: Connection, inherited: Sequence[Closable]) -> int:
    """Fork a worker and return its process number. `inherited`: this process's own ends of pipes and
    sockets, closed in the worker.

    Only for a process with a single Python thread. Raises OSError when there is no room for another process.
    """
    parent = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of any thread; those left are numpy's, which know about fork
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _be_worker(arena, index, pipe, inherited, parent)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _be_worker(arena: Arena, index: int, pipe: Connection, inherited: Sequence[Closable], parent: int) -> None:
    """The forked process: never returns into what the program was doing, nor runs its exit handlers."""
    status = 1
    try:
        ignore_stop_signals()
        _forget_handlers()
        for connection in inherited:
            connection.close()
        from psearch.processes.worker import worker_main

        worker_main(arena, index, pipe, parent)
        status = 0
    except BaseException:
        if sys.__stderr__ is not None:
            traceback.print_exc(file=sys.__stderr__)
            sys.__stderr__.flush()
    finally:
        os._exit(status)


def main(descriptor: int, parent: int) -> None:
    """Run the nursery on a socket; `parent` is the process number of the program."""
    ignore_stop_signals()
    link = socket.socket(fileno=descriptor)
    watched = open_pidfd(parent)
    if os.getppid() != parent:
        return  # it went before we looked
    from psearch.kernels import load_kernels
    from psearch.results import PsearchError

    try:
        _while_parent_lives(link, watched, load_kernels)
    except (OSError, PsearchError) as error:
        _answer(link, {"number": 0, "error": f"cannot load the kernels: {error}"})
        return
    gc.collect()
    gc.freeze()  # workers share these pages as long as nobody writes to them
    try:
        _answer(link, {"number": 0})
        _Nursery(link, watched).serve()
    except (BrokenPipeError, ConnectionResetError):
        return


def _while_parent_lives(link: socket.socket, watched: int | None, job: Callable[[], Any]) -> None:
    """Do what may take long (a compilation), but end at once with the program. Leaves no thread behind."""
    finished, finish = os.pipe()

    def watch() -> None:
        poll = select.poll()
        poll.register(link, 0)  # only the hang-up
        poll.register(finished, select.POLLIN)
        if watched is not None:
            poll.register(watched, select.POLLIN)
        if finished not in dict(poll.poll()):
            os._exit(1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        job()
    finally:
        os.write(finish, b".")
        thread.join()
        os.close(finish)
        os.close(finished)


def _answer(link: socket.socket, message: dict[str, Any]) -> None:
    link.send(json.dumps(message).encode())


class _Nursery:
    """Takes requests one by one. Whatever it is asked, it answers with one message."""

    def __init__(self, link: socket.socket, watched: int | None) -> None:
        self.link = link
        self.watched = watched
        self.children: set[int] = set()
        self.arena: Arena | None = None

    def serve(self) -> None:
        """Until the program goes; no worker outlives this."""
        poll = select.poll()
        poll.register(self.link, select.POLLIN)
        if self.watched is not None:
            poll.register(self.watched, select.POLLIN)
        try:
            while True:
                ready = dict(poll.poll())
                if self.watched in ready:
                    return
                message, descriptors, _, _ = socket.recv_fds(self.link, MESSAGE_BYTES, MOST_DESCRIPTORS)
                if not message:
                    return
                request = json.loads(message)
                handler = getattr(self, "_" + request.pop("do"))
                number = request.pop("number")
                try:
                    answer = handler(descriptors, **request)
                except OSError as error:
                    answer = {"errno": error.errno, "error": error.strerror}
                _answer(self.link, {"number": number, **answer})
        finally:
            for pid in self.children:
                os.kill(pid, signal.SIGKILL)

    def _attach(self, descriptors: list[int], **layout: int) -> dict[str, Any]:
        """Map the memory of a searcher; the workers forked next inherit it."""
        from psearch.arena.arena import Arena

        self.arena = Arena.attach(**layout, descriptors=descriptors)
        return {}

    def _fork(self, descriptors: list[int], index: int) -> dict[str, Any]:
        if self.arena is None:
            raise AssertionError("asked to fork before memory was attached")
        pipe = Connection(descriptors[0])
        try:
            pid = fork_worker(self.arena, index, pipe, [self.link])
        finally:
            pipe.close()  # only the worker holds it: that it ends is what the program sees
        self.children.add(pid)
        return {"pid": pid}

    def _detach(self, descriptors: list[int]) -> dict[str, Any]:
        """All workers are forked: the memory is theirs and the program's."""
        if self.arena is not None:
            self.arena.close()
            self.arena = None
        return {}

    def _reap(self, descriptors: list[int], pid: int) -> dict[str, Any]:
        """How a worker ended, None while it runs: its exit status, or minus the signal that killed it."""
        if pid not in self.children:
            return {"code": GONE}
        found, status = os.waitpid(pid, os.WNOHANG)
        if found == 0:
            return {"code": None}
        self.children.discard(pid)
        return {"code": os.waitstatus_to_exitcode(status)}
