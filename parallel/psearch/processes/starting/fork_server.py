"""The fork server: a small process that forks workers for a program that cannot safely fork itself.

A program with threads must not fork, and starting each worker from nothing would import the program's own `__main__`
and load the kernels once a worker. So such a program starts one fork server, which never sees that `__main__`, loads
the kernels once, has a single thread, and forks each worker in milliseconds. It takes requests on a socket, with the
descriptors of memory and pipes along with them (SCM_RIGHTS). The workers are its children; it keeps what they ended
with until the program asks for it, so that a process number stays theirs. When the program or its end of the socket
goes, the fork server kills its workers and ends. The other side is `fork_client.py`.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import select
import signal
import socket
from multiprocessing.connection import Connection
from typing import Any

from psearch.processes.lifetime import GONE, ended_with_parent, is_orphan, open_pidfd
from psearch.processes.program_signals import GROUP_SIGNALS, ignore_blocked
from psearch.processes.starting.fork import fork_process
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels

MARK = "PSEARCH_FORK_SERVER"
"""In the environment of a fork server that starts. Who finds it there and is none must not start another."""
MESSAGE_BYTES = 1 << 12
MOST_DESCRIPTORS = 4
"""Pipe, arena, table, trace."""


def main(descriptor: int, parent: int) -> None:
    """Run the fork server on a socket; `parent` is the process number of the program."""
    ignore_blocked(GROUP_SIGNALS)
    os.environ.pop(MARK, None)
    link = socket.socket(fileno=descriptor)
    watched = open_pidfd(parent)
    if is_orphan(parent):
        return
    try:
        with ended_with_parent(parent, link):
            load_kernels()
    except (OSError, PsearchError) as error:
        _answer(link, {"number": 0, "error": f"cannot load the kernels: {error}"})
        return
    gc.collect()
    gc.freeze()  # workers share these pages as long as neither side writes to them
    try:
        _answer(link, {"number": 0})
        _ForkServer(link, watched).serve()
    except (BrokenPipeError, ConnectionResetError):
        return


def _answer(link: socket.socket, message: dict[str, Any]) -> None:
    link.send(json.dumps(message).encode())


class _ForkServer:
    """Takes requests one by one, and answers each with one message."""

    def __init__(self, link: socket.socket, watched: int | None) -> None:
        self.link = link
        self.watched = watched
        """pidfd of the program"""
        self.children: set[int] = set()

    def serve(self) -> None:
        """Serve until the program goes; no worker outlives this."""
        poll = select.poll()
        poll.register(self.link, select.POLLIN)
        if self.watched is not None:
            poll.register(self.watched, select.POLLIN)
        try:
            while True:
                ready = dict(poll.poll())
                if self.watched in ready:
                    return
                message, descriptors, flags, _ = socket.recv_fds(self.link, MESSAGE_BYTES, MOST_DESCRIPTORS)
                if not message:
                    return
                request = json.loads(message)
                number = request.pop("number")
                _answer(self.link, {"number": number, **self._handled(request, descriptors, flags)})
        finally:
            for pid in self.children:
                os.kill(pid, signal.SIGKILL)

    def _handled(self, request: dict[str, Any], descriptors: list[int], flags: int) -> dict[str, Any]:
        """The answer to a request, without its number."""
        try:
            if flags & socket.MSG_CTRUNC:  # some that came along found no room here
                return {"errno": errno.EMFILE}
            if request["do"] == "fork":
                return self._fork(request["target"], descriptors)
            return self._reap(request["pid"])
        except OSError as error:
            return {"errno": error.errno}
        except MemoryError:
            return {"errno": errno.ENOMEM}
        except ImportError as error:
            return {"error": f"cannot import {request['target']}: {error}"}
        finally:
            for descriptor in descriptors:  # only the process holds its pipe: that it ends is what the program sees
                os.close(descriptor)

    def _fork(self, target: str, descriptors: list[int]) -> dict[str, Any]:
        pipe = Connection(descriptors.pop(0))
        try:
            pid = fork_process(target, pipe, descriptors)
        finally:
            pipe.close()
        self.children.add(pid)
        return {"pid": pid}

    def _reap(self, pid: int) -> dict[str, Any]:
        """How a process ended, None while it runs: its exit status, or minus the signal that killed it."""
        if pid not in self.children:
            return {"code": GONE}
        found, status = os.waitpid(pid, os.WNOHANG)
        if found == 0:
            return {"code": None}
        self.children.discard(pid)
        return {"code": os.waitstatus_to_exitcode(status)}
