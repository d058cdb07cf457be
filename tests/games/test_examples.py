"""The games of docs/examples: their rules against slow twins, perft, and published scores by one worker and by two."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
from example_games import NaiveConnectFour, NaiveOthello, naive_negamax, plain_game
from paths import DATA as ALL_DATA
from paths import REPOSITORY

from psearch.games import Game, GamePosition
from psearch.games.searching import options_for, search_with, supervisor_for
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError
from psearch_core.records import position_dtype

DATA = ALL_DATA / "examples"
EXAMPLES = REPOSITORY / "docs" / "examples"
TO_THE_END = 60
"""A depth no endgame of the tests reaches, with its passes."""


class Example(NamedTuple):
    game: Game
    supervisor: Supervisor
    twin: Callable[[], NaiveConnectFour | NaiveOthello]

    def search(self, pos: GamePosition, depth: int) -> tuple[int, str | None]:
        """The score and the best move."""
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
    expected = counts[example.game.name]
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
    ("name", "one", "another"),
    [("connect_four", "4435", "3544"), ("othello", "f5d6c3d3c4", "f5d6c4d3c3")],
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
@pytest.mark.parametrize(
    "number", ["40", *(pytest.param(number, marks=pytest.mark.nightly) for number in ("41", "42"))]
)
def test_published_scores_of_ffo_positions(othello: Example, number: str) -> None:
    squares, side, score, *best = next(row[1:] for row in lines_of("ffo.txt") if row[0] == number)
    pos = othello.game.read(squares + side)
    assert othello.search(pos, TO_THE_END) == (100 * int(score), best[0])


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
