"""Ray as `ray_nodes` sees it. Imported in the driver only."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from typing import Any

from psearch.arena.control_groups import usable_cores
from psearch.processes.tasks.task_messages import one_line
from psearch.remote.ray import probe
from psearch.remote.ray.actor import BEATS, HandActor
from psearch.remote.ray.address import LOCAL
from psearch.remote.ray.driver_messages import HandsWanted
from psearch.remote.ray.ray_nodes import NODE_GONE, Actor, Gone, NodeFacts, Outcome, Ref, Threw, Value

# without types: many of its names are made when it is imported
ray: Any = import_module("ray")
errors: Any = import_module("ray.exceptions")
cloudpickle: Any = import_module("ray.cloudpickle")
strategies: Any = import_module("ray.util.scheduling_strategies")

_NODES_S = 1.0
"""between two looks at the list of nodes"""
_STORE_BYTES = 80 * 2**20
"""the least that Ray takes; positions and answers are small and go beside it"""


class RayCluster:
    """A connection to a cluster; one for a process. on_outcome: called by any thread with each ref that has an outcome.
    Raises what `ray.init` does when it cannot be had."""

    def __init__(self, wanted: HandsWanted, on_outcome: Callable[[Ref, Outcome], None]) -> None:
        cloudpickle.register_pickle_by_value(probe)
        _connect(wanted.address, wanted.folder)
        self._on_outcome = on_outcome
        self._hand_is = wanted.make, dict(wanted.sources)
        self._look = ray.remote(num_cpus=0, max_retries=0)(probe.look)
        self._hand = ray.remote(concurrency_groups={BEATS: 1})(HandActor)
        self._needs: dict[str, Any] = {"num_cpus": wanted.cores, "max_restarts": 0, "max_task_retries": 0}
        if wanted.memory:
            self._needs["memory"] = wanted.memory
        self._news: Sequence[NodeFacts] | None = None
        self.heard_at = time.monotonic()
        """when the head of the cluster last said which nodes there are"""
        self._is_open = True
        threading.Thread(target=self._watch, daemon=True).start()

    def nodes(self) -> Sequence[NodeFacts] | None:
        """See `Cluster`."""
        news, self._news = self._news, None
        return news

    def look(self, node: str) -> Ref:
        """See `Cluster`."""
        return self._awaited(self._look.options(scheduling_strategy=_on(node)).remote())

    def start(self, node: str) -> tuple[Actor, Ref]:
        """See `Cluster`."""
        actor = self._hand.options(scheduling_strategy=_on(node), **self._needs).remote(*self._hand_is)
        return actor, self._awaited(actor.begin.remote())

    def do(self, actor: Actor, work: bytes) -> Ref:
        """See `Cluster`."""
        return self._awaited(actor.do.remote(work))

    def beat(self, actor: Actor) -> Ref:
        """See `Cluster`."""
        return self._awaited(actor.beat.remote())

    def end(self, actor: Actor) -> None:
        """See `Cluster`."""
        with suppress(errors.RayError, ValueError):
            ray.kill(actor)

    def _awaited(self, ref: Any) -> Ref:
        """A ref whose outcome will be told, by a thread of Ray's."""
        ref.future().add_done_callback(lambda future: self._on_outcome(ref, _outcome(future)))
        answer: Ref = ref
        return answer

    def close(self) -> None:
        """Leave the cluster; what is left of the hands ends with that. A local cluster ends, too."""
        self._is_open = False
        ray.shutdown()

    def _watch(self) -> None:
        while self._is_open:
            with suppress(Exception):  # whoever cares looks at `heard_at`
                self._news = [_facts(node) for node in ray.nodes() if node["Alive"]]
                self.heard_at = time.monotonic()
            time.sleep(_NODES_S)


def _outcome(future: Future[Any]) -> Outcome:
    """Return the outcome of a call that is done."""
    try:
        return Value(future.result())
    except errors.RayTaskError as error:
        return Threw(error.cause if isinstance(error.cause, BaseException) else error)
    except errors.RayError as error:
        return Gone(_reason(error))
    except Exception as error:  # of the connection
        return Gone(one_line(error))


def _connect(address: str, folder: str) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL, "configure_logging": False}
    if address != LOCAL:
        ray.init(address=address, **quiet)
        return
    ray.init(
        address=LOCAL,
        num_cpus=usable_cores(),
        object_store_memory=_STORE_BYTES,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        _temp_dir=os.path.join(folder, "ray"),  # Ray makes it, and opens it to all users
        **quiet,
    )


def _on(node: str) -> Any:
    return strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def _facts(node: dict[str, Any]) -> NodeFacts:
    resources = node["Resources"]
    host, address = node["NodeManagerHostname"], node["NodeManagerAddress"]
    return NodeFacts(
        node=node["NodeID"],
        name=address if not host or host == address else f"{host} ({address})",
        cores=int(resources.get("CPU", 0)),
        memory=int(resources.get("memory", 0)),
    )


def _reason(error: BaseException) -> str:
    """Ray's paragraphs in one line."""
    text = str(error)
    if isinstance(error, errors.OutOfMemoryError) or "running low on memory" in text:
        return "Ray ended it, because the memory of its node was nearly used up"
    if "Unschedulable" in type(error).__name__ or "node has died" in text or "node was terminated" in text:
        return NODE_GONE
    if isinstance(error, errors.ActorUnavailableError):
        return "its node does not answer"
    if isinstance(error, errors.ActorDiedError | errors.WorkerCrashedError):
        return "its process ended"
    return one_line(error)
