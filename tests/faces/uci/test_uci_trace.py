"""The UCI option Trace: a file after each search, never at the cost of an answer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chess
import pytest
from timing import last_bound
from uci_client import Client, workers_of

MIDDLE_GAME = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"


@pytest.fixture
def engine() -> Iterator[Client]:
    with Client("uci") as client:
        client.send("uci", "setoption name Threads value 2", "setoption name Hash value 16")
        client.ready()
        yield client


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def iterations(path: Path) -> list[str]:
    """Names of the searches of the root that gave an exact score."""
    pid = next(
        e["pid"] for e in read(path)["traceEvents"] if e["name"] == "process_name" and e["args"]["name"] == "search"
    )
    return [e["name"] for e in read(path)["traceEvents"] if e["pid"] == pid and e["args"].get("bound") == "exact"]


def workers(path: Path) -> set[str]:
    """Tracks of workers that searched, or were idle for a while."""
    events = read(path)["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return {names[e["pid"], e["tid"]] for e in events if e["ph"] == "X" and e["name"] in ("search", "idle")}


def test_each_search_replaces_the_file(engine: Client, tmp_path: Path) -> None:
    path = tmp_path / "with two blanks.json"
    engine.send(f"setoption name Trace value {path}")
    assert engine.ready() == ["readyok"]
    assert not path.exists()  # nothing has been searched yet
    engine.go("depth 7", f"position fen {MIDDLE_GAME}")
    assert engine.ready() == ["readyok"]
    facts = read(path)["otherData"]
    assert facts["position"] == MIDDLE_GAME and (facts["policy"], facts["driver"]) == ("calibrated", "auto")
    assert facts["workers"] == 2 and facts["finished"] and facts["dropped_events"] == 0
    assert iterations(path)[-1] == "depth 7"
    assert workers(path) == {"worker 0", "worker 1"}

    engine.go("depth 5", "position startpos")
    engine.ready()
    assert read(path)["otherData"]["position"] == chess.STARTING_FEN
    assert iterations(path)[-1] == "depth 5"

    engine.send("setoption name MultiPV value 3")
    engine.go("depth 4", f"position fen {MIDDLE_GAME}")
    engine.ready()
    assert [name for name in iterations(path) if name.startswith("depth 4")] == [
        "depth 4",
        "depth 4, line 2",
        "depth 4, line 3",
    ]

    before = path.read_bytes()
    engine.send("setoption name MultiPV value 1", "setoption name Trace value <empty>")
    engine.go("depth 5")
    assert engine.ready() == ["readyok"]
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_search_that_is_stopped(engine: Client, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    engine.send(f"setoption name Trace value {path}")

    def search() -> str:
        engine.send("ucinewgame", "go infinite")
        engine.until(lambda line: line.startswith("info depth 6"))
        time.sleep(0.1)  # the line comes between two depths
        engine.send("stop")
        engine.answer()
        engine.ready()
        return str([e["args"]["bound"] for e in read(path)["traceEvents"] if e["name"].startswith("depth")][-1])

    assert last_bound(search) == "stopped"


def test_quit_waits_for_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with Client("uci") as client:
        client.send("setoption name Threads value 2", f"setoption name Trace value {path}", "go movetime 1500")
        client.answer()
    assert read(path)["otherData"]["workers"] == 2
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_go_does_not_wait_for_the_trace_of_the_search_before(engine: Client, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    said = ["info string Trace: not written, the next search did not wait"]
    for _ in range(5):  # the next search may come late, where other programs have the cores
        engine.send(
            f"setoption name Trace value {path}", f"position fen {MIDDLE_GAME}", "go infinite", "stop",
            "position startpos", "go depth 4",
        )  # fmt: skip
        engine.answer()
        _, lines = engine.answer()
        if found := [line for line in lines if "Trace" in line]:
            break
    assert found == said
    engine.ready()
    assert read(path)["otherData"]["position"] == chess.STARTING_FEN
    assert os.listdir(tmp_path) == ["t.json"]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("nowhere/t.json", "there is no folder"),
        ("", "it is a folder"),
        ("pipe", "it is a pipe"),
        ("/dev/null", "it is a device"),
        ("-", "standard output"),
    ],
)
def test_a_path_that_cannot_be_is_reported_and_nothing_else(
    engine: Client, tmp_path: Path, where: str, reason: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = where if where == "-" else str(tmp_path / where)
    engine.send(f"setoption name Trace value {path}")
    (warning, ready) = engine.ready()
    assert warning.startswith("info string Trace: ") and reason in warning and ready == "readyok"
    assert not any("Trace" in line for line in engine.go("depth 4"))
    assert engine.ready() == ["readyok"]
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_folder_that_goes_away_costs_no_answer(engine: Client, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    engine.send(f"setoption name Trace value {folder / 't.json'}")
    engine.ready()
    shutil.rmtree(folder)
    for _ in range(2):
        engine.go("depth 4")
        (warning, _) = engine.ready()
        assert warning.startswith("info string Trace: cannot write ") and "No such file" in warning
        engine.go("depth 4")
        assert engine.ready() == ["readyok"]  # told once
        folder.mkdir()
        engine.go("depth 4")
        assert engine.ready() == ["readyok"]
        assert iterations(folder / "t.json")[-1] == "depth 4"
        shutil.rmtree(folder)


def test_a_worker_that_dies(engine: Client, tmp_path: Path) -> None:
    """The search begins again with new workers; the trace is that of the second try."""
    path = tmp_path / "t.json"
    engine.send(f"setoption name Trace value {path}")
    engine.ready()
    engine.send(f"position fen {MIDDLE_GAME}", "go movetime 2500")
    engine.until(lambda line: line.startswith("info depth 5"))
    time.sleep(0.05)
    os.kill(workers_of(engine)[1], signal.SIGKILL)
    _, lines = engine.answer()
    assert any("was killed by signal 9" in line for line in lines)
    engine.ready()
    assert read(path)["otherData"]["finished"]
    assert workers(path) == {"worker 0", "worker 1"}
