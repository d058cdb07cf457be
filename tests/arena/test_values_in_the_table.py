"""Values in the table are of one evaluation and one pruning: a search that leaves nothing out is cut by no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import chess
import pytest

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch_core.records.pruning_record import MODES

# in the first, a search of 4 plies would find values that `modern` has left
POSITIONS = [
    "r1b1k2r/ppppnppp/2n2q2/2b5/3NP3/2P1B3/PP3PPP/RN1QKB1R w KQkq - 0 1",
    "r1bqkb1r/pp2pppp/2np1n2/8/3NP3/2N5/PPP2PPP/R1BQKB1R w KQkq - 2 6",
]
HANDCRAFTED = SearchOptions(policy="serial", evaluation="classic")


@pytest.fixture
def arena(search_kernels: None) -> Iterator[Arena]:
    arena = Arena(1, 8)
    yield arena
    arena.close()


def value(arena: Arena, fen: str, options: SearchOptions) -> int:
    write_search(arena, chess.Board(fen), Limits(depth=4), options)
    work_alone(arena)
    return int(arena.header[0]["score"])


def of_mode(mode: str) -> SearchOptions:
    return replace(HANDCRAFTED, pruning=MODES[mode])


@pytest.mark.parametrize("fen", POSITIONS)
@pytest.mark.parametrize("exact", ["plain", "sound"])
@pytest.mark.parametrize("before", ["modern", "ael"])
def test_an_exact_mode_finds_its_value_after_any_other(arena: Arena, fen: str, exact: str, before: str) -> None:
    expected = value(arena, fen, of_mode(exact))
    arena.forget()
    value(arena, fen, of_mode(before))
    assert value(arena, fen, of_mode(exact)) == expected


def test_the_same_pruning_keeps_the_table_also_with_other_workers(arena: Arena) -> None:
    value(arena, POSITIONS[0], of_mode("modern"))
    arena.tt[-1] = 1  # no entry
    write_search(arena, chess.Board(), Limits(depth=1), of_mode("modern"))
    renewed = arena.renew(1, arena.kernels)
    write_search(renewed, chess.Board(), Limits(depth=1), of_mode("modern"))
    assert renewed.tt[-1] == 1
    write_search(renewed, chess.Board(), Limits(depth=1), replace(of_mode("modern"), evaluation="net"))
    assert not renewed.tt.any()
    renewed.close()
