"""Virtual searches that stand still while they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import chess
import pytest
from positions import KIWIPETE

from psearch.options import SearchOptions
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator
from psearch_core.toolchain import groups


@pytest.fixture(scope="session", autouse=True)
def loaded() -> None:
    load_kernels()
    groups.load(VIRTUAL)


@pytest.fixture
def begun() -> Iterator[Callable[..., Simulator]]:
    """A search in virtual time, begun, by so many workers; `advance_to` drives it."""
    made = []

    def begin(workers: int = 8, fen: str = KIWIPETE, policy: str = "calibrated", events: int = 1 << 14) -> Simulator:
        simulator = Simulator(workers, 1, Costs(), events)
        made.append(simulator)
        simulator.forget()
        simulator.recorder.begin()
        simulator.begin(chess.Board(fen, chess960=False), SearchOptions(policy=policy), 10.0)
        return simulator

    yield begin
    for simulator in made:
        simulator.close()
