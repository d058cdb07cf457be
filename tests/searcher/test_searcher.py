"""Workers of the size that is wanted, or the largest that the system grants; the switches of a search."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import chess
import pytest

import psearch
from psearch.defaults import POLICY_NAMES
from psearch.options import SearchOptions, Settings, pruning_named
from psearch.processes.request import SearchRequest
from psearch.results import Limits, PsearchError
from psearch.searcher.notices import Notices
from psearch.searcher.searcher import Searcher, Size, smaller_sizes
from psearch.settings import SEARCH_SETTINGS, SYZYGY, Face, SearchKeywords
from psearch_core.toolchain.kernel_sets import KernelSet


class StandInSupervisor:
    """Starts if the system of the test grants it."""

    granted: Callable[[Size], bool]
    tried: list[Size]
    open = 0

    def __init__(
        self, threads: int, hash_mb: int, start_method: str | None, trace: bool, watched: bool, kernels: KernelSet
    ) -> None:
        size = Size(threads, hash_mb, trace, start_method == "inline", watched, kernels)
        self.tried.append(size)
        if not type(self).granted(size):
            raise OSError(12, "Cannot allocate memory")
        self.size = size
        self.is_usable = True
        type(self).open += 1

    def close(self) -> None:
        type(self).open -= 1


class System:
    """A system that grants a `Searcher` what the test allows."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.workers = Searcher(Notices(self.said.append))
        self.grant(lambda size: True)

    def grant(self, granted: Callable[[Size], bool]) -> None:
        StandInSupervisor.granted = staticmethod(granted)

    def settle(self, *size: int) -> tuple[Size, list[Size], list[str]]:
        """Return what there is then, what was tried for it, and what was said."""
        return self.after(lambda: self.workers.settle(Size(*size)))

    def retry(self) -> tuple[Size, list[Size], list[str]]:
        return self.after(self.workers.retry)

    def after(self, act: Callable[[], None]) -> tuple[Size, list[Size], list[str]]:
        self.said.clear()
        StandInSupervisor.tried = []
        act()
        assert StandInSupervisor.open == 1
        assert isinstance(self.workers._supervisor, StandInSupervisor)
        return self.workers._supervisor.size, StandInSupervisor.tried, list(self.said)


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    monkeypatch.setattr("psearch.searcher.searcher.Supervisor", StandInSupervisor)
    StandInSupervisor.open = 0
    StandInSupervisor.tried = []
    yield System()


def test_they_are_replaced_when_another_size_is_wanted(system: System) -> None:
    assert system.settle(2, 64) == (Size(2, 64), [Size(2, 64)], [])
    assert system.settle(2, 64) == (Size(2, 64), [], [])
    assert system.settle(3, 16) == (Size(3, 16), [Size(3, 16)], [])


def test_what_is_refused_leaves_the_size_of_before(system: System) -> None:
    system.settle(2, 64)
    system.grant(lambda size: size.hash_mb <= 1000)
    size, tried, said = system.settle(2, 3000)
    assert (size, tried) == (Size(2, 64), [Size(2, 3000), Size(2, 64)])
    assert len(said) == 1 and "Cannot allocate memory; continuing with Threads 2 and Hash 64" in said[0]
    assert system.settle(2, 3000) == (Size(2, 64), [], [])  # not tried again on the clock of each move
    assert system.retry() == (Size(2, 64), [Size(2, 3000), Size(2, 64)], [])  # told already
    assert system.settle(2, 128) == (Size(2, 128), [Size(2, 128)], [])
    assert len(system.settle(2, 3000)[2]) == 1  # asked for again, told again
    system.grant(lambda size: True)
    assert system.retry() == (Size(2, 3000), [Size(2, 3000)], ["Threads 2 and Hash 3000 are available again"])


def test_the_hash_is_halved_when_the_size_of_before_cannot_be_had_either(system: System) -> None:
    system.settle(4, 64)
    system.grant(lambda size: size.hash_mb <= 20)
    assert system.settle(4, 128)[:2] == (Size(4, 16), [Size(4, 128), Size(4, 64), Size(4, 32), Size(4, 16)])


def test_then_there_are_fewer_processes_and_at_last_none(system: System) -> None:
    system.grant(lambda size: size.threads <= 2 and not size.trace)
    size, _, said = system.settle(16, 64, True)
    assert size == Size(2, 1)
    assert said[0].endswith("continuing with Threads 2 and Hash 1, without a trace")
    system.grant(lambda size: size.inline)
    size, _, said = system.settle(16, 32)
    assert size == Size(1, 1, inline=True)
    assert said[0].endswith("continuing with no worker process and Hash 1")
    system.grant(lambda size: True)
    assert system.retry()[0] == Size(16, 32)


def test_none_at_all_is_told_once_and_tried_again(system: System) -> None:
    system.grant(lambda size: False)
    for _ in range(2):
        system.workers.settle(Size(2, 4))
        assert not system.workers.are_there
        with pytest.raises(PsearchError, match="there are no workers"):
            _ = system.workers.supervisor
    assert len(system.said) == 1
    system.grant(lambda size: True)
    assert system.settle(2, 4)[0] == Size(2, 4)


def test_what_cannot_be_restored_is_replaced(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(supervisor: StandInSupervisor, may_wait: object) -> list[str]:
        raise PsearchError("no memory for another control block")

    assert not system.workers.restore(lambda: True)
    system.settle(2, 64)
    monkeypatch.setattr(StandInSupervisor, "restore", lambda supervisor, may_wait: ["one was lost"], raising=False)
    assert system.workers.restore(lambda: True) == ["one was lost"]
    monkeypatch.setattr(StandInSupervisor, "restore", fails)
    system.grant(lambda size: size.hash_mb <= 40)
    found: list[str] = []
    assert system.after(lambda: found.extend(system.workers.restore(lambda: True)))[0] == Size(2, 32)
    assert found == ["no memory for another control block"]


def test_smaller_sizes() -> None:
    assert list(smaller_sizes(Size(3, 4, trace=True))) == [
        Size(3, 2),
        Size(3, 1),
        Size(1, 1),
        Size(1, 4, inline=True),
        Size(1, 1, inline=True),
    ]


def test_every_policy_and_no_other() -> None:
    for name in POLICY_NAMES:
        assert SearchOptions(policy=name).policy == name
    with pytest.raises(PsearchError, match=r"policy must be one of serial, root, ybw, .*, not 'best'"):
        SearchOptions(policy="best")


def test_a_bad_pruning_text_is_an_error_for_the_user() -> None:
    assert pruning_named("plain") == SearchOptions.plain().pruning
    with pytest.raises(PsearchError, match="best"):
        pruning_named("best")


def test_type_checkers_know_every_keyword() -> None:
    declared = [one.field for one in (*SEARCH_SETTINGS, SYZYGY) if Face.PYTHON in one.faces]
    assert list(SearchKeywords.__annotations__) == declared


def test_keywords_are_settings() -> None:
    assert Settings.of(threads=2, hash_mb=None, driver="null", split_depth=3).search.split_depth == 3
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        Settings.of(depth=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'policies'"):
        psearch.search("startpos", depth=1, policies="ybw")  # type: ignore[call-arg]
    calls: list[tuple[Any, dict[str, Any], str]] = [
        (psearch.search, {"time": 1}, r"^search\(\) .*: limits are given as chess\.engine\.Limit\(time="),
        (psearch.search, {"movetime": 1}, "did you mean 'movetime_ms'?"),
        (psearch.search, {"board": "startpos"}, "its arguments are position, limit, threads, "),
        (psearch.Engine, {"Threads": 2}, r"^Engine\(\) .* 'Threads': did you mean 'threads'?"),
        (psearch.AsyncEngine, {"hash": 2}, "did you mean 'hash_mb'?"),
        (psearch.Engine.play, {"depth": 2}, r"^Engine\.play\(\) .*Limit\(depth=\.\.\.\)"),
        (psearch.analyse_many, {"depth": 2}, r"Limit\(depth=\.\.\.\)"),
    ]
    for call, named, meant in calls:
        with pytest.raises(TypeError, match=meant):
            call(**named)
    with pytest.raises(PsearchError, match="driver must be one of auto, pvs, null, not 'mtd'"):
        Settings.of(driver="mtd")


def test_a_request_can_be_pickled() -> None:
    board = chess.Board()
    board.push_san("e4")
    request = SearchRequest(board, Limits(depth=3), SearchOptions(policy="ybw"), on_info=print, on_note=print)
    copy = pickle.loads(pickle.dumps(request))
    assert (copy.board, copy.limits, copy.options) == (board, request.limits, request.options)
    assert copy.board.move_stack == board.move_stack
    assert copy.on_info is None and not copy.control.is_stopped
