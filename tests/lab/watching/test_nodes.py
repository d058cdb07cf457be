"""The open split nodes: all of them, as they are, with lines that can be played; and nothing else, whatever is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import chess
import numpy as np
import pytest

from psearch.lab.watching import open_nodes as watched_nodes
from psearch.lab.watching.node_lines import ChessLines, board_of
from psearch.lab.watching.open_nodes import MOST_NODES, Memory, OpenNodeTree
from psearch.lab.watching.watcher import WatchedSearch
from psearch.simulation.simulator import Simulator
from psearch.trace.recorder import split_name
from psearch_core.records import CERTAIN, MAX_PLY

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
    """The moves from the root to each node."""
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
            assert node["p_needed"] == round(int(record["p_needed"]) / CERTAIN, 3)
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
            assert board is not None
            assert board.board_fen() == played(snapshot["fen"], line).board_fen()
            assert board.turn == played(snapshot["fen"], line).turn
            compared += 1
    assert compared > 20


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
    while not simulator.advance_to(clock) and len(open_frames(simulator)) <= 3:
        clock += TICKS_PER_MS // 10
    memory = Memory(simulator.arena)
    board = board_of(simulator.arena.header["root"])
    assert board is not None
    nodes, hidden = OpenNodeTree().look(memory, ChessLines(board), budget_s=0.0)
    assert nodes == [] and hidden == len(open_frames(simulator)) > 0
    tree = OpenNodeTree()
    while tree.look(memory, ChessLines(board), budget_s=0.001)[1] > max(0, hidden - MOST_NODES):
        continue  # what was checked in one look is known at the next one
    assert hidden > 3


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
        assert kind is not None
        flat[place] = np.clip(int(value), int(kind.min), int(kind.max))
        snapshot = search.look(virtual_now=2 * TICKS_PER_MS)
        json.dumps(snapshot)
        if snapshot["fen"] is None:
            continue
        for line in lines_of(snapshot).values():
            played(snapshot["fen"], line)
