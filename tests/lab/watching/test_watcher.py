"""Looking at real searches, while they run and after them; and at their open nodes."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import chess
import chess.engine
import numpy as np
import pytest
from positions import MIDDLE_GAME
from timing import least, wait_until

import psearch
from psearch.lab.watching import open_nodes as watched_nodes
from psearch.lab.watching.node_lines import ChessLines, board_of
from psearch.lab.watching.open_nodes import MOST_NODES, Memory, read_open_nodes, score_or_none
from psearch.lab.watching.tracks import ABORTED, SEARCH
from psearch.lab.watching.watcher import WatchedSearch, Watcher
from psearch.processes.supervisor import Supervisor
from psearch.results import PsearchError
from psearch.simulation.simulator import Simulator
from psearch.trace import recorder as recorders
from psearch.trace.recorder import split_name
from psearch_core.records import CERTAIN, MAX_PLY


def looks(
    watcher: Watcher, seconds: float, interval_s: float = 0.02, enough: Callable[[list[dict[str, Any]]], bool] = bool
) -> list[dict[str, Any]]:
    """Look for this many seconds, and until there is enough."""
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or (not enough(found) and time.monotonic() < deadline + 60):
        snapshot = watcher.look()
        if snapshot is not None and snapshot["fen"] is not None:
            found.append(snapshot)
        time.sleep(interval_s)
    return found


def check(snapshots: list[dict[str, Any]]) -> None:
    """Times go on without gap, lines can be played, counters never fall."""
    assert not any(snapshot["nodes"] for snapshot in snapshots if snapshot["done"]), "an ended search has no open nodes"
    for one, other in itertools.pairwise(snapshots):
        if one["search"] != other["search"]:
            continue
        assert other["begin"] == one["now"] <= other["now"]
        assert all(other["counters"][name] >= one["counters"][name] for name in ("nodes", "joins", "splits"))
    for snapshot in snapshots:
        assert json.loads(json.dumps(snapshot)) == snapshot
        lines: dict[Any, list[str]] = {None: []}
        for node in snapshot["nodes"]:
            lines[node["id"]] = lines[node["parent"]] + node["moves"]
            board = chess.Board(snapshot["fen"])
            for move in lines[node["id"]]:
                board.push(chess.Move.null()) if move == "0000" else board.push_uci(move)
        for track in snapshot["tracks"]:
            plain = [segment for segment in track if segment[0] != ABORTED]
            assert all(a[2] == b[1] for a, b in itertools.pairwise(plain))


def thrown_away(snapshots: list[dict[str, Any]]) -> list[Any]:
    return [one for snapshot in snapshots for track in snapshot["tracks"] for one in track if one[0] == ABORTED]


@pytest.mark.parametrize(("policy", "driver"), [("lazy", "pvs"), ("ybw", "null")])
def test_a_snapshot_says_how_the_engine_searches(policy: str, driver: str) -> None:
    with psearch.Engine(policy=policy, driver=driver, threads=2, hash_mb=16, watched=True) as engine:
        watcher = Watcher(engine)
        engine.analyse(MIDDLE_GAME, chess.engine.Limit(depth=6))
        last = watcher.look() or {}
        assert (last["policy"], last["driver"]) == (policy, driver)


def test_a_search_is_seen_as_it_runs() -> None:
    with psearch.Engine(threads=2, hash_mb=16, watched=True) as engine:
        watcher = Watcher(engine)
        assert not (watcher.look() or {}).get("fen")
        with engine.analysis(MIDDLE_GAME) as analysis:
            begun = time.monotonic()
            snapshots = looks(watcher, 1.5, enough=lambda found: len(found) > 20 and bool(thrown_away(found)))
            seconds = time.monotonic() - begun
            analysis.stop()
            analysis.wait()
        check(snapshots)
        assert len(snapshots) > 20
        last = snapshots[-1]
        assert last["workers"] == 2 and last["fen"].split()[0] == MIDDLE_GAME.split()[0]
        assert not last["done"] and last["depth"] > 3
        assert any(snapshot["nodes"] for snapshot in snapshots)
        assert any(snapshot["events"] for snapshot in snapshots) and last["line"]["words"]
        assert any(one["workers"] for snapshot in snapshots for node in snapshot["nodes"] for one in node["under_way"])
        thrown = thrown_away(snapshots)
        assert all(begin < end for _, begin, end, *_ in thrown)
        assert thrown, "some work is thrown away"
        tracks = [track for snapshot in snapshots for track in snapshot["tracks"]]
        searched = sum(s[2] - s[1] for track in tracks for s in track if s[0] == SEARCH)
        assert searched > 0.5 * last["now"]  # by one or the other: cores may be others'
        assert abs(last["now"] / 1e6 - seconds) < 1.0
        wait_until(lambda: (watcher.look(with_nodes=False) or {}).get("done"))
        assert (watcher.look(with_nodes=False) or {})["nodes"] == []  # none is open any more
        # another search begins anew
        engine.analyse(chess.STARTING_FEN, chess.engine.Limit(depth=6))
        other = watcher.look()
        assert other is not None and other["search"] == last["search"] + 1
        assert other["fen"].split()[0] == chess.STARTING_BOARD_FEN


def test_the_line_is_the_best_of_several() -> None:
    with psearch.Engine(threads=1, hash_mb=16, watched=True) as engine:
        watcher = Watcher(engine)
        watcher.look()
        best, *others = engine.analyse(MIDDLE_GAME, chess.engine.Limit(depth=6), multipv=3)
        line = (watcher.look() or {})["line"]
        assert len(others) == 2 and line["words"][0] == chess.Board(MIDDLE_GAME).san(best["pv"][0])


@pytest.mark.parametrize("threads", [2, 6])
def test_what_was_thrown_away_is_as_long_as_it_was(threads: int) -> None:
    """It lies where the worker searched, however long it was idle; its share of that worker's time is its share of the
    nodes, unless other programs had the core for some of it; and what a stop ends was not thrown away."""

    def difference() -> float:
        with psearch.Engine(threads=threads, hash_mb=16, watched=True) as engine:
            watcher = Watcher(engine)
            with engine.analysis(MIDDLE_GAME) as analysis:
                snapshots = looks(watcher, 2, enough=lambda found: len(thrown_away(found)) > 20)
                analysis.stop()
                analysis.wait()
            snapshots += looks(watcher, 0.1)
            records = engine._recorder().arena.worker
            nodes, aborted = records["nodes"].copy(), records["counters"]["aborted_nodes"].copy()
        check(snapshots)
        differences = []
        for worker in range(threads):
            segments = [one for snapshot in snapshots for one in snapshot["tracks"][worker]]
            searching = [one for one in segments if one[0] == SEARCH]
            searched = sum(one[2] - one[1] for one in searching)
            wasted = 0
            for _, begin, end, *_ in (one for one in segments if one[0] == ABORTED):
                assert sum(max(0, min(end, one[2]) - max(begin, one[1])) for one in searching) == end - begin
                wasted += end - begin
            share = aborted[worker] / nodes[worker]
            differences.append(abs(wasted / searched - share))
        return max(differences)

    assert least(difference, 0.01) < 0.01


def test_other_workers_and_none() -> None:
    with psearch.Engine(threads=1, hash_mb=1, watched=True) as engine:
        watcher = Watcher(engine)
        engine.analyse(MIDDLE_GAME, chess.engine.Limit(depth=5))
        before = watcher.look()
        engine.configure({"Threads": 2})
        engine.analyse(MIDDLE_GAME, chess.engine.Limit(depth=5))
        after = watcher.look()
        assert (before["workers"], after["workers"]) == (1, 2)
        assert len(after["tracks"]) == len(after["load"]) == 2
    assert watcher.look() is None
    with psearch.Engine(threads=1, hash_mb=1) as engine:
        assert Watcher(engine).look() is None


def test_a_killed_worker_does_not_end_the_looking() -> None:
    with psearch.Engine(threads=2, hash_mb=1, watched=True) as engine:
        watcher = Watcher(engine)
        with engine.analysis(MIDDLE_GAME) as analysis:
            check(looks(watcher, 0.3))
            os.kill(engine._searcher._supervisor.pool.workers[1].pid, signal.SIGKILL)  # type: ignore[union-attr]
            after = looks(watcher, 1.0)
            check(after)
            assert after and not after[-1]["done"]
            analysis.stop()


def test_the_asynchronous_engine_is_seen_too() -> None:
    async def main() -> list[dict[str, Any]]:
        engine = psearch.AsyncEngine(threads=2, hash_mb=1, watched=True)
        watcher = Watcher(engine)
        assert watcher.look() is None
        async with engine:
            with await engine.analysis(MIDDLE_GAME):
                found = []
                for _ in range(10):
                    await asyncio.sleep(0.05)
                    snapshot = watcher.look()
                    if snapshot is not None and snapshot["fen"]:
                        found.append(snapshot)
        assert watcher.look() is None
        return found

    snapshots = asyncio.run(main())
    check(snapshots)
    assert snapshots


def test_a_ring_keeps_what_came_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(recorders, "_RING_EVENTS_OF_A_WORKER", 32)
    with psearch.Engine(threads=2, hash_mb=16, watched=True) as engine:
        engine.analyse(MIDDLE_GAME, chess.engine.Limit(depth=18))
        recorder = engine._recorder()
        logs = recorder.arena.trace_logs
        assert logs is not None and len(logs["events"][0]) == 32
        for log in logs:
            count = int(log["head"]["count"])
            assert log["head"]["dropped"] == 0 and count > 64
            order = [(count + place) % 32 for place in range(32)]
            events = log["events"][order]
            assert (events["time"][:-1] <= events["time"][1:]).all()
        with pytest.raises(PsearchError, match="only the latest events"):
            recorder.write(tmp_path / "trace.json", {})
        snapshot = Watcher(engine).look()
        assert snapshot is not None
        check([snapshot])


def test_a_trace_is_no_ring() -> None:
    with Supervisor(1, 1, trace=True, watched=True) as supervisor:
        assert supervisor.recorder is not None
        assert supervisor.arena.trace_events == recorders.trace_capacity(1)
        assert not supervisor.arena.trace_logs["head"]["ring"].any()


TICKS_PER_MS = 10**9
Begin = Callable[..., Simulator]


def open_frames(simulator: Simulator) -> dict[str, int]:
    """Every open node of the arena, found by looking everywhere."""
    frames = simulator.arena.frames
    return {
        split_name(int(frames["trace"]["split"][home])): int(home) for home in np.flatnonzero(frames["node"]["open"])
    }


def played(fen: str, moves: list[str]) -> chess.Board:
    """Raises ValueError for a move that is not legal."""
    board = chess.Board(fen)
    for move in moves:
        if move == "0000":
            assert not board.is_check()
            board.push(chess.Move.null())
        else:
            board.push_uci(move)
    return board


def lines_of(snapshot: dict[str, Any], kind: str = "moves") -> dict[str, list[str]]:
    lines: dict[str | None, list[str]] = {None: []}
    for node in snapshot["nodes"]:
        lines[node["id"]] = lines[node["parent"]] + node[kind]
    del lines[None]
    return lines  # type: ignore[return-value]


@pytest.mark.parametrize("policy", ["calibrated", "ybw", "garms"])
def test_every_open_node_is_found_as_it_is(begun: Begin, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_nodes, "BUDGET_S", 10.0)
    simulator = begun(workers=8, policy=policy)
    search = WatchedSearch(simulator.recorder)  # type: ignore[arg-type]
    most = 0
    for step in range(1, 40):
        simulator.advance_to(step * TICKS_PER_MS // 4)
        snapshot = search.look(virtual_now=step * TICKS_PER_MS // 4)
        json.dumps(snapshot)
        there = open_frames(simulator)
        found = {node["id"]: node for node in snapshot["nodes"]}
        if len(there) <= MOST_NODES:
            assert found.keys() == there.keys()
        assert len(found) + snapshot["hidden"] == len(there)
        most = max(most, len(found))
        lines, words = lines_of(snapshot), lines_of(snapshot, "words")
        for name, node in found.items():
            record = simulator.arena.frames["node"][there[name]]
            assert node["inside"] == record["inside"] >= 1
            assert node["handed_out"] == record["moves_done"]
            assert node["ply"] == there[name] % MAX_PLY == len(lines[name])
            assert node["p_needed"] == round(int(record["p_needed"]) / CERTAIN, 3) >= node["p_next"]
            assert [node[name] for name in ("alpha", "best", "joined")] == [
                score_or_none(int(record["alpha"])),
                score_or_none(int(record["best"])),
                record["joined"],
            ]
            board = played(snapshot["fen"], lines[name])
            legal = {move.uci() for move in board.legal_moves}
            assert (
                node["done"] + node["to_come"] + min(node["inside"], node["handed_out"]) <= len(legal) + node["inside"]
            )
            assert {one["move"] for one in node["under_way"]} - {"0000"} <= legal
            assert all(board.parse_san(one["san"]).uci() == one["move"] for one in node["under_way"])
            in_words = chess.Board(snapshot["fen"])
            for word in words[name]:
                in_words.push_san(word)
            assert in_words == board and in_words.move_stack == board.move_stack
            workers = [worker for one in node["under_way"] for worker in one["workers"]]
            assert len(set(workers)) == len(workers) <= node["below"]
            assert node["fen"] == board.fen()
    assert most > 3, "a search of eight workers shares nodes"


def test_positions_of_frames_are_where_the_lines_lead(begun: Begin) -> None:
    simulator = begun(workers=4)
    search = WatchedSearch(simulator.recorder)  # type: ignore[arg-type]
    compared = 0
    for step in range(1, 20):
        simulator.advance_to(step * TICKS_PER_MS // 2)
        snapshot = search.look(virtual_now=step * TICKS_PER_MS // 2)
        there, lines = open_frames(simulator), lines_of(snapshot)
        for name, line in lines.items():
            board = board_of(simulator.arena.frames["position"][there[name] : there[name] + 1])
            assert board.board_fen() == played(snapshot["fen"], line).board_fen()
            assert board.turn == played(snapshot["fen"], line).turn
            compared += 1
    assert compared > 20


def test_a_node_that_closed_while_it_was_read_is_not_one_that_is_not_shown(begun: Begin) -> None:
    simulator = begun(workers=8)
    simulator.advance_to(3 * TICKS_PER_MS)
    board = board_of(simulator.arena.header["root"])
    assert board is not None
    before, hidden, _ = read_open_nodes(Memory(simulator.arena), ChessLines(board), budget_s=10.0)
    memory = Memory(simulator.arena)
    read = memory.node
    gone = before[-1]["id"]
    memory.node = lambda home: None if split_name((found := read(home))[0]) == gone else found  # type: ignore[method-assign, index]
    nodes, hidden, _ = read_open_nodes(memory, ChessLines(board), budget_s=10.0)
    assert hidden == 0 and [node["id"] for node in nodes] == [node["id"] for node in before[:-1]]


@pytest.mark.parametrize("policy", ["calibrated", "ybw", "lazy"])
def test_what_ended_is_told_with_its_cause(begun: Begin, policy: str) -> None:
    """Nodes with helpers are those of the trace; what was lost is what the counters say; iterations are all there."""
    simulator = begun(workers=4, policy=policy)
    search = WatchedSearch(simulator.recorder, budget_s=10.0)  # type: ignore[arg-type]
    looks = []
    for step in range(1, 1000):
        done = simulator.advance_to(step * TICKS_PER_MS // 50)
        looks.append(search.look(virtual_now=step * TICKS_PER_MS // 50))
        if done or step == 400:
            break
    simulator.recorder.end(looks[-1]["now"] * 10**6)  # type: ignore[union-attr]
    events = [event for look in looks for event in look["events"]]
    closed = [event for event in events if event["kind"] == "closed"]
    lives = [life.args for life in simulator.recorder.lives() if life.args["outcome"] != "unfinished"]  # type: ignore[union-attr]
    assert all(look["begin"] <= event["at"] <= look["now"] for look in looks for event in look["events"])
    told = sorted((one["id"], one["outcome"], one["helpers"]) for one in closed)
    assert told == sorted((life["split"], life["outcome"], life["helpers"]) for life in lives)
    lost = sum(one["lost"] for one in closed)
    assert lost <= looks[-1]["counters"]["aborted_nodes"] and (lost > 0) == (policy != "lazy")
    for one in closed:
        if one["words"] is not None and one["by"] is not None:
            board = chess.Board(looks[-1]["fen"])
            for word in [*one["words"], one["by"]]:
                board.push_san(word)
    depths = [event["depth"] for event in events if event.get("main")]
    assert depths == sorted(depths) and len(depths) > 3
    # who is at which root move
    root = chess.Board(looks[-1]["fen"])
    assert {word for look in looks for _, _, word in look["first_moves"]} <= {root.san(one) for one in root.legal_moves}
    assert len({worker for look in looks for worker, *_ in look["first_moves"]}) == 4


def test_many_workers_give_no_more_nodes_than_can_be_read(begun: Begin) -> None:
    simulator = begun(workers=256, policy="ybw", events=1 << 11)
    search = WatchedSearch(simulator.recorder)  # type: ignore[arg-type]
    simulator.advance_to(2 * TICKS_PER_MS)
    search.look(virtual_now=2 * TICKS_PER_MS)
    simulator.advance_to(3 * TICKS_PER_MS)
    snapshot = search.look(virtual_now=3 * TICKS_PER_MS)
    assert 0 < len(snapshot["nodes"]) <= MOST_NODES
    assert len(snapshot["nodes"]) + snapshot["hidden"] == len(open_frames(simulator))
    names = {node["id"] for node in snapshot["nodes"]}
    roots = [node for node in snapshot["nodes"] if node["parent"] is None]
    assert all(node["parent"] in names for node in snapshot["nodes"] if node["parent"] is not None)
    assert len(roots) <= 3, "nodes above those that are shown are shown"
    assert len(snapshot["tracks"]) == 64 and len(snapshot["load"]) == 256
    assert len(json.dumps(snapshot)) < 120_000


def test_a_look_takes_no_longer_than_it_may(begun: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = begun(workers=32, policy="ybw")
    clock = 3 * TICKS_PER_MS
    while not simulator.advance_to(clock):
        there = open_frames(simulator).values()
        if len(there) > 3 and all(home % MAX_PLY for home in there):  # the line to the root is always known
            break
        clock += TICKS_PER_MS // 10
    memory = Memory(simulator.arena)
    board = board_of(simulator.arena.header["root"])
    assert board is not None
    nodes, hidden, _ = read_open_nodes(memory, ChessLines(board), budget_s=0.0)
    assert nodes == [] and hidden == len(open_frames(simulator)) > 0
    assert hidden > 3
    monkeypatch.setattr("time.thread_time", itertools.count().__next__)
    lines = ChessLines(board)
    left = hidden
    while left > max(0, hidden - MOST_NODES):  # a look checks one line, and knows those of the looks before
        nodes, now, _ = read_open_nodes(memory, lines, budget_s=1.5)
        assert now < left and len(nodes) == hidden - now
        left = now


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_read_no_line_is_illegal(begun: Begin, seed: int) -> None:
    """Torn reads, at their worst: bytes that never belonged together."""
    random = np.random.default_rng(seed)
    simulator = begun(workers=8, policy="ybw")
    simulator.advance_to(2 * TICKS_PER_MS)
    arena = simulator.arena
    search = WatchedSearch(simulator.recorder)  # type: ignore[arg-type]
    targets = [
        arena.frames["node"],
        arena.frames["visit"]["home"],
        arena.frames["trace"]["split"],
        arena.stack["path"]["move"],
        arena.stack["base"],
        arena.worker["stack"],
        arena.worker["ply"],
        arena.header["root"],
    ]
    used = np.unique(np.flatnonzero(arena.frames["node"]["open"]))
    for _ in range(60):
        target = targets[random.integers(len(targets))]
        if target.dtype.names:
            names = target.dtype.names
            target = target[names[random.integers(len(names))]]
        flat = target.reshape(-1) if target.ndim == 1 else target
        place = int(random.choice(used)) if len(flat) == len(arena.frames) else int(random.integers(len(flat)))
        value = random.choice([random.integers(-(2**31), 2**31), random.integers(0, 70_000), random.integers(-2, 130)])
        kind = np.iinfo(flat.dtype) if flat.dtype.kind in "iu" else None
        flat[place] = np.clip(int(value), int(kind.min), int(kind.max))
        snapshot = search.look(virtual_now=2 * TICKS_PER_MS)
        json.dumps(snapshot)
        if snapshot["fen"] is None:
            continue
        for line in lines_of(snapshot).values():
            played(snapshot["fen"], line)
