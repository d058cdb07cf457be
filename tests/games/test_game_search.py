"""Users' games: exactly the minimax value by any workers and policy; the examples against twins and known scores."""

from __future__ import annotations

import gc
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from example_games import NaiveConnectFour, NaiveOthello, naive_negamax, plain_game
from paths import DATA, REPOSITORY
from programs import descendants
from timing import wait_for_ends

from psearch.arena import setup
from psearch.defaults import POLICY_NAMES
from psearch.games import Game, GamePosition, search
from psearch.games.searching import options_for, search_with, supervisor_for
from psearch.processes import pool
from psearch.processes.supervisor import Supervisor
from psearch.processes.watch import Watch
from psearch.results import Limits, PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator
from psearch_core.records import position_dtype


def negamax(position: GamePosition, depth: int, known: dict[tuple[bytes, int], int]) -> int:
    """Return the minimax value of so many moves, for the side to move. known: values that are there already."""
    place = position.pos, depth
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
    """The lines of a null window may end before the game does; the value may not."""
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


def test_a_lost_worker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    position = Game(TAKE_AWAY).start()
    begin = Watch._begin
    killed: list[int] = []

    def lose_one(watch: Watch) -> None:
        begin(watch)
        if not killed:
            killed.append(watch.pool.workers[1].pid)
            watch.pool.workers[1].kill()
            wait_for_ends(killed)  # it is noticed even if the search is over by then

    monkeypatch.setattr(Watch, "_begin", lose_one)
    with supervisor_for(position, 2, 1) as supervisor:
        found = search_with(supervisor, position, Limits(depth=24))
    assert found.depth == 24
    assert found.score == negamax(position, 24, {})
    assert len(found.notes) == 1 and "worker 1" in found.notes[0]


def kill_workers(supervisor: Supervisor) -> None:
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
    gc.collect()  # the games of other tests, each with the process of its rules
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


EXAMPLE_DATA = DATA / "examples"
EXAMPLES = REPOSITORY / "docs" / "examples"
TO_THE_END = 60
"""A depth no endgame of the tests reaches, with its passes."""


class Example(NamedTuple):
    game: Game
    supervisor: Supervisor
    twin: Callable[[], NaiveConnectFour | NaiveOthello]

    def search(self, pos: GamePosition, depth: int) -> tuple[int, str | None]:
        found = search_with(self.supervisor, pos, Limits(depth=depth), options_for(self.game, "calibrated"))
        return found.score, found.bestmove


def _example(name: str, twin: Callable[[], NaiveConnectFour | NaiveOthello]) -> Iterator[Example]:
    game = Game(EXAMPLES / f"{name}.py")
    with supervisor_for(game.start(), 1, 16, options_for(game, "calibrated")) as supervisor:
        yield Example(game, supervisor, twin)


@pytest.fixture(scope="module")
def connect_four() -> Iterator[Example]:
    yield from _example("connect_four", NaiveConnectFour)


@pytest.fixture(scope="module")
def othello() -> Iterator[Example]:
    yield from _example("othello", NaiveOthello)


@pytest.fixture(params=["connect_four", "othello"])
def example(request: pytest.FixtureRequest) -> Example:
    return request.getfixturevalue(request.param)


def key_of(pos: GamePosition) -> int:
    record = np.zeros(1, position_dtype)
    pos.write_root(record)
    return int(record["key"][0])


def lines_of(name: str) -> list[list[str]]:
    return [line.split() for line in (EXAMPLE_DATA / name).read_text().splitlines()]


def random_game(example: Example, seed: int) -> list[str]:
    generator, twin, played = random.Random(seed), example.twin(), []
    while moves := twin.moves():
        played.append(generator.choice(moves))
        twin.play(played[-1])
    return played


def test_perft(example: Example) -> None:
    expected = {row[0].replace("_", " "): list(map(int, row[1:])) for row in lines_of("perft.tsv")}[example.game.name]
    assert [example.game.start().perft(depth + 1) for depth in range(len(expected))] == expected


def test_rules_of_random_games(example: Example) -> None:
    for seed in range(20):
        pos, twin = example.game.start(), example.twin()
        for move in [*random_game(example, seed), None]:
            assert example.game.board_text(pos) == twin.picture()
            legal = {pos.move_text(move): move for move in pos.moves()}
            assert sorted(legal) == sorted(twin.moves())
            assert abs(pos.static_score()) < 10_000
            if move is None:
                assert pos.result() == twin.result()
            else:
                assert not pos.is_over
                pos = pos.after(legal[move])
                twin.play(move)


def test_keys_tell_positions_apart(example: Example) -> None:
    seen = {}
    for seed in range(100, 140):
        pos, twin = example.game.start(), example.twin()
        for move in random_game(example, seed):
            legal = {pos.move_text(move): move for move in pos.moves()}
            pos = pos.after(legal[move])
            twin.play(move)
            assert seen.setdefault(key_of(pos), twin.state()) == twin.state()
    assert len(set(seen.values())) == len(seen) > 500


def test_keys_of_all_positions_of_connect_four(connect_four: Example) -> None:
    counts, layer = [], [connect_four.game.start()]
    for _ in range(5):
        after = [pos.after(move) for pos in layer for move in pos.moves()]
        layer = list({key_of(pos): pos for pos in after}.values())
        assert len({pos.text() for pos in layer}) == len(layer)
        counts.append(len(layer))
    assert counts == [7, 49, 238, 1120, 4263]


@pytest.mark.parametrize(
    ("name", "one", "another"), [("connect_four", "4435", "3544"), ("othello", "f5d6c3d3c4", "f5d6c4d3c3")]
)
def test_transpositions_have_one_key(request: pytest.FixtureRequest, name: str, one: str, another: str) -> None:
    example = request.getfixturevalue(name)
    first, second = example.game.read(one), example.game.read(another)
    assert first.text() == second.text()
    assert key_of(first) == key_of(second)


def test_key_of_the_other_side_to_move_is_another(othello: Example) -> None:
    assert othello.game.read("-" * 27 + "OX------XO" + "-" * 27 + "X").text() == othello.game.start().text()
    squares = "-" * 24 + "--XXXO--" + "-" * 32
    black, white = othello.game.read(squares + "X"), othello.game.read(squares + "O")
    assert key_of(black) != key_of(white)


def test_texts_of_random_games_are_read_back(example: Example) -> None:
    for seed in range(200, 220):
        played, twin = random_game(example, seed), example.twin()
        cut = len(played) // 2
        for move in played[:cut]:
            twin.play(move)
        assert example.game.board_text(example.game.read("".join(played[:cut]))) == twin.picture()
        assert example.game.read("".join(played)).is_over


def test_no_guess_of_connect_four_is_worth_a_decided_game(connect_four: Example) -> None:
    generator, seen, plain = random.Random(5), set(), plain_game(EXAMPLES / "connect_four.py")
    pos = connect_four.game.start().record
    for _ in range(2000):  # most are no positions of a game, and have more threats than any
        own, other = generator.getrandbits(42), generator.getrandbits(42) & generator.getrandbits(42)
        spread = [
            sum((stones >> 6 * column & 63) << 7 * column for column in range(7)) for stones in (own, other & ~own)
        ]
        pos["own"], pos["other"] = spread if generator.random() < 0.5 else reversed(spread)
        seen.add(int(plain.evaluate(pos)))
    assert (min(seen), max(seen)) == (-99, 99)  # a win or a loss is worth 100 or more


def rank_of(move: str, position: str) -> int:
    """Return how promising a move of Connect Four is: it wins, prevents a win, neither, or allows one on top of it."""

    def winner(moves: str, skip: int = 0) -> int | None:
        twin = NaiveConnectFour()
        for one in moves:
            twin.play(one)
        twin.turn ^= skip
        twin.play(move)
        return twin.winner()

    me = len(position) % 2
    if winner(position) == me:
        return 0
    if winner(position, skip=1) == 1 - me:
        return 1
    return 3 if position.count(move) < 5 and winner(position + move) == 1 - me else 2


def test_best_guess_of_connect_four_comes_first(connect_four: Example) -> None:
    game, ranks_seen = connect_four.game, set()
    assert [game.start().move_text(move) for move in game.start().moves()] == list("4352617")
    for seed in range(20):
        played = random_game(connect_four, seed)
        for at in range(len(played)):
            position = "".join(played[:at])
            pos = game.read(position)
            ranks = [rank_of(pos.move_text(move), position) for move in pos.moves()]
            assert ranks == sorted(ranks)
            ranks_seen |= set(ranks)
    assert ranks_seen == {0, 1, 2, 3}


def test_othello_passes(othello: Example) -> None:
    played = next(game for seed in range(1000) if "pa" in (game := random_game(othello, seed))[:-1])
    without = [move for move in played if move != "pa"]
    assert othello.game.read("".join(without)).text() == othello.game.read("".join(played)).text()
    to_pass = othello.game.read("".join(played[: played.index("pa")]))
    assert [to_pass.move_text(move) for move in to_pass.moves()] == ["pa"]


@pytest.mark.parametrize(
    ("text", "score"), [("X" * 10 + "-" * 54 + "O", -6400), ("O" * 10 + "-" * 54 + "O", 6400), ("XO" * 32 + "X", 0)]
)
def test_empty_squares_count_for_the_winner_of_othello(othello: Example, text: str, score: int) -> None:
    pos = othello.game.read(text)
    assert pos.is_over and pos.result() == score


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f5d6a1", "f5d6 a1: here one can play"),
        ("f5d", "f5 d: here one can play"),
        ("f5pa", "f5 pa: here one can play"),
        ("XO", "a board is 64 squares"),
        ("X" * 64, "a board is 64 squares"),
        ("X" * 63 + "?X", "a board is 64 squares"),
    ],
)
def test_texts_that_are_no_position_of_othello(othello: Example, text: str, message: str) -> None:
    with pytest.raises(PsearchError, match=message):
        othello.game.read(text)


@pytest.mark.parametrize("name", ["connect_four", "othello"])
def test_kernels_run_in_plain_python_as_well(request: pytest.FixtureRequest, name: str) -> None:
    example, plain = request.getfixturevalue(name), plain_game(EXAMPLES / f"{name}.py")
    pos, own = example.game.start(), np.zeros(1, plain.POSITION)[0]
    plain.start(own)
    found = np.zeros(plain.MOST_MOVES, np.uint16)
    for move in random_game(example, 400):
        legal = pos.moves()
        assert found[: plain.moves(own, found)].tolist() == legal
        assert (own.tobytes(), plain.evaluate(own)) == (pos.record.tobytes(), pos.static_score())
        number = next(number for number in legal if pos.move_text(number) == move)
        pos = pos.after(number)
        plain.make(own, np.uint16(number))


def test_endgames_of_othello_against_a_naive_search(othello: Example) -> None:
    for seed in range(300, 308):
        played, twin = random_game(othello, seed), NaiveOthello()
        for move in played:
            if len(twin.discs) == 56:
                break
            twin.play(move)
        if not twin.moves():
            continue
        board = twin.picture().removesuffix(f"{twin.turn} to move") + twin.turn
        assert othello.search(othello.game.read(board), TO_THE_END)[0] == naive_negamax(twin), seed


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("number", ["40", "41", "42"])
def test_published_scores_of_ffo_positions(othello: Example, number: str) -> None:
    squares, side, score, *best = next(row[1:] for row in lines_of("ffo.txt") if row[0] == number)
    pos = othello.game.read(squares + side)
    assert othello.search(pos, TO_THE_END) == (100 * int(score), best[0])


@pytest.mark.parametrize("name", ["end", "middle"])
def test_published_scores_of_connect_four_by_two_workers(name: str) -> None:
    game = Game(EXAMPLES / "connect_four.py")
    positions = [(game.read(moves), int(score)) for moves, score in lines_of(f"connect_four_{name}_easy.txt")]
    with supervisor_for(positions[0][0], 2, 16) as supervisor:
        for position, score in positions:
            found = search_with(supervisor, position, Limits(depth=42))
            assert (found.score, found.solved) == (100 * score, True)


def test_published_scores_of_othello_by_two_workers() -> None:
    game = Game(EXAMPLES / "othello.py")
    boards = {number: (squares + side, int(score)) for number, squares, side, score, *_ in lines_of("ffo.txt")}
    for number, played in lines_of("ffo_played_on.txt"):
        board, score = boards[number]
        position = game.read(board)
        for at in range(0, len(played), 2):
            moves = {position.move_text(move): move for move in position.moves()}
            position, score = position.after(moves[played[at : at + 2]]), -score
        with supervisor_for(position, 2, 16) as supervisor:
            found = search_with(supervisor, position, Limits(depth=60))
        assert (found.score, found.solved) == (100 * score, True), number
