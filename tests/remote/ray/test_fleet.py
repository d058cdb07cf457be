"""Nodes and hands come and go on a cluster that is not there, and a clock that is told: nothing is lost or doubled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.processes.tasks.task_messages import Answered, Give, ProcessJoined, ProcessLost, Raised
from psearch.remote.ray import identity
from psearch.remote.ray import ray_nodes as fleets
from psearch.remote.ray.driver_messages import Dismiss, HandsWanted, NodeJoined, NodeLost, NodeRefused
from psearch.remote.ray.ray_nodes import Gone, NodeFacts, Outcome, RayNodes, Threw, Value

OURS = {"psearch": "1", "code": "abc", "python": "3.11.7"}
WANTED = HandsWanted("auto", b"", identity=OURS)
MEBIBYTE = 2**20


class FakeCluster:
    """What a test does with it happens; what it is asked is noted, and answered when the test says so."""

    def __init__(self) -> None:
        self.alive: dict[str, NodeFacts] = {}
        self.asked: dict[int, tuple[str, Any]] = {}
        self.ended: list[int] = []
        self.actors: dict[int, str] = {}
        self._next = 0

    def nodes(self) -> list[NodeFacts]:
        return list(self.alive.values())

    def look(self, node: str) -> int:
        return self._ask("look", node)

    def start(self, node: str) -> tuple[int, int]:
        actor = self._ask("start", node)
        self.actors[actor] = node
        return actor, actor

    def do(self, actor: int, work: bytes) -> int:
        return self._ask("do", actor)

    def beat(self, actor: int) -> int:
        return self._ask("beat", actor)

    def end(self, actor: int) -> None:
        self.ended.append(actor)

    def running(self) -> list[str]:
        """The nodes of the hands that were begun and not ended."""
        return [node for actor, node in self.actors.items() if actor not in self.ended]

    def _ask(self, what: str, whom: Any) -> int:
        self._next += 1
        self.asked[self._next] = (what, whom)
        return self._next


class World:
    """A fleet on a fake cluster."""

    def __init__(self, wanted: HandsWanted = WANTED) -> None:
        self.cluster = FakeCluster()
        self.told: list[Any] = []
        self.fleet = RayNodes(self.cluster, wanted, self.told.append)
        self.now = 100.0

    def node(self, name: str, cores: int = 1, memory: int = 1000 * MEBIBYTE) -> None:
        self.cluster.alive[name] = NodeFacts(name, name, cores, memory)

    def answer(self, what: str, outcome: Outcome, whom: Any = None) -> int:
        """Give an outcome to all open questions of a kind; how many there were."""
        found = [
            ref
            for ref in self.fleet.refs
            if self.cluster.asked[ref][0] == what and whom in (None, self.cluster.asked[ref][1])
        ]
        for ref in found:
            self.fleet.resolve(ref, outcome)
        return len(found)

    def tick(self, seconds: float = 0.1) -> None:
        self.now += seconds
        self.fleet.tick(self.now)

    def settle(self) -> None:
        """Nodes say who they are, hands get warm."""
        for _ in range(3):
            self.tick()
            self.answer("look", Value(OURS))
            self.answer("start", Value(1))

    def pass_time(self, seconds: float, beats: bool = True) -> None:
        for _ in range(round(seconds * 2)):
            self.tick(0.5)
            if beats:
                self.answer("beat", Value(None))

    def take(self, *kinds: type) -> list[Any]:
        found = [message for message in self.told if isinstance(message, kinds or object)]
        self.told.clear()
        return found


def test_a_hand_for_each_core_of_every_node() -> None:
    world = World()
    world.node("a", cores=2)
    world.node("b", cores=1)
    world.settle()
    assert sorted(world.cluster.running()) == ["a", "a", "b"]
    assert [message.hands for message in world.take(NodeJoined)] == [2, 1]


def test_hands_of_several_cores_and_their_memory() -> None:
    world = World(replace(WANTED, cores=2, memory=300 * MEBIBYTE))
    world.node("wide", cores=5, memory=10_000 * MEBIBYTE)
    world.node("short of memory", cores=8, memory=700 * MEBIBYTE)
    world.node("narrow", cores=1)
    world.node("poor", cores=4, memory=299 * MEBIBYTE)
    world.settle()
    assert sorted(world.cluster.running()) == ["short of memory", "short of memory", "wide", "wide"]
    assert [(message.name, message.reason) for message in world.take(NodeRefused)] == [
        ("narrow", "it has 1 cores to give, a hand needs 2"),
        ("poor", "it has 299 MiB of memory to give, a hand needs 300"),
    ]


def test_a_head_without_cores_is_no_cause_for_complaint() -> None:
    world = World()
    world.node("head", cores=0)
    world.settle()
    assert world.told == [] and not world.cluster.running()


def test_a_few_hands_are_spread_out() -> None:
    world = World(replace(WANTED, most=3))
    for name in "abc":
        world.node(name, cores=4)
    world.settle()
    assert sorted(world.cluster.running()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ({}, "not installed"),
        ({**OURS, "psearch": "2"}, "psearch 2 is installed there, here 1"),
        ({**OURS, "code": "abd"}, "other code"),
        ({"psearch": "1"}, "other code"),
        ({**OURS, "python": "3.12.1"}, "Python 3.12 runs there, here 3.11"),
        ({"problem": "it is on fire"}, "on fire"),
    ],
)
def test_a_node_with_another_psearch_gets_no_work(theirs: dict[str, str], said: str) -> None:
    world = World()
    world.node("a")
    world.node("b")
    world.tick()
    world.answer("look", Value(theirs), "a")
    world.settle()
    (refused,) = world.take(NodeRefused)
    assert refused.name == "a" and said in refused.reason
    assert world.cluster.running() == ["b"]


def test_another_last_number_of_python_does_not_matter() -> None:
    world = World()
    world.node("a")
    world.tick()
    world.answer("look", Value({**OURS, "python": "3.11.9"}))
    assert world.take(NodeJoined)


@pytest.mark.parametrize("outcome", [Gone("its process ended"), Threw(RuntimeError("no such thing"))])
def test_a_node_that_cannot_say_who_it_is(outcome: Outcome) -> None:
    world = World()
    world.node("a")
    world.tick()
    world.answer("look", outcome)
    assert len(world.take(NodeRefused)) == 1 and not world.cluster.running()


def test_a_node_that_never_says_who_it_is() -> None:
    world = World()
    world.node("a")
    world.pass_time(70)
    assert len(world.take(NodeRefused)) == 1
    assert world.answer("look", Value(OURS)) == 1
    world.tick()
    assert not world.cluster.running()


def test_later_nodes_are_used_and_those_that_leave_are_told_of() -> None:
    world = World()
    world.node("a")
    world.settle()
    world.node("b", cores=2)
    world.take()
    world.settle()
    joined = world.take(ProcessJoined)
    assert [message.node for message in joined] == ["b", "b"]
    del world.cluster.alive["b"]
    world.tick()
    assert world.take() == [
        ProcessLost(joined[0].process, "its node is gone"),
        ProcessLost(joined[1].process, "its node is gone"),
        NodeLost("b", "b"),
    ]
    assert world.cluster.running() == ["a"]


def test_answers_and_exceptions_come_with_their_numbers() -> None:
    world = World()
    world.node("a")
    world.settle()
    (hand,) = world.take(ProcessJoined)
    world.fleet.give(Give(hand.process, 7, b"x"))
    world.answer("do", Value((True, b"y")))
    world.fleet.give(Give(hand.process, 8, b"x"))
    world.answer("do", Value((False, b"z")))
    assert world.take() == [Answered(hand.process, 7, b"y"), Raised(hand.process, 8, b"z")]


def test_a_lost_hand_is_told_of_once_and_another_begins() -> None:
    world = World()
    world.node("a")
    world.settle()
    (hand,) = world.take(ProcessJoined)
    for number in (1, 2):
        world.fleet.give(Give(hand.process, number, b""))
    world.pass_time(2)
    assert world.answer("do", Gone("its process ended")) == 2
    world.settle()
    messages = world.take()
    assert messages[0] == ProcessLost(hand.process, "its process ended")
    assert [type(message) for message in messages[1:]] == [ProcessJoined] and messages[1].process != hand.process
    world.fleet.give(Give(hand.process, 3, b""))
    assert world.answer("do", Value((True, b""))) == 0, "work for who is not there goes nowhere"


def test_a_hand_that_does_not_answer_is_ended() -> None:
    world = World()
    world.node("a")
    world.node("b")
    world.settle()
    stalled, _ = world.take(ProcessJoined)
    world.fleet.give(Give(stalled.process, 1, b""))
    actor = min(world.cluster.actors)
    for _ in range(60):
        world.tick(0.5)
        for ref in world.fleet.refs:
            if world.cluster.asked[ref][0] == "beat" and world.cluster.asked[ref][1] != actor:
                world.fleet.resolve(ref, Value(None))
    (lost,) = world.take(ProcessLost)
    assert lost.process == stalled.process and "did not answer for 15 s" in lost.reason
    assert actor in world.cluster.ended


def test_work_has_its_time_from_when_it_begins() -> None:
    world = World()
    world.node("a")
    world.settle()
    (hand,) = world.take(ProcessJoined)
    for number in (1, 2):
        world.fleet.give(Give(hand.process, number, b"", limit_s=10))
    world.pass_time(8)
    ref = next(ref for ref in world.fleet.refs if world.cluster.asked[ref][0] == "do")
    world.fleet.resolve(ref, Value((True, b"")))
    world.pass_time(8)
    assert world.take() == [Answered(hand.process, 1, b"")]
    world.pass_time(4)
    (lost,) = world.take(ProcessLost)
    assert "did not finish within 10 s" in lost.reason


def test_a_stopped_program_takes_nobody_for_stalled() -> None:
    world = World()
    world.node("a")
    world.settle()
    world.take()
    world.pass_time(5)
    world.tick(3600)
    world.pass_time(5)
    assert not world.take(ProcessLost)


def test_a_node_whose_hands_end_before_they_are_warm_is_given_up() -> None:
    world = World()
    world.node("a")
    world.node("b")
    for _ in range(1000):
        world.tick(0.5)
        world.answer("look", Value(OURS))
        for ref in list(world.fleet.refs):
            if world.cluster.asked[ref] == ("start", "a"):
                world.fleet.resolve(ref, Gone("its process ended"))
        world.answer("start", Value(None), "b")
        world.answer("beat", Value(None))
    (refused,) = world.take(NodeRefused)
    assert refused.name == "a" and "its process ended" in refused.reason
    assert sum(node == "a" for node in world.cluster.actors.values()) == 4
    assert world.cluster.running() == ["b"]


def test_a_node_where_no_hand_can_be_made_says_why() -> None:
    world = World()
    world.node("a", cores=2)
    world.tick()
    world.answer("look", Value(OURS))
    world.tick()
    world.answer("start", Value("not enough memory"))
    world.tick()
    (refused,) = world.take(NodeRefused)
    assert refused.reason == "not enough memory" and not world.cluster.running()


def test_hands_that_wait_for_a_busy_node_are_not_counted_on() -> None:
    """Other programs have its cores, or it is gone and Ray does not know."""
    world = World(replace(WANTED, most=1))
    world.node("busy")
    world.tick()
    world.answer("look", Value(OURS))
    world.tick()
    assert world.cluster.running() == ["busy"]
    world.node("free")
    world.tick()
    world.answer("look", Value(OURS))
    world.pass_time(25)
    assert sorted(world.cluster.running()) == ["busy", "free"]
    world.answer("start", Value(None), "free")
    world.answer("start", Value(None), "busy")
    assert len(world.take(ProcessJoined)) == 1
    assert world.cluster.running() == ["free"]


def test_dismissed_and_closed() -> None:
    world = World()
    world.node("a", cores=2)
    world.settle()
    first, _ = world.take(ProcessJoined)
    world.fleet.dismiss(Dismiss(first.process, "not wanted"))
    assert world.take() == [ProcessLost(first.process, "not wanted")]
    world.tick()
    world.fleet.close()
    assert not world.cluster.running() and not world.take(ProcessLost)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_happens_every_piece_of_work_has_one_end(data: st.DataObject) -> None:
    """Given to a hand it is answered once, or the hand is lost; then it is answered no more."""
    world = World(replace(WANTED, most=data.draw(st.sampled_from([None, 2]))))
    given_to: dict[int, int] = {}
    lost: set[int] = set()
    warm: set[int] = set()
    answered: set[int] = set()
    number = 0

    def read() -> None:
        for message in world.take():
            match message:
                case ProcessJoined(hand):
                    assert hand not in warm
                    warm.add(hand)
                case ProcessLost(hand):
                    assert hand in warm and hand not in lost
                    lost.add(hand)
                case Answered(hand, done) | Raised(hand, done):
                    assert hand not in lost and given_to[done] == hand and done not in answered
                    answered.add(done)

    for step in range(data.draw(st.integers(5, 60))):
        match data.draw(st.sampled_from(["join", "leave", "tick", "long", "resolve", "resolve", "resolve", "give"])):
            case "join":
                world.node(f"n{step}", cores=data.draw(st.integers(1, 3)))
            case "leave" if world.cluster.alive:
                del world.cluster.alive[data.draw(st.sampled_from(sorted(world.cluster.alive)))]
            case "tick":
                world.tick()
            case "long":
                world.pass_time(17, beats=data.draw(st.booleans()))
            case "resolve" if world.fleet.refs:
                ref = data.draw(st.sampled_from(world.fleet.refs))
                good: Any = {"look": OURS, "do": (True, b"")}.get(world.cluster.asked[ref][0])
                outcomes = [Value(good), Value(good), Gone("gone"), Threw(ValueError("x"))]
                world.fleet.resolve(ref, data.draw(st.sampled_from(outcomes)))
            case "give" if warm - lost:
                given_to[number] = data.draw(st.sampled_from(sorted(warm - lost)))
                world.fleet.give(Give(given_to[number], number, b"", limit_s=data.draw(st.sampled_from([None, 5.0]))))
                number += 1
        read()
    waiting = {done for done, hand in given_to.items() if hand not in lost and done not in answered}
    assert world.answer("do", Value((True, b""))) == len(waiting)
    read()
    assert waiting <= answered
    world.fleet.close()
    assert not world.cluster.running() and not world.fleet.refs


def test_constants_fit_together() -> None:
    assert WANTED.silence_s > 3 * fleets.BEAT_S


def test_code_and_network_are_what_a_node_is_known_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity.importlib, "import_module", lambda name: SimpleNamespace(__path__=[str(tmp_path)]))
    seen = set()
    for name, text in (("a.py", "1"), ("a.py", "2"), ("psearch-a.net", "1"), ("psearch-a.net", "2"), ("b.net", "2")):
        (tmp_path / name).write_text(text)
        seen.add(identity._digest())
    assert len(seen) == 5
    (tmp_path / "notes.txt").write_text("of no account")
    assert identity._digest() in seen
