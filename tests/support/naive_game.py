"""A user's game searched in the plainest way, for comparison: every node, by the rules as Python calls them."""

from __future__ import annotations

import random

from psearch.games import Game, GamePosition


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
