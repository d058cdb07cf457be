"""What people are told of a cluster."""

from __future__ import annotations

import pytest

from psearch.processes.tasks.task_messages import ProcessJoined, ProcessLost
from psearch.remote.ray.driver_messages import NodeJoined, NodeLost, NodeRefused
from psearch.remote.ray.standing import Standing
from psearch.results import PsearchError


def test_nodes_hands_and_rates() -> None:
    notes: list[str] = []
    standing = Standing(notes.append, 0.0)
    assert standing.line(0.0) == "0 nodes, 0 processes"
    for number, name in enumerate("abcde"):
        standing.follow(NodeJoined(name, name, 1, 1), 0.0)
        standing.follow(ProcessJoined(number, name, name), 0.0)
    for second in range(60):
        for number in range(5):
            standing.count(number, number * 40 if second < 30 else number, float(second))
    assert standing.line(60.0) == "5 nodes, 5 processes: e 4.0/s, d 3.0/s, c 2.0/s, others 1.0/s"
    assert len(standing.home[0].marks) <= 20
    standing.follow(ProcessLost(4, "its process ended"), 60.0)
    standing.follow(NodeLost("e", "e"), 60.0)
    assert standing.line(60.0).startswith("4 nodes, 4 processes: d 3.0/s")
    assert standing.work_done() == "e 4,920, d 3,690, c 2,460, b 1,230, a 0"
    assert notes == ["a process on node e was lost (its process ended); its work is done again", "node e is gone"]


def test_nobody_can_work() -> None:
    standing = Standing(lambda note: None, 0.0)
    standing.check(9.0)
    with pytest.raises(PsearchError, match=r"no node of the cluster can work$"):
        standing.check(11.0)
    standing.follow(NodeRefused("a", "a", "it is old"), 11.0)
    standing.follow(NodeRefused("b", "b", "it is new"), 11.0)
    standing.check(20.0)
    with pytest.raises(PsearchError, match=r"no node of the cluster can work \(2 cannot work, a: it is old\)"):
        standing.check(22.0)


def test_a_refusal_is_told_once_though_the_node_comes_again() -> None:
    notes: list[str] = []
    standing = Standing(notes.append, 0.0)
    for node in ("1", "2"):
        standing.follow(NodeRefused(node, "a", "it is old"), 0.0)
    assert notes == ["node a does not work: it is old"]


def test_waiting_for_cores_is_told_once() -> None:
    notes: list[str] = []
    standing = Standing(notes.append, 0.0)
    standing.follow(NodeJoined("a", "a", 1, 1), 0.0)
    for now in range(100):
        standing.check(float(now))
    assert len(notes) == 1 and "other programs may have the cores" in notes[0]
