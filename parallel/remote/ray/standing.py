"""How the cluster stands, as far as the program has been told: nodes and their hands, and whether anybody can work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from psearch.processes.tasks.task_messages import ProcessJoined, ProcessLost
from psearch.remote.ray.driver_messages import NodeJoined, NodeLost, NodeRefused
from psearch.remote.ray.ray_nodes import NODE_GONE
from psearch.results import PsearchError

_NOBODY_S = 10.0
"""How long a cluster may be without a node that can work; one may be on its way."""
_BUSY_S = 30.0
"""When nodes can work and no hand has begun for so long, that is said, once."""


_MARK_S = 1.0
_MARKS = 20
"""A rate is that of the last so many seconds."""
_MOST_NAMED = 3
_MOST_LISTED = 16


@dataclass
class Node:
    """A node that can work."""

    name: str
    cores: int
    room: int
    """hands that it has cores and memory for"""
    hands: set[int] = field(default_factory=set)
    """those that are warm"""
    done: int = 0
    """of whatever the program counts"""
    marks: deque[tuple[float, int]] = field(default_factory=deque)
    """when how much was done, now and then"""

    def count(self, number: int, now: float) -> None:
        """Count so many more that are done."""
        if not self.marks or now - self.marks[-1][0] >= _MARK_S:
            self.marks.append((now, self.done))
            if len(self.marks) > _MARKS:
                self.marks.popleft()
        self.done += number

    def rate(self, now: float) -> float:
        """Return how many are done in a second, lately."""
        if not self.marks or now <= self.marks[0][0]:
            return 0.0
        return (self.done - self.marks[0][1]) / (now - self.marks[0][0])


class Standing:
    """Nodes and hands by what `follow` was told; on_note: called with a line for people when something changes that
    they should know. Times are seconds of any clock."""

    def __init__(self, on_note: Callable[[str], None], now: float) -> None:
        self.nodes: dict[str, Node] = {}
        self.home: dict[int, Node] = {}
        """where each hand is"""
        self._on_note = on_note
        self._refusals: dict[str, str] = {}
        self._done: dict[str, int] = {}
        """by name of the node"""
        self._changed_at = now
        """when nodes or hands last came or went"""
        self._said_busy = False

    @property
    def hands(self) -> int:
        """Those that are warm."""
        return sum(len(node.hands) for node in self.nodes.values())

    def follow(self, message: Any, now: float) -> None:
        """Take in a message from the driver."""
        match message:
            case NodeJoined(node, name, cores, room):
                self.nodes[node] = Node(name, cores, room)
            case NodeRefused(node, name, reason):
                if self._refusals.get(name) != reason:  # a node that is begun again and again is named once
                    self._on_note(f"node {name} does not work: {reason}")
                self._refusals[name] = reason
                self.nodes.pop(node, None)
            case NodeLost(node, name):
                self.nodes.pop(node, None)
                self._on_note(f"node {name} is gone")
            case ProcessJoined(hand, node, _):
                self.home[hand] = self.nodes[node]
                self.home[hand].hands.add(hand)
            case ProcessLost(hand, reason):
                home = self.home.pop(hand)
                home.hands.discard(hand)
                if reason != NODE_GONE:
                    self._on_note(f"a process on node {home.name} was lost ({reason}); its work is done again")
            case _:
                return
        self._changed_at = now

    def line(self, now: float) -> str:
        """Return nodes, hands, and what the quickest nodes do, for people: `2 nodes, 3 processes: a 12.1/s, b
        6.0/s`."""
        nodes = sorted(self.nodes.values(), key=lambda node: node.rate(now), reverse=True)
        rates = [f"{node.name} {_figure(node.rate(now))}/s" for node in nodes[:_MOST_NAMED]]
        if len(nodes) > _MOST_NAMED:
            rates.append(f"others {_figure(sum(node.rate(now) for node in nodes[_MOST_NAMED:]))}/s")
        counts = f"{_count(len(nodes), 'node')}, {_count(self.hands, 'process', 'es')}"
        return f"{counts}: {', '.join(rates)}" if rates else counts

    def work_done(self) -> str:
        """Return what each machine has done, those that are gone included: `a 120, b 61`; the busiest first."""
        done = sorted(self._done.items(), key=lambda item: -item[1])
        shares = [f"{name} {number:,}" for name, number in done[:_MOST_LISTED]]
        if len(done) > _MOST_LISTED:
            shares.append(f"{len(done) - _MOST_LISTED} others {sum(number for _, number in done[_MOST_LISTED:]):,}")
        return ", ".join(shares)

    def count(self, hand: int, number: int, now: float) -> None:
        """Count what a hand has done more."""
        node = self.home[hand]
        node.count(number, now)
        self._done[node.name] = self._done.get(node.name, 0) + number

    def check(self, now: float) -> None:
        """Raise PsearchError when nobody can work and nobody seems to be coming."""
        if self.hands:
            self._changed_at = now
            return
        waited = now - self._changed_at
        if not self.nodes and waited > _NOBODY_S:
            raise self._nobody()
        if self.nodes and waited > _BUSY_S and not self._said_busy:
            self._said_busy = True
            self._on_note("waiting for processes to begin: other programs may have the cores, or kernels are compiled")

    def _nobody(self) -> PsearchError:
        """Return what is raised when nobody can work, with the reasons."""
        reasons = [f"{name}: {reason}" for name, reason in self._refusals.items()]
        what = reasons[0] if len(reasons) == 1 else f"{len(reasons)} cannot work, {reasons[0]}" if reasons else ""
        return PsearchError("no node of the cluster can work" + f" ({what})" * bool(what))


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number:,} {what}{plural * (number != 1)}"


def _figure(rate: float) -> str:
    return f"{rate:.1f}" if rate < 100 else f"{rate:,.0f}"
