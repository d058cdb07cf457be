"""The process driver: one worker per process, the compiled `step` in each.

Between searches a worker blocks on its pipe and uses no processor time. A pipe that ends means that the parent is
gone, also after a SIGKILL: the worker exits.
"""

from __future__ import annotations

import os
import threading
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from psearch.core.entries import perft
from psearch.core.records import MAX_PLY, frame_dtype
from psearch.processes.fork_server import open_pidfd
from psearch.scheduler.entries import work

READY, GO, DONE, QUIT, PERFT = b"ready", b"go", b"done", b"quit", b"perft"

_BURSTS_PER_CALL = 64
"""About 20 ms: how long a worker may take to notice that its parent is gone."""
_PARENT_CHECK_S = 0.2


def _search(arena: Any, index: int, parent: int) -> None:
    """Work until the search is done; exit if the parent has gone meanwhile."""
    while not work(arena.context, index, _BURSTS_PER_CALL):
        if os.getppid() != parent:
            os._exit(1)


def work_alone(context: int) -> None:
    """Run worker 0 of an arena in this process until its search is done; Ctrl-C is heard on the way."""
    while not work(context, 0, 4 * _BURSTS_PER_CALL):
        continue


def _count(arena: Any, request: bytes, parent: int) -> bytes:
    """Leaves below a position that arrives as raw bytes: depth, then the record."""
    done = threading.Event()
    threading.Thread(target=_exit_with_parent, args=(done, parent), daemon=True).start()
    depth = int.from_bytes(request[:8], "little")
    frames = np.zeros(MAX_PLY, frame_dtype)
    frames["position"][0] = np.frombuffer(request[8:], frame_dtype["position"])[0]
    leaves = int(perft(arena.tables.ctypes.data, frames.ctypes.data, depth))
    done.set()
    return leaves.to_bytes(8, "little")


def _exit_with_parent(done: threading.Event, parent: int) -> None:
    """A perft may take hours in one kernel call: look after the parent from a thread meanwhile."""
    while not done.wait(_PARENT_CHECK_S):
        if os.getppid() != parent:
            os._exit(1)


def worker_main(arena: Any, index: int, pipe: Connection, parent: int) -> None:
    """A worker process: waits for commands on its pipe until it ends or says quit, or until the parent is gone."""
    watched = open_pidfd(parent)
    if os.getppid() != parent:
        return
    waiting_for: list[Any] = [pipe] if watched is None else [pipe, watched]
    try:
        arena.map_table()  # before it says that it is ready: no search waits for this
        pipe.send_bytes(READY)
        while pipe in wait(waiting_for):
            command = pipe.recv_bytes()
            if command == QUIT:
                return
            if command == GO:
                _search(arena, index, parent)
                pipe.send_bytes(DONE)
            elif command.startswith(PERFT):
                pipe.send_bytes(_count(arena, command[len(PERFT) :], parent))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
