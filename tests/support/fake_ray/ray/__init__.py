"""As much of Ray as psearch uses, with threads for actors: for tests of what is around it.

The file named by FAKE_RAY_NODES has a node a line, `ID CORES`, and may change at any time; one called other-version has
another psearch. FAKE_RAY_INIT is what `init` does: nothing if it is empty, `hang`, and make a file named like that of
the nodes with .hangs behind it, `print` on stdout and stderr, or else the text of the exception it raises. Work that
raises SystemExit ends its actor; an exception called Stall makes the actor answer nothing any more.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ray import exceptions

__version__ = "2.99.0"


class _Ref:
    def __init__(self) -> None:
        self._future: Future[Any] = Future()
        self._lock = threading.Lock()

    def settle(self, kind: str, value: Any) -> None:
        with self._lock:
            if self._future.done():
                return
            if kind == "value":
                self._future.set_result(value)
            elif kind == "raised":
                self._future.set_exception(exceptions.RayTaskError(value))
            else:
                self._future.set_exception(exceptions.ActorDiedError(value))

    def future(self) -> Future[Any]:
        return self._future


_actors: list[_Actor] = []


class _Actor:
    def __init__(self, made: type, node: str, arguments: tuple[Any, ...]) -> None:
        self.node = node
        self.is_stalled = False
        self.open: set[_Ref] = set()
        self.instance = made(*arguments)
        self.queues: dict[str, queue.SimpleQueue[Any]] = {}
        _actors.append(self)

    def call(self, group: str, name: str, arguments: tuple[Any, ...]) -> _Ref:
        ref = _Ref()
        self.open.add(ref)
        if self.node not in _alive():
            self.die("The actor died because its node has died.")
        if group not in self.queues:
            self.queues[group] = queue.SimpleQueue()
            threading.Thread(target=self._run, args=(self.queues[group],), daemon=True).start()
        self.queues[group].put((ref, name, arguments))
        return ref

    def _run(self, todo: queue.SimpleQueue[Any]) -> None:
        while True:
            ref, name, arguments = todo.get()
            if self.is_stalled:
                continue
            try:
                value = getattr(self.instance, name)(*arguments)
            except SystemExit:
                self.die("The actor is dead because its worker process has died.")
            except BaseException as error:
                if type(error).__name__ == "Stall":
                    self.is_stalled = True
                else:
                    ref.settle("raised", error)
            else:
                ref.settle("value", value)

    def die(self, reason: str) -> None:
        self.is_stalled = True
        for ref in list(self.open):
            ref.settle("died", reason)

    def __getattr__(self, name: str) -> _Method:
        return _Method(self, name)


class _Method:
    def __init__(self, actor: _Actor, name: str) -> None:
        self.actor, self.name = actor, name
        self.group = getattr(getattr(actor.instance, name), "__ray_concurrency_group__", "")

    def remote(self, *arguments: Any) -> _Ref:
        return self.actor.call(self.group, self.name, arguments)


class _Remote:
    def __init__(self, thing: Any, settings: dict[str, Any]) -> None:
        self.thing, self.settings = thing, settings

    def options(self, **settings: Any) -> _Remote:
        return _Remote(self.thing, {**self.settings, **settings})

    def remote(self, *arguments: Any) -> Any:
        if isinstance(self.thing, type):
            return _Actor(self.thing, self.settings["scheduling_strategy"].node_id, arguments)
        ref = _Ref()
        is_other = self.settings["scheduling_strategy"].node_id == "other-version"
        ref.settle("value", {"psearch": "0.0.1"} if is_other else self.thing(*arguments))
        return ref


def init(**settings: Any) -> None:
    how = os.environ.get("FAKE_RAY_INIT", "")
    if "_temp_dir" in settings:
        os.mkdir(settings["_temp_dir"])
        os.chmod(settings["_temp_dir"], 0o777)
    if how == "hang":
        Path(os.environ["FAKE_RAY_NODES"] + ".hangs").touch()
        time.sleep(1000)
    elif how == "print":
        os.write(1, b"(raylet) chatter\n")
        os.write(2, b"(raylet) chatter\n")
    elif how:
        raise ConnectionError(how)


def shutdown() -> None:
    pass


def remote(thing: Any = None, **settings: Any) -> Any:
    return _Remote(thing, settings) if thing is not None else lambda thing: _Remote(thing, settings)


def _alive() -> dict[str, int]:
    lines = Path(os.environ["FAKE_RAY_NODES"]).read_text().split("\n")
    return {line.split()[0]: int(line.split()[1]) for line in lines if line.strip()}


def nodes() -> list[dict[str, Any]]:
    alive = _alive()
    for actor in _actors:
        if actor.node not in alive:
            actor.die("The actor died because its node has died.")
    return [
        {
            "NodeID": name,
            "Alive": True,
            "NodeManagerHostname": name,
            "NodeManagerAddress": "127.0.0.1",
            "Resources": {"CPU": float(cores), "memory": 1e9},
        }
        for name, cores in alive.items()
    ]


def kill(actor: _Actor) -> None:
    actor.die("The actor is dead because it was killed by `ray.kill`.")
