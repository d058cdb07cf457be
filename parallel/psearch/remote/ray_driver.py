"""The process in which Ray runs: `python -m psearch.remote.ray_driver FD`. See `psearch.remote.cluster_processes`.

FD is a socket to the program; the first message on it is a `Wanted`. When the program sends None or closes its end,
this process leaves the cluster and ends, and its actors end with it.
"""

from __future__ import annotations

import logging
import math
import os
import queue
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from psearch.arena.control_groups import usable_cores
from psearch.processes.patience import BEAT_S
from psearch.processes.tasks import Alive, one_line
from psearch.remote import task_actor
from psearch.remote.cluster_processes import LOCAL, check_reachable, end_session, explain
from psearch.remote.ray_actors import RayActors, Wanted
from psearch.results import PsearchError

_LEAVE_S = 4.0
"""Seconds after which this process ends itself while it leaves the cluster, or still connects to it."""
_STORE_BYTES = 80 * 2**20
"""Size of Ray's object store, the smallest that it allows: tasks and answers are small and do not go there."""


def main() -> None:
    """Connect, and pass messages between the program and the actors until the program ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # the program decides
    program = Connection(int(sys.argv[1]))
    wanted: Wanted = program.recv()
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(program, wanted.folder, messages), daemon=True).start()
    try:
        actors = RayActors(_connect(wanted), wanted, program.send)
        sent_at, is_wanted = -math.inf, True
        while is_wanted:
            now = time.monotonic()
            if now - sent_at >= BEAT_S:
                sent_at = now
                program.send(Alive())  # the first one reports the connection
            while is_wanted and not messages.empty():
                message = messages.get()
                is_wanted = message is not None
                if is_wanted:
                    actors.take(message)
            if is_wanted:
                actors.step(now)
    except Exception as error:  # Ray raises many, most of all when a connection breaks
        lost = PsearchError(f"the connection to the cluster is lost: {one_line(error)}")
        with suppress(OSError):
            program.send(error if isinstance(error, PsearchError) else lost)
    with suppress(Exception):  # the cluster may be gone
        sys.modules["ray"].shutdown()
    _end(wanted.folder)


def _listen(program: Connection, folder: str, messages: queue.SimpleQueue[Any]) -> None:
    """Receive messages of the program; when that ends, end this process in bounded time."""
    with suppress(EOFError, OSError):
        while (message := program.recv()) is not None:
            messages.put(message)
    messages.put(None)
    time.sleep(_LEAVE_S)
    _end(folder)


def _connect(wanted: Wanted) -> Any:
    """Connect to the cluster and return the module `ray`. Raises PsearchError if that fails."""
    check_reachable(wanted.address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL, "configure_logging": False}
    if wanted.address == LOCAL:
        options |= {"num_cpus": usable_cores(), "object_store_memory": _STORE_BYTES, "include_dashboard": False}
        options["_node_ip_address"] = "127.0.0.1"
        options["_temp_dir"] = os.path.join(wanted.folder, "ray")  # a folder that Ray makes open to all users
    try:
        ray: Any = import_module("ray")  # untyped: Ray creates many of its names during the import
        ray.init(address=wanted.address, **options)
    except Exception as error:
        texts = []
        link: BaseException | None = error
        while link is not None:
            texts.append(str(link))
            link = link.__cause__ or link.__context__
        raise PsearchError(explain("\n".join(texts), wanted.address)) from None
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Ray has set its own handler
    ray.cloudpickle.register_pickle_by_value(task_actor)
    return ray


def _end(folder: str) -> None:
    """End at once, after a cluster that this process has started, which would make the folder again."""
    end_session(os.getsid(0), 0.0, os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
