"""The process in which Ray runs: `python -m psearch.remote.ray.ray_driver FD`. See `psearch.remote.ray.link`.

FD is a socket to the program; the first message from there is `HandsWanted`. When its other end is closed, this process
leaves the cluster and ends, and with it its hands. As long as it connects it ends at once.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from psearch.processes.tasks.task_messages import Alive, Give, one_line
from psearch.remote.ray.driver_messages import Close, Connected, Dismiss, Failed, HandsWanted
from psearch.remote.ray.loopback import stay_on_loopback
from psearch.remote.ray.ray_nodes import Outcome, RayNodes, Ref

ALIVE_S = 2.0
"""between two signs of life to the program"""
_TICK_S = 0.02
"""between two looks at nodes and hands"""
_MOST_EVENTS = 1000
"""between two such looks"""
_HEAD_S = 40.0
"""The head of the cluster is gone when it has not answered for so long. Ray ends this process after 60 s."""
_LEAVE_S = 4.0
"""to leave the cluster"""


def main() -> None:
    """Connect, and do what the program says until it goes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # the program decides
    program = Connection(int(sys.argv[1]))
    wanted = program.recv()
    assert isinstance(wanted, HandsWanted)
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    connected = threading.Event()
    threading.Thread(target=_listen, args=(program, wanted.folder, events, connected), daemon=True).start()
    try:
        stay_on_loopback(wanted.address)
        from psearch.remote.ray.ray_cluster import RayCluster

        cluster = RayCluster(wanted, lambda ref, outcome: events.put(Outcame(ref, outcome)))
    except Exception as error:  # Ray raises many
        program.send(Failed(explain(error, wanted.address)))
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Ray has set its own
    connected.set()
    program.send(Connected(wanted.address))
    _Session(program, cluster, wanted, events).run()


def _listen(program: Connection, folder: str, events: queue.SimpleQueue[Any], connected: threading.Event) -> None:
    """The program's messages become events. While Ray connects nobody looks at those, perhaps for ever."""
    with suppress(EOFError, OSError):
        while True:
            events.put(program.recv())
    events.put(None)
    if not connected.is_set():
        end(folder)


@dataclass(frozen=True)
class Outcame:
    """The event that there is an outcome."""

    ref: Ref
    outcome: Outcome


class _ProgramGone(Exception):
    """The other end of the connection is closed."""


class _Session:
    """Nodes that are led until the program has enough: whatever the program says and whatever a node answers is an
    event, and wakes the one thread that deals with them."""

    def __init__(self, program: Connection, cluster: Any, wanted: HandsWanted, events: queue.SimpleQueue[Any]) -> None:
        self._program = program
        self._cluster = cluster
        self._fleet = RayNodes(cluster, wanted, self._tell)
        self._folder = wanted.folder
        self._events = events
        self._told_at = 0.0

    def run(self) -> None:
        ticked_at = 0.0
        try:
            while self._take_events():
                now = time.monotonic()
                if now - ticked_at >= _TICK_S:
                    ticked_at = now
                    self._fleet.tick(now)
                if now - self._told_at > ALIVE_S:
                    self._told_at = now
                    self._tell(Alive())
                if now - self._cluster.heard_at > _HEAD_S:
                    self._tell(Failed(f"the head of the cluster has not answered for {_HEAD_S:.0f} s"))
                    break
        except _ProgramGone:
            pass
        except Exception as error:  # Ray's, most of all when a connection breaks
            with suppress(_ProgramGone):
                self._tell(Failed(f"the connection to the cluster is lost: {one_line(error)}"))
        finally:
            leave(self._cluster, self._fleet, self._folder)

    def _take_events(self) -> bool:
        """Deal with what has happened, and wait for it a little; False when the program has said that it is the end."""
        timeout_s = _TICK_S
        for _ in range(_MOST_EVENTS):
            try:
                event = self._events.get(timeout=timeout_s)
            except queue.Empty:
                break
            timeout_s = 0.0
            match event:
                case Outcame(ref, outcome):
                    self._fleet.resolve(ref, outcome)
                case Give():
                    self._fleet.give(event)
                case Dismiss():
                    self._fleet.dismiss(event)
                case Close():
                    return False
                case None:
                    raise _ProgramGone
        return True

    def _tell(self, message: Any) -> None:
        try:
            self._program.send(message)
        except OSError:
            raise _ProgramGone from None


def leave(cluster: Any, fleet: RayNodes, folder: str) -> None:
    """End all hands and leave, in bounded time."""
    timer = threading.Timer(_LEAVE_S, end, (folder,))
    timer.daemon = True
    timer.start()
    with suppress(Exception):  # there may be nobody left to tell
        fleet.close()
        cluster.close()
    end(folder)


def end(folder: str) -> None:
    """End this process, at once, and what is left of a cluster that it has begun: that is in its process group."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def explain(error: BaseException, address: str) -> str:
    """Return why there is no connection, in one line."""
    texts = []
    link: BaseException | None = error
    while link is not None:
        texts.append(str(link))
        link = link.__cause__ or link.__context__
    text = "\n".join(texts)
    if "AuthToken" in text or "uthentication" in text:
        return f"the Ray cluster at {address} wants another token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as there"
    if "Could not find any running Ray instance" in text:
        return "no Ray cluster runs on this machine: `ray start --head` begins one"
    for line in text.splitlines():
        if "Version mismatch" in line or "version mismatch" in line:
            return " ".join(text.split())[:300]
    return f"no Ray cluster can be had at {address}: {one_line(error)}"


if __name__ == "__main__":
    main()
