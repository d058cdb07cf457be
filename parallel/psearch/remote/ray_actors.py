"""Actors on the nodes of a Ray cluster: starts them, gives them tasks, and detects lost ones.

Ray decides where they run. It notices at once that a process has ended, and after a minute that a node is cut off or
stopped, but never that a process is stopped. So each actor answers a heartbeat every few seconds, even during a task.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from psearch.processes.patience import BEAT_S
from psearch.processes.tasks import Answered, Give, ProcessJoined, ProcessLost, Raised, one_line
from psearch.remote.task_actor import BEATS, Sources, TaskActor, identity
from psearch.results import PsearchError

SILENCE_S = 15.0
"""Seconds without an answer to a heartbeat, sent every `BEAT_S`, after which an actor has stalled."""
_WAIT_S = 0.02
"""Seconds to wait for answers of actors before messages of the program are read."""
_NODES_S = 1.0
"""Seconds between two checks of the nodes, at which actors are started."""
_MOST_FAILURES = 8
"""Consecutive actors of a node that end before they are ready, after which the node gets no more work."""
_NO_NODES_S = 10.0
"""Seconds that a cluster may be without a usable node, since one may be starting."""
_LONGEST_STEP_S = 1.0
"""Most seconds between two steps that count: during a longer gap the driver was stopped, or waited for Ray."""
_NODE_GONE = "its node is gone"
_NO_MEMORY = "Ray ended it, because the memory of its node was nearly used up"
_REASONS = {
    "OutOfMemoryError": _NO_MEMORY,
    "running low on memory": _NO_MEMORY,
    "node has died": _NODE_GONE,
    "node was terminated": _NODE_GONE,
    "ActorUnavailableError": "its node does not answer",
    "ActorDiedError": "its process ended",
    "WorkerCrashedError": "its process ended",
}
"""Reason for the loss of an actor, by a text in the name or the message of Ray's exception."""


@dataclass(frozen=True)
class Wanted:
    """The first message to the driver: address of the cluster, and description of its actors.

    make: pickled function, called once in each actor, which returns the function that does the tasks; sources: modules
    that are sent along; cores, memory (bytes): needed by each actor; most: most actors at the same time, None for as
    many as fit; folder: for the files of the driver and of a cluster that it starts, removed at the end.
    """

    address: str
    make: bytes
    sources: Sources
    cores: int = 1
    memory: int = 0
    most: int | None = None
    folder: str = ""


@dataclass(frozen=True)
class Dismiss:
    """A message to the driver: end a process, and start another in its place if there is room."""

    process: int
    reason: str


@dataclass(eq=False)
class _Actor:
    number: int
    handle: Any
    node: str = ""
    """Ray's identifier of its node; empty until it has answered."""
    is_ready: bool = False
    asked_at: float = 0.0
    """Time of the last heartbeat request."""
    is_asked: bool = False
    """Whether the last heartbeat request is unanswered."""
    tasks: list[Give] = field(default_factory=list)
    """Unfinished tasks; the actor works on the first."""
    task_began_at: float = 0.0


class RayActors:
    """Actors on the nodes of a cluster. The owner calls `step` in a loop.

    ray: the connected module; wanted: describes the actors; tell: takes messages for the program, strings for people.
    """

    def __init__(self, ray: Any, wanted: Wanted, tell: Callable[[Any], None]) -> None:
        self._ray = ray
        self._wanted = wanted
        self._tell = tell
        needs = {"num_cpus": wanted.cores, "memory": wanted.memory or None, "max_restarts": 0, "max_task_retries": 0}
        self._class = ray.remote(concurrency_groups={BEATS: 1}, scheduling_strategy="SPREAD", **needs)(TaskActor)
        self._actors: dict[int, _Actor] = {}
        self._started = 0
        self._awaited: dict[Any, tuple[_Actor, Callable[[_Actor, Any], None]]] = {}
        """Actor and handler of each expected answer, by Ray's reference."""
        self._nodes: set[str] = set()
        """Usable nodes: alive, large enough and not refused."""
        self._names: dict[str, str] = {"": "?"}
        """Names of all nodes ever seen, by Ray's identifier."""
        self._refused: dict[str, str] = {}
        """Reasons why nodes get no more work, by identifier."""
        self._failures: Counter[str] = Counter()
        """Consecutive actors of each node that ended before they were ready."""
        self._now: float | None = None
        self._time = 0.0
        """Seconds during which the driver ran."""
        self._nodes_at = 0.0
        self._could_work_at = 0.0
        """Time at which there was last a usable node."""

    def take(self, message: Give | Dismiss) -> None:
        """Handle a message of the program. Ignore one for a lost actor, whose loss the program learns from `tell`."""
        actor = self._actors.get(message.process)
        if actor is None:
            return
        if isinstance(message, Dismiss):
            self._lose(actor, message.reason)
            return
        if not actor.tasks:
            actor.task_began_at = self._time
        actor.tasks.append(message)
        self._awaited[actor.handle.do.remote(message.work)] = actor, partial(self._done, message)

    def step(self, now: float) -> None:
        """Receive answers of actors, check actors and nodes, and start actors; wait briefly for answers.

        now: seconds on a monotonic clock. Raises PsearchError without a usable node, and Ray's connection errors.
        """
        self._time += 0.0 if self._now is None else min(now - self._now, _LONGEST_STEP_S)
        self._now = now
        self._hear()
        for actor in list(self._actors.values()):
            self._look_after(actor)
        if self._time >= self._nodes_at:
            self._nodes_at = self._time + _NODES_S
            room = self._look_at_nodes()
            most = room if self._wanted.most is None else min(room, self._wanted.most)
            for _ in range(most - len(self._actors)):
                self._start()

    def _hear(self) -> None:
        refs = list(self._awaited)
        if not refs:
            time.sleep(_WAIT_S)
            return
        for ref in self._ray.wait(refs, num_returns=len(refs), timeout=_WAIT_S)[0]:
            if ref not in self._awaited:
                continue  # the actor was lost meanwhile
            actor, handle = self._awaited.pop(ref)
            try:
                answer = self._ray.get(ref)
            except self._ray.exceptions.RayError as error:
                text = f"{type(error).__name__} {error}"
                self._lose(actor, next((why for words, why in _REASONS.items() if words in text), one_line(error)))
            else:
                handle(actor, answer)

    def _look_at_nodes(self) -> int:
        """Return the number of actors that fit on all nodes. Raises PsearchError if there is no node for too long."""
        wanted, before, room = self._wanted, self._nodes, 0
        self._nodes = set()
        for facts in self._ray.nodes():
            node, host, address = facts["NodeID"], facts["NodeManagerHostname"], facts["NodeManagerAddress"]
            self._names[node] = address if host in ("", address) else f"{host} ({address})"
            cores, memory = (int(facts["Resources"].get(what, 0)) for what in ("CPU", "memory"))
            here = min(cores // wanted.cores, memory // wanted.memory if wanted.memory else cores)
            if facts["Alive"] and here and node not in self._refused:
                self._nodes.add(node)
                room += here
        for node in before - self._nodes - self._refused.keys():
            self._tell(f"node {self._names[node]} is gone")
            self._lose_all(node, _NODE_GONE)
        if room:
            self._could_work_at = self._time
        elif self._time - self._could_work_at > _NO_NODES_S:
            reasons = [f"{self._names[node]}: {reason}" for node, reason in self._refused.items()][-3:]
            needs = f"a process needs {wanted.cores} cores and {wanted.memory >> 20:,} MiB"
            raise PsearchError(f"no node of the cluster can work ({'; '.join(reasons) or needs})")
        return room

    def _refuse(self, node: str, reason: str) -> None:
        """Give a node no more work."""
        self._tell(f"node {self._names[node]} cannot be used: {reason}")
        self._refused[node] = reason
        self._lose_all(node, reason)

    def _lose_all(self, node: str, reason: str) -> None:
        for actor in [actor for actor in self._actors.values() if actor.node == node]:
            self._lose(actor, reason)

    def _start(self) -> None:
        others = {"ray.io/node-id": f"!in({','.join(self._refused)})"} if self._refused else {}
        handle = self._class.options(label_selector=others).remote()
        actor = self._actors[self._started] = _Actor(self._started, handle)
        self._started += 1
        self._awaited[handle.node.remote()] = actor, self._placed

    def _placed(self, actor: _Actor, node: str) -> None:
        actor.node = node
        if node in self._refused:
            self._end(actor)  # the node was refused after Ray had chosen it
            return
        begun = actor.handle.begin.remote(identity(), self._wanted.make, self._wanted.sources)
        self._awaited[begun] = actor, self._begun

    def _begun(self, actor: _Actor, problem: str | None) -> None:
        if problem is not None:
            self._refuse(actor.node, problem)
            return
        self._failures[actor.node] = 0
        actor.is_ready = True
        actor.asked_at = self._time
        self._tell(ProcessJoined(actor.number, actor.node, self._names[actor.node]))

    def _done(self, task: Give, actor: _Actor, outcome: tuple[bool, bytes]) -> None:
        is_done, answer = outcome
        actor.tasks.remove(task)
        actor.task_began_at = self._time
        self._tell((Answered if is_done else Raised)(actor.number, task.number, answer))

    def _look_after(self, actor: _Actor) -> None:
        limit_s = actor.tasks[0].limit_s if actor.tasks else None
        silence_s = self._time - actor.asked_at
        if limit_s is not None and self._time - actor.task_began_at > limit_s:
            self._lose(actor, f"it did not finish within {limit_s:.0f} s")
        elif actor.is_asked and silence_s > SILENCE_S:
            self._lose(actor, f"it did not answer for {SILENCE_S:.0f} s")
        elif actor.is_ready and not actor.is_asked and silence_s >= BEAT_S:
            actor.is_asked, actor.asked_at = True, self._time
            self._awaited[actor.handle.beat.remote()] = actor, lambda actor, _: setattr(actor, "is_asked", False)

    def _lose(self, actor: _Actor, reason: str) -> None:
        node = actor.node
        self._end(actor)
        if actor.is_ready:
            self._tell(ProcessLost(actor.number, reason))
            if reason != _NODE_GONE:
                self._tell(f"a process on node {self._names[node]} was lost ({reason}); its work is done again")
        elif node not in self._refused:
            self._failures[node] += 1
            if node and self._failures[node] == _MOST_FAILURES:
                self._refuse(node, f"processes end there before they are ready: {reason}")

    def _end(self, actor: _Actor) -> None:
        """Forget an actor with its expected answers, and kill it, even if it is lost or does not answer."""
        del self._actors[actor.number]
        self._awaited = {ref: awaited for ref, awaited in self._awaited.items() if awaited[0] is not actor}
        with suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(actor.handle)
