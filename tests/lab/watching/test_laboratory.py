"""Two policies on one position in virtual time, in this process and in one of its own; and traces from their text."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import chess
import pytest
from positions import KIWIPETE

from psearch.lab.watching import job as job_module
from psearch.lab.watching.job import BackgroundJob
from psearch.lab.watching.laboratory import MOST_CELLS, MOST_CHARACTERS, Experiment, read_trace, run, timeline
from psearch.lab.watching.tracks import ABORTED
from psearch.options import SearchOptions
from psearch.processes.task_processes import TaskProcesses
from psearch.results import PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator

SMALL = Experiment(KIWIPETE, False, 4, ("calibrated", "ybw"), 10_000)


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    told: list[tuple[str, float]] = []
    found = run(SMALL, lambda text, share: told.append((text, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] <= 1
    return found


def test_figures_hang_together(result: dict[str, Any]) -> None:
    serial, runs = result["serial"], result["runs"]
    assert [one["policy"] for one in (serial, *runs)] == ["serial", "calibrated", "ybw"]
    assert 2_000 < serial["nodes"] < 50_000
    for one in runs:
        assert one["speedup"] == pytest.approx(serial["seconds"] / one["seconds"], abs=1e-4)
        assert one["overhead"] == pytest.approx(one["nodes"] / serial["nodes"], abs=1e-4)
        assert chess.Move.from_uci(one["move"]) in chess.Board(KIWIPETE).legal_moves
        assert sum(kind["splits"] for kind in one["types"]) == one["splits"]
        assert len(one["tracks"]) == 4
        for track in one["tracks"]:
            plain = [segment for segment in track if segment[0] != ABORTED]
            assert len(plain) <= MOST_CELLS
            assert plain[0][1] == 0 and plain[-1][2] == one["end"]
    behind = result["iterations"][-1]["apart"]
    assert abs(behind - (runs[1]["end"] - runs[0]["end"])) <= 0.05 * runs[0]["end"]
    for one in (serial, *runs):
        for bin in one["no_cutoff"] + one["needed"]:
            assert bin["count"] > 0 and 0 <= bin["predicted"] <= 1 and 0 <= bin["observed"] <= 1
        assert any(technique["pruned"] for technique in one["techniques"])
    assert serial["needed"] == [] and runs[0]["needed"]
    assert len(json.dumps(result)) < 300_000


def test_the_same_experiment_gives_the_same_answer(result: dict[str, Any]) -> None:
    assert run(SMALL, lambda text, share: None) == result


def test_the_driver_is_that_of_every_search(result: dict[str, Any]) -> None:
    found = run(replace(SMALL, driver="null"), lambda text, share: None)
    assert (result["driver"], found["driver"]) == ("pvs", "null")
    for one, other in zip((result["serial"], *result["runs"]), (found["serial"], *found["runs"]), strict=True):
        assert one["nodes"] != other["nodes"]


def test_what_has_far_more_nodes_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    from psearch.lab.watching import laboratory
    from psearch.simulation import simulator

    monkeypatch.setattr(laboratory, "_MOST_TIMES", 5)
    monkeypatch.setattr(simulator, "_EVENTS_PER_CALL", 1 << 10)
    found = run(Experiment(KIWIPETE, False, 16, ("lazy", "calibrated"), 10_000), lambda text, share: None)
    assert found["runs"][0]["stopped"] and not found["runs"][1]["stopped"]
    assert "speedup" not in found["runs"][0] and found["runs"][0]["tracks"]
    json.dumps(found)


@pytest.mark.parametrize(
    ("fen", "said"),
    [
        ("nonsense", "no position"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "nothing to search"),
        ("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3", "nothing to search"),
        ("8/8/8/4k3/8/8/8/4K3 w - - 0 1", "decided at once"),
    ],
)
def test_positions_without_a_search(fen: str, said: str) -> None:
    with pytest.raises(PsearchError, match=said):
        run(Experiment(fen, False, 2, ("ybw", "ybw"), 100_000), lambda text, share: None)


# -- a process of its own --------------------------------------------------------------------------------------------


class Told:
    """What a job says."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.over = threading.Event()

    def __call__(self, kind: str, payload: dict[str, Any]) -> None:
        self.messages.append((kind, payload))
        if kind != "progress":
            self.over.set()


ARGUMENTS = {"fen": KIWIPETE, "chess960": False, "workers": 4, "policies": ("calibrated", "ybw"), "nodes": 10_000}


def test_a_job_gives_the_same_and_says_how_far_it_is(result: dict[str, Any]) -> None:
    told = Told()
    BackgroundJob("experiment", ARGUMENTS, told)
    assert told.over.wait(240)
    assert told.messages[-1] == ("result", result)
    assert [kind for kind, _ in told.messages[:-1]] == ["progress"] * (len(told.messages) - 1)
    assert len(told.messages) > 2


def test_a_job_is_stopped_at_once() -> None:
    told = Told()
    job = BackgroundJob("experiment", {**ARGUMENTS, "nodes": 3_000_000, "workers": 64}, told)
    while not told.messages:
        time.sleep(0.01)
    job.stop()
    job.stop()
    assert told.over.wait(10), "it would take a minute"
    assert told.messages[-1] == ("stopped", {})


def test_a_job_that_is_killed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[TaskProcesses] = []

    class Noted(TaskProcesses):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(job_module, "TaskProcesses", Noted)
    told = Told()
    BackgroundJob("experiment", {**ARGUMENTS, "nodes": 3_000_000}, told)
    while not told.messages:
        time.sleep(0.01)
    os.kill(made[0].pids()[0], signal.SIGKILL)
    assert told.over.wait(60)
    assert told.messages[-1] == ("error", {"text": "the process that computed this was killed"})


@pytest.mark.parametrize(
    ("task", "arguments", "said"),
    [
        ("experiment", {**ARGUMENTS, "pruning": "magic"}, "magic"),
        ("trace", {"text": "{}"}, "no trace"),
    ],
)
def test_a_job_that_cannot_be_done_says_why(task: str, arguments: dict[str, Any], said: str) -> None:
    told = Told()
    BackgroundJob(task, arguments, told)
    assert told.over.wait(60)
    kind, payload = told.messages[-1]
    assert kind == "error" and said in payload["text"]


def test_a_job_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "LONGEST_S", 0.3)
    told = Told()
    BackgroundJob("experiment", {**ARGUMENTS, "nodes": 3_000_000, "workers": 64}, told)
    assert told.over.wait(60)
    assert told.messages[-1][0] == "error" and "seconds" in told.messages[-1][1]["text"]


# -- traces ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """The text of one, and the timeline of the search that it is of."""
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    simulator = Simulator(4, 1, Costs(), 1 << 14)
    try:
        simulator.search("", chess.Board(KIWIPETE), 7, SearchOptions())
        assert simulator.recorder is not None
        simulator.recorder.write(path, {"position": KIWIPETE, "policy": "calibrated", "secret": "not shown"})
        return path.read_text(), timeline(simulator.recorder)
    finally:
        simulator.close()


def test_a_trace_is_drawn_as_the_search_was(trace: tuple[str, dict[str, Any]]) -> None:
    text, wanted = trace
    found = read_trace(text)
    assert found["workers"] == 4 and found["facts"]["position"] == KIWIPETE and "secret" not in found["facts"]
    assert abs(found["end"] - wanted["end"]) <= 1
    assert [one["depth"] for one in found["depths"]] == [one["depth"] for one in wanted["depths"]]
    assert [one["move"] for one in found["depths"]] == [one["move"] for one in wanted["depths"]]
    assert [one["splits"] for one in found["types"]] == [one["splits"] for one in wanted["types"]]
    for ours, theirs in zip(found["tracks"], wanted["tracks"], strict=True):
        if len(ours) == len(theirs):
            assert [segment[0] for segment in ours] == [segment[0] for segment in theirs]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "{" + text,
        lambda text: text.replace('"traceEvents":[', '"traceEvents":[1,'),
        lambda text: text.replace('"ts":', '"ts":-', 40),
        lambda text: text.replace('"ts":0', '"ts":NaN'),
        lambda text: text.replace('"ts":0', '"ts":1e999'),
        lambda text: text.replace('"tid":1000', '"tid":"x"'),
        lambda text: text.replace('"tid":1000', '"tid":99999'),
        lambda text: text.replace('"args":{', '"args":[{', 1),
        lambda text: text.replace('"dur":', '"rud":'),
        lambda text: text[:60] + "[" * 100_000,
        lambda text: text.replace('"otherData":{', '"otherData":7,"x":{'),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_refused_in_one_line(
    trace: tuple[str, dict[str, Any]], change: Callable[[str], str]
) -> None:
    with pytest.raises(PsearchError, match="not a trace of psearch") as refused:
        read_trace(change(trace[0]))
    assert "\n" not in str(refused.value)


def test_what_a_trace_says_is_cut(trace: tuple[str, dict[str, Any]]) -> None:
    text = trace[0].replace(KIWIPETE, "x" * 100_000)
    assert len(json.dumps(read_trace(text)["facts"])) < 2_000


def test_a_large_trace_is_refused_before_it_is_read(trace: tuple[str, dict[str, Any]]) -> None:
    with pytest.raises(PsearchError, match="32 MiB"):
        read_trace(trace[0] + " " * MOST_CHARACTERS)


def test_a_trace_of_the_command_line_opens(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    path = tmp_path / "trace.json"
    assert run("--threads", "2", "--depth", "8", "--trace", str(path), "startpos")[0] == 0
    found = read_trace(path.read_text())
    assert found["workers"] == 2 and len(found["tracks"]) == 2 and found["end"] > 0
