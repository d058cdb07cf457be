"""What travels between the machine that was asked and each of the others: plain data, pickled."""

from __future__ import annotations

from dataclasses import dataclass

import chess

from psearch.options import SearchOptions
from psearch.remote.one_position.machine_messages import MachineReport, Parcel
from psearch.results import Limits


@dataclass(frozen=True)
class MachineSettings:
    """What all machines have alike."""

    hash_mb: int
    """of each table, MiB"""
    most_threads: int | None
    """that a machine uses; None: as many as it has cores to give"""


# -- work, one after the other ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forget:
    """As for another game. seed: of the history, other luck for each machine."""

    seed: int


@dataclass(frozen=True)
class Search:
    """Search until a limit is reached, or an order ends it. Who asks keeps the clock."""

    number: int
    machine: int
    """the number that reports have"""
    board: chess.Board
    limits: Limits
    """nodes: this machine's share"""
    options: SearchOptions
    only: tuple[chess.Move, ...] | None
    multipv: int


@dataclass(frozen=True)
class Finished:
    """A search is over."""

    news: News
    is_complete: bool
    """it has come to its end: not because it was stopped, nor for its share of the nodes"""


# -- beside it -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Orders:
    """What a machine is told every period."""

    search: int
    parcels: tuple[Parcel, ...] = ()
    room: int = 1
    """entries that its own next one may have"""
    stop: bool = False


@dataclass(frozen=True)
class News:
    """What it answers: all that is new since the last time."""

    search: int
    nodes: int = 0
    """since the search began"""
    reports: tuple[MachineReport, ...] = ()
    parcel: Parcel | None = None
