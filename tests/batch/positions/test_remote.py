"""Positions on a cluster that is none: driver, workers and engine are real, Ray is not (tests/support/fake_ray)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import chess
import chess.engine
import pytest
from netfit.network import encoded

import psearch
from psearch.batch.positions.position_pool import (
    PositionPool,
    PositionWorker,
    WorkerSettings,
    limit_s,
    make_pool,
    rounds,
)
from psearch.batch.positions.task import Batch, Outcome, Part, Task
from psearch.batch.positions.task_queue import Done
from psearch.bench import BENCH_POSITIONS
from psearch.options import SearchOptions
from psearch.processes.tasks import ProcessJoined, ProcessLost
from psearch.results import Limits
from psearch_core.chess.evaluation.network_file import default_network

SETTINGS = WorkerSettings(hash_mb=1)


def tasks(number: int, nodes: int = 500) -> list[Task]:
    fens = (BENCH_POSITIONS * (number // len(BENCH_POSITIONS) + 1))[:number]
    return [Task(place, fen, limits=Limits(nodes=nodes), chess960=True) for place, fen in enumerate(fens)]


def batch(*some: Task) -> Batch:
    return [Part(place, True, [(place, task)]) for place, task in enumerate(some)]


def outcomes(pool: PositionPool, tasks: list[Task]) -> Iterator[Outcome]:
    return itertools.chain.from_iterable(rounds(pool, ([task] for task in tasks)))


def test_answers_are_those_of_this_machine(kernels: None, fake_ray: Path) -> None:
    wanted = tasks(60)
    with PositionWorker(SETTINGS) as worker:
        expected = {}
        for task in wanted:
            worker.forget()
            found = worker.search(0, task).answer
            expected[task.id] = (found.best, found.nodes, found.lines)
    with make_pool(64, SETTINGS, cluster="auto") as pool:
        answers = list(outcomes(pool, wanted))
        assert pool.work_done() == f"one (127.0.0.1) {len(wanted)}"
    found_there = {one.id: (one.answer.best, one.answer.nodes, one.answer.lines) for one in answers if one.answer}
    assert len(answers) == len(wanted) and found_there == expected
    assert {one.worker for one in answers} == {"one (127.0.0.1)"}


def test_a_node_that_goes_takes_nothing_with_it(kernels: None, fake_ray: Path) -> None:
    wanted = tasks(400, 300)
    notes: list[str] = []
    with make_pool(64, SETTINGS, cluster="auto", on_note=notes.append) as pool:
        answers = []
        for one in outcomes(pool, wanted):
            answers.append(one.id)
            if len(answers) == 20:
                fake_ray.write_text("two 1\n")
    assert sorted(answers) == [task.id for task in wanted]
    assert notes == ["node one (127.0.0.1) is gone"]


def test_what_a_worker_says_of_a_position_is_an_outcome(kernels: None, fake_ray: Path) -> None:
    with make_pool(64, SETTINGS, cluster="auto") as pool:
        (one,) = outcomes(pool, [Task("x", "8/8/8/8/8/8/8/8 w - - 0 1", limits=Limits(depth=1))])
    assert one.error is not None and "the board is empty" in one.error


def test_a_worker_that_raises_is_replaced(kernels: None, fake_ray: Path) -> None:
    with make_pool(1, SETTINGS, cluster="auto") as pool:
        events = _until(pool, ProcessJoined)
        pool.send(events[-1].process, batch(Task(0, 5, limits=Limits(depth=1))))  # type: ignore[arg-type]
        lost = _until(pool, ProcessLost)[-1]
        assert lost.process == events[-1].process and "Error" in lost.reason
        worker = _until(pool, ProcessJoined)[-1].process
        pool.send(worker, batch(*tasks(2)))
        assert [one.number for one in _until(pool, Done)[-1].outcomes] == [0, 1]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([Limits(movetime_ms=1000), Limits(movetime_ms=2000)], 39.0),
        ([Limits(movetime_ms=1000), Limits(depth=3)], None),
        ([Limits(nodes=10)], None),
    ],
)
def test_how_long_a_batch_may_take(limits: list[Limits], expected: float | None) -> None:
    assert limit_s(batch(*(Task(0, "startpos", limits=one) for one in limits))) == expected


def test_a_move_that_may_have_to_be_compared_takes_longer() -> None:
    longer = limit_s(batch(Task(0, "startpos", limits=Limits(movetime_ms=1000), line=("e2e4",))))
    assert longer is not None and longer > 33.0


def _until(pool: PositionPool, kind: type) -> list:  # type: ignore[type-arg]
    events: list = []  # type: ignore[type-arg]
    end = time.monotonic() + 30
    while not events or not isinstance(events[-1], kind):
        assert time.monotonic() < end
        events.extend(pool.wait(0.5))
    return events


def test_analyse_many_on_a_cluster(kernels: None, fake_ray: Path, caplog: pytest.LogCaptureFixture) -> None:
    limit = chess.engine.Limit(nodes=300)
    fens = [chess.Board(fen, chess960=True).fen() for fen in BENCH_POSITIONS]
    with psearch.analyse_many(fens, limit, ordered=True, workers=1) as results:
        here = [(one.id, one.bestmove, one.nodes) for one in results]
    fake_ray.write_text("one 1\nold 0\n")
    with psearch.analyse_many(fens, limit, ordered=True, cluster="auto") as results:
        there = [(one.id, one.bestmove, one.nodes) for one in results]
    assert here == there and len(here) == len(fens)
    assert not caplog.records


def test_a_node_with_another_network_at_that_path_is_refused(kernels: None, fake_ray: Path, tmp_path: Path) -> None:
    """The file is replaced before the node reads it."""
    file = tmp_path / "used.net"
    file.write_bytes(Path(default_network().path).read_bytes())
    settings = WorkerSettings(hash_mb=1, options=SearchOptions(net=str(file)))
    file.write_bytes(encoded(default_network().record, {"another": "one"}))
    notes: list[str] = []
    with make_pool(1, settings, cluster="auto", on_note=notes.append) as pool, pytest.raises(psearch.PsearchError):
        for _ in outcomes(pool, tasks(2)):
            pass
    assert any("was replaced" in note for note in notes), notes
