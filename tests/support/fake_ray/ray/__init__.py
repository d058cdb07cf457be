"""The part of Ray that psearch uses, with threads for actors.

The file named by FAKE_RAY_NODES has a node a line, `ID CORES`, and may change at any time; the node other-version has
another version of psearch. FAKE_RAY_INIT is what `init` does: nothing if it is empty; `hang`, and make a file named
like that of the nodes with .hangs behind it; `print` on stdout and stderr; or else raise an exception with this text.
A task that raises SystemExit ends its actor.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """Any of Ray's."""


class ActorDiedError(RayError):
    """The actor is dead."""


exceptions = SimpleNamespace(
    RayError=RayError,
    ActorDiedError=ActorDiedError,
    ActorUnavailableError=type("ActorUnavailableError", (RayError,), {}),
    WorkerCrashedError=type("WorkerCrashedError", (RayError,), {}),
    OutOfMemoryError=type("OutOfMemoryError", (RayError,), {}),
)
cloudpickle = SimpleNamespace(register_pickle_by_value=lambda module: None)
_here = threading.local()
_actors: list[_Actor] = []


class _Actor:
    def __init__(self, made: type, place: str) -> None:
        self.place = place
        self.instance = made()
        self.reason = ""
        """Why it is dead."""
        self.open: set[Future[Any]] = set()
        self.threads: dict[str, ThreadPoolExecutor] = defaultdict(lambda: ThreadPoolExecutor(1))
        _actors.append(self)

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *arguments: self.call(name, arguments))

    def call(self, name: str, arguments: tuple[Any, ...]) -> Future[Any]:
        ref: Future[Any] = Future()
        self.open.add(ref)
        if self.place not in _alive():
            self.die("The actor died because its node has died.")
        if self.reason:
            self.die(self.reason)
        else:
            function = getattr(self.instance, name)
            self.threads[getattr(function, "__ray_concurrency_group__", "")].submit(self.run, ref, function, arguments)
        return ref

    def run(self, ref: Future[Any], function: Any, arguments: tuple[Any, ...]) -> None:
        _here.node = self.place
        if self.place == "other-version" and function.__name__ == "begin":
            arguments = {**arguments[0], "psearch": "0.0.1"}, *arguments[1:]
        try:
            value = function(*arguments)
        except SystemExit:
            self.die("The actor is dead because its worker process has died.")
        else:
            with suppress(InvalidStateError):  # it is dead meanwhile
                ref.set_result(value)

    def die(self, reason: str) -> None:
        self.reason = reason
        for ref in self.open:
            with suppress(InvalidStateError):  # it has been answered
                ref.set_exception(ActorDiedError(reason))


class _Remote:
    def __init__(self, made: type, not_at: str = "") -> None:
        self.made, self.not_at = made, not_at

    def options(self, label_selector: dict[str, str]) -> _Remote:
        return _Remote(self.made, label_selector.get("ray.io/node-id", ""))

    def remote(self) -> _Actor:
        """An actor on the node with the fewest for its cores."""
        here = Counter(actor.place for actor in _actors if not actor.reason)
        nodes = {node: here[node] / cores for node, cores in _alive().items() if cores and node not in self.not_at}
        return _Actor(self.made, min(nodes, key=nodes.__getitem__))


def get_runtime_context() -> Any:
    return SimpleNamespace(get_node_id=lambda: _here.node)


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


def remote(**settings: Any) -> Any:
    return _Remote


def wait(refs: list[Future[Any]], num_returns: int, timeout: float) -> tuple[list[Future[Any]], list[Future[Any]]]:
    done = wait_for(refs, timeout).done
    return [ref for ref in refs if ref in done], [ref for ref in refs if ref not in done]


def get(ref: Future[Any]) -> Any:
    return ref.result()


def kill(actor: _Actor) -> None:
    actor.die("The actor is dead because it was killed by `ray.kill`.")


def nodes() -> list[dict[str, Any]]:
    alive = _alive()
    for actor in _actors:
        if actor.place not in alive:
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


def _alive() -> dict[str, int]:
    lines = Path(os.environ["FAKE_RAY_NODES"]).read_text().split("\n")
    return {line.split()[0]: int(line.split()[1]) for line in lines if line.strip()}
