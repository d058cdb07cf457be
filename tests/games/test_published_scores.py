"""Connect Four and Othello searched by two workers: published scores, solved to the end."""

from __future__ import annotations

import pytest
from paths import DATA, REPOSITORY

from psearch.games import Game
from psearch.games.searching import search_with, supervisor_for
from psearch.results import Limits

EXAMPLES = REPOSITORY / "docs" / "examples"
_PUBLISHED = DATA / "examples"


def rows_of(name: str) -> list[list[str]]:
    return [line.split() for line in (_PUBLISHED / name).read_text().splitlines()]


@pytest.mark.parametrize("name", ["end", "middle"])
def test_connect_four(name: str) -> None:
    game = Game(EXAMPLES / "connect_four.py")
    rows = rows_of(f"connect_four_{name}_easy.txt")
    positions = [(game.read(moves), int(score)) for moves, score in rows]
    with supervisor_for(positions[0][0], 2, 16) as supervisor:
        for position, score in positions:
            found = search_with(supervisor, position, Limits(depth=42))
            assert (found.score, found.solved) == (100 * score, True)


def test_othello() -> None:
    game = Game(EXAMPLES / "othello.py")
    boards = {number: (squares + side, int(score)) for number, squares, side, score, *_ in rows_of("ffo.txt")}
    for number, played in rows_of("ffo_played_on.txt"):
        board, score = boards[number]
        position = game.read(board)
        for at in range(0, len(played), 2):
            moves = {position.move_text(move): move for move in position.moves()}
            position, score = position.after(moves[played[at : at + 2]]), -score
        with supervisor_for(position, 2, 16) as supervisor:
            found = search_with(supervisor, position, Limits(depth=60))
        assert (found.score, found.solved) == (100 * score, True), number
