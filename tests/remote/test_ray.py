"""Ray itself, with two nodes on this machine, one of which is killed; needs the extra `cluster`."""

from __future__ import annotations

import importlib.util
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import chess
import chess.engine
import cluster_tasks
import pytest

import psearch
from psearch.bench import BENCH_POSITIONS
from psearch.remote import cluster_processes
from psearch.remote.cluster_processes import ClusterProcesses, share_out_on
from psearch.results import PsearchError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="Ray is not installed (pip install '.[cluster]')"
    ),
]
SUPPORT = Path(__file__).parents[1] / "support"


class Nodes:
    """Nodes as they are started and killed by tests/support/ray_nodes.py."""

    def __init__(self) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SUPPORT / "ray_nodes.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = self._line()

    def add(self, name: str) -> list[int]:
        """A new node; its processes."""
        return list(map(int, self._ask("add", name).split()[1:]))

    def kill(self, name: str) -> None:
        """All of a node, at once."""
        self._ask("kill", name)

    def close(self) -> None:
        """End them all."""
        with self._program:
            assert self._program.stdin is not None
            self._program.stdin.close()

    def _ask(self, *words: str) -> str:
        assert self._program.stdin is not None
        print(*words, file=self._program.stdin, flush=True)
        return self._line()

    def _line(self) -> str:
        assert self._program.stdout is not None
        while True:
            line = self._program.stdout.readline()
            assert line, "the nodes' program has ended"
            if not line.startswith(("\x1b", " ", "\t")) and "(raylet)" not in line:
                return line.strip()


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on loopback, and nowhere else
    monkeypatch.setattr(cluster_processes, "CONNECT_S", 60.0)  # Ray is slow to begin on a slow machine
    cluster = Nodes()
    yield cluster
    cluster.close()


def test_positions_on_two_nodes_one_of_which_is_killed(kernels: None, nodes: Nodes) -> None:
    limit = chess.engine.Limit(nodes=20_000)
    fens = [chess.Board(fen, chess960=True).fen() for fen in BENCH_POSITIONS] * 6
    with psearch.analyse_many(fens, limit, ordered=True, workers=1, hash_mb=1) as results:
        expected = [(one.bestmove, one.nodes) for one in results]
    nodes.add("second")
    found = {}
    with psearch.analyse_many(fens, limit, cluster=nodes.address, hash_mb=1) as results:
        for number, one in enumerate(results):
            assert one.index not in found
            found[one.index] = one.bestmove, one.nodes
            if number == len(fens) // 4:
                nodes.kill("second")
    assert [found[index] for index in range(len(fens))] == expected


def test_a_node_is_killed_another_comes_and_a_process_stops(nodes: Nodes, tmp_path: Path) -> None:
    nodes.add("second")
    notes: list[str] = []
    tasks = [("stop", str(tmp_path / "stopped")), *range(200)]
    found = {}
    for number, (place, answer) in enumerate(
        share_out_on(nodes.address, cluster_tasks.make, tasks, on_note=notes.append)
    ):
        assert place not in found
        found[place] = answer
        if number == 20:
            nodes.kill("second")
        elif number == 40:
            nodes.add("third")
    assert found == {0: 0, **{place + 1: place * place for place in range(200)}}
    assert any("lost" in note or "gone" in note for note in notes)


def test_another_token_is_refused(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with pytest.raises(PsearchError, match="needs another token"):
        ClusterProcesses(nodes.address, cluster_tasks.make)
