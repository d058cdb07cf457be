"""Hands that are processes of this machine. One that dies or stalls is replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from psearch.arena.blocks import MIB
from psearch.arena.control_groups import available_memory
from psearch.batch.positions.crew import Crew, Event
from psearch.batch.positions.hand import Hand, HandSettings
from psearch.batch.positions.hand_process import HandProcess
from psearch.processes.task_processes import TaskProcesses
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels


class LocalCrew(Crew):
    """So many hand processes on this machine.

    settings: of each hand; cores: their numbers, each hand is bound to as many of them as it has threads, None: to
    none; nice: added to the niceness of the hands; on_note: called with a line for people when a hand was lost; hand:
    what searches. Raises PsearchError when there is not enough memory, or no process can be had.
    """

    processes: TaskProcesses

    def __init__(
        self,
        hands: int,
        settings: HandSettings,
        *,
        cores: Sequence[int] | None = None,
        nice: int = 0,
        on_note: Callable[[str], None] = lambda note: None,
        hand: type[Hand] = Hand,
    ) -> None:
        _check_memory(hands, settings.hash_mb)
        load_kernels()  # compiled once, not by each hand
        make = partial(HandProcess, settings, tuple(cores or ()), nice, hand)
        super().__init__(TaskProcesses(make, hands, keep=True, what="analysis", on_note=on_note), settings.threads)

    def assist(self, hand: int, threads: int) -> None:
        """See `Crew`."""
        self.processes.ask(hand, 0, threads)

    def wait(self, timeout_s: float, awaited: int | None = None) -> Sequence[Event]:
        """See `Crew`."""
        return self.events(self.processes.messages(timeout_s, awaited))


def _check_memory(hands: int, hash_mb: int) -> None:
    needed, available = hands * hash_mb * MIB, available_memory()
    if needed > available:
        raise PsearchError(
            f"not enough memory: {hands} searches with a hash of {hash_mb} MB each need {needed // MIB:,} MB, "
            f"{max(available, 0) // MIB:,} MB are available"
        )
