"""Nodes and actors come and go on a cluster that is not there, and a clock that is told: nothing is lost or doubled."""

from __future__ import annotations

import pickle
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cluster_tasks
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.processes.tasks import Answered, Give, ProcessJoined, ProcessLost, Raised, error_of
from psearch.remote import ray_actors, task_actor
from psearch.remote.ray_actors import Dismiss, RayActors, Wanted
from psearch.remote.task_actor import TaskActor
from psearch.results import PsearchError

WANTED = Wanted("auto", b"", {})
MEBIBYTE = 2**20


class Gone(Exception):
    """Ray's, of an actor that has ended."""


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_actors.time, "sleep", lambda seconds: None)


class FakeRay:
    """What psearch uses of the module `ray`. Actors answer when the test says so; all that they are asked is noted."""

    exceptions = SimpleNamespace(RayError=Gone)

    def __init__(self) -> None:
        self.alive: dict[str, dict[str, Any]] = {}
        self.asked: dict[int, tuple[str, int]] = {}
        """what each reference was asked of which actor"""
        self.outcomes: dict[int, Any] = {}
        """what has been answered and not been heard"""
        self.selectors: list[str] = []
        """where each actor that was begun may be"""
        self.nodes_of: dict[int, str] = {}
        """where actors are"""
        self.killed: list[int] = []

    def nodes(self) -> list[dict[str, Any]]:
        return list(self.alive.values())

    def remote(self, **settings: Any) -> Any:
        return lambda made: SimpleNamespace(
            options=lambda label_selector: SimpleNamespace(remote=lambda: self._start(label_selector))
        )

    def wait(self, refs: list[int], num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        return [ref for ref in refs if ref in self.outcomes], []

    def get(self, ref: int) -> Any:
        outcome = self.outcomes.pop(ref)
        if isinstance(outcome, Gone):
            raise outcome
        return outcome

    def kill(self, handle: Any) -> None:
        self.killed.append(handle.number)

    def place(self) -> None:
        """Give actors their place, as Ray does: where there is a core, on the node with the fewest."""
        for number, selector in enumerate(self.selectors):
            if number not in self.nodes_of and number not in self.killed:
                here = Counter(node for one, node in self.nodes_of.items() if one not in self.killed)
                free = [name for name, node in self.alive.items() if here[name] < node["Resources"]["CPU"]]
                allowed = [name for name in free if name not in selector]
                if allowed:
                    self.nodes_of[number] = min(allowed, key=lambda name: here[name])

    def _start(self, selector: dict[str, str]) -> Any:
        number = len(self.selectors)
        self.selectors.append(selector.get("ray.io/node-id", ""))
        methods = {what: SimpleNamespace(remote=lambda *_, what=what: self._ask(what, number)) for what in METHODS}
        return SimpleNamespace(number=number, **methods)

    def _ask(self, what: str, number: int) -> int:
        ref = len(self.asked)
        self.asked[ref] = what, number
        return ref


METHODS = ("node", "begin", "do", "beat")


class World:
    """Actors on such a cluster."""

    def __init__(self, wanted: Wanted = WANTED) -> None:
        self.ray = FakeRay()
        self.told: list[Any] = []
        self.actors = RayActors(self.ray, wanted, self.told.append)
        self.now = 100.0

    def node(self, name: str, cores: int = 1, memory: int = 1000 * MEBIBYTE) -> None:
        resources = {"CPU": float(cores), "memory": float(memory)}
        facts = {"NodeID": name, "NodeManagerHostname": name, "NodeManagerAddress": name, "Resources": resources}
        self.ray.alive[name] = {**facts, "Alive": True}

    @property
    def open(self) -> list[int]:
        """The references that are awaited, of actors that have a place."""
        return [
            ref
            for ref in self.actors._awaited
            if ref not in self.ray.outcomes and self.ray.asked[ref][1] in self.ray.nodes_of
        ]

    def running(self) -> list[str]:
        """The nodes of the actors that were begun and not ended."""
        return sorted(node for number, node in self.ray.nodes_of.items() if number not in self.ray.killed)

    def answer(self, what: str, outcome: Any, node: str | None = None) -> int:
        """Give an outcome to all open questions of a kind; how many there were."""
        found = [
            ref
            for ref in self.open
            if self.ray.asked[ref][0] == what and node in (None, self.ray.nodes_of[self.ray.asked[ref][1]])
        ]
        self.ray.outcomes.update((ref, outcome) for ref in found)
        return len(found)

    def tick(self, seconds: float = 1.0) -> None:
        self.now += seconds
        self.actors.step(self.now)
        self.ray.place()
        for ref in self.open:
            what, number = self.ray.asked[ref]
            if what == "node":
                self.ray.outcomes[ref] = self.ray.nodes_of[number]
        if any(self.ray.asked[ref][0] == "node" for ref in self.ray.outcomes):
            self.actors.step(self.now)

    def settle(self) -> None:
        """Nodes are found, actors get ready."""
        for _ in range(3):
            self.tick()
            self.answer("begin", None)

    def pass_time(self, seconds: float, beats: bool = True) -> None:
        for _ in range(round(seconds * 2)):
            if beats:
                self.answer("beat", None)
            self.tick(0.5)

    def take(self, *kinds: type) -> list[Any]:
        found = [message for message in self.told if isinstance(message, kinds or object)]
        self.told.clear()
        return found

    def notes(self) -> list[str]:
        return self.take(str)


def one_actor() -> tuple[World, ProcessJoined]:
    """A world of one node, and its actor, which is ready."""
    world = World()
    world.node("a")
    world.settle()
    (actor,) = world.take(ProcessJoined)
    return world, actor


def test_an_actor_for_each_core_of_every_node() -> None:
    world = World()
    world.node("a", cores=2)
    world.node("b", cores=1)
    world.settle()
    assert world.running() == ["a", "a", "b"]
    assert sorted(message.name for message in world.take(ProcessJoined)) == ["a", "a", "b"]


def test_actors_of_several_cores_and_their_memory() -> None:
    world = World(replace(WANTED, cores=2, memory=300 * MEBIBYTE))
    world.node("wide", cores=5, memory=10_000 * MEBIBYTE)
    world.node("short of memory", cores=8, memory=700 * MEBIBYTE)
    world.node("narrow", cores=1)
    world.node("poor", cores=4, memory=299 * MEBIBYTE)
    world.settle()
    assert len(world.ray.selectors) == 4, "two on each of the first"


def test_where_nobody_has_room() -> None:
    world = World(replace(WANTED, memory=1500 * MEBIBYTE))
    world.node("a", cores=2)
    world.node("head", cores=0, memory=3000 * MEBIBYTE)
    world.pass_time(9)
    with pytest.raises(PsearchError, match=r"can work \(a process needs 1 cores and 1,500 MiB\)"):
        world.pass_time(3)


def test_a_head_without_cores_is_no_cause_for_complaint() -> None:
    world = World()
    world.node("head", cores=0)
    world.settle()
    del world.ray.alive["head"]
    world.tick()
    assert world.told == [] and not world.ray.selectors


def test_no_more_actors_than_are_wanted() -> None:
    world = World(replace(WANTED, most=2))
    for name in "abc":
        world.node(name, cores=4)
    world.settle()
    assert len(world.ray.selectors) == 2


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What an actor does to its process is undone."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ({"psearch": "2"}, r"psearch .* is installed there, here 2"),
        ({"code of psearch": "abc"}, r"code of psearch [0-9a-f]{12} is installed there, here abc"),
        ({"Python": "3.1"}, r"Python 3\.[0-9]+ is installed there, here 3\.1"),
    ],
)
def test_an_actor_does_not_begin_with_another_psearch(here: None, ours: dict[str, str], said: str) -> None:
    problem = TaskActor().begin({**task_actor.identity(), **ours}, pickle.dumps(list), {})
    assert problem is not None and re.fullmatch(said, problem)


def test_an_actor_without_psearch_says_so(here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psearch.remote.task_actor", None)
    problem = TaskActor().begin({}, pickle.dumps(list), {})
    assert problem is not None and problem.startswith("psearch is not installed there")


def test_an_actor_does_what_was_made(here: None) -> None:
    actor = TaskActor()
    assert actor.begin(task_actor.identity(), pickle.dumps(cluster_tasks.make_broken), {}) == "this node has no luck"
    assert actor.begin(task_actor.identity(), pickle.dumps(cluster_tasks.make), {}) is None
    assert actor.do(pickle.dumps(3)) == (True, pickle.dumps(9, pickle.HIGHEST_PROTOCOL))
    is_done, error = actor.do(pickle.dumps("sing"))
    assert not is_done and str(error_of(error)) == "I do not sing"


def test_a_node_where_nothing_can_be_made_says_why() -> None:
    world = World()
    world.node("a", cores=2)
    world.node("b")
    world.tick()
    world.answer("begin", "not enough memory", "a")
    world.settle()
    assert world.notes() == ["node a cannot be used: not enough memory"] and world.running() == ["b"]


def test_nobody_can_work() -> None:
    world = World()
    world.pass_time(9)
    with pytest.raises(PsearchError, match=r"no node of the cluster can work \(a process needs 1 cores and 0 MiB\)"):
        world.pass_time(3)
    world = World()
    world.node("a")
    world.node("b")
    world.pass_time(30)
    assert world.answer("begin", "it is old") == 2
    world.pass_time(9)
    with pytest.raises(PsearchError, match=r"no node of the cluster can work \(a: it is old; b: it is old\)"):
        world.pass_time(3)


def test_later_nodes_are_used_and_those_that_leave_are_told_of() -> None:
    world = World()
    world.node("a")
    world.settle()
    world.node("b", cores=2)
    world.take()
    world.settle()
    first, second = world.take(ProcessJoined)
    assert (first.node, second.node) == ("b", "b")
    del world.ray.alive["b"]
    world.tick()
    lost = [ProcessLost(one.process, "its node is gone") for one in (first, second)]
    assert world.take() == ["node b is gone", *lost]
    assert world.running() == ["a"]


def test_answers_and_exceptions_come_with_their_numbers() -> None:
    world, actor = one_actor()
    for number, outcome in ((7, (True, b"y")), (8, (False, b"z"))):
        world.actors.take(Give(actor.process, number, b"x"))
        world.answer("do", outcome)
        world.tick()
    assert world.take() == [Answered(actor.process, 7, b"y"), Raised(actor.process, 8, b"z")]


def test_a_lost_actor_is_told_of_once_and_another_begins() -> None:
    world, actor = one_actor()
    for number in (1, 2):
        world.actors.take(Give(actor.process, number, b""))
    world.pass_time(2)
    assert world.answer("do", Gone("running low on memory\nand more")) == 2
    world.settle()
    lost, note, joined = world.take()
    reason = "Ray ended it, because the memory of its node was nearly used up"
    assert lost == ProcessLost(actor.process, reason) and reason in note
    assert isinstance(joined, ProcessJoined) and joined.process != actor.process
    world.actors.take(Give(actor.process, 3, b""))
    assert world.answer("do", (True, b"")) == 0, "a task for one that is not there goes nowhere"


def test_an_actor_that_does_not_answer_is_ended() -> None:
    world = World()
    world.node("a")
    world.node("b")
    world.settle()
    stalled, _ = world.take(ProcessJoined)
    world.actors.take(Give(stalled.process, 1, b""))
    for _ in range(60):
        world.tick(0.5)
        world.answer("beat", None, "b")
    (lost,) = world.take(ProcessLost)
    assert lost.process == stalled.process and lost.reason == "it did not answer for 15 s"
    assert world.ray.killed == [stalled.process]


def test_a_task_has_its_time_from_when_it_begins() -> None:
    world, actor = one_actor()
    for number in (1, 2):
        world.actors.take(Give(actor.process, number, b"", limit_s=10))
    world.pass_time(8)
    world.ray.outcomes[next(ref for ref in world.open if world.ray.asked[ref][0] == "do")] = True, b""
    world.pass_time(9)
    assert world.take() == [Answered(actor.process, 1, b"")]
    world.pass_time(3)
    (lost,) = world.take(ProcessLost)
    assert lost.reason == "it did not finish within 10 s"


def test_a_stopped_program_takes_nobody_for_stalled() -> None:
    world = World()
    world.node("a")
    world.settle()
    world.take()
    world.pass_time(5)
    world.tick(3600)
    world.pass_time(5)
    assert not world.take(ProcessLost)


def test_a_node_whose_actors_end_before_they_are_ready_is_given_up() -> None:
    world = World()
    world.node("a")
    world.node("b")
    for _ in range(200):
        world.answer("begin", Gone("ActorDiedError"), "a")
        world.answer("begin", None, "b")
        world.pass_time(0.5)
    assert world.notes() == ["node a cannot be used: processes end there before they are ready: its process ended"]
    assert sum(node == "a" for node in world.ray.nodes_of.values()) == 8 and world.running() == ["b"]


def test_an_actor_that_waited_for_a_place_does_not_begin_on_a_node_that_does_not_work() -> None:
    """Ray places it when a core is free, and may have been told too little by then."""
    world = World()
    world.node("a", cores=2)
    world.node("b")
    world.ray.place = lambda: None  # type: ignore[method-assign]
    world.tick()
    world.ray.nodes_of[0] = "a"
    world.tick()
    world.answer("begin", "it is old")
    world.tick()
    assert world.notes() == ["node a cannot be used: it is old"] and world.ray.killed == [0]
    world.ray.nodes_of.update({1: "a", 2: "b"})
    world.tick()
    assert world.ray.killed == [0, 1] and world.ray.selectors[:3] == ["", "", ""]
    assert world.answer("begin", None) == 1
    world.tick()
    assert [message.name for message in world.take(ProcessJoined)] == ["b"]


def test_a_process_that_is_not_wanted_is_replaced() -> None:
    world, actor = one_actor()
    world.actors.take(Dismiss(actor.process, "not wanted"))
    assert world.take(ProcessLost) == [ProcessLost(actor.process, "not wanted")]
    world.settle()
    assert world.running() == ["a"] and world.take(ProcessJoined)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_happens_every_task_has_one_end(data: st.DataObject) -> None:
    """Given to an actor it is answered once, or the actor is lost; then it is answered no more."""
    world = World(replace(WANTED, most=data.draw(st.sampled_from([None, 2]))))
    world.node("first")
    given_to: dict[int, int] = {}
    lost: set[int] = set()
    ready: set[int] = set()
    answered: set[int] = set()

    def read() -> None:
        for message in world.take():
            match message:
                case ProcessJoined(actor):
                    assert actor not in ready
                    ready.add(actor)
                case ProcessLost(actor):
                    assert actor in ready and actor not in lost
                    lost.add(actor)
                case Answered(actor, done) | Raised(actor, done):
                    assert actor not in lost and given_to[done] == actor and done not in answered
                    answered.add(done)

    for step in range(data.draw(st.integers(5, 60))):
        match data.draw(st.sampled_from(["join", "leave", "tick", "long", "resolve", "resolve", "resolve", "give"])):
            case "join":
                world.node(f"n{step}", cores=data.draw(st.integers(1, 3)))
            case "leave" if len(world.ray.alive) > 1:
                del world.ray.alive[data.draw(st.sampled_from(sorted(world.ray.alive)))]
            case "tick":
                world.tick()
            case "long":
                world.pass_time(9, beats=data.draw(st.booleans()))
                world.node(f"n{step}")  # so that somebody can work
                world.pass_time(9, beats=data.draw(st.booleans()))
            case "resolve" if world.open:
                for ref in data.draw(st.lists(st.sampled_from(world.open), min_size=1)):
                    good = (True, b"") if world.ray.asked[ref][0] == "do" else None
                    world.ray.outcomes[ref] = data.draw(st.sampled_from([good, good, Gone("gone")]))
            case "give" if ready - lost:
                number = len(given_to)
                given_to[number] = data.draw(st.sampled_from(sorted(ready - lost)))
                world.actors.take(Give(given_to[number], number, b"", data.draw(st.sampled_from([None, 5.0]))))
        read()
    world.tick()
    read()
    waiting = {done for done, actor in given_to.items() if actor not in lost and done not in answered}
    assert world.answer("do", (True, b"")) == len(waiting)
    world.tick()
    read()
    assert all(done in answered or given_to[done] in lost for done in waiting)


def test_code_and_network_are_what_a_node_is_known_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_actor.importlib, "import_module", lambda name: SimpleNamespace(__path__=[str(tmp_path)]))
    seen = set()
    for name, text in (("a.py", "1"), ("a.py", "2"), ("psearch-a.net", "1"), ("psearch-a.net", "2"), ("b.net", "2")):
        (tmp_path / name).write_text(text)
        seen.add(task_actor._digest())
    assert len(seen) == 5
    (tmp_path / "notes.txt").write_text("of no account")
    assert task_actor._digest() in seen
