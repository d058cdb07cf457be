"""Values in the table are of one evaluation and one pruning: a search that leaves nothing out is cut by no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import chess
import pytest
from netfit.network import encoded

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.processes.worker_main import work_alone
from psearch.results import Limits
from psearch_core.chess.evaluation.network_file import default_network
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
    renewed.close()


@pytest.mark.parametrize("changed", [{"evaluation": "net"}, {"net": "other.net"}, {}], ids=str)
def test_another_evaluation_clears_what_was_learnt_also_with_other_workers(
    arena: Arena, changed: dict[str, str], tmp_path: Path
) -> None:
    before = of_mode("modern")
    if "net" in changed:
        before = replace(before, evaluation="net")
        changed = {"net": str(other_network(tmp_path / changed["net"]))}
    value(arena, POSITIONS[0], before)
    assert arena.header["learning"].tobytes().strip(b"\0")
    renewed = arena.renew(1, arena.kernels)
    write_search(renewed, chess.Board(), Limits(depth=1), replace(before, **changed))
    for kept in (renewed.header["learning"].tobytes().strip(b"\0"), renewed.tt.any()):
        assert bool(kept) == (not changed)
    renewed.close()


def test_other_workers_keep_the_network(arena: Arena, tmp_path: Path) -> None:
    options = replace(of_mode("modern"), evaluation="net", net=str(other_network(tmp_path / "other.net")))
    value(arena, POSITIONS[0], options)
    renewed = arena.renew(1, arena.kernels)
    assert renewed.tables["network"].tobytes() == arena.tables["network"].tobytes()
    write_search(renewed, chess.Board(), Limits(depth=1), options)
    assert renewed.tt.any()
    renewed.close()


def other_network(path: Path) -> Path:
    """A network whose name is another one, by its notes."""
    whole = default_network()
    path.write_bytes(encoded(whole.record, {**whole.notes, "other": 1}))
    return path
