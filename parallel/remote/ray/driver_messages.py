"""What a program and its driver tell each other beside `psearch.processes.tasks.task_messages`: plain data, pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# -- to the driver -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HandsWanted:
    """The first message: where to, and what a hand is."""

    address: str
    """as `psearch.remote.ray.address` has it"""
    make: bytes
    """pickled: called once in each hand; what it returns is called with each piece of work there"""
    sources: Mapping[str, str] = field(default_factory=dict)
    """modules that go there with it (`psearch.remote.ray.sources`)"""
    cores: int = 1
    """of each hand"""
    memory: int = 0
    """bytes that each hand needs, the table's included"""
    most: int | None = None
    """hands at the same time; None: as many as there is room for"""
    silence_s: float = 15.0
    """a hand of which nothing was heard for so long has stalled"""
    identity: dict[str, str] = field(default_factory=dict)
    """what a node must be (`psearch.remote.ray.identity`); empty: anything"""
    folder: str = ""
    """for the files of a cluster that is begun for this program; removed in the end"""


@dataclass(frozen=True)
class Dismiss:
    """End a hand; another begins in its place if there is reason for it."""

    process: int
    reason: str


@dataclass(frozen=True)
class Close:
    """The last message: end all hands, and go."""


# -- from the driver -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Connected:
    """The cluster is there; what it consists of follows."""

    address: str


@dataclass(frozen=True)
class Failed:
    """The cluster cannot be had, or is gone. The last message."""

    reason: str


@dataclass(frozen=True)
class NodeJoined:
    """A node may work."""

    node: str
    name: str
    cores: int
    """that Ray may give away there"""
    hands: int
    """that there is room for"""


@dataclass(frozen=True)
class NodeRefused:
    """A node may not work, or no more; the reason is one line."""

    node: str
    name: str
    reason: str


@dataclass(frozen=True)
class NodeLost:
    """A node that could work is gone."""

    node: str
    name: str
