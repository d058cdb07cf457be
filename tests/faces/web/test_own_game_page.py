"""A game of the user's, searched in sight of the tab of the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from paths import DATA, REPOSITORY

from psearch.games import Game

FILE = str(REPOSITORY / "docs" / "examples" / "connect_four.py")


@pytest.fixture
def named(request: pytest.FixtureRequest) -> dict[str, Any]:
    wanted = getattr(request, "param", FILE)
    return {"game": request.getfixturevalue(wanted) if wanted == "trapped" else wanted}


def looks(talk: Any) -> Any:
    """Snapshots, each confirmed, and also those that were heard among other messages."""
    while True:
        for _ in range(3):
            talk.say("workers.seen")
        yield talk.hear("workers.look")


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
    assert "already being searched" in talk.hear_error()["text"]
    talk.say("game.stop")
    assert next(snapshot for snapshot in seen if snapshot["done"])
    assert "best move" in talk.hear("game.state", lambda state: not state["running"])["text"]


def test_a_position_that_is_none_is_told(talk: Any) -> None:
    talk.say("game.search", position="48")
    assert "no move begins '8'" in talk.hear_error()["text"]
    talk.say("game.search", position=["4"])
    assert "position must be a text" in talk.hear_error()["text"]


TRAPPED = """
def read_position(pos, text):
    pos.heap = int(text)


def moves(pos, found):
    found[(pos.heap == 77) << 50] = 1
    while pos.heap == 78:
        found[1] = 2
"""


@pytest.fixture
def trapped(tmp_path: Path) -> str:
    """A game whose `moves` crashes at a heap of 77, and does not return at 78."""
    text = (DATA / "games" / "take_away.py").read_text("utf-8")
    file = tmp_path / "trapped.py"
    file.write_text(text.replace("def moves(pos, found):\n", TRAPPED.lstrip("\n")))
    Game(file)
    return str(file)


@pytest.mark.parametrize("named", ["trapped"], indirect=True)
def test_a_rule_that_crashes_or_never_returns_is_told_and_the_server_lives_on(talk: Any) -> None:
    for heap, words in (("77", "moves: it crashes: SIGSEGV"), ("78", "moves: it did not come back within 1 s")):
        talk.say("game.search", position=heap)
        assert not talk.hear("game.state", lambda state: not state["running"])["text"]
        assert words in talk.hear_error()["text"]
    talk.say("game.search", position="12")
    assert "best move" in talk.hear("game.state", lambda state: "best move" in state["text"])["text"]


@pytest.mark.parametrize("named", [""], indirect=True)
def test_without_a_file_of_the_command_line_there_is_none(talk: Any) -> None:
    talk.say("game.hello")
    talk.say("game.search", position="", game=FILE)
    assert "psearch serve --game FILE" in talk.hear_error()["text"]
    assert not [type for type, _ in talk.heard if type == "game.state"]
