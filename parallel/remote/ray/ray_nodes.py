"""Nodes and hands: who may work, where hands begin, what is lost, who has stalled. Plain logic; `Cluster` does it.

Ray notices a process that has ended at once, and a node that is cut off or stopped after about a minute; a process that
is stopped it never notices. So each hand is asked every few seconds whether it is there, beside its work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from psearch.processes.tasks.task_messages import Answered, Give, ProcessJoined, ProcessLost, Raised, one_line
from psearch.remote.ray.driver_messages import Dismiss, HandsWanted, NodeJoined, NodeLost, NodeRefused
from psearch.remote.ray.identity import difference

Ref = Hashable
"""Stands for something that a node will answer."""
Actor = Any
"""Stands for a hand's process."""

NODE_GONE = "its node is gone"
"""why a hand was lost, where the node is told of anyway"""
BEAT_S = 2.0
"""between two questions to a hand whether it is there"""
_BEGIN_S = 900.0
"""A hand that is not warm by then is given up. Where the cache of kernels is empty they are compiled first."""
_LOOK_S = 60.0
"""A node that does not say by then who it is does not work."""
_PENDING_S = 20.0
"""Hands that have not begun by then are not counted on: their node may be busy, or gone without Ray knowing."""
_MOST_FAILURES = 4
"""Hands of a node in a row that ended before they were warm: the node does not work."""
_LONGEST_STEP_S = 1.0
"""More than this between two ticks does not count: the program was stopped, or the machine slept."""


@dataclass(frozen=True)
class NodeFacts:
    """What the cluster says of a node that lives."""

    node: str
    """unlike any other of this cluster, ever"""
    name: str
    cores: int
    """to be given away"""
    memory: int
    """bytes to be given away"""


@dataclass(frozen=True)
class Value:
    """A question was answered."""

    value: Any


@dataclass(frozen=True)
class Threw:
    """What was asked raised this."""

    error: BaseException


@dataclass(frozen=True)
class Gone:
    """Who was asked is not there any more; the reason is one line."""

    reason: str


Outcome = Value | Threw | Gone


class Cluster(Protocol):
    """What `RayNodes` needs to have done. Nothing here waits."""

    def nodes(self) -> Sequence[NodeFacts] | None:
        """Return all that live; None: no news since the last call."""

    def look(self, node: str) -> Ref:
        """Ask a node who it is: a Value with a `psearch.remote.ray.identity`."""

    def start(self, node: str) -> tuple[Actor, Ref]:
        """Return a new hand there; the Value says that it is warm (None), or why it will not be (one line)."""

    def do(self, actor: Actor, work: bytes) -> Ref:
        """Have a hand do a piece of work behind what it was given before: a Value with what
        `psearch.remote.ray.actor.Hand.do` returns."""

    def beat(self, actor: Actor) -> Ref:
        """Ask a hand, beside its work, whether it is there."""

    def end(self, actor: Actor) -> None:
        """End a hand, also one that is lost already or does not answer."""


@dataclass
class _NodeWork:
    number: int
    ref: Ref
    limit_s: float | None


@dataclass
class _Hand:
    number: int
    node: _Node
    actor: Actor
    began_at: float
    is_warm: bool = False
    heard_at: float = 0.0
    """when it last answered anything"""
    asked_at: float = 0.0
    beat: Ref | None = None
    """a question it has not answered yet"""
    work: deque[_NodeWork] = field(default_factory=deque)
    """given and not done, the first one being worked on"""
    work_began_at: float = 0.0
    refs: set[Ref] = field(default_factory=set)


@dataclass
class _Node:
    facts: NodeFacts
    asked_at: float
    look: Ref | None = None
    works: bool = False
    is_refused: bool = False
    room: int = 0
    """hands it has cores and memory for"""
    hands: set[int] = field(default_factory=set)
    failures: int = 0
    rests_until: float = 0.0


class RayNodes:
    """Hands on the nodes of a cluster.

    wanted: what a hand is; tell: called with each message for the program. `tick` is to be called often, `resolve` for
    each of `refs` that has an outcome, once. Seconds (`now`) may be of any clock that does not go back.
    """

    def __init__(self, cluster: Cluster, wanted: HandsWanted, tell: Callable[[Any], None]) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._tell = tell
        self._nodes: dict[str, _Node] = {}
        self._hands: dict[int, _Hand] = {}
        self._next_hand = 0
        self._awaited: dict[Ref, Callable[[Outcome], None]] = {}
        self._time = 0.0
        """seconds in which this program ran"""
        self._last_now: float | None = None

    @property
    def refs(self) -> list[Ref]:
        """What is asked and not answered."""
        return list(self._awaited)

    def resolve(self, ref: Ref, outcome: Outcome) -> None:
        """Resolve an outcome that is there; of what is no longer of interest nothing follows."""
        handle = self._awaited.pop(ref, None)
        if handle is not None:
            handle(outcome)

    def tick(self, now: float) -> None:
        """Look at nodes and hands, and do what is due."""
        if self._last_now is not None:
            self._time += min(now - self._last_now, _LONGEST_STEP_S)
        self._last_now = now
        news = self._cluster.nodes()
        if news is not None:
            self._follow({facts.node: facts for facts in news})
        for node in list(self._nodes.values()):
            if not node.works and not node.is_refused and self._time - node.asked_at > _LOOK_S:
                self._refuse(node, f"it did not say within {_LOOK_S:g} s which psearch it has")
        for hand in list(self._hands.values()):
            self._look_after(hand)
        self._begin_hands()

    def give(self, message: Give) -> None:
        """Work for a hand; for one that was lost, which the program has been told or will be, nothing is done."""
        hand = self._hands.get(message.process)
        if hand is None:
            return
        ref = self._cluster.do(hand.actor, message.work)
        if not hand.work:
            hand.work_began_at = self._time
        work = _NodeWork(message.number, ref, message.limit_s)
        hand.work.append(work)
        self._await(hand, ref, partial(self._done, hand, work))

    def dismiss(self, message: Dismiss) -> None:
        """End a hand."""
        hand = self._hands.get(message.process)
        if hand is not None:
            self._lose(hand, message.reason)

    def close(self) -> None:
        """End all hands."""
        for hand in list(self._hands.values()):
            self._forget(hand)
        self._nodes.clear()
        self._awaited.clear()

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _follow(self, alive: Mapping[str, NodeFacts]) -> None:
        for key in [key for key in self._nodes if key not in alive]:
            node = self._nodes.pop(key)
            self._awaited.pop(node.look, None)
            for number in list(node.hands):
                self._lose(self._hands[number], NODE_GONE)
            if node.works:
                self._tell(NodeLost(key, node.facts.name))
        for key, facts in alive.items():
            if key not in self._nodes:
                node = self._nodes[key] = _Node(facts, self._time)
                if facts.cores == 0:  # a head that only leads: nobody is told
                    node.is_refused = True
                else:
                    node.look = self._cluster.look(key)
                    self._awaited[node.look] = partial(self._looked, node)

    def _looked(self, node: _Node, outcome: Outcome) -> None:
        if node.is_refused:
            return
        match outcome:
            case Gone(reason):
                self._refuse(node, reason)
            case Threw(error):
                self._refuse(node, f"it cannot be asked who it is: {one_line(error)}")
            case Value(theirs):
                other = difference(self._wanted.identity, theirs) if self._wanted.identity else None
                if other is not None:
                    self._refuse(node, other)
                else:
                    self._admit(node)

    def _admit(self, node: _Node) -> None:
        wanted, facts = self._wanted, node.facts
        node.room = facts.cores // wanted.cores
        if node.room == 0:
            self._refuse(node, f"it has {facts.cores} cores to give, a hand needs {wanted.cores}")
            return
        if wanted.memory:
            node.room = min(node.room, facts.memory // wanted.memory)
        if node.room == 0:
            mebibytes = facts.memory // 2**20, wanted.memory // 2**20
            self._refuse(node, f"it has {mebibytes[0]} MiB of memory to give, a hand needs {mebibytes[1]}")
            return
        node.works = True
        self._tell(NodeJoined(facts.node, facts.name, facts.cores, node.room))

    def _refuse(self, node: _Node, reason: str) -> None:
        node.is_refused, node.works = True, False
        for number in list(node.hands):
            self._lose(self._hands[number], reason)
        self._tell(NodeRefused(node.facts.node, node.facts.name, reason))

    # -- hands -----------------------------------------------------------------------------------------------------

    def _begin_hands(self) -> None:
        """Where there is room, on the node with the fewest first, so that a few hands are spread out."""
        counted = sum(hand.is_warm or self._time - hand.began_at < _PENDING_S for hand in self._hands.values())
        while self._wanted.most is None or counted < self._wanted.most:
            free = [
                node
                for node in self._nodes.values()
                if node.works and len(node.hands) < node.room and node.rests_until <= self._time
            ]
            if not free:
                return
            self._begin(min(free, key=lambda node: len(node.hands)))
            counted += 1

    def _begin(self, node: _Node) -> None:
        actor, ref = self._cluster.start(node.facts.node)
        hand = _Hand(self._next_hand, node, actor, self._time)
        self._next_hand += 1
        self._hands[hand.number] = hand
        node.hands.add(hand.number)
        self._await(hand, ref, partial(self._began, hand))

    def _began(self, hand: _Hand, outcome: Outcome) -> None:
        node = hand.node
        match outcome:
            case Value(str(problem)):
                self._forget(hand)
                if not node.is_refused:
                    self._refuse(node, problem)
            case Value():
                warm = sum(other.is_warm for other in self._hands.values())
                if self._wanted.most is not None and warm >= self._wanted.most:
                    self._forget(hand)  # another began in its place meanwhile
                    return
                node.failures = 0
                hand.is_warm = True
                hand.heard_at = hand.asked_at = self._time
                self._tell(ProcessJoined(hand.number, node.facts.node, node.facts.name))
            case Threw(error):
                self._lose(hand, one_line(error))
            case Gone(reason):
                self._lose(hand, reason)

    def _look_after(self, hand: _Hand) -> None:
        if not hand.is_warm:
            if self._time - hand.began_at > _BEGIN_S:
                self._lose(hand, f"it did not begin within {_BEGIN_S:g} s")
            return
        silence = self._time - hand.heard_at
        if silence > self._wanted.silence_s:
            self._lose(hand, f"it did not answer for {silence:.0f} s")
            return
        if hand.work and hand.work[0].limit_s is not None and self._time - hand.work_began_at > hand.work[0].limit_s:
            self._lose(hand, f"it did not finish within {hand.work[0].limit_s:.0f} s")
            return
        if hand.beat is None and self._time - hand.asked_at >= BEAT_S:
            hand.asked_at = self._time
            hand.beat = self._cluster.beat(hand.actor)
            self._await(hand, hand.beat, partial(self._beaten, hand))

    def _beaten(self, hand: _Hand, outcome: Outcome) -> None:
        hand.beat = None
        if isinstance(outcome, Gone):
            self._lose(hand, outcome.reason)
        else:
            hand.heard_at = self._time

    def _done(self, hand: _Hand, work: _NodeWork, outcome: Outcome) -> None:
        if not isinstance(outcome, Value):
            self._lose(hand, outcome.reason if isinstance(outcome, Gone) else one_line(outcome.error))
            return
        hand.heard_at = hand.work_began_at = self._time
        hand.work.remove(work)
        is_done, answer = outcome.value
        self._tell((Answered if is_done else Raised)(hand.number, work.number, answer))

    def _lose(self, hand: _Hand, reason: str) -> None:
        node = hand.node
        self._forget(hand)
        if hand.is_warm:
            self._tell(ProcessLost(hand.number, reason))
            return
        node.failures += 1
        node.rests_until = self._time + 2.0**node.failures
        if node.failures >= _MOST_FAILURES and not node.is_refused and node.facts.node in self._nodes:
            self._refuse(node, f"hands end there before they are ready: {reason}")

    def _forget(self, hand: _Hand) -> None:
        """Nothing of it is awaited any more, and it ends."""
        del self._hands[hand.number]
        hand.node.hands.discard(hand.number)
        for ref in hand.refs:
            self._awaited.pop(ref, None)
        self._cluster.end(hand.actor)

    def _await(self, hand: _Hand, ref: Ref, handle: Callable[[Outcome], None]) -> None:
        def resolved(outcome: Outcome) -> None:
            hand.refs.discard(ref)
            handle(outcome)

        hand.refs.add(ref)
        self._awaited[ref] = resolved
