"""Kernels that are compiled, or slow to load: what is told, and when clocks start."""

from __future__ import annotations

import time
from collections.abc import Callable

import chess
import pytest
from timing import least
from uci_client import Talk, infos

from psearch.faces.uci import resources
from psearch.scheduler.scheduler_entries import load_kernels

LOAD_S = 1.0


def test_what_compiles_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_kernels(progress: Callable[[str], None]) -> float:
        load_kernels()
        progress("compiling kernels")
        return 1.0

    monkeypatch.setattr(resources, "load_kernels", compile_kernels)
    told = "info string kernels compiled in 1 s, they are kept for the next start"
    with Talk() as talk:
        assert talk.ready() == ["info string compiling kernels", told, "readyok"]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[dict[str, str]]]:
    """What an engine says of a `go`, its first, whose kernels take a second to load."""

    def load_slowly(progress: Callable[[str], None]) -> float:
        time.sleep(LOAD_S)
        return load_kernels()

    def go(words: str) -> list[dict[str, str]]:
        with Talk() as talk:
            talk.send("setoption name Hash value 64")  # to take the memory of a larger table costs time, too
            return infos(talk.go(words, chess.STARTING_FEN))

    load_kernels()
    monkeypatch.setattr(resources, "load_kernels", load_slowly)
    return go


def test_loading_is_no_thinking(slow: Callable[[str], list[dict[str, str]]]) -> None:
    def milliseconds() -> float:
        lines = slow("movetime 600")
        assert int(lines[-1]["depth"]) >= 5
        return int(lines[-1]["time"])

    assert 300 <= least(milliseconds, 650) <= 650


def test_the_clock_of_a_game_runs_while_kernels_are_loaded(slow: Callable[[str], list[dict[str, str]]]) -> None:
    def seconds() -> float:
        start = time.perf_counter()
        lines = slow("wtime 2000 btime 2000 movestogo 1")
        taken = time.perf_counter() - start
        assert int(lines[-1]["depth"]) >= 5
        return max(taken, 2 * int(lines[-1]["time"]) / 1000)  # of which a second is no thinking

    assert least(seconds, 2.0) < 2.0
