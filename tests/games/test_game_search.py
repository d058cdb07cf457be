"""A user's game: exactly its minimax value, whatever the number of workers and the policy."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paths import DATA, REPOSITORY
from programs import descendants

from psearch.arena import setup
from psearch.defaults import POLICY_NAMES
from psearch.games import Game, GamePosition, search
from psearch.games.searching import options_for, search_with, supervisor_for
from psearch.processes import pool
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator


def negamax(position: GamePosition, depth: int, known: dict[tuple[bytes, int], int]) -> int:
    """Return the minimax value of so many moves, for the side to move. known: values that are there already."""
    place = position.pos.tobytes(), depth
    if place not in known:
        if position.is_over:
            known[place] = position.result()
        elif depth == 0:
            known[place] = position.static_score()
        else:
            known[place] = max(-negamax(position.after(move), depth - 1, known) for move in position.moves())
    return known[place]


def is_whole(position: GamePosition, depth: int) -> bool:
    """Tell whether every game from here has ended after so many moves."""
    if position.is_over:
        return True
    return depth > 0 and all(is_whole(position.after(move), depth - 1) for move in position.moves())


def random_positions(game: Game, number: int, seed: int, most_moves: int) -> list[GamePosition]:
    """Return positions that are not over, reached by random moves."""
    dice = random.Random(seed)
    found: list[GamePosition] = []
    while len(found) < number:
        position = game.start()
        for _ in range(dice.randint(0, most_moves)):
            following = position.after(dice.choice(position.moves()))
            if following.is_over:
                break
            position = following
        found.append(position)
    return found


TIC_TAC_TOE = REPOSITORY / "docs" / "examples" / "tic_tac_toe.py"
TAKE_AWAY = DATA / "games" / "take_away.py"
_MOVES_BEFORE = {"tic-tac-toe": 5, "take away": 15}
_MOST_DEPTH = 8
_WHOLE_GAME = 64
COUNTING = """
from psearch.own_policy import atomic_add, may_open, replaces, word

WORDS = 1

@replaces(may_open)
def opens(ctx, node, ply):
    atomic_add(word(ctx, 0), 1)
    return node.moves_done >= 1
"""


@pytest.fixture(scope="module", params=[TIC_TAC_TOE, TAKE_AWAY], ids=lambda path: path.stem)
def game(request: pytest.FixtureRequest) -> Game:
    return Game(request.param)


@pytest.fixture(scope="module")
def tic_tac_toe() -> Game:
    return Game(TIC_TAC_TOE)


def some(game: Game, number: int = 6) -> list[tuple[GamePosition, int]]:
    """Positions, each with a depth."""
    positions = random_positions(game, number, 7, _MOVES_BEFORE[game.name])
    return [(position, 1 + place % _MOST_DEPTH) for place, position in enumerate(positions)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_processes_find_the_value_of_the_depth(policy: str, threads: int, game: Game) -> None:
    known: dict[tuple[bytes, int], int] = {}
    positions = some(game)
    with supervisor_for(positions[0][0], threads, 1) as supervisor:
        for position, depth in positions:  # the table lasts from one to the next
            found = search_with(supervisor, position, Limits(depth=depth), options_for(game, policy))
            assert found.score == negamax(position, found.depth, known)
            assert found.depth == depth or found.solved
            assert not found.notes


@pytest.mark.parametrize("workers", [8, 64])
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_virtual_workers_find_it_too(policy: str, workers: int, game: Game) -> None:
    known: dict[tuple[bytes, int], int] = {}
    simulator = Simulator(workers, 1, Costs())
    try:
        for position, depth in some(game, 3):
            sample = simulator.search("", position, depth, options_for(game, policy), validate=workers == 8)
            assert sample.score == negamax(position, depth, known)
    finally:
        simulator.close()


def test_null_windows_find_it_too(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of them shows may rest on the whole game, and the value not yet."""
    monkeypatch.setattr(setup, "PROVED_DEPTH", 1)
    known: dict[tuple[bytes, int], int] = {}
    simulator = Simulator(8, 1, Costs())
    try:
        for position, depth in some(game, 24):
            found = simulator.search("", position, depth, replace(options_for(game, "calibrated"), driver="null"))
            assert found.score == negamax(position, depth, known)
            header = simulator.arena.header[0]
            assert header["depth"] == depth or header["exhausted"]
            if header["exhausted"]:
                assert found.score == negamax(position, _WHOLE_GAME, known)
    finally:
        simulator.close()


def test_a_policy_from_a_file_has_words_of_its_own(tic_tac_toe: Game, tmp_path: Path) -> None:
    file = tmp_path / "counting.py"
    file.write_text(COUNTING)
    options = options_for(tic_tac_toe, str(file))
    position = tic_tac_toe.read("5")
    with supervisor_for(position, 2, 1, options) as supervisor:
        found = search_with(supervisor, position, Limits(depth=20), options)
        asked, mistakes = supervisor.arena.plug_in
    assert (found.score, found.solved, found.depth) == (0, True, 8)
    assert asked > 0 and mistakes == 0


def test_every_iteration_is_exact(game: Game) -> None:
    known: dict[tuple[bytes, int], int] = {}
    for position in random_positions(game, 4, 3, _MOVES_BEFORE[game.name]):
        found: list[tuple[int, int]] = []
        search(game, position, depth=7, on_info=lambda info, found=found: found.append((info.depth, info.score)))
        assert found
        assert all(score == negamax(position, depth, known) for depth, score in found)


def test_it_ends_when_the_whole_game_is_searched(game: Game) -> None:
    known: dict[tuple[bytes, int], int] = {}
    for position in random_positions(game, 6, 5, _MOVES_BEFORE[game.name] + 3):
        found = search(game, position, depth=12)
        if found.solved:
            assert found.score == negamax(position, 60, known)
        if is_whole(position, min(found.depth, 6)):
            assert found.solved


def test_tic_tac_toe_is_a_draw(tic_tac_toe: Game) -> None:
    found = search(tic_tac_toe, threads=2)
    assert (found.score, found.solved, found.depth, len(found.line)) == (0, True, 9, 9)
    assert tic_tac_toe.read("".join(found.line)).is_over


def test_perft_of_tic_tac_toe(tic_tac_toe: Game) -> None:
    """Games in all: 255,168 (OEIS A061529 has them by length)."""
    counts = [tic_tac_toe.start().perft(depth) for depth in range(10)]
    assert counts == [1, 9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872]


def test_a_win_is_found(tic_tac_toe: Game) -> None:
    found = search(tic_tac_toe, "1 4 2 5")
    assert (found.bestmove, found.score, found.line, found.solved) == ("3", 1, ["3"], True)


def test_a_game_that_is_over_needs_no_search(tic_tac_toe: Game) -> None:
    found = search(tic_tac_toe, "14253", threads=2)
    assert (found.bestmove, found.score, found.nodes, found.solved) == (None, -1, 0, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("15x", "position '15x': no move begins 'x'; there are 3 7 9 2 4 6 8"),
        ("11", "position '11': no move begins '1'; there are 5 3 7 9 2 4 6 8"),
        ("142536", "position '142536': the game is over before '6'"),
    ],
)
def test_a_position_that_is_none_is_one_line(text: str, words: str, tic_tac_toe: Game) -> None:
    with pytest.raises(PsearchError) as raised:
        search(tic_tac_toe, text)
    assert str(raised.value) == words


@pytest.mark.parametrize(
    "arguments",
    [{"threads": 0}, {"depth": 0}, {"movetime_ms": 0}, {"hash_mb": 0}, {"nodes": "x"}, {"policy": "mine.py"}],
)
def test_arguments_are_checked(arguments: dict[str, object], tic_tac_toe: Game) -> None:
    with pytest.raises(PsearchError, match=next(iter(arguments))):
        search(tic_tac_toe, **arguments)


def refuse(*arguments: object) -> None:
    raise PsearchError("no more processes")


def test_a_lost_worker_is_replaced(tic_tac_toe: Game) -> None:
    position = Game(TAKE_AWAY).start()
    with supervisor_for(position, 2, 1) as supervisor:
        killed: list[int] = []

        def kill(info: object) -> None:
            if not killed:
                killed.append(1)
                supervisor.pool.workers[1].kill()

        found = search_with(supervisor, position, Limits(depth=24), on_info=kill)
    assert found.depth == 24
    assert found.score == negamax(position, 24, {})
    assert len(found.notes) == 1 and "worker 1" in found.notes[0]


def kill_workers(supervisor: Supervisor) -> None:
    """Kill all worker processes, as the system may."""
    for worker in supervisor.pool.workers:
        os.kill(worker.pid, signal.SIGKILL)


def test_what_was_found_is_the_answer_where_no_others_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's kernels, with which this process would go on, know no other game."""
    position = Game(TAKE_AWAY).start()
    with supervisor_for(position, 2, 1) as supervisor:

        def lose_all(info: object) -> None:
            monkeypatch.setattr(pool, "launch", refuse)
            kill_workers(supervisor)

        found = search_with(supervisor, position, Limits(depth=60), on_info=lose_all)
        assert found.depth >= 1 and found.bestmove in found.line
        assert found.notes[-1].endswith("the search was stopped, because no others can be started: no more processes")


def test_others_are_waited_for_though_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late answer is better than none."""
    position = Game(TAKE_AWAY).start()
    launch = pool.launch

    def late(*arguments: Any) -> None:
        time.sleep(0.02)
        launch(*arguments)

    with supervisor_for(position, 2, 1) as supervisor:
        monkeypatch.setattr(pool, "launch", late)
        kill_workers(supervisor)
        assert search_with(supervisor, position, Limits(movetime_ms=1)).bestmove


@pytest.mark.parametrize("method", ["fork", "forkserver", "inline"])
def test_every_process_has_the_game_however_it_is_started(method: str, tic_tac_toe: Game) -> None:
    position = tic_tac_toe.read("5")
    with Supervisor(2, 1, method, kernels=position.kernels) as supervisor:
        found = search_with(supervisor, position, Limits(depth=20))
    assert (found.score, found.solved, found.depth) == (0, True, 8)


def test_where_no_process_is_to_be_had_it_is_told(tic_tac_toe: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's kernels, which search in this process then, know no other game."""
    position = tic_tac_toe.start()
    with supervisor_for(position, 2, 1) as supervisor:
        monkeypatch.setattr(pool, "launch", refuse)
        kill_workers(supervisor)
        with pytest.raises(PsearchError, match="no others can be started: no more processes"):
            search_with(supervisor, position, Limits(depth=5))


@pytest.mark.slow
def test_a_hundred_searches_leave_nothing_behind(tic_tac_toe: Game) -> None:
    held = []
    for _ in range(2):
        for _ in range(50):
            search(tic_tac_toe, "5", threads=2, hash_mb=1)
        held.append((len(os.listdir("/proc/self/fd")), descendants(os.getpid())))
    assert held[0] == held[1]


def test_nodes_and_time_end_a_search() -> None:
    game = Game(TAKE_AWAY)
    assert search(game, nodes=5_000).nodes < 10_000
    assert search(game, movetime_ms=50).time_s < 2


def test_the_function_is_there_whatever_has_been_imported() -> None:
    """No module has its name, which would take its place."""
    import psearch.games
    import psearch.games.searching

    assert callable(psearch.games.search)
