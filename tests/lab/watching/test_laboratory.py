"""Two policies on one position, in this process and in its own; traces from text; tracks from the workers' logs."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import chess
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from positions import KIWIPETE

from psearch.lab.watching import job as job_module
from psearch.lab.watching.job import BackgroundJob
from psearch.lab.watching.laboratory import (
    MOST_CELLS,
    Experiment,
    run,
    segments_of,
)
from psearch.lab.watching.tracks import (
    ABORTED,
    IDLE,
    JOIN,
    LOST,
    MOST_SEGMENTS,
    SEARCH,
    Clock,
    Segment,
    Track,
    in_cells,
    packed,
)
from psearch.processes.task_processes import TaskProcesses
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import request_stop
from psearch.simulation.simulator import Simulator
from psearch_core.records import TRACE_ABORT, TRACE_IDLE, TRACE_JOIN, TRACE_TAKE, trace_event_dtype, trace_log_dtype

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
    assert abs(result["iterations"][-1]["apart"] - (runs[1]["end"] - runs[0]["end"])) <= 0.05 * runs[0]["end"]
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


OTHERS = (
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
    "2rq1rk1/pb1n1ppp/1p2pn2/3p4/3P4/P1PBPN2/1B1N1PPP/R2Q1RK1 w - - 1 13",
)


@pytest.mark.parametrize("others", [(), OTHERS])
def test_the_command_gives_the_same_figures(others: tuple[str, ...]) -> None:
    found = run(replace(SMALL, others=others, driver="null"), lambda text, share: None)
    command = found["command"].replace("psearch simulate", f"{sys.executable} -m psearch simulate --json", 1)
    printed = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=240, check=True).stdout
    assert json.loads(printed)["rows"] == found["rows"]
    assert [row["threads"] for row in found["rows"]] == ([2, 4, 2, 4] if others else [4, 4])
    assert all(row["positions"] == 1 + len(others) and (row["low"] is None) != bool(others) for row in found["rows"])


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
        ("nonsense", "not a position"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "nothing to search"),
        ("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3", "nothing to search"),
        ("8/8/8/4k3/8/8/8/4K3 w - - 0 1", "decided at once"),
    ],
)
def test_positions_without_a_search(fen: str, said: str) -> None:
    with pytest.raises(PsearchError, match=said):
        run(Experiment(fen, False, 2, ("ybw", "ybw"), 100_000), lambda text, share: None)


class Told:
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
    BackgroundJob(ARGUMENTS, told)
    assert told.over.wait(240)
    assert told.messages[-1] == ("result", result)
    assert [kind for kind, _ in told.messages[:-1]] == ["progress"] * (len(told.messages) - 1)
    assert len(told.messages) > 2


def test_a_job_is_stopped_at_once() -> None:
    told = Told()
    job = BackgroundJob({**ARGUMENTS, "nodes": 3_000_000, "workers": 64}, told)
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
    BackgroundJob({**ARGUMENTS, "nodes": 3_000_000}, told)
    while not told.messages:
        time.sleep(0.01)
    os.kill(made[0].pids()[0], signal.SIGKILL)
    assert told.over.wait(60)
    assert told.messages[-1] == ("error", {"text": "the process that computed this was killed"})


def test_a_job_that_cannot_be_done_says_why() -> None:
    told = Told()
    BackgroundJob({**ARGUMENTS, "pruning": "magic"}, told)
    assert told.over.wait(60)
    kind, payload = told.messages[-1]
    assert kind == "error" and "magic" in payload["text"]


def test_a_job_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "LONGEST_S", 0.3)
    told = Told()
    BackgroundJob({**ARGUMENTS, "nodes": 3_000_000, "workers": 64}, told)
    assert told.over.wait(60)
    assert told.messages[-1][0] == "error" and "seconds" in told.messages[-1][1]["text"]


TICKS_PER_MS = 10**9
CLOCK = Clock(0, 1.0)


def log_of(events: list[tuple[int, int, int]], capacity: int = 64) -> np.ndarray:
    """A log whose worker has written these: kind, begin, time."""
    log = np.zeros(1, np.dtype([("head", trace_log_dtype), ("events", trace_event_dtype, (capacity,))]))
    log["head"]["ring"] = 1
    for event in events:
        write(log, event)
    return log


def write(log: np.ndarray, event: tuple[int, int, int]) -> None:
    count, capacity = int(log["head"]["count"][0]), len(log["events"][0])
    record = log["events"][0][count % capacity : count % capacity + 1]
    record["kind"], record["begin"], record["time"] = event
    record["split"], record["frame"] = 5 << 10 | 3, 7
    log["head"]["count"] += 1


def check_tiles(segments: list[Segment], begin: int, end: int) -> None:
    plain = [segment for segment in segments if segment.kind != ABORTED]
    assert plain[0].begin == begin and plain[-1].end == end
    assert all(one.end == other.begin for one, other in itertools.pairwise(plain))


def test_events_become_segments() -> None:
    log = log_of([(TRACE_TAKE, 10, 10), (TRACE_IDLE, 50, 50), (TRACE_JOIN, 60, 64)])
    track = Track()
    assert track.look(log, CLOCK, 100) == [
        Segment(IDLE, 0, 10),
        Segment(SEARCH, 10, 50, "3.5"),
        Segment(IDLE, 50, 60),
        Segment(JOIN, 60, 64),
        Segment(SEARCH, 64, 100, "3.5"),
    ]
    assert track.look(log, CLOCK, 150) == [Segment(SEARCH, 100, 150, "3.5")]
    write(log, (TRACE_IDLE, 170, 170))
    assert track.look(log, CLOCK, 200) == [Segment(SEARCH, 150, 170, "3.5"), Segment(IDLE, 170, 200)]


def test_work_thrown_away_is_as_long_as_its_nodes_took_and_lies_over_searching() -> None:
    """The worker may have been idle in between, and red work is not counted twice."""
    log = log_of([(TRACE_TAKE, 0, 0), (TRACE_IDLE, 40, 40), (TRACE_TAKE, 60, 60), (TRACE_ABORT, 80, 80)])
    log["events"]["value"][0, 3] = 60
    track = Track()
    found = track.look(log, CLOCK, 120, nodes=200)  # 100 microseconds: half a microsecond each
    assert [one[:3] for one in found if one.kind == ABORTED] == [(ABORTED, 60, 80), (ABORTED, 30, 40)]
    write(log, (TRACE_ABORT, 140, 140))
    log["events"]["value"][0, 4] = 160
    found = track.look(log, CLOCK, 140, nodes=240)
    assert [one[:3] for one in found if one.kind == ABORTED] == [(ABORTED, 80, 140), (ABORTED, 10, 30)]


def test_more_work_thrown_away_than_can_be_sent_is_drawn_in_the_next_look() -> None:
    log = log_of([(TRACE_TAKE, 0, 0), *[(TRACE_ABORT, 0, 10 * n) for n in range(1, 101)]], capacity=128)
    log["events"]["value"][0, 1:101] = 4
    track = Track()
    looks = [track.look(log, CLOCK, now, nodes=1000) for now in (1000, 1001, 1002, 1003)]
    wasted = [[one for one in found if one.kind == ABORTED] for found in looks]
    assert len(wasted[0]) == MOST_SEGMENTS and not wasted[2]
    assert sum(one.end - one.begin for found in wasted for one in found) == 400


def test_a_value_that_came_too_late_is_not_counted_as_thrown_away() -> None:
    """The counters do not, either."""
    log = log_of([(TRACE_TAKE, 0, 0), (TRACE_ABORT, 80, 80)])
    log["events"]["value"][0, 1], log["events"]["outcome"][0, 1] = 60, 1
    assert Track().look(log, CLOCK, 100, nodes=100) == [Segment(SEARCH, 0, 100, "3.5")]


def test_what_was_overwritten_is_lost() -> None:
    track = Track()
    log = log_of([(TRACE_TAKE, 1, 1)], capacity=8)
    track.look(log, CLOCK, 10)
    for number in range(20):
        write(log, (TRACE_IDLE if number % 2 else TRACE_JOIN, 20 + 10 * number, 21 + 10 * number))
    found = track.look(log, CLOCK, 300)
    check_tiles(found, 10, 300)
    assert found[0].kind == LOST
    # the oldest of the eight may be half overwritten already: it is not taken
    assert found[0].end >= 20 + 10 * 13
    assert {segment.kind for segment in found[1:]} <= {JOIN, SEARCH, IDLE}


def test_events_that_are_overwritten_while_they_are_copied_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from psearch.lab.watching import tracks

    log = log_of([(TRACE_JOIN, 10 * n, 10 * n + 1) for n in range(8)], capacity=8)
    copied = tracks._copied

    def slow(events: np.ndarray, first: int, count: int) -> list[tracks.Event]:
        found = copied(events, first, count)
        for number in range(4):
            write(log, (TRACE_IDLE, 100 + number, 100 + number))
        return found

    monkeypatch.setattr(tracks, "_copied", slow)
    found = Track().look(log, CLOCK, 200)
    check_tiles(found, 0, 200)
    assert found[0] == Segment(LOST, 0, 51, "")


def test_more_segments_than_can_be_sent_become_cells() -> None:
    log = log_of([(TRACE_IDLE if n % 2 else TRACE_JOIN, 10 * n, 10 * n + 1) for n in range(500)], capacity=1024)
    found = Track().look(log, CLOCK, 5000)
    assert len(found) <= MOST_SEGMENTS  # nothing was thrown away
    check_tiles(found, 0, 5000)


def test_clocks_that_disagree_give_no_gap() -> None:
    log = log_of([(TRACE_TAKE, 50, 50), (TRACE_IDLE, 30, 30), (TRACE_JOIN, 20, 90), (TRACE_IDLE, 500, 500)])
    found = Track().look(log, CLOCK, 100)
    assert found[0].begin == 0
    plain = [segment for segment in found if segment.kind != ABORTED]
    assert all(one.end == other.begin for one, other in itertools.pairwise(plain))


@pytest.mark.parametrize("looks", [1, 7, 40])
def test_tracks_are_those_of_the_trace_whenever_one_looks(
    begun: Callable[..., Simulator], looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from psearch.lab.watching import tracks as watched

    monkeypatch.setattr(watched, "MOST_SEGMENTS", 10_000)
    simulator = begun(workers=4)
    recorder = simulator.recorder
    assert recorder is not None and simulator.arena.trace_logs is not None
    tracks = [Track() for _ in range(4)]
    clock = Clock(0, 1e-6)
    found: list[list[Segment]] = [[] for _ in range(4)]
    end = 8
    for number in range(1, looks + 1):
        now = end * number / looks
        simulator.advance_to(round(now * TICKS_PER_MS))
        # turns that began before may have gone on for a while: what they did is seen at the next look
        for worker, track in enumerate(tracks):
            log = simulator.arena.trace_logs[worker : worker + 1]
            nodes = int(simulator.arena.worker["nodes"][worker])
            found[worker] += track.look(log, clock, round(now * 1000), nodes)
    recorder.end(end * TICKS_PER_MS)
    for worker in range(4):
        wanted = segments_of(list(recorder.slices_of(worker)))
        for kind in (SEARCH, IDLE):
            ours, theirs = (
                sum(segment.end - segment.begin for segment in track if segment.kind == kind)
                for track in (found[worker], wanted)
            )
            assert abs(ours - theirs) <= 0.02 * end * 1000
        searched = sum(one.end - one.begin for one in found[worker] if one.kind == SEARCH)
        wasted = sum(one.end - one.begin for one in found[worker] if one.kind == ABORTED)
        record = simulator.arena.worker[worker]
        assert wasted / searched == pytest.approx(record["counters"]["aborted_nodes"] / record["nodes"], abs=0.01)


def test_what_a_stop_ends_was_not_thrown_away(begun: Callable[..., Simulator]) -> None:
    simulator = begun(workers=4)
    simulator.advance_to(8 * TICKS_PER_MS)
    workers, logs = simulator.arena.worker, simulator.arena.trace_logs
    assert logs is not None and (workers["stack"] >= 0).sum() > 1

    def thrown_away() -> tuple[int, int]:
        events = [log["events"][: log["head"]["count"]] for log in logs]
        unwound = sum(int(((one["kind"] == TRACE_ABORT) & (one["outcome"] == 0)).sum()) for one in events)
        return int(workers["counters"]["aborted_nodes"].sum()), unwound

    before = thrown_away()
    request_stop(simulator.arena.context)
    simulator.advance_to(20 * TICKS_PER_MS)
    assert simulator.arena.header["done"][0] and thrown_away() == before


# -- cells: the same time, in fewer pieces


def track_of(lengths: list[tuple[int, int]]) -> list[Segment]:
    found, at = [], 0
    for kind, length in lengths:
        found.append(Segment(kind, at, at + length))
        at += length
    return found


def check_covers(segments: list[Segment], begin: int, end: int) -> None:
    assert segments[0].begin == begin and segments[-1].end == end
    for one, other in itertools.pairwise(segments):
        assert one.end == other.begin
        assert one.begin < one.end


@given(
    st.lists(st.tuples(st.sampled_from([SEARCH, JOIN, IDLE, LOST]), st.integers(1, 1000)), min_size=1, max_size=200),
    st.integers(1, 40),
)
def test_the_time_is_covered_by_no_more_than_so_many(lengths: list[tuple[int, int]], count: int) -> None:
    segments = track_of(lengths)
    end = segments[-1].end
    found = in_cells(segments, 0, end, count)
    assert len(found) <= max(count, 1) or len(segments) <= count
    if end >= count:  # shorter cells than a microsecond are none
        check_covers(found, 0, end)


@given(
    st.lists(
        st.tuples(st.sampled_from([SEARCH, JOIN, IDLE]), st.integers(1, 1000), st.floats(0, 1)),
        min_size=20,
        max_size=200,
    )
)
def test_each_kind_has_as_many_cells_as_it_has_time(parts: list[tuple[int, int, float]]) -> None:
    """However short its stretches are; and work thrown away lies over searching."""
    plain = track_of([(kind, length) for kind, length, _ in parts])
    wasted = [
        Segment(ABORTED, one.end - round(share * (one.end - one.begin)), one.end)
        for one, (kind, _, share) in zip(plain, parts, strict=True)
        if kind == SEARCH and round(share * (one.end - one.begin))
    ]
    end = plain[-1].end
    found = in_cells([*plain, *wasted], 0, end, 10)
    for kind in (SEARCH, JOIN, IDLE):
        assert abs(time_of(found, kind) - time_of(plain, kind)) <= 0.3 * end + 10
    searched = [one for one in found if one.kind == SEARCH]
    for one in found:
        if one.kind == ABORTED:
            assert any(other.begin <= one.begin and one.end <= other.end for other in searched)


def time_of(segments: list[Segment], kind: int) -> int:
    return sum(one.end - one.begin for one in segments if one.kind == kind)


def test_stretches_shorter_than_half_a_cell_are_counted_on() -> None:
    """A tenth of the time idle, and a fifth thrown away: so much of the picture is."""
    segments = track_of([(SEARCH, 90), (IDLE, 10)] * 1000)
    segments += [Segment(ABORTED, 100 * number + 70, 100 * number + 90) for number in range(1000)]
    found = in_cells(segments, 0, 100_000, 400)
    assert abs(time_of(found, IDLE) - 10_000) <= 500
    assert abs(time_of(found, ABORTED) - 20_000) <= 500


def test_work_thrown_away_is_seen_where_it_is_most_of_a_cell() -> None:
    segments = [*track_of([(SEARCH, 10)] * 100), Segment(ABORTED, 400, 500)]
    assert in_cells(segments, 0, 1000, 10) == [Segment(SEARCH, 0, 1000), Segment(ABORTED, 400, 500)]


def test_packed_leaves_out_what_is_not_there() -> None:
    assert packed([Segment(SEARCH, 1, 2), Segment(JOIN, 2, 3, "1.7")]) == [[SEARCH, 1, 2], [JOIN, 2, 3, "1.7"]]
