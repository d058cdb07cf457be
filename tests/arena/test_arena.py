"""Memory of a searcher: what it forgets, what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import pytest

from psearch.arena import arena as arena_module
from psearch.arena import blocks as memory
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.defaults import MAX_THREADS
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits, PsearchError

MIDDLE_GAME = chess.Board("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3")


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(1, 1)
    yield made
    made.close()


def nodes_of_a_search(arena: Arena) -> int:
    write_search(arena, MIDDLE_GAME, Limits(depth=6), SearchOptions(policy="serial"))
    work_alone(arena)
    return int(arena.worker[0]["nodes"])


def test_forgetting_is_as_new(arena: Arena) -> None:
    as_new = nodes_of_a_search(arena)
    assert arena.tt.any() and arena.worker["killers"].any()
    assert nodes_of_a_search(arena) != as_new
    arena.forget()
    assert not arena.tt.any() and not arena.worker["killers"].any()
    assert nodes_of_a_search(arena) == as_new
    arena.clear_table()
    assert nodes_of_a_search(arena) != as_new, "the histories are still there"


@pytest.mark.parametrize("workers", [0, -1, MAX_THREADS + 1])
def test_the_number_of_workers_is_limited(workers: int) -> None:
    with pytest.raises(PsearchError, match=f"threads must be between 1 and {MAX_THREADS}, not {workers}"):
        Arena(workers, 1)


def test_memory_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_module, "available_memory", lambda: 100 * memory.MIB)
    with pytest.raises(PsearchError, match=r"128 MB and 1 threads need about 12[89] MB, 100 MB are available"):
        Arena(1, 128)
