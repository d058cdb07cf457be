"""`psearch --on` and the option `Cluster` of the UCI engine, on a cluster that is none."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import chess
import pytest
from positions import MIDDLE_GAME
from programs import PSEARCH, descendants
from timing import wait_for_ends, wait_until
from uci_client import Client

import psearch


@pytest.fixture
def two(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the nodes: this machine, and another."""
    fake_ray.write_text("here 1\nthere 1\n")
    monkeypatch.setenv("FAKE_RAY_OURS", "here")
    return fake_ray


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PSEARCH, *words], capture_output=True, text=True, timeout=120)


def test_one_position(two: Path) -> None:
    done = run("--on", "auto", "--threads", "1", "--hash", "4", "--depth", "9", MIDDLE_GAME)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("machines   2: this one ") and "; there (127.0.0.1) " in lines[-1]
    assert any("  machines 2  " in line for line in lines if line.startswith("depth "))


def test_one_json_object(two: Path) -> None:
    done = run("--on", "auto", "--threads", "1", "--hash", "4", "--nodes", "50000", "--json", MIDDLE_GAME)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [machine["name"] for machine in found["machines"]] == ["", "there (127.0.0.1)"]
    assert found["nodes"] == sum(machine["nodes"] for machine in found["machines"])
    assert [machine["threads"] for machine in found["machines"]] == [1, 1]
    assert chess.Move.from_uci(found["bestmove"]) in chess.Board(MIDDLE_GAME).legal_moves


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("nowhere", "--on nowhere: neither auto nor local, nor HOST:PORT or ray://HOST[:PORT]"),
        ("127.0.0.1:9", "no Ray cluster can be reached at 127.0.0.1:9: Connection refused"),
    ],
)
def test_where_there_is_no_cluster(two: Path, on: str, said: str) -> None:
    done = run("--on", on, "--depth", "3", "startpos")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"psearch: {said}\n")


def test_another_version_there(two: Path) -> None:
    two.write_text("here 1\nother-version 1\n")
    done = run("--on", "auto", "--depth", "3", "startpos")
    assert done.returncode == 2 and done.stdout == ""
    reason = "psearch 0.0.1 is installed there, here " + psearch.__version__
    assert done.stderr.splitlines() == [
        f"psearch: node other-version (127.0.0.1) does not work: {reason}",
        f"psearch: no other machine of the cluster can work (other-version (127.0.0.1): {reason})",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_running(two: Path, number: signal.Signals) -> None:
    words = ["--on", "auto", "--threads", "1", "--hash", "4", "--movetime", "60s", "startpos"]
    with subprocess.Popen([*PSEARCH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "machines 2" not in process.stdout.readline():
            assert process.poll() is None
        below = descendants(process.pid)
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -9)
    assert number == signal.SIGKILL or "best move" in said
    wait_for_ends(below)


def test_the_option_of_the_engine(two: Path) -> None:
    with Client("uci") as client:
        client.send("setoption name Hash value 4")
        client.send("setoption name Cluster value auto")
        client.wait_for("info string Cluster: 1 more, threads of each: there (127.0.0.1) with 1")
        client.send(f"position fen {MIDDLE_GAME}")
        client.send("go depth 9")
        client.answer()
        assert "info string machines 2" in client.log
        client.send("ucinewgame")
        client.send("go ponder wtime 1000 btime 1000")
        time.sleep(0.2)
        client.send("ponderhit")
        client.answer()
        client.send("go infinite searchmoves a1b1 h2h3")
        time.sleep(0.2)
        client.send("stop")
        assert client.answer()[1][-1].split()[1] in ("a1b1", "h2h3")
        two.write_text("here 1\n")
        time.sleep(0.2)
        client.send("go movetime 300")
        client.answer()
        client.send("setoption name Cluster value <empty>")
        client.send("go nodes 1000")
        client.answer()


def test_the_engine_goes_on_without_a_cluster(two: Path) -> None:
    with Client("uci") as client:
        client.send("setoption name Cluster value 127.0.0.1:9")
        reason = "no Ray cluster can be reached at 127.0.0.1:9: Connection refused"
        client.wait_for(f"info string Cluster: {reason}; going on without")
        client.send("go depth 3")
        client.answer()


@pytest.mark.slow
def test_the_engine_does_not_wait_for_cores_that_are_taken(two: Path) -> None:
    two.write_text("here 1\nthere 1 busy\n")
    with Client("uci") as client:
        client.send("setoption name Hash value 4", "setoption name Cluster value auto")
        client.wait_for(
            "info string not ready yet: there (127.0.0.1) (other programs may have the cores, or kernels are compiled);"
            " whoever gets ready joins"
        )
        client.go("movetime 200")
        client.send("go infinite")
        two.write_text("here 1\nthere 1\n")
        client.wait_for("info string machines 2")
        client.send("stop")
        client.answer()


@pytest.fixture
def silent_head(two: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of one that can be connected to, and says nothing."""
    monkeypatch.setenv("FAKE_RAY_INIT", "hang")
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
def test_the_engine_searches_while_it_connects(two: Path, silent_head: str) -> None:
    given_up = f"info string Cluster: no Ray cluster can be had at {silent_head}: no answer within 15 s"
    with Client("uci") as client:
        client.ready()
        client.send(f"setoption name Cluster value {silent_head}")
        client.go("movetime 100")
        client.send("ucinewgame")
        client.ready()
        client.send("go infinite")
        client.send("stop")
        client.answer()
        assert not any(line.startswith("info string Cluster") for line in client.log)
        client.until(lambda line: line.startswith(given_up))
        client.send("ucinewgame", "isready")
        client.wait_for("readyok")
        client.go("movetime 100")
        client.send("ucinewgame", "setoption name Cluster value <empty>")
        client.ready()


def test_nothing_is_left_of_an_engine_that_leaves_while_it_connects(two: Path, silent_head: str) -> None:
    with Client("uci") as client:
        client.ready()
        client.send(f"setoption name Cluster value {silent_head}")
        wait_until(Path(f"{two}.hangs").exists)
        below = descendants(client.process.pid)
        assert any("psearch.remote.ray.ray_driver" in _command(pid) for pid in below)
    wait_for_ends(below, 5)  # long before the attempt to connect would be given up


def test_engines_that_anybody_may_speak_to_have_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSEARCH_NO_FILES", "1")
    with Client("uci") as client:
        client.send("uci")
        client.wait_for("uciok")
        assert not any("Cluster" in line for line in client.log)
        client.send("setoption name Cluster value auto")
        client.ready()
        assert any("Cluster is not available" in line for line in client.log)


def test_from_python(two: Path) -> None:
    with psearch.Engine(hash_mb=4, cluster="auto") as engine:
        info = engine.analyse(MIDDLE_GAME, chess.engine.Limit(nodes=50_000))
        assert 50_000 <= info["nodes"] < 60_000
        engine.configure({"Hash": 8})
        engine.new_game()
        assert engine.play(chess.Board(MIDDLE_GAME), chess.engine.Limit(time=0.2)).move is not None
    with pytest.raises(psearch.PsearchError, match="neither auto nor local"):
        psearch.Engine(cluster="nowhere")
    assert "ray" not in sys.modules
    assert not [pid for pid in descendants(os.getpid()) if "psearch.remote.ray.ray_driver" in _command(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
