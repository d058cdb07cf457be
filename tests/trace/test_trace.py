"""Traces: files that viewers open, true to what the workers did, and no part in the search."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import chess
import numpy as np
import pytest
from paths import REPOSITORY
from positions import KIWIPETE, MATED, MIDDLE_GAME
from programs import PSEARCH, run_here
from timing import last_bound

from psearch.arena.arena import Arena
from psearch.faces.cli import main as cli
from psearch.games import Game
from psearch.options import SearchOptions
from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits, PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.trace.recorder import Abandoned, Recorder, trace_capacity
from psearch.trace.trace_file import Slice, check_trace, on_lanes, replacing
from psearch_core.constants import BOUND_EXACT, CLOSED_CUTOFF
from psearch_core.records import (
    CACHE_LINE,
    TRACE_ABORT,
    TRACE_IDLE,
    TRACE_JOIN,
    TRACE_ROOT,
    TRACE_SPLIT,
    TRACE_TAKE,
    frame_dtype,
    trace_event_dtype,
)

Run = Callable[..., tuple[int, str, str]]
NS_PER_US = 1000
TIC_TAC_TOE = str(REPOSITORY / "docs" / "examples" / "tic_tac_toe.py")
SEARCH_PID, WORKERS_PID, SPLITS_PID = 1, 2, 3
ITERATIONS, FIRST_WORKER, FIRST_SPLITS = 10, 1000, 10_000
ACTIVITIES = {"search", "idle", "join", "not recorded"}
OUTCOMES = {"exhausted", "cutoff", "aborted"}

pytestmark = pytest.mark.usefixtures("search_kernels")


@pytest.fixture
def suite(tmp_path: Path) -> str:
    (tmp_path / "suite.epd").write_text(f"{KIWIPETE}\n{MIDDLE_GAME}\n")
    return str(tmp_path / "suite.epd")


# -- reading a trace -------------------------------------------------------------------------------------------------


class Trace:
    """A file, checked for what the format asks, as nested tracks."""

    def __init__(self, text: str) -> None:
        whole = json.loads(text)
        self.facts = whole["otherData"]
        self.top: dict[tuple[int, int], list[Slice]] = {}
        self.nested: dict[tuple[int, int], list[Slice]] = {}
        self.names: dict[tuple[int, int], str] = {}
        open_slices: dict[tuple[int, int], list[Slice]] = {}
        for event in whole["traceEvents"]:
            assert {"ph", "name", "pid", "tid", "ts"} <= set(event), event
            track = (event["pid"], event["tid"])
            if event["ph"] == "M":
                if event["name"] == "thread_name":
                    assert event["tid"] > 0 and event["tid"] not in {tid for _, tid in self.names}
                    self.names[track] = event["args"]["name"]
                continue
            assert event["ph"] == "X" and event["ts"] >= 0 and event["dur"] >= 0, event
            assert track in self.names
            begin = round(event["ts"] * NS_PER_US)
            part = Slice(event["name"], begin, begin + round(event["dur"] * NS_PER_US), event["args"])
            # a viewer nests what it finds inside the last slice: nothing may overlap its end
            around = open_slices.setdefault(track, [])
            instant = part.name == "aborted work" and part.begin == part.end  # belongs to what ends there, too
            while around and (part.begin > around[-1].end or (part.begin == around[-1].end and not instant)):
                around.pop()
            assert not around or around[-1].begin <= part.begin <= part.end <= around[-1].end, (around[-1], part)
            (self.nested if around else self.top).setdefault(track, []).append(part)
            around.append(part)
        for name in list(self.top) + list(self.nested):
            begins = [part.begin for part in self.top.get(name, [])]
            assert begins == sorted(begins)

    def worker(self, number: int) -> list[Slice]:
        return self.top[WORKERS_PID, FIRST_WORKER + number]

    def within(self, number: int, name: str) -> list[Slice]:
        return [part for part in self.nested.get((WORKERS_PID, FIRST_WORKER + number), []) if part.name == name]

    @property
    def workers(self) -> int:
        return sum(pid == WORKERS_PID for pid, _ in self.names)

    @property
    def lives(self) -> dict[str, Slice]:
        found: dict[str, Slice] = {}
        for (pid, _), parts in self.top.items():
            for life in parts if pid == SPLITS_PID else ():
                assert life.args["split"] not in found
                found[life.args["split"]] = life
        assert not any(pid == SPLITS_PID for pid, _ in self.nested)
        return found

    @property
    def iterations(self) -> list[Slice]:
        assert (SEARCH_PID, ITERATIONS) not in self.nested
        return self.top[SEARCH_PID, ITERATIONS]

    def joins(self, number: int) -> list[Slice]:
        return [part for part in self.worker(number) if part.name == "join"]

    def time(self, number: int, name: str) -> int:
        return sum(part.end - part.begin for part in self.worker(number) if part.name == name)


OLDER = '{"displayTimeUnit":"ns","otherData":{"psearch":"1.0"},"traceEvents":[]}'
"""a trace of before"""


def check_tracks(trace: Trace, end: int) -> None:
    """Every worker's track is filled from the start to the end of the search, and helpers join living nodes."""
    lives = trace.lives
    for number in range(trace.workers):
        parts = trace.worker(number)
        assert {part.name for part in parts} <= ACTIVITIES
        assert parts[0].begin == 0
        for before, after in itertools.pairwise(parts):
            assert before.end == after.begin
        assert parts[-1].end == end
        assert sum(trace.time(number, name) for name in ACTIVITIES) == end
        for join in trace.joins(number):
            assert 0 <= join.args["p_needed"] <= 1
            life = lives[join.args["split"]]
            if trace.facts["clock"] == "virtual":
                assert life.begin <= join.begin <= life.end
            else:
                # the offer that was seen may have been an older one of the same frame
                assert life.begin <= join.end <= life.end
            assert (life.args["depth"], life.args["ply"]) == (join.args["depth"], join.args["ply"])
        for before, after in itertools.pairwise(parts):
            if before.name == "join":
                # or the search is over, or the log full, by then
                assert after.name != "search" or after.args["split"] == before.args["split"]
    last = 0
    for part in trace.iterations:
        assert last <= part.begin <= part.end <= end
        last = part.end


def check_counters(trace: Trace, arena: Arena) -> None:
    """The trace counts what the workers counted, unless a log was full."""
    joins = Counter(join.args["split"] for number in range(trace.workers) for join in trace.joins(number))
    assert joins == {split: life.args["helpers"] for split, life in trace.lives.items()}
    assert len(trace.lives) == int(arena.worker["counters"]["splits"].sum())
    for number, worker in enumerate(arena.worker):
        assert len(trace.joins(number)) == int(worker["counters"]["joins"])
        log = arena.trace_logs[number]  # type: ignore[index]
        taken = int(np.count_nonzero(log["events"]["kind"][: log["head"]["count"]] == TRACE_TAKE))
        assert taken == int(worker["counters"]["adopts"]) + (number == 0 or trace.worker(number)[0].name == "search")
        lost = trace.within(number, "aborted work")
        assert sum(part.args.get("nodes", 0) for part in lost) == int(worker["counters"]["aborted_nodes"])
    for life in trace.lives.values():
        assert life.args["outcome"] in OUTCOMES
        assert life.name == life.args["type"] + " node" and life.args["type"] in ("PV", "CUT", "ALL")
        assert 0 <= life.args["p_needed"] <= 1


# -- virtual time ----------------------------------------------------------------------------------------------------


def end_of(sample: VirtualSample) -> int:
    """Nanoseconds, rounded down as all times are."""
    return round(sample.seconds * 1e12) // 1000


Simulate = Callable[..., tuple[Trace, VirtualSample, Simulator]]


@pytest.fixture
def simulate(tmp_path: Path) -> Iterator[Simulate]:
    """Gives what searches in virtual time, and the trace of the search; the simulators are closed at the end."""
    made: list[Simulator] = []

    def search(
        workers: int, depth: int, policy: str = "calibrated", costs: Costs | None = None, room: int = 1 << 16
    ) -> tuple[Trace, VirtualSample, Simulator]:
        made.append(Simulator(workers, 4, costs or Costs(), trace_events=room))
        sample = made[-1].search("x", chess.Board(KIWIPETE), depth, SearchOptions(policy=policy), seed=3)
        return written(made[-1].recorder, tmp_path), sample, made[-1]

    yield search
    for simulator in made:
        simulator.close()


def written(recorder: Recorder | None, folder: Path) -> Trace:
    """The trace of the last search, written and read again."""
    recorder.write(folder / "t.json", {})
    return Trace((folder / "t.json").read_text())


def end_of_tracks(trace: Trace) -> int:
    return max(part.end for part in trace.worker(0))


@pytest.mark.parametrize("costs", [Costs(), replace(Costs(), jitter=0.5)])
@pytest.mark.parametrize(
    ("workers", "policy", "depth"),
    [
        (2, "calibrated", 8),
        (8, "calibrated", 7),
        (64, "calibrated", 7),
        (3, "ybw", 6),
        (64, "kannan", 5),
        (8, "root", 6),
    ],
)
def test_the_trace_is_what_the_workers_did(
    simulate: Simulate, workers: int, policy: str, depth: int, costs: Costs
) -> None:
    trace, sample, simulator = simulate(workers, depth, policy, costs)
    end = end_of(sample)
    assert trace.workers == workers
    check_tracks(trace, end)
    check_counters(trace, simulator.arena)
    assert sample.joins > 0 and trace.facts["dropped_events"] == 0
    assert trace.facts["clock"] == "virtual" and trace.facts["finished"] is True
    # the last idle span of a worker that was woken but has not looked yet is missing from the sample
    tracks = [trace.worker(number) for number in range(workers)]
    lost = sum(parts[-1].end - parts[-1].begin for parts in tracks if parts[-1].name == "idle")
    idle = sum(trace.time(number, "idle") for number in range(workers))
    rounding = sum(map(len, tracks))
    assert -rounding <= idle - sample.idle_share * end * workers <= lost + rounding
    for join in (join for number in range(workers) for join in trace.joins(number) if join.end < end):
        assert join.end - join.begin >= costs.join + costs.lock - 1
    depths = [part.args["depth"] for part in trace.iterations]
    assert depths == sorted(depths) and set(depths) == set(range(1, depth + 1))
    assert [part.args["depth"] for part in trace.iterations if part.args["bound"] == "exact"] == [*range(1, depth + 1)]
    assert trace.iterations[-1].args["score"] == sample.score


def test_what_is_thrown_away_is_shown(simulate: Simulate) -> None:
    trace, sample, _ = simulate(8, 8, costs=Costs().without_sharing())
    assert sample.aborted_nodes > 0
    aborted = [part for number in range(8) for part in trace.within(number, "aborted work")]
    assert {part.args["cause"] for part in aborted} == {"unwound", "value came too late"}
    assert {life.args["outcome"] for life in trace.lives.values()} == OUTCOMES
    # a node costs its time: whoever threw away many has spent that long on them
    for part in aborted:
        if part.args.get("nodes", 0):
            low, high = part.args["nodes"] * Costs().node, part.args["nodes"] * Costs().qnode + Costs().join + 150
            assert low - 1 <= part.end - part.begin <= high or part.begin == part.end
    assert max(part.args.get("nodes", 0) for part in aborted) > 10


@pytest.mark.parametrize("policy", ["lazy", "abdada"])
def test_every_worker_has_a_root_where_nothing_is_split(simulate: Simulate, policy: str) -> None:
    trace, sample, simulator = simulate(4, 6, policy)
    check_tracks(trace, end_of(sample))
    check_counters(trace, simulator.arena)
    assert trace.lives == {}
    for number in range(4):
        assert trace.worker(number)[0].name == "search"
        assert trace.worker(number)[0].args["split"] == "root"
        roots = [
            part
            for part in trace.nested.get((WORKERS_PID, FIRST_WORKER + number), [])
            if part.name.startswith("depth ")
        ]
        assert (len(roots) > 3) == (number > 0)  # those of worker 0 are the iterations
    assert trace.iterations[-1].args == {**trace.iterations[-1].args, "depth": 6, "bound": "exact"}


@pytest.mark.parametrize("policy", ["serial", "calibrated"])
def test_one_worker_searches_all_the_time(simulate: Simulate, policy: str) -> None:
    trace, sample, _ = simulate(1, 5, policy)
    (only,) = [part for part in trace.worker(0) if part.end > part.begin]
    assert (only.name, only.begin, only.end) == ("search", 0, end_of(sample))
    assert trace.lives == {} and len(trace.iterations) >= 5


@pytest.mark.parametrize(("workers", "policy"), [(1, "serial"), (8, "calibrated"), (64, "ybw"), (4, "lazy")])
def test_recording_does_not_change_the_search(simulate: Simulate, workers: int, policy: str) -> None:
    _, traced, simulator = simulate(workers, 6, policy)
    plain = Simulator(workers, 4, Costs())
    assert plain.recorder is None and plain.arena.trace_logs is None
    assert int(plain.arena.context_array[0]["trace"]) == 0
    assert plain.search("x", chess.Board(KIWIPETE), 6, SearchOptions(policy=policy), seed=3) == traced
    for name in ("opened", "split", "began", "entered"):  # off: no time stamp, no number anywhere
        assert not plain.arena.frames["trace"][name].any()
    assert simulator.arena.frames["trace"]["entered"].any()
    plain.close()


def test_the_same_bytes_every_time(tmp_path: Path, suite: str) -> None:
    found = set()
    for name in ("first.json", "second.json"):
        words = ["--workers", "8", "--suite", suite, "--positions", "1", "--depth", "6", "--jitter", "0.3"]
        words += ["--seed", "5", "--trace", str(tmp_path / name), "--log", str(tmp_path / "log.jsonl")]
        assert run_here("simulate", *words).returncode == 0
        found.add((tmp_path / name).read_bytes())
    (text,) = found
    trace = Trace(text.decode())
    assert trace.workers == 8
    assert trace.facts["position"] == KIWIPETE and trace.facts["seed"] == 5 and trace.facts["depth"] == 6
    assert trace.facts["driver"] == "pvs"


@pytest.mark.parametrize(
    "words", [["game", "--threads", "2"], ["simulate", "--workers", "8", "--depth", "6", "--game"]]
)
def test_moves_of_a_game_are_in_its_words(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    assert cli.main([*words, TIC_TAC_TOE, "15", "--trace", str(path)]) == 0
    trace = Trace(path.read_text())
    assert (trace.facts["game"], trace.facts["position"]) == ("tic-tac-toe", "15")
    joins = [join for number in range(trace.workers) for join in trace.joins(number)]
    moves = {part.args["move"] for part in [*joins, *trace.iterations] if "move" in part.args}
    assert moves and moves <= set("2346789")


def test_a_move_that_has_no_words_here_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    game = Game(TIC_TAC_TOE)
    position = game.start()
    assert position.name_of(9) == "9"
    monkeypatch.setattr(game._module, "move_text", lambda pos, move: str(1 // 0))
    assert position.name_of(9) == "8"


def test_1024_workers(simulate: Simulate) -> None:
    trace, sample, simulator = simulate(1024, 7, room=trace_capacity(1024))
    check_tracks(trace, end_of(sample))
    check_counters(trace, simulator.arena)
    assert trace.workers == 1024


def test_a_full_log_says_so(simulate: Simulate) -> None:
    trace, sample, simulator = simulate(8, 7, room=20)
    _, unlimited, other = simulate(8, 7)
    assert sample == unlimited
    end = end_of(sample)
    dropped = 0
    assert simulator.recorder is not None and other.recorder is not None
    for number in range(8):
        parts = trace.worker(number)
        assert parts[0].begin == 0 and parts[-1].end == end
        assert all(before.end == after.begin for before, after in itertools.pairwise(parts))
        assert [part.name for part in parts].count("not recorded") == 1
        assert parts[-1].name == "not recorded"
        dropped += parts[-1].args["events"]
    assert dropped == trace.facts["dropped_events"] == sum(simulator.recorder.dropped.values()) > 100
    logged = [int(each.arena.trace_logs["head"]["count"].sum()) for each in (simulator, other)]  # type: ignore[index]
    assert logged[0] == 8 * 20 and logged[0] + dropped == logged[1]


def test_a_log_that_is_just_big_enough(simulate: Simulate) -> None:
    whole, _, simulator = simulate(2, 6)
    counts = simulator.arena.trace_logs["head"]["count"]  # type: ignore[index]
    fits, _, _ = simulate(2, 6, room=int(counts.max()))
    assert (fits.top, fits.nested, fits.facts) == (whole.top, whole.nested, whole.facts)
    short, _, _ = simulate(2, 6, room=int(counts.max()) - 1)
    assert short.facts["dropped_events"] >= 1


def test_a_search_cut_short_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psearch.simulation.simulator._EVENTS_PER_CALL", 2000)
    simulator = Simulator(8, 4, Costs(), trace_events=4096)
    assert simulator.recorder is not None
    looks = 0

    def interrupt() -> None:
        nonlocal looks
        looks += 1
        if looks >= 30 and any(simulator.arena.frames["node"]["open"] * simulator.arena.frames["node"]["joined"] > 0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulator.search("x", chess.Board(KIWIPETE), 12, SearchOptions(), watch=interrupt)
    trace = written(simulator.recorder, tmp_path)
    check_tracks(trace, int(simulator.simulation[0]["now"]) // 1000)
    assert trace.facts["finished"] is False
    assert trace.iterations[-1].args["bound"] == "unfinished"
    joins = Counter(join.args["split"] for number in range(8) for join in trace.joins(number))
    assert joins == {split: life.args["helpers"] for split, life in trace.lives.items()}
    assert 0 < sum(life.args["outcome"] == "unfinished" for life in trace.lives.values()) < len(trace.lives)
    simulator.close()


def test_each_search_has_a_trace_of_its_own(tmp_path: Path) -> None:
    simulator = Simulator(8, 4, Costs(), trace_events=4096)
    texts = []
    for depth in (6, 4, 6):
        sample = simulator.search("x", chess.Board(KIWIPETE), depth, SearchOptions())
        trace = written(simulator.recorder, tmp_path)
        texts.append((tmp_path / "t.json").read_text())
        check_tracks(trace, end_of(sample))
        check_counters(trace, simulator.arena)
    assert texts[0] == texts[2] != texts[1]
    simulator.close()


# -- events that seldom come, made by hand ---------------------------------------------------------------------------


KINDS = {"join": TRACE_JOIN, "idle": TRACE_IDLE, "take": TRACE_TAKE, "abort": TRACE_ABORT}
KINDS |= {"split": TRACE_SPLIT, "root": TRACE_ROOT}
ByHand = Callable[[int, str], Trace]


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[ByHand]:
    """Writes events into the log of worker 0 of two, and gives the trace that ends at some time.

    Events are words with commas between them: the kind, when it began if that is not all, the time, other fields.
    """
    arena = Arena(2, 1, trace_events=64)
    recorder = Recorder(arena, virtual=True)

    def write(end: int, events: str) -> Trace:
        recorder.begin()
        arena.header["done"] = 1
        log = arena.trace_logs[0]  # type: ignore[index]
        for number, (kind, *words) in enumerate(map(str.split, events.split(","))):
            times = [1000 * int(word) for word in words if "=" not in word]
            event = np.zeros(1, trace_event_dtype)[0]
            event["kind"], event["begin"], event["time"] = KINDS[kind], times[0], times[-1]
            event["frame"], event["split"] = 5, 1 << 10
            for name, value in (word.split("=") for word in words if "=" in word):
                event[name] = int(value)
            log["events"][number] = event
        log["head"]["count"] = number + 1
        recorder.end(end * 1000)
        return written(recorder, tmp_path)

    yield write
    arena.close()


def spans(parts: list[Slice]) -> str:
    return ", ".join(f"{part.name} {part.begin} {part.end}" for part in parts)


def test_an_abort_reaches_back_over_adopted_stacks_but_not_over_idle_time(by_hand: ByHand) -> None:
    trace = by_hand(1000, "join 100 110, idle 200, join 300 310, take 400, abort 50 500 value=7, idle 510")
    assert spans(trace.worker(0)) == (
        "idle 0 100, join 100 110, search 110 200, idle 200 300, join 300 310, search 310 400, search 400 510, "
        "idle 510 1000"
    )
    aborted = trace.within(0, "aborted work")
    assert spans(aborted) == "aborted work 310 400, aborted work 400 500"
    assert sum(part.args.get("nodes", 0) for part in aborted) == 7


def test_aborts_nest(by_hand: ByHand) -> None:
    trace = by_hand(1000, "take 0, abort 100 200 value=1, abort 50 300 value=2, abort 250 400 value=3")
    found = [(part.begin, part.end, part.args["nodes"]) for part in trace.within(0, "aborted work")]
    assert found == [(50, 300, 2), (100, 200, 1), (300, 400, 3)]


def test_clocks_that_disagree_leave_a_track_in_order(by_hand: ByHand) -> None:
    """Time stamp counters of two sockets may differ: nothing may begin before the start or end before it begins."""
    events = "join -50 -20, idle 300, join 280 290, abort 2000 250 value=1, "
    events += f"split 700 600 helpers=2 outcome={CLOSED_CUTOFF}, root 900 100 frame=0 depth=3 outcome={BOUND_EXACT}"
    trace = by_hand(1000, f"{events}, idle 1500")
    assert spans(trace.worker(0)) == "join 0 0, search 0 300, join 300 300, search 300 1000"
    assert [(life.begin, life.end) for life in trace.lives.values()] == [(700, 700)]


def test_lives_that_overlap_lie_on_different_tracks(by_hand: ByHand) -> None:
    lives = enumerate([(0, 50), (10, 20), (20, 60), (30, 40), (60, 70)], start=1)
    trace = by_hand(100, ", ".join(f"split {begin} {end} split={number << 10}" for number, (begin, end) in lives))
    tracks = {tid: parts for (pid, tid), parts in trace.top.items() if pid == SPLITS_PID}
    assert {tid - FIRST_SPLITS: [(part.begin, part.end) for part in parts] for tid, parts in tracks.items()} == {
        0: [(0, 50), (60, 70)],
        1: [(10, 20), (20, 60)],
        2: [(30, 40)],
    }


def test_lanes_are_as_few_as_possible_and_nothing_overlaps_on_one() -> None:
    dice = random.Random(7)
    for _ in range(200):
        spans = sorted((begin, begin + dice.randrange(8)) for begin in (dice.randrange(40) for _ in range(30)))
        placed = [(lane, part.begin, part.end) for lane, part in on_lanes(Slice("", *span, {}) for span in spans)]
        assert [span for _, *span in placed] == [list(span) for span in spans]
        for number in {lane for lane, _, _ in placed}:
            ends = [0]
            for begin, end in (span for lane, *span in placed if lane == number):
                assert begin >= ends[-1]
                ends.append(end)
        most = max(sum(begin <= at < max(end, begin + 1) for begin, end in spans) for at in range(48))
        assert len({lane for lane, _, _ in placed}) <= most


def test_room() -> None:
    assert frame_dtype.itemsize % (2 * CACHE_LINE) == CACHE_LINE
    for workers in (1, 2, 64, 1024):
        assert trace_capacity(workers) * trace_event_dtype.itemsize * workers <= 128 << 20
        assert trace_capacity(workers) >= 2048
    with pytest.raises(PsearchError, match="room for a trace"):
        arena = Arena(1, 1)
        try:
            Recorder(arena)
        finally:
            arena.close()
    with pytest.raises(PsearchError, match="not enough memory"):
        Arena(1024, 1, trace_events=1 << 40)


# -- real processes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("threads", "method"), [(1, "fork"), (2, "fork"), (2, "forkserver"), (5, "fork")])
def test_real_processes(tmp_path: Path, threads: int, method: str) -> None:
    with Supervisor(threads, 16, start_method=method, trace=True) as engine:
        assert engine.recorder is not None
        apart: list[float] = []
        for depth in (5, 7, 14):
            result = engine.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=depth)))
            trace = written(engine.recorder, tmp_path)
            end = end_of_tracks(trace)
            check_tracks(trace, end)
            check_counters(trace, engine.arena)
            assert trace.workers == threads and trace.facts["clock"] == "real"
            assert trace.iterations[-1].args["depth"] == depth
            apart.append(abs(end / 1e9 - result.info.time_s))
            assert trace.iterations[-1].end <= end
    # the supervisor's clock, read a little later at the start and earlier or later at the end
    assert min(apart) < 0.25
    if threads == 2:
        assert len(trace.lives) > 0


def test_a_search_that_is_stopped(tmp_path: Path) -> None:
    with Supervisor(3, 16, trace=True) as engine:

        def search() -> str:
            control = SearchControl()

            def stop(info: Info) -> None:
                if info.depth >= 10:  # the next depth takes much longer than a signal
                    control.stop()

            request = SearchRequest(chess.Board(KIWIPETE), Limits(), control=control, on_info=stop)
            engine.forget()
            engine.search(request)
            trace = written(engine.recorder, tmp_path)
            check_tracks(trace, end_of_tracks(trace))
            assert [len(trace.joins(number)) for number in range(3)] == (
                engine.arena.worker["counters"]["joins"].tolist()
            )
            return str(trace.iterations[-1].args["bound"])

        assert last_bound(search) == "stopped"


def test_a_worker_is_halted_and_killed(tmp_path: Path) -> None:
    with Supervisor(3, 16, trace=True) as engine:
        assert engine.recorder is not None

        def halt(info: Info) -> None:
            if info.time_s > 0.5 and not control.is_stopped:
                for worker in engine.pool.workers:
                    os.kill(worker.pid, signal.SIGSTOP)
                control.stop()

        control = SearchControl()
        engine.search(SearchRequest(chess.Board(KIWIPETE), Limits(), control=control, on_info=halt))
        engine.settle()
        assert engine.pool.is_broken
        trace = written(engine.recorder, tmp_path)
    assert trace.facts["finished"] is False
    assert trace.workers == 3 and len(trace.iterations) > 3
    end = trace.worker(0)[-1].end
    assert end > 0.5e9
    for number in range(3):
        assert trace.worker(number)[0].begin == 0 and trace.worker(number)[-1].end == end


def test_a_death_begins_the_trace_anew(tmp_path: Path) -> None:
    with Supervisor(2, 16, trace=True) as engine:
        died_s: list[float] = []

        def kill(info: Info) -> None:
            if not died_s and info.time_s > 0.3:
                died_s.append(info.time_s)
                engine.pool.workers[1].kill()

        result = engine.search(SearchRequest(chess.Board(KIWIPETE), Limits(movetime_ms=1500), on_info=kill))
        assert "new workers continue" in result.notes[0]
        engine.settle()
        trace = written(engine.recorder, tmp_path)
    assert 0.1e9 < trace.worker(0)[-1].end < (result.info.time_s - died_s[0] + 0.05) * 1e9


def test_several_best_moves(tmp_path: Path) -> None:
    """One trace for all lines of a search: each search of the root says which line it was for."""
    with Supervisor(2, 16, trace=True) as engine:
        result = engine.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), multipv=3))
        trace = written(engine.recorder, tmp_path)
        check_tracks(trace, end_of_tracks(trace))
        check_counters(trace, engine.arena)
    exact = [part for part in trace.iterations if part.args["bound"] == "exact"]
    lines = ["", ", line 2", ", line 3"]
    assert [part.name for part in exact] == [f"depth {depth}{line}" for depth in range(1, 7) for line in lines]
    assert {part.args["move"] for part in exact[-3:]} == {line.pv[0].uci() for line in result.lines}


def test_a_trace_that_is_not_wanted_any_more_leaves_what_was_there(tmp_path: Path) -> None:
    """It is given up at the first look, at the last, and between; how many there are depends on the workers."""
    path = tmp_path / "t.json"
    path.write_text(OLDER)
    asked = 0
    last = -1

    def is_wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked != last

    with Supervisor(2, 16, trace=True) as engine:
        assert engine.recorder is not None
        engine.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=9)))
        engine.recorder.write(tmp_path / "whole.json", {}, is_wanted)
        looks = asked
        assert looks >= 2
        for last in {1, 2, looks // 2, looks}:
            asked = 0
            with pytest.raises(Abandoned):
                engine.recorder.write(path, {}, is_wanted)
            assert asked == last
            assert path.read_text() == OLDER and sorted(os.listdir(tmp_path)) == ["t.json", "whole.json"]
        engine.recorder.write(path, {})
    assert Trace(path.read_text()).workers == 2


# -- the command line ------------------------------------------------------------------------------------------------


def test_search_command(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(OLDER)
    done = run_here("--json", "--threads", "2", "--depth", "8", "--trace", str(path), KIWIPETE)
    assert (done.returncode, done.stderr) == (0, f"trace: {path}\n")
    report = json.loads(done.stdout)
    trace = Trace(path.read_text())
    assert trace.facts["position"] == KIWIPETE and trace.facts["policy"] == "calibrated"
    assert trace.facts["driver"] == "auto"
    assert [len(trace.joins(number)) for number in range(2)] == [worker["joins"] for worker in report["workers"]]
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


def searching(words: list[str]) -> subprocess.Popen[str]:
    """A command that has begun to search."""
    process = subprocess.Popen([*PSEARCH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline().startswith("depth 1")
    return process


def test_ctrl_c_writes_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    words = ["--threads", "2", "--movetime", "100000", "--trace", str(path), KIWIPETE]

    def search() -> str:
        process = searching(words)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "interrupted" in out and err == f"trace: {path}\n"
        return str(Trace(path.read_text()).iterations[-1].args["bound"])

    assert last_bound(search) == "stopped"


def test_a_killed_worker_leaves_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    process = searching(["--threads", "2", "--movetime", "1500", "--trace", str(path), KIWIPETE])
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    time.sleep(0.3)  # the trace is to be without this time
    os.kill(int(children[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == f"psearch: worker 1 was killed by signal 9; new workers continue\ntrace: {path}\n"
    assert Trace(path.read_text()).worker(0)[-1].end < 1.5e9, "of the time since then"


def test_a_trace_that_cannot_be_written(tmp_path: Path, suite: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*arguments: object, **names: object) -> None:
        raise AssertionError("searched before looking at the path")

    monkeypatch.setattr("psearch.processes.supervisor.Supervisor.__init__", unexpected)
    monkeypatch.setattr("psearch.simulation.simulator.Simulator.__init__", unexpected)
    commands = ["--depth", "3", "startpos"], ["simulate", "--workers", "2", "--suite", suite, "--depth", "3"]
    places = {tmp_path / "none" / "t.json": "there is no folder", tmp_path: "it is a folder", "-": "standard output"}
    for path, reason in {**places, f"{suite}/t.json": "there is no folder"}.items():
        for words in commands:
            status, out, err = run(*words, "--trace", str(path))
            assert (status, out) == (2, "") and reason in err and err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PsearchError, match="permission denied"):
            check_trace(tmp_path / "t.json")
    finally:
        tmp_path.chmod(0o700)


def test_the_disk_is_full(run: Run) -> None:
    done = run_here("--threads", "1", "--depth", "5", "--json", "--trace", "/dev/full", KIWIPETE)
    assert done.returncode == 1
    assert json.loads(done.stdout)["depth"] == 5  # the answer is not lost
    assert "No space left" in done.stderr and done.stderr.count("\n") == 1
    assert Path("/dev/full").is_char_device()


def test_nothing_replaces_what_is_there_until_the_file_is_whole(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text(OLDER)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    with pytest.raises(RuntimeError), replacing(link) as out:
        out.write("half")
        raise RuntimeError
    assert real.read_text() == OLDER
    with replacing(link) as out:
        out.write("new")
        out.flush()
        assert real.read_text() == OLDER
    assert link.is_symlink() and real.read_text() == "new"
    assert {entry.name for entry in tmp_path.iterdir()} == {"real.json", "link.json"}


@pytest.mark.parametrize("name", ["mine.py", "mine.json", "mine.json.gz"])
def test_a_file_of_another_kind_is_not_replaced(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for content in (b"MOVES = 9\n", b'{"node": 280.0}\n', gzip.compress(b"1. e4 *")):
        path.write_bytes(content)
        for option in ("--trace", "--record"):
            status, out, err = run("--depth", "1", option, str(path), "startpos")
            assert (status, out) == (2, "") and "that file holds something else" in err and err.count("\n") == 1
        assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_traces_and_recordings_replace_each_other(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for text in ('{"displayTimeUnit":"ns"}\n', '{"psearch_recording":1}\n'):
        check_trace(path)
        with replacing(path) as out:
            out.write(text)
        assert (gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()) == text.encode()
    check_trace(path)


def test_one_file_for_two_outputs_is_refused(run: Run, suite: str, tmp_path: Path) -> None:
    words = ["simulate", "--workers", "2", "--suite", suite, "--depth", "2", "--positions", "1"]
    (tmp_path / "link").symlink_to("x")
    for first, second in (("log", "trace"), ("log", "record"), ("trace", "record")):
        status, out, err = run(*words, f"--{first}", str(tmp_path / "x"), f"--{second}", str(tmp_path / "link"))
        assert (status, out, err) == (2, "", f"psearch: --{first} and --{second} name the same file\n")
    assert run(*words, "--trace", "/dev/null", "--record", "/dev/null")[0] == 0


def test_an_empty_file_may_become_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.touch()
    check_trace(path)
    with Supervisor(1, 16, trace=True) as engine:
        assert engine.recorder is not None
        engine.search(SearchRequest(chess.Board(), Limits(depth=2)))
        assert written(engine.recorder, tmp_path).workers == 1
    check_trace(path)


def test_a_game_that_is_over(tmp_path: Path, run: Run) -> None:
    status, out, err = run("--trace", str(tmp_path / "t.json"), MATED)
    assert status == 0 and out.startswith("checkmate")
    assert "no trace" in err and err.count("\n") == 1
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--workers", "2", "--positions", "2"], "not 2, 1, 1 and 1"),
        (["--workers", "2,4", "--positions", "1"], "not 1, 2, 1 and 1"),
        (["--workers", "2", "--positions", "1", "--policy", "ybw,calibrated"], "not 1, 1, 2 and 1"),
        (["--workers", "2", "--positions", "1", "--repeat", "3"], "not 1, 1, 1 and 3"),
        (["--workers", "2", "--positions", "1", "--jobs", "2"], "leave out --jobs"),
    ],
)
def test_simulate_traces_one_search(tmp_path: Path, suite: str, run: Run, words: list[str], reason: str) -> None:
    words = [*words, "--depth", "3", "--suite", suite, "--log", str(tmp_path / "log"), "--trace"]
    status, out, err = run("simulate", *words, str(tmp_path / "t.json"))
    assert (status, out) == (2, "") and reason in err and err.count("\n") == 1
    assert {entry.name for entry in tmp_path.iterdir()} == {"suite.epd"}
    status, _, err = run("simulate", "--from-log", "x", "--trace", str(tmp_path / "t.json"))
    assert status == 2 and "leave out --trace" in err


def test_simulate_tells_of_a_full_log(tmp_path: Path, suite: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psearch.lab.studies.virtual_study.trace_capacity", lambda workers: 10)
    path = tmp_path / "t.json"
    words = ["--workers", "1,4", "--depth", "6", "--suite", suite, "--positions", "1", "--log", str(tmp_path / "log")]
    status, out, err = run("simulate", *words, "--trace", str(path))
    assert status == 0 and "calibrated" in out
    trace = Trace(path.read_text())
    assert trace.workers == 4
    assert f"trace: {path}" in err
    assert f"incomplete: {trace.facts['dropped_events']:,} events of 4 workers did not fit" in err
