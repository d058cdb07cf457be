"""A game of the user's, searched in sight of the tab of the workers."""

from __future__ import annotations

from typing import Any

import pytest
from paths import REPOSITORY

from psearch.games import Game

FILE = str(REPOSITORY / "docs" / "examples" / "connect_four.py")


@pytest.fixture
def game(request: pytest.FixtureRequest) -> str:
    return getattr(request, "param", FILE)


def looks(talk: Any) -> Any:
    """Snapshots, each confirmed."""
    while True:
        snapshot = talk.hear("workers.look")
        talk.say("workers.seen")
        yield snapshot


def test_it_is_searched_and_its_workers_are_seen(talk: Any) -> None:
    talk.say("game.hello")
    assert talk.hear("game.state")["game"] == "connect_four.py"
    talk.say("workers.watch")
    talk.say("game.search", position="44")
    assert talk.hear("game.state", lambda state: state["board"])["running"]
    seen = looks(talk)
    nodes = next(snapshot["nodes"] for snapshot in seen if snapshot["nodes"] and len(snapshot["nodes"]) > 1)
    words: dict[Any, list[str]] = {None: []}
    position = Game(FILE).read("44")
    for node in nodes:
        words[node["id"]] = words[node["parent"]] + node["words"]
        after = position.game.read("44" + "".join(words[node["id"]]))
        legal = {after.move_text(move) for move in after.moves()}
        assert {taken["san"] for taken in node["under_way"]} <= legal and not node["fen"]
    talk.say("game.search", position="")
    assert "being searched already" in talk.hear_error()["text"]
    talk.say("game.stop")
    assert next(snapshot for snapshot in seen if snapshot["done"])
    assert "best move" in talk.hear("game.state", lambda state: not state["running"])["text"]


def test_a_position_that_is_none_is_told(talk: Any) -> None:
    talk.say("game.search", position="48")
    assert "no move begins '8'" in talk.hear_error()["text"]
    talk.say("game.search", position=["4"])
    assert "position must be a text" in talk.hear_error()["text"]


@pytest.mark.parametrize("game", [""], indirect=True)
def test_without_a_file_of_the_command_line_there_is_none(talk: Any) -> None:
    talk.say("game.hello")
    talk.say("game.search", position="", game=FILE)
    assert "psearch serve --game FILE" in talk.hear_error()["text"]
    assert not [type for type, _ in talk.heard if type == "game.state"]
