"""Kernels that are compiled, or slow to load: what is told, and when clocks start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import chess
import pytest
from uci_client import infos
from uci_talk import Talk

from psearch.scheduler.entries import load_kernels
from psearch.uci import resources

LOAD_S = 1.0


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        ("", ["info string kernels compiled in 1 s, they are kept for the next start"]),
        ("not kept: no room", ["info string kernels compiled in 1 s", "info string not kept: no room"]),
    ],
)
def test_where_compiled_kernels_are_kept(monkeypatch: pytest.MonkeyPatch, problem: str, told: list[str]) -> None:
    def compile_kernels(progress: Callable[[str], None], warn: Callable[[str], None]) -> float:
        load_kernels()
        progress("compiling kernels")
        if problem:
            warn(problem)
        return 1.0

    monkeypatch.setattr(resources, "load_kernels", compile_kernels)
    with Talk() as talk:
        assert talk.ready() == ["info string compiling kernels", *told, "readyok"]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    """An engine whose kernels take a second to load."""

    def load_slowly(progress: Callable[[str], None], warn: Callable[[str], None]) -> float:
        time.sleep(LOAD_S)
        return load_kernels()

    load_kernels()
    monkeypatch.setattr(resources, "load_kernels", load_slowly)
    with Talk() as talk:
        yield talk


def test_loading_is_no_thinking(slow: Talk) -> None:
    lines = infos(slow.go("movetime 600", chess.STARTING_FEN))
    assert 300 <= int(lines[-1]["time"]) <= 650
    assert int(lines[-1]["depth"]) >= 5


def test_the_clock_of_a_game_runs_while_kernels_are_loaded(slow: Talk) -> None:
    sent = time.perf_counter()
    lines = infos(slow.go("wtime 2000 btime 2000 movestogo 1", chess.STARTING_FEN))
    assert time.perf_counter() - sent < 2.0
    assert int(lines[-1]["time"]) < 1000
    assert int(lines[-1]["depth"]) >= 5
