"""Which crew a farm works with: processes of this machine, or on the nodes of a cluster (docs/guides/cluster.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from psearch.api.api_log import LOG
from psearch.arena.blocks import MIB
from psearch.arena.control_groups import available_memory
from psearch.batch.positions.crew import Crew
from psearch.batch.positions.hand import Hand, HandSettings
from psearch.batch.positions.hand_process import HandProcess
from psearch.batch.positions.jobs import Batch, Outcome
from psearch.processes.task_processes import TaskProcesses
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels

_BESIDE_MB = 200
"""MiB that a hand needs beside its table, and each of its processes if it has some"""


def make_crew(
    hands: int,
    settings: HandSettings,
    cores: Sequence[int] | None = None,
    nice: int = 0,
    cluster: str | None = None,
    on_note: Callable[[str], None] = LOG.warning,
) -> Crew:
    """So many hands; see `local_crew`. Or at most so many of a cluster, by its address; see `cluster_crew`.

    on_note: called with a line for people when a hand was lost. Raises PsearchError when hands cannot be had.
    """
    if cluster is not None:
        return cluster_crew(cluster, settings, hands, on_note)
    return local_crew(hands, settings, cores=cores, nice=nice, on_note=on_note)


def local_crew(
    hands: int,
    settings: HandSettings,
    *,
    cores: Sequence[int] | None = None,
    nice: int = 0,
    on_note: Callable[[str], None] = lambda note: None,
    hand: type[Hand] = Hand,
) -> Crew:
    """So many processes on this machine. One that dies or stalls is replaced.

    cores: their numbers, each hand is bound to as many of them as it has threads, None: to none; nice: added to the
    niceness of the hands; hand: what searches. Raises PsearchError when there is not enough memory, or no process can
    be had.
    """
    needed, available = hands * settings.hash_mb * MIB, available_memory()
    if needed > available:
        raise PsearchError(
            f"not enough memory: {hands} searches with a hash of {settings.hash_mb} MB each need {needed // MIB:,} MB, "
            f"{max(available, 0) // MIB:,} MB are available"
        )
    load_kernels()  # compiled once, not by each hand
    make = partial(HandProcess, settings, tuple(cores or ()), nice, hand)
    return Crew(TaskProcesses(make, hands, looks=True, what="analysis", on_note=on_note), settings.threads)


def cluster_crew(
    address: str, settings: HandSettings, most: int | None = None, on_note: Callable[[str], None] = lambda note: None
) -> Crew:
    """Hands on the nodes of a cluster, at most so many at the same time. address: see `psearch.remote.ray.address`.
    Raises PsearchError when the cluster cannot be had."""
    from psearch.remote.ray.link import Link
    from psearch.remote.ray.standing import Standing

    beside = _BESIDE_MB * (1 if settings.threads == 1 else settings.threads + 1)
    memory = (settings.hash_mb + beside) * MIB
    link = Link(address, partial(_begin, settings), settings.threads, memory, most)
    return Crew(link, settings.threads, Standing(on_note, time.monotonic()))


def _begin(settings: HandSettings) -> Callable[[Batch], list[Outcome]]:
    """In each hand of a cluster: what answers batches there."""
    hand = Hand(settings)
    return lambda batch: list(hand.work(batch))
