"""The games of docs/examples: their rules against slow twins, perft, and published scores by one worker and by two."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import pytest
from compiled_game import ExampleGame, load_game, load_plain
from naive_games import NaiveConnectFour, NaiveOthello, naive_negamax
from paths import DATA as ALL_DATA
from paths import REPOSITORY
from serial_games import Serial, serial

from psearch.games import Game
from psearch.games.searching import search_with, supervisor_for
from psearch.results import Limits

DATA = ALL_DATA / "examples"
EXAMPLES = REPOSITORY / "docs" / "examples"
TO_THE_END = 60
"""A depth no endgame of the tests reaches, with its passes."""


class Example(NamedTuple):
    game: ExampleGame
    serial: Serial
    twin: Callable[[], NaiveConnectFour | NaiveOthello]


@pytest.fixture(scope="module")
def connect_four() -> Example:
    game = load_game(EXAMPLES / "connect_four.py")
    return Example(game, serial(game), NaiveConnectFour)


@pytest.fixture(scope="module")
def othello() -> Example:
    game = load_game(EXAMPLES / "othello.py")
    return Example(game, serial(game), NaiveOthello)


@pytest.fixture(params=["connect_four", "othello"])
def example(request: pytest.FixtureRequest) -> Example:
    return request.getfixturevalue(request.param)


def lines_of(name: str) -> list[list[str]]:
    return [line.split() for line in (DATA / name).read_text().splitlines()]


def random_game(example: Example, seed: int) -> list[str]:
    """Return the moves of a game that the twin plays to its end."""
    generator, twin, played = random.Random(seed), example.twin(), []
    while moves := twin.moves():
        played.append(generator.choice(moves))
        twin.play(played[-1])
    return played


def test_perft(example: Example) -> None:
    counts = {row[0].replace("_", " "): list(map(int, row[1:])) for row in lines_of("perft.tsv")}
    expected = counts[example.game.module.NAME]
    start = example.game.position()
    assert [example.serial.perft(start, depth + 1) for depth in range(len(expected))] == expected


def test_rules_of_random_games(example: Example) -> None:
    module = example.game.module
    for seed in range(20):
        pos, twin = example.game.position(), example.twin()
        for move in [*random_game(example, seed), None]:
            assert module.board_text(pos) == twin.picture()
            legal = {module.move_text(pos, move): move for move in example.game.legal(pos)}
            assert sorted(legal) == sorted(twin.moves()) and len(legal) <= module.MOST_MOVES
            assert abs(module.evaluate(pos)) < 10_000
            if move is None:
                assert module.result(pos) == twin.result()
            else:
                assert not module.ended(pos)
                pos = example.game.after(pos, legal[move])
                twin.play(move)


def test_keys_tell_positions_apart(example: Example) -> None:
    module, seen = example.game.module, {}
    for seed in range(100, 140):
        pos, twin = example.game.position(), example.twin()
        for move in random_game(example, seed):
            legal = {module.move_text(pos, move): move for move in example.game.legal(pos)}
            pos = example.game.after(pos, legal[move])
            twin.play(move)
            assert seen.setdefault(int(module.key(pos)), twin.state()) == twin.state()
    assert len(set(seen.values())) == len(seen) > 500


def test_keys_of_all_positions_of_connect_four(connect_four: Example) -> None:
    game, counts, layer = connect_four.game, [], [connect_four.game.position()]
    for _ in range(5):
        after = [game.after(pos, move) for pos in layer for move in game.legal(pos)]
        layer = list({int(game.module.key(pos)): pos for pos in after}.values())
        assert len({(int(pos["own"]), int(pos["other"])) for pos in layer}) == len(layer)
        counts.append(len(layer))
    assert counts == [7, 49, 238, 1120, 4263]


@pytest.mark.parametrize(
    ("name", "one", "another"),
    [("connect_four", "4435", "3544"), ("othello", "f5d6c3d3c4", "f5d6c4d3c3")],
)
def test_transpositions_have_one_key(request: pytest.FixtureRequest, name: str, one: str, another: str) -> None:
    example = request.getfixturevalue(name)
    first, second = example.game.read(one), example.game.read(another)
    assert first == second
    assert example.game.module.key(first) == example.game.module.key(second)


def test_key_of_the_other_side_to_move_is_another(othello: Example) -> None:
    assert othello.game.read("-" * 27 + "OX------XO" + "-" * 27 + "X") == othello.game.position()
    squares = "-" * 24 + "--XXXO--" + "-" * 32
    black, white = othello.game.read(squares + "X"), othello.game.read(squares + "O")
    assert othello.game.module.key(black) != othello.game.module.key(white)


def test_texts_of_random_games_are_read_back(example: Example) -> None:
    for seed in range(200, 220):
        played, twin = random_game(example, seed), example.twin()
        cut = len(played) // 2
        for move in played[:cut]:
            twin.play(move)
        assert example.game.module.board_text(example.game.read("".join(played[:cut]))) == twin.picture()
        pos = example.game.read("".join(played))
        assert example.game.module.ended(pos)


def test_no_guess_of_connect_four_is_worth_a_decided_game(connect_four: Example) -> None:
    generator, pos, seen = random.Random(5), connect_four.game.position(), set()
    for _ in range(2000):  # most are no positions of a game, and have more threats than any
        own, other = generator.getrandbits(42), generator.getrandbits(42) & generator.getrandbits(42)
        spread = [
            sum((stones >> 6 * column & 63) << 7 * column for column in range(7)) for stones in (own, other & ~own)
        ]
        pos["own"], pos["other"] = spread if generator.random() < 0.5 else reversed(spread)
        seen.add(int(connect_four.game.module.evaluate(pos)))
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
    assert [game.module.move_text(game.position(), move) for move in game.legal(game.position())] == list("4352617")
    for seed in range(20):
        played = random_game(connect_four, seed)
        for at in range(len(played)):
            position = "".join(played[:at])
            pos = game.read(position)
            ranks = [rank_of(game.module.move_text(pos, move), position) for move in game.legal(pos)]
            assert ranks == sorted(ranks)
            ranks_seen |= set(ranks)
    assert ranks_seen == {0, 1, 2, 3}


def test_othello_passes(othello: Example) -> None:
    played = next(game for seed in range(1000) if "pa" in (game := random_game(othello, seed))[:-1])
    without = [move for move in played if move != "pa"]
    assert othello.game.read("".join(without)) == othello.game.read("".join(played))
    to_pass = othello.game.read("".join(played[: played.index("pa")]))
    assert [othello.game.module.move_text(to_pass, move) for move in othello.game.legal(to_pass)] == ["pa"]


@pytest.mark.parametrize(
    ("text", "score"), [("X" * 10 + "-" * 54 + "O", -6400), ("O" * 10 + "-" * 54 + "O", 6400), ("XO" * 32 + "X", 0)]
)
def test_empty_squares_count_for_the_winner_of_othello(othello: Example, text: str, score: int) -> None:
    pos = othello.game.read(text)
    assert othello.game.module.ended(pos) and othello.game.module.result(pos) == score


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
    with pytest.raises(ValueError, match=message):
        othello.game.read(text)


@pytest.mark.parametrize("name", ["connect_four", "othello"])
def test_kernels_run_in_plain_python_as_well(request: pytest.FixtureRequest, name: str) -> None:
    example, plain = request.getfixturevalue(name), load_plain(EXAMPLES / f"{name}.py")
    played = random_game(example, 400)
    for at in range(len(played)):
        pos = plain.read("".join(played[:at]))
        assert pos == example.game.read("".join(played[:at]))
        assert plain.legal(pos) == example.game.legal(pos)
        assert plain.module.evaluate(pos) == example.game.module.evaluate(pos)


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
        assert othello.serial.search(othello.game.read(board), TO_THE_END)[0] == naive_negamax(twin), seed


@pytest.mark.slow
@pytest.mark.parametrize("number", ["40", "41", "42"])
def test_published_scores_of_ffo_positions(othello: Example, number: str) -> None:
    squares, side, score, *best = next(row[1:] for row in lines_of("ffo.txt") if row[0] == number)
    pos = othello.game.read(squares + side)
    found, move, _ = othello.serial.search(pos, 4, 7, 10, TO_THE_END)
    assert (found, othello.game.module.move_text(pos, move)) == (100 * int(score), best[0])


@pytest.mark.parametrize("name", ["end", "middle"])
def test_published_scores_of_connect_four_by_two_workers(name: str) -> None:
    game = Game(EXAMPLES / "connect_four.py")
    rows = lines_of(f"connect_four_{name}_easy.txt")
    positions = [(game.read(moves), int(score)) for moves, score in rows]
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
