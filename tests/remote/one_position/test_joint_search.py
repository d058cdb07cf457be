"""One search by this machine and another, on a cluster that is none (tests/support/fake_ray)."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import chess
import pytest
from positions import KIWIPETE, MIDDLE_GAME
from timing import least, wait_until

from psearch.processes.control import SearchControl
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.time_manager import Budget, TimeManager
from psearch.remote.one_position.joint_search import search_together
from psearch.remote.one_position.team import Team
from psearch.results import Info, Limits, PsearchError, Result, WorkerDied

SUPPORT = Path(__file__).parents[2] / "support"
ENDLESS = Limits()


@dataclass
class World:
    """This machine, `here`, and `there`; notes are what was told to people."""

    nodes: Path
    supervisor: Supervisor
    team: Team
    notes: list[str]

    def search(self, limits: Limits, fen: str = MIDDLE_GAME, **more: object) -> Result:
        request = SearchRequest(chess.Board(fen, chess960=True), limits, **more)  # type: ignore[arg-type]
        return search_together(self.supervisor, self.team, request)

    def there(self) -> bool:
        """Whether the other machine is ready, now."""
        for _ in self.team.events():
            continue
        return bool(self.team.members)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        fake = SUPPORT / "fake_ray"
        patch.syspath_prepend(fake)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(fake), str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
        nodes = tmp_path_factory.mktemp("ray") / "nodes"
        nodes.write_text("here 1\nthere 1\n")
        patch.setenv("FAKE_RAY_NODES", str(nodes))
        patch.setenv("FAKE_RAY_OURS", "here")
        notes: list[str] = []
        with Supervisor(1, 4) as supervisor, Team("auto", 4, on_note=notes.append) as team:
            team.wait()
            yield World(nodes, supervisor, team, notes)


def assert_is_an_answer(result: Result, fen: str = MIDDLE_GAME, machines: int = 2) -> None:
    """A legal line, and the nodes of all."""
    board = chess.Board(fen, chess960=True)
    assert result.bestmove == result.info.pv[0] == result.lines[0].pv[0]
    for move in result.info.pv:
        assert move in board.legal_moves
        board.push(move)
    assert result.info.nodes == sum(machine.nodes for machine in result.machines)
    assert len(result.machines) == result.info.machines == machines


def test_to_a_depth(world: World) -> None:
    shown: list[Info] = []
    result = world.search(Limits(depth=11), on_info=shown.append)
    assert_is_an_answer(result)
    assert result.info.depth == 11 and not result.interrupted and not world.notes
    assert max(machine.depth for machine in result.machines) == 11
    assert [machine.name for machine in result.machines] == ["", "there (127.0.0.1)"]
    depths = [info.depth for info in shown]
    nodes = [info.nodes for info in shown]
    assert depths == sorted(depths) and nodes == sorted(nodes)
    assert {info.machines for info in shown} == {2}


def test_the_nodes_are_those_of_all(world: World) -> None:
    result = world.search(Limits(nodes=200_000))
    assert_is_an_answer(result)
    assert 200_000 <= result.info.nodes < 220_000
    assert all(90_000 < machine.nodes < 120_000 for machine in result.machines)


def test_a_node_for_each_machine_is_enough(world: World) -> None:
    assert_is_an_answer(world.search(Limits(nodes=1)), machines=1)
    assert_is_an_answer(world.search(Limits(nodes=2)))


@pytest.mark.parametrize("milliseconds", [20, 100, 1000])
def test_in_time(world: World, milliseconds: int) -> None:
    def seconds() -> float:
        begun = time.perf_counter()
        result = world.search(Limits(movetime_ms=milliseconds))
        taken = time.perf_counter() - begun
        assert_is_an_answer(result)
        assert milliseconds < 1000 or all(machine.nodes > 1000 for machine in result.machines)
        return taken

    within_s = milliseconds / 1000 + 0.5
    assert least(seconds, within_s) < within_s


def test_both_exchange_what_they_find(world: World) -> None:
    sharing = world.team.sharing(world.supervisor)
    sent, taken = sharing.sent, sharing.taken
    control = SearchControl()

    def look(info: Info) -> None:
        if sharing.sent > sent + 100 and sharing.taken > taken + 100:
            control.stop()

    result = world.search(Limits(movetime_ms=60_000), KIWIPETE, control=control, on_info=look)
    assert result.interrupted and result.info.time_s < 50


def test_until_it_is_stopped(world: World) -> None:
    control = SearchControl()
    timer = threading.Timer(0.3, control.stop)
    timer.start()
    result = world.search(ENDLESS, control=control)
    assert_is_an_answer(result)
    assert result.interrupted


def test_the_clock_runs_from_a_ponderhit_on(world: World) -> None:
    def seconds() -> float:
        control = SearchControl(TimeManager(Budget(math.inf, 0.2), pondering=True))
        timer = threading.Timer(0.4, control.ponderhit)
        begun = time.perf_counter()
        timer.start()
        result = world.search(ENDLESS, control=control)
        taken = time.perf_counter() - begun
        assert_is_an_answer(result)
        assert not result.interrupted
        return taken

    assert 0.55 < least(seconds, 1.5) < 1.5


def test_a_mate(world: World) -> None:
    fen = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"
    result = world.search(Limits(mate=1), fen)
    assert_is_an_answer(result, fen)
    assert result.info.score.relative.mate() == 1 and result.info.pv[0].uci() == "a1a8"


def test_moves_to_choose_from(world: World) -> None:
    only = list(chess.Board(MIDDLE_GAME).legal_moves)[3:5]
    result = world.search(Limits(depth=6), only=only)
    assert_is_an_answer(result)
    assert result.bestmove in only


def test_several_lines(world: World) -> None:
    shown: list[Info] = []
    result = world.search(Limits(depth=7), KIWIPETE, multipv=3, on_info=shown.append)
    assert_is_an_answer(result, KIWIPETE)
    assert len({line.pv[0] for line in result.lines}) == 3
    assert [line.multipv for line in result.lines] == [1, 2, 3]
    assert [line.score.relative for line in result.lines] == sorted(
        (line.score.relative for line in result.lines), reverse=True
    )
    numbers = [info.multipv for info in shown if not info.is_live]
    assert numbers == [1, 2, 3] * (len(numbers) // 3)


def test_castling_of_chess960(world: World) -> None:
    fen = "4k3/8/8/8/8/8/8/1R2K1R1 w GB - 0 1"
    only = [chess.Move.from_uci("e1g1")]
    result = world.search(Limits(depth=6), fen, only=only)
    assert_is_an_answer(result, fen)
    assert result.bestmove == only[0]


def test_the_game_is_over(world: World) -> None:
    assert world.search(Limits(depth=3), "7k/5QQ1/8/8/8/8/8/K7 b - - 0 1").bestmove is None


def test_a_new_game(world: World) -> None:
    world.search(Limits(depth=9))
    world.supervisor.forget()
    world.team.forget()
    result = world.search(Limits(depth=1))
    assert_is_an_answer(result)
    assert result.info.depth == 1


def test_an_exception_of_the_caller_ends_it_everywhere(world: World) -> None:
    def fail(info: Info) -> None:
        raise RuntimeError("of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        world.search(ENDLESS, on_info=fail)
    assert not any(member.search for member in world.team.members)
    assert_is_an_answer(world.search(Limits(depth=5)))


def test_a_machine_is_lost_and_another_comes(world: World) -> None:
    control = SearchControl()

    stopped_at: list[float] = []

    def lose() -> None:
        world.nodes.write_text("here 1\n")
        wait_until(lambda: world.notes)
        time.sleep(0.5)
        stopped_at.append(time.monotonic())
        control.stop()

    thread = threading.Thread(target=lose)
    begun: list[float] = []

    def start(info: Info) -> None:
        if not begun and info.time_s > 0.5:
            begun.append(time.monotonic())
            thread.start()

    result = world.search(ENDLESS, control=control, on_info=start)
    thread.join()
    assert_is_an_answer(result)
    assert time.monotonic() - stopped_at[0] < 2.0
    assert result.machines[1].nodes > 0, "what it has done was not for nothing"
    assert world.notes == ["node there (127.0.0.1) is gone"]
    assert_is_an_answer(world.search(Limits(depth=5)), machines=1)
    world.nodes.write_text("here 1\nthird 1\n")
    end = time.monotonic() + 120
    while not world.there() and time.monotonic() < end:
        time.sleep(0.1)
    assert_is_an_answer(world.search(Limits(depth=9)))


def test_who_comes_during_a_search_joins_it(world: World) -> None:
    control = SearchControl()
    world.nodes.write_text("here 1\n")
    while world.there():
        time.sleep(0.1)
    shown: list[int] = []

    def take(info: Info) -> None:
        shown.append(info.machines)
        if len(shown) == 1:
            world.nodes.write_text("here 1\nfourth 1\n")
        if info.machines == 2:
            control.stop()

    timer = threading.Timer(120, control.stop)
    timer.start()
    world.search(ENDLESS, KIWIPETE, control=control, on_info=take)
    timer.cancel()
    assert shown[0] == 1 and shown[-1] == 2


def test_the_others_answer_when_the_workers_here_are_lost_for_good(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Supervisor, request: SearchRequest) -> Result:
        assert request.on_look is not None
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            request.on_look()
            time.sleep(0.01)
        raise WorkerDied("worker 0 was killed by signal 9, as those before it; the search was stopped")

    while not world.there():
        time.sleep(0.1)
    monkeypatch.setattr(Supervisor, "search", fail)
    result = world.search(Limits(movetime_ms=1000))
    assert_is_an_answer(result)
    assert result.machines[0].nodes == 0 < result.machines[1].nodes
    assert result.notes == ["worker 0 was killed by signal 9, as those before it; the search was stopped"]


def put(path: Path, text: str) -> None:
    """Replace a file as a whole: who reads an empty one takes all machines for gone."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_cores_that_are_taken_are_not_waited_for(world: World) -> None:
    """Who gets them later joins."""
    put(world.nodes, world.nodes.read_text() + "taken 1 busy\n")
    notes: list[str] = []
    with Team("auto", 4, on_note=notes.append) as team:
        team.wait(late_s=3.0)
        assert "taken (127.0.0.1)" not in [member.name for member in team.members]
        (note,) = notes
        assert note.startswith("not ready yet: ") and "taken (127.0.0.1)" in note
        control = SearchControl()

        def take(info: Info) -> None:
            if team.members and team.members[-1].name == "taken (127.0.0.1)":
                control.stop()
            elif info.depth > 1 and " busy" in world.nodes.read_text():
                put(world.nodes, world.nodes.read_text().replace(" busy", ""))

        request = SearchRequest(chess.Board(KIWIPETE), ENDLESS, control=control, on_info=take)
        timer = threading.Timer(120, control.stop)
        timer.start()
        result = search_together(world.supervisor, team, request)
        timer.cancel()
    assert result.machines[-1].name == "taken (127.0.0.1)"
    put(world.nodes, world.nodes.read_text().replace("taken 1\n", ""))


def test_there_is_no_other_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from psearch.remote.ray import standing

    monkeypatch.setattr(standing, "_NOBODY_S", 1000.0)
    monkeypatch.setenv("FAKE_RAY_OURS", world.nodes.read_text().split()[2])
    world.nodes.write_text(world.nodes.read_text().replace("here 1\n", ""))
    with (
        Team("auto", 4) as team,
        pytest.raises(PsearchError, match=r"^no other machine of the cluster can work$"),
    ):
        team.wait()
