"""A page analyses, plays, looks through games, watches workers, shows traces; two pages, or none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import chess
import chess.engine
import pytest
from paths import REPOSITORY
from positions import MIDDLE_GAME

from psearch.faces.web import connection
from psearch.options import SearchOptions

pytest.importorskip("starlette", reason="starlette is not installed (pip install '.[dev]')")
pytest.importorskip("httpx2", reason="httpx2 is not installed (pip install '.[dev]')")

from psearch.faces.web import playing, reviewing
from psearch.faces.web.connection import SHOW_S, Connection
from psearch.faces.web.game_board import GameBoard
from psearch.faces.web.game_tree import GameTree, outcome_text
from psearch.faces.web.playing import Match
from psearch.text.marks import Scores, winning_chance

Connect = Callable[..., Any]
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"
FOOLS_MATE = "1. f3 e5 2. g4 Qh4#"
HOW_TO_PLAY = {"color": "white", "elo": None, "clock": None, "increment": 0, "movetime": 0.05, "delays": False}
HOW = {"multipv": 2, "policy": "ybw", "pruning": "ael", "evaluation": "classic", "driver": "null"}


def workers() -> list[int]:
    """Processes that were forked by the fork server of this one."""
    found = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in map(str.split, found.splitlines()[1:])}
    return sorted(pid for pid, parent in parents.items() if parents.get(parent) == os.getpid())


def load(talk: Any, pgn: str, count: int) -> dict[str, Any]:
    talk.say("board.pgn", text=pgn)
    return talk.hear("board.tree", lambda tree: len(tree["nodes"]) == count)


def exported(talk: Any) -> str:
    talk.say("board.export")
    return talk.hear("board.exported")["pgn"]


# -- the board ---------------------------------------------------------------------------------------------------------


def test_moves_are_made_and_seen(talk: Any) -> None:
    talk.say("board.move", at=0, **{"from": "e2", "to": "e4"}, promotion="", playing=False)
    assert [node.get("san") for node in talk.hear("board.tree")["nodes"]] == [None, "e4"]
    assert talk.hear("board.position")["turn"] == "black"
    talk.say("board.say", text="c5")
    assert talk.hear("board.position")["last"] == ["c7", "c5"]
    talk.say("board.go", id=0)
    assert talk.hear("board.position")["turn"] == "white"
    assert "1. e4 c5" in exported(talk)


def test_what_is_no_move_here_is_taken_back(talk: Any) -> None:
    talk.say("board.move", at=7, **{"from": "e2", "to": "e4"}, promotion="", playing=False)
    assert talk.hear("board.position")["id"] == 0
    talk.say("board.move", at=0, **{"from": "e2", "to": "e6"}, promotion="", playing=False)
    assert talk.hear("board.position")["id"] == 0
    assert talk.hear_error()["text"] == "e2e6 is not a legal move"


@pytest.mark.parametrize(
    ("typed", "san"),
    [("nf3", "Nf3"), ("E4", None), ("ng1f3", "Nf3"), (" e2e4 ", "e4"), ("bxc3", "bxc3"), ("a8", "a8=Q+")],
)
def test_a_typed_move_is_read_as_it_was_meant(talk: Any, typed: str, san: str | None) -> None:
    talk.say("board.fen", text="4k3/P7/8/8/8/2p5/1P2P3/4K1N1 w - - 0 1")
    talk.say("board.say", text=typed)
    if san is None:
        assert talk.hear_error()["text"] == f"'{typed}' is not a legal move here"
    else:
        assert talk.hear("board.tree", lambda tree: len(tree["nodes"]) == 2)["nodes"][1]["san"] == san


def test_positions_of_openings_have_names(talk: Any) -> None:
    talk.say("board.pgn", text="1. e4 c5 2. Nf3 d6 3. h4 *")
    nodes = talk.hear("board.tree", lambda tree: len(tree["nodes"]) == 6)["nodes"]
    names = [node.get("opening") for node in nodes]
    assert (
        names[0] is None
        and names[2] == "B20 Sicilian Defense"
        and names[4] == "B50 Sicilian Defense: Modern Variations"
    )
    talk.say("board.fen", text="bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1")
    talk.say("board.say", text="e4")
    nodes = talk.hear("board.tree", lambda tree: len(tree["nodes"]) == 2)["nodes"]
    assert "opening" not in nodes[1]


def test_chess960(talk: Any) -> None:
    talk.say("board.chess960", number=0)
    position = talk.hear("board.position", lambda position: position["chess960"])
    assert position["fen"].startswith("bbqnnrkr/")
    talk.say("board.chess960", number=None)
    talk.hear("board.position", lambda position: position["chess960"])


# -- analysis ----------------------------------------------------------------------------------------------------------


def test_an_analysis_begins_goes_on_and_ends(talk: Any) -> None:
    talk.say("analysis.configure", **HOW)
    talk.say("analysis.start")
    found = talk.hear("analysis.lines", lambda found: found["depth"] >= 5 and len(found["lines"]) == 2)
    board = chess.Board()
    for line in found["lines"]:
        walk = board.copy()
        for san in line["san"]:
            walk.push_san(san)
        assert line["uci"][0] == walk.move_stack[0].uci()
        assert sum(line["wdl"]) == 1000
    # it follows the board
    talk.say("board.say", text="e4")
    assert talk.hear("analysis.lines", lambda found: found["id"] == 1)["lines"][0]["uci"][0][1] in "78"
    talk.say("analysis.stop")
    state = talk.hear("analysis.state", lambda state: not state["on"])
    assert state["state"] == "off"


def test_how_to_search_is_shown_and_reaches_the_search(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[SearchOptions] = []
    proves = SearchOptions.proves
    monkeypatch.setattr(SearchOptions, "proves", lambda how, *seen: begun.append(how) or proves(how, *seen))
    talk.say("analysis.start")
    talk.hear("analysis.lines")
    assert begun[-1].driver == "auto"
    talk.say("analysis.configure", **HOW)
    assert HOW.items() <= talk.hear("analysis.state", lambda state: state["driver"] == "null").items()
    talk.hear("analysis.lines", lambda found: len(found["lines"]) == 2)
    assert (begun[-1].policy, begun[-1].evaluation, begun[-1].driver) == ("ybw", "classic", "null")
    talk.say("analysis.configure", **{**HOW, "driver": "mtd"})
    assert talk.hear("analysis.error")["text"] == "driver must be one of auto, pvs, null, not 'mtd'"

    # no file is a policy there: whoever opens the page would have it read, or run
    for policy in ("/dev/zero", str(REPOSITORY / "docs" / "examples" / "my_policy.py")):
        talk.say("analysis.configure", **{**HOW, "policy": policy})
        assert "policy must be one of serial, " in talk.hear("analysis.error")["text"]


def test_scores_are_seen_from_white(talk: Any) -> None:
    talk.say("board.fen", text="6k1/4r3/8/8/8/8/5PPP/6K1 b - - 0 1")  # Black mates
    talk.say("analysis.start")
    found = talk.hear("analysis.lines", lambda found: found["lines"][0]["text"].startswith("#"))
    assert found["lines"][0]["text"] == "#-1"
    assert found["lines"][0]["cp"] < -10_000
    assert found["lines"][0]["wdl"] == [0, 0, 1000]


def test_a_line_with_a_promotion_goes_into_the_game(talk: Any) -> None:
    talk.say("board.fen", text="8/P7/7k/8/8/8/8/K7 w - - 0 1")
    talk.say("analysis.start")
    found = talk.hear("analysis.lines", lambda found: found["lines"][0]["san"][0].startswith("a8=Q"))
    talk.say("board.line", moves=found["lines"][0]["uci"][:1])
    talk.say("page.facts")
    talk.hear("page.facts")
    assert [payload for type, payload in talk.heard if type == "board.error"] == []
    assert dict(talk.heard)["board.tree"]["nodes"][1]["san"].startswith("a8=Q")
    # a search to the end says so
    talk.say("board.fen", text="7k/8/5K2/6Q1/8/8/8/8 w - - 0 1")
    talk.hear("analysis.lines", lambda found: found["lines"][0]["text"] == "#1")
    talk.say("board.say", text="Qg7#")
    assert talk.hear("analysis.state", lambda state: state["state"] == "over")["on"]


def test_states_come_at_most_so_often(talk: Any) -> None:
    began, count = time.monotonic(), 0  # from the beginning: some may wait to be heard
    talk.say("analysis.start")
    while time.monotonic() < began + 1.5:
        talk.hear("analysis.lines")
        count += 1
    assert count <= (time.monotonic() - began) / SHOW_S + 2


def test_other_workers(talk: Any) -> None:
    talk.say("analysis.start")
    talk.hear("analysis.lines")
    talk.say("engine.configure", threads=1, hash=1)
    state = talk.hear("engine.state", lambda state: state["threads"] == 1)
    assert state["hash"] == 1
    talk.hear("analysis.lines")  # it goes on
    talk.say("engine.forget")
    talk.hear("analysis.lines")


def test_a_killed_worker_is_a_note(talk: Any) -> None:
    talk.hear("engine.state", lambda state: state["state"] == "ready")
    talk.say("analysis.start")
    talk.hear("analysis.lines", lambda found: found["depth"] >= 4)
    os.kill(max(workers()), signal.SIGKILL)
    assert "worker" in talk.hear("engine.note")["text"]
    talk.hear("analysis.lines", lambda found: found["depth"] >= 5)


def test_what_was_found_deeper_stays(talk: Any) -> None:
    """In the list, the bar and the graph, which are told one score; after an analysis and a review that saw less; in
    the PGN, too."""
    load(talk, "1. e4 {[%eval 4.56,60]} e5 {[%eval -3.21]} 2. Nf3 *", 4)
    for number, scores in ((1, {"+4.56"}), (2, set())):
        talk.say("board.go", id=number)
        talk.say("analysis.start")
        found = talk.hear("analysis.lines", lambda found, number=number: found["id"] == number and found["depth"] >= 4)
        assert found["lines"][0]["text"] != "+4.56"
        told = found["eval"]["text"]
        assert told != "-3.21" and scores <= {told}
    talk.say("analysis.stop")
    talk.say("review.start", kind="depth", amount=2)
    review = talk.hear("review.state", lambda state: not state["running"] and state["done"] == 4)
    texts = [move["eval"]["text"] for move in review["moves"]]
    assert texts[0] == "+4.56"
    talk.say("board.promote", id=1)
    assert [node["eval"]["text"] for node in talk.hear("board.tree")["nodes"][1:]] == texts
    pgn = exported(talk)
    assert "[%eval 4.56,60]" in pgn and pgn.count("%eval") >= 3


def test_a_score_is_drawn_by_the_points_of_which_marks_are_made(talk: Any) -> None:
    nodes = load(talk, "1. e4 {[%eval 2.42]} e5 {[%eval 5.01]} 2. Nf3 {[%eval #-3]} *", 4)["nodes"]
    board = chess.Board()
    for node, score in zip(nodes[1:], (chess.engine.Cp(242), chess.engine.Cp(501), chess.engine.Mate(-3)), strict=True):
        assert node["eval"]["points"] == pytest.approx(winning_chance(score), abs=1e-4)
    assert Scores(chess.engine.Cp(-242), chess.engine.Cp(-501)).loss(board, "lichess") == pytest.approx(
        nodes[2]["eval"]["points"] - nodes[1]["eval"]["points"], abs=2e-4
    )


# -- undo, and a game that outlives the server -------------------------------------------------------------------------

REPLACING: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "fen": [("board.fen", {"text": MATE_IN_ONE})],
    "pgn": [("board.pgn", {"text": FOOLS_MATE})],
    "start": [("board.start", {})],
    "chess960": [("board.chess960", {"number": 5})],
    "remove": [("board.remove", {"id": 1})],
    "remove a variation": [("board.remove", {"id": 4})],
    "play": [("play.start", {**HOW_TO_PLAY, "fromHere": False}), ("play.resign", {})],
    "play from here": [("play.start", {**HOW_TO_PLAY, "fromHere": True}), ("play.resign", {})],
    "two": [("board.start", {}), ("board.pgn", {"text": "1. c4 *"})],
}
"""Whatever takes the place of a game, or of some of it."""


def game_of(tree: dict[str, Any]) -> list[Any]:
    return [(node.get("san"), node.get("parent"), node.get("eval"), node["fen"]) for node in tree["nodes"]]


def make_line(talk: Any) -> list[Any]:
    """A game with a variation and a score."""
    return game_of(load(talk, "1. e4 {[%eval 0.31,20]} e5 (1... c5) 2. Nf3 *", 5))


@pytest.mark.parametrize("how", REPLACING)
def test_what_takes_the_place_of_a_game_is_undone(talk: Any, how: str) -> None:
    before = make_line(talk)
    for type, payload in REPLACING[how]:
        talk.say(type, **payload)
    for _ in range(1 if how != "two" else 2):
        talk.say("board.undo")
    tree = talk.hear("board.tree", lambda tree: tree["redo"] and game_of(tree) == before)
    assert tree["undo"]  # what was there before that game
    talk.say("board.redo")
    talk.hear("board.tree", lambda tree: game_of(tree) != before)
    talk.say("board.undo")
    talk.hear("board.tree", lambda tree: game_of(tree) == before)
    assert not [payload for type, payload in talk.heard if type.endswith(".error")]


def test_there_may_be_nothing_to_undo_and_a_game_is_not_undone(talk: Any) -> None:
    for word in ("undo", "redo"):
        talk.say(f"board.{word}")
        assert talk.hear_error()["text"] == f"there is nothing to {word}"
    make_line(talk)
    start(talk, clock=None, elo=None, movetime=0.05)
    talk.hear("play.state", lambda state: state["running"])
    talk.say("board.undo")
    assert "a game is being played" in talk.hear_error()["text"]


def test_undo_brings_back_what_was_analysed(talk: Any) -> None:
    load(talk, FOOLS_MATE, 5)
    talk.say("review.start", kind="depth", amount=2)
    review = talk.hear("review.state", lambda state: not state["running"] and state["done"] == 4)
    talk.say("board.start")
    talk.hear("review.state", lambda state: not state["moves"])
    talk.say("board.undo")
    assert talk.hear("review.state") == review


def test_a_game_that_is_left_is_kept_as_it_was_left(talk: Any) -> None:
    """Its PGN comes before another game, however soon that follows a move; the name comes back with *Undo*."""
    talk.say("board.pgn", text="1. e4 e5 *", name="7/0")
    assert talk.hear("board.tree", lambda tree: len(tree["nodes"]) == 3)["name"] == "7/0"
    talk.say("board.say", text="Nf3")
    talk.say("board.pgn", text="1. d4 *", name="7/1")
    assert talk.hear("board.kept", lambda kept: "Nf3" in kept["pgn"])["name"] == "7/0"
    assert talk.hear("board.tree")["name"] == "7/1"
    assert "d4" in talk.hear("board.kept", lambda kept: kept["name"] == "7/1")["pgn"]
    talk.say("board.undo")
    assert talk.hear("board.tree")["name"] == "7/0"
    talk.say("play.start", color="white", elo=None, clock=None, increment=0, movetime=0.1, fromHere=False)
    assert talk.hear("board.tree")["name"] == ""


def test_games_that_are_sent_as_one(talk: Any) -> None:
    talk.say("board.pgn", text="1. e4 e5 *\n\n2. d4 d5 *")
    assert "another game begins in this one" in talk.hear("board.error")["text"]


def test_the_page_has_the_game_when_the_server_ends(talk: Any, connect: Connect) -> None:
    """Another server takes it, with the position that stood on the board."""
    make_line(talk)
    talk.say("board.go", id=2)
    talk.say("board.say", text="d4")
    kept = talk.hear("board.kept", lambda kept: "d4" in kept["pgn"])
    tree = dict(talk.heard)["board.tree"]
    here = [node["id"] for node in tree["nodes"]].index(tree["here"])
    with connect("7" * 32) as other:
        other.say("board.pgn", text=kept["pgn"], here=here)
        found = other.hear("board.tree", lambda tree: len(tree["nodes"]) == 6)
        sans = {node["id"]: node.get("san") for node in found["nodes"]}
        assert list(sans.values()) == [node.get("san") for node in tree["nodes"]]
        assert sans[found["here"]] == "d4"
        other.say("board.pgn", text=kept["pgn"], here=here + 20)
        assert len(other.hear("board.tree")["nodes"]) == 6


# -- two tabs, and none ------------------------------------------------------------------------------------------------


def test_two_tabs(connect: Connect) -> None:
    """The one that asked last has the engine, and the other is told; a move of a game comes before either."""
    with connect("a" * 32) as one, connect("b" * 32) as other:
        one.say("analysis.start")
        one.hear("analysis.lines")
        other.say("analysis.start")
        other.hear("analysis.lines")
        state = one.hear("analysis.state", lambda state: state["state"] == "taken")
        assert not state["on"] and "another tab" in state["reason"]
        one.say("play.start", color="black", elo=None, clock=None, increment=0, movetime=1.0, fromHere=False)
        one.hear("play.state", lambda state: state["running"] and not state["thinking"])
        assert other.hear("analysis.state", lambda state: state["state"] == "waiting")["on"]
        other.hear("analysis.state", lambda state: state["state"] == "searching")  # it goes on by itself


@pytest.mark.parametrize("ends", ["stopped", "closed"])
def test_the_engine_is_given_back(connect: Connect, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """This happens when the other tab ends its analysis, or is closed; the current position is searched then."""
    monkeypatch.setattr(connection, "PATIENCE_S", 0.1)
    with connect("a" * 32) as one:
        one.say("analysis.start")
        one.hear("analysis.lines")
        with connect("b" * 32) as other:
            other.say("analysis.start")
            other.hear("analysis.lines")
            assert not one.hear("analysis.state", lambda state: state["state"] == "taken")["on"]
            one.say("board.say", text="e4")
            here = one.hear("board.position")["id"]
            if ends == "stopped":
                other.say("analysis.stop")
                other.hear("analysis.state", lambda state: not state["on"])
        assert one.hear("analysis.state", lambda state: state["state"] == "searching")["on"]
        one.hear("analysis.lines", lambda found: found["id"] == here)


def test_a_reload_finds_the_search(connect: Connect) -> None:
    with connect("c" * 32) as talk:
        talk.say("board.say", text="d4")
        talk.say("analysis.start")
        talk.hear("analysis.lines", lambda found: found["depth"] >= 3)
    with connect("c" * 32) as talk:
        said = dict(talk.heard)
        assert said["analysis.state"]["on"] and said["analysis.state"]["lines"]["depth"] >= 3
        assert len(said["board.tree"]["nodes"]) == 2
        talk.hear("analysis.lines")


def test_a_tab_that_is_closed_ends_its_search(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE_S", 0.1)
    with connect("d" * 32) as talk:
        talk.say("analysis.start")
        talk.hear("analysis.lines")
    time.sleep(2.0)
    with connect("d" * 32) as talk:
        state = dict(talk.heard)["analysis.state"]
        assert not state["on"] and state["reason"] == "the page was closed"


def test_a_tab_that_is_closed_keeps_no_engine(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for a move stops, and begins again when somebody looks; the game is as it was."""
    monkeypatch.setattr(connection, "PATIENCE_S", 0.1)
    with connect("e" * 32) as talk:
        talk.say("play.start", color="black", elo=None, clock=None, increment=0, movetime=600, fromHere=False)
        talk.hear("play.state", lambda state: state["thinking"])
    with connect("f" * 32) as other:
        other.say("analysis.start")
        other.hear("analysis.lines")  # within ten minutes
        with connect("e" * 32) as talk:
            assert talk.hear("play.state")["thinking"]
            other.hear("analysis.state", lambda state: state["state"] == "waiting")
            talk.say("play.resign")
            assert not talk.hear("play.state")["running"]
            other.hear("analysis.state", lambda state: state["state"] == "searching")


def test_the_clock_of_an_engine_that_may_not_think_stands(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE_S", 0.1)
    with connect("e" * 32) as talk:
        talk.say("play.start", color="black", elo=None, clock=600, increment=0, movetime=0, fromHere=False)
        talk.hear("play.state", lambda state: state["ticking"] == "white")
    time.sleep(4.0)
    with connect("e" * 32) as talk:
        state = talk.hear("play.state")
        assert state["running"] and state["clocks"]["white"] > 600 - 3
        talk.say("play.resign")
        wait_for_the_end(talk)


def test_the_same_board_twice(connect: Connect) -> None:
    from starlette.websockets import WebSocketDisconnect

    with connect("e" * 32) as one:
        one.say("board.say", text="e4")
        one.hear("board.position", lambda position: position["id"] == 1)
        with connect("e" * 32) as other:
            assert dict(other.heard)["board.position"]["id"] == 1
            with pytest.raises(WebSocketDisconnect) as caught:
                one.hear("nothing")
            assert caught.value.code == 4001


def test_many_tabs(connect: Connect) -> None:
    """Boards that were left make room for new ones."""
    from psearch.faces.web.page import MOST_PAGES

    for number in range(MOST_PAGES + 3):
        with connect(f"{number:032x}"):
            pass


# -- games -------------------------------------------------------------------------------------------------------------


def wait_for_my_turn(talk: Any) -> dict[str, Any]:
    return talk.hear("play.state", lambda state: state["running"] and not state["thinking"])


def wait_for_the_end(talk: Any) -> dict[str, Any]:
    return talk.hear("play.state", lambda state: not state["running"])


def start(talk: Any, **terms: Any) -> None:
    usual = {
        "color": "white",
        "elo": 1100,
        "clock": 60,
        "increment": 1,
        "movetime": 0,
        "delays": False,
        "fromHere": False,
    }
    talk.say("play.start", **{**usual, **terms})


@pytest.mark.parametrize(("terms", "least_s"), [({"delays": True}, 1.5), ({"delays": False}, 0.0)])
def test_a_limited_strength_may_answer_like_a_person(
    talk: Any, monkeypatch: pytest.MonkeyPatch, terms: dict[str, Any], least_s: float
) -> None:
    asked: list[float] = []

    def human_delay_s(board: Any, move: Any, dice: Any, left_s: float, increment_s: float) -> float:
        asked.append(left_s)
        return 1.5 * (left_s > 59)

    monkeypatch.setattr(playing, "human_delay_s", human_delay_s)
    started = time.monotonic()  # before the engine's clock, however late its start is heard
    start(talk, **{"color": "black", "elo": 1200, **terms})
    talk.hear("play.state", lambda state: state["ticking"] == "white")
    began = time.monotonic()
    talk.hear("play.state", lambda state: state["ticking"] == "black")
    ended = time.monotonic()
    assert bool(asked) is terms["delays"]
    assert ended - started >= least_s and (least_s or ended - began < 1.2)
    talk.say("play.resign")
    wait_for_the_end(talk)


def test_a_game_is_played_to_its_end(talk: Any) -> None:
    talk.say("board.fen", text="k7/8/1K6/8/8/8/8/7R w - - 0 1")
    start(talk, fromHere=True)
    state = talk.hear("play.state", lambda state: state["running"])
    assert state["clocks"] == {"white": pytest.approx(60, abs=0.5), "black": 60} and state["ticking"] == "white"
    talk.say("board.say", text="Rh8")
    assert wait_for_the_end(talk)["result"] == "White wins by checkmate"
    pgn = exported(talk)
    assert '[Result "1-0"]' in pgn and '[BlackElo "1100"]' in pgn and "[%clk" in pgn


def test_a_game_that_is_played_is_not_thrown_away(talk: Any) -> None:
    """Another game does not replace it, and the refused request has stopped nothing."""
    start(talk, clock=None, elo=None, movetime=0.05)
    began = talk.hear("play.state", lambda state: state["running"])["began"]
    talk.say("board.say", text="e4")
    talk.hear("board.tree", lambda tree: len(tree["nodes"]) == 3)
    start(talk, color="black")
    assert talk.hear_error()["text"] == "a game is being played: end it first"
    talk.say("play.resign")
    state = wait_for_the_end(talk)
    assert (state["began"], state["color"]) == (began, "white")
    talk.say("analysis.start")
    talk.hear("analysis.lines")
    start(talk, elo=0)
    assert "elo must be" in talk.hear_error()["text"]
    talk.say("play.back")
    talk.say("play.back")
    talk.say("play.resign")
    start(talk, clock=None, elo=None, movetime=0.05)
    assert talk.hear("play.state", lambda state: state["running"] and state["began"] > began)["color"] == "white"


@pytest.mark.parametrize("elo", [None, 1100])
@pytest.mark.parametrize(("color", "accepts"), [("white", True), ("black", False)])
def test_a_draw_is_accepted_by_the_side_that_is_not_better(
    talk: Any, color: str, accepts: bool, elo: int | None
) -> None:
    """White is a queen ahead. Before its first search psearch has no opinion and declines."""
    talk.say("board.fen", text="8/8/8/3qk3/8/8/4P3/3QK2Q " + ("w" if color == "white" else "b") + " - - 0 1")
    start(talk, color=color, fromHere=True, clock=None, elo=elo, movetime=0.05)
    wait_for_my_turn(talk)
    talk.say("play.draw")
    assert talk.hear("page.note")["text"] == "psearch declines the draw"
    talk.say("board.say", text="Qdxd5+" if color == "white" else "Qd6")
    wait_for_my_turn(talk)
    talk.say("play.draw")
    if accepts:
        assert wait_for_the_end(talk)["result"] == "Draw by agreement"
        assert '[Result "1/2-1/2"]' in exported(talk)
    else:
        assert talk.hear("page.note")["text"] == "psearch declines the draw"
        talk.say("play.resign")
        wait_for_the_end(talk)
    talk.say("play.draw")
    assert talk.hear_error()["text"] == "no game is being played"


def test_lines_of_another_game_do_not_stay(talk: Any) -> None:
    """Its root has the same number."""
    talk.say("analysis.start")
    talk.hear("analysis.lines")
    talk.say("analysis.stop")
    talk.hear("analysis.state", lambda state: not state["on"])
    talk.say("board.fen", text="4k3/8/8/8/8/8/4P3/4K3 w - - 0 1")
    assert talk.hear("analysis.state", lambda state: "lines" in state)["lines"] == {}


def test_both_sides_move_in_turn(talk: Any) -> None:
    start(talk, color="black", elo=None, clock=None, movetime=0.05)
    for word in ("e6", "d6"):
        wait_for_my_turn(talk)
        talk.say("board.say", text=word)
        talk.hear("board.position", lambda position: position["turn"] == "white")
    assert wait_for_my_turn(talk)["clocks"] is None
    talk.say("play.resign")
    assert wait_for_the_end(talk)["result"] == "You resigned"


def test_it_is_not_to_be_disturbed(talk: Any) -> None:
    start(talk, color="black", elo=None, clock=None, movetime=10.0)
    talk.hear("play.state", lambda state: state["thinking"])
    talk.say("board.say", text="a3")  # White's
    assert talk.hear_error()["text"] == "it is not your turn"
    for type in ("board.start", "analysis.start"):
        talk.say(type)
        assert "end it first" in talk.hear_error()["text"]


def test_who_resigns_gets_no_time_back_and_time_runs_out(talk: Any) -> None:
    start(talk, clock=60, increment=0)
    talk.hear("play.state", lambda state: state["ticking"] == "white")
    time.sleep(1.0)
    talk.say("play.resign")
    assert wait_for_the_end(talk)["clocks"]["white"] < 59.5
    start(talk, clock=1, increment=0)
    state = wait_for_the_end(talk)
    assert state["result"] == "Black wins on time"
    assert state["clocks"]["white"] == 0
    talk.say("play.back")
    assert "time has run out" in talk.hear_error()["text"]
    # a move for the game, sent before the page knew of its end
    talk.say("board.move", at=0, **{"from": "e2", "to": "e4"}, promotion="", playing=True)
    assert talk.hear("board.position")["id"] == 0
    talk.say("board.say", text="e4", playing=True)
    assert talk.hear_error()["text"] == "the game has ended"
    assert "e4" not in exported(talk)


def test_a_move_that_comes_when_the_time_is_used_up_is_not_made() -> None:
    """The move has overtaken the timer of the flag."""
    page = SimpleNamespace(handlers={}, send=lambda type, facts: None)
    board = SimpleNamespace(tree=GameTree(), keep=lambda: None, send_game=lambda: None)
    board.put = lambda shown: setattr(board, "tree", shown.tree)
    match = Match(cast(Connection, page), cast(GameBoard, board))

    async def play() -> None:
        match.start({"color": "white", "elo": None, "clock": 1, "increment": 0, "delays": False, "fromHere": False})
        match._left[chess.WHITE] = 0.001
        time.sleep(0.01)
        match.take_move(chess.Move.from_uci("e2e4"))

    asyncio.run(play())
    assert match.facts["result"] == "Black wins on time" and match.facts["clocks"]["white"] == 0
    assert not board.tree.game.variations and board.tree.game.headers["Result"] == "0-1"


def test_a_move_is_taken_back(talk: Any) -> None:
    start(talk)
    talk.say("board.say", text="e4")
    talk.hear("play.state", lambda state: state["running"] and state["thinking"])
    wait_for_my_turn(talk)
    talk.say("play.back")
    assert len(talk.hear("board.tree", lambda tree: len(tree["nodes"]) == 1)["nodes"]) == 1
    talk.say("play.back")
    assert "no move of yours" in talk.hear_error()["text"]


def test_a_draw_is_that_of_the_position_on_the_board() -> None:
    """No move that would allow a claim ends the game."""
    board = chess.Board("6k1/5ppp/8/8/8/8/5PPP/3Q2K1 w - - 0 1")
    for number, word in enumerate(["d1d2", "g8f8", "d2d1", "f8g8", "d1d2", "g8f8", "d2d1", "f8g8"]):
        assert playing._outcome(board) is None, number
        board.push_uci(word)
    assert outcome_text(playing._outcome(board)) == "Draw by threefold repetition"
    board = chess.Board("6k1/5ppp/8/8/8/8/5PPP/3Q2K1 w - - 98 80")
    board.push_uci("d1d2")
    assert playing._outcome(board) is None
    board.push_uci("g8f8")
    assert outcome_text(playing._outcome(board)) == "Draw by fifty moves"
    board = chess.Board("6k1/5ppp/8/8/8/8/5PPP/3Q2K1 w - - 99 80")
    board.push_uci("d1d8")
    assert outcome_text(playing._outcome(board)) == "White wins by checkmate"


# -- reviews -----------------------------------------------------------------------------------------------------------


def test_a_game_is_looked_through(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = []
    make_pool = reviewing.make_pool
    monkeypatch.setattr(reviewing, "make_pool", lambda n, how: drivers.append(how.options.driver) or make_pool(n, how))
    load(talk, FOOLS_MATE, 5)
    talk.say("review.start", kind="depth", amount=8)
    review = talk.hear("review.state", lambda state: not state["running"] and state["done"] > 0)
    assert (review["done"], review["total"], review["text"]) == (4, 4, "")
    assert review["moves"][2]["mark"] == "??" and review["moves"][2]["id"] == 3  # 2. g4
    assert review["moves"][3]["eval"]["text"] == "#-0" or review["moves"][3]["eval"]["cp"] < -10_000
    assert review["players"]["white"]["marks"]["blunders"] >= 1
    pgn = exported(talk)
    assert "g4 $4" in pgn and "[%eval" in pgn and "psearch" in pgn
    assert drivers == ["auto"]  # as `psearch analyse` has it
    talk.say("board.draw", id=3, shapes=["Ge2e4"])
    assert talk.hear("review.state")["moves"] == review["moves"], "the page has new moves, without marks"


def test_marks_are_those_of_the_command_and_final_when_they_are_shown(talk: Any) -> None:
    """The last position first: a mark needs what is behind the move, and stays."""
    text = "1. e4 e5 2. Nf3 d6 3. Bc4 Bg4 4. Nc3 g6 5. Nxe5 Bxd1 6. Bxf7+ Ke7 7. Nd5# 1-0"
    program = "import sys; from psearch.faces.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "analyse", "--json", "--threads", "1", "--nodes", "60000", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=240, check=True)
    expected = [position["mark"] or "" for position in json.loads(done.stdout.splitlines()[0])["positions"][:-1]]
    assert expected[9] == "??"
    load(talk, text, 14)
    talk.say("review.start", kind="nodes", amount=60_000)
    assert _marks(talk.hear("review.state", lambda state: not state["running"] and state["done"] > 0)) == expected
    for marks in (_marks(payload) for type, payload in talk.heard if type == "review.state"):
        assert all(mark in ("", final) for mark, final in zip(marks, expected, strict=False))


def _marks(state: dict[str, Any]) -> list[str]:
    return [move["mark"] for move in state["moves"]]


@pytest.mark.parametrize(("kind", "amount"), [("depth", 4), ("time", 60)], ids=["over", "going on"])
def test_another_game_has_nothing_of_the_review(talk: Any, kind: str, amount: int) -> None:
    """Moves of two games have the same numbers."""
    load(talk, FOOLS_MATE, 5)
    talk.say("review.start", kind=kind, amount=amount)
    talk.hear("review.state", lambda state: state["total"] and state["running"] == (kind == "time"))
    talk.say("board.pgn", text="1. d4 d5 2. c4 *")
    talk.hear("review.state", lambda state: not state["running"] and not state["moves"] and not state["players"])
    time.sleep(0.3)  # what is ended has ended
    heard = len(talk.heard)
    talk.say("board.export")
    talk.hear("board.exported")
    assert "review.state" not in [type for type, _ in talk.heard[heard:]]


def test_a_review_is_stopped(talk: Any) -> None:
    talk.say("board.pgn", text=FOOLS_MATE)
    talk.say("review.start", kind="time", amount=60)
    time.sleep(0.5)
    talk.say("review.stop")
    assert talk.hear("review.state", lambda state: not state["running"] and state["text"])["text"] == "stopped"
    talk.say("review.start", kind="depth", amount=2)  # another can begin
    talk.hear("review.state", lambda state: state["done"] == 4 and not state["running"])


def test_who_looks_on_may_go_on_making_moves(talk: Any) -> None:
    """The move may be made at the end of the main line, and some of that line may be removed."""
    talk.say("board.pgn", text="1. f3 e5 2. g4 d6")
    talk.say("review.start", kind="time", amount=0.2)
    talk.hear("review.state", lambda state: state["done"] > 0)
    talk.say("board.go", id=4)
    talk.say("board.say", text="e3")
    review = talk.hear("review.state", lambda state: not state["running"])
    assert review["done"] == review["total"] == 5 and len(review["moves"]) == 4
    talk.say("review.start", kind="time", amount=0.2)
    talk.hear("review.state", lambda state: state["done"] > 0)
    talk.say("board.remove", id=3)
    review = talk.hear("review.state", lambda state: not state["running"])
    assert review["done"] == review["total"] == 6 and len(review["moves"]) == 5


def test_two_games_are_analysed_one_after_the_other(connect: Connect) -> None:
    with connect("a" * 32) as one, connect("b" * 32) as other:
        for talk, seconds in ((one, 0.3), (other, 0.05)):
            load(talk, FOOLS_MATE, 5)
            talk.say("review.start", kind="time", amount=seconds)
            talk.hear("review.state", lambda state: state["running"])
        assert "another tab" in dict(other.heard)["review.state"]["text"]
        began = time.monotonic()
        one.hear("review.state", lambda state: not state["running"])
        other.hear("review.state", lambda state: state["done"] == 4 and not state["running"])
        assert time.monotonic() - began > 0.2


def test_a_game_that_is_gone_has_no_moves_to_take_back(talk: Any) -> None:
    start(talk, elo=None, clock=None, movetime=0.05)
    talk.say("board.say", text="e4")
    talk.hear("play.state", lambda state: state["running"] and state["thinking"])
    wait_for_my_turn(talk)
    talk.say("play.resign")
    talk.say("board.start")
    assert talk.hear("play.state", lambda state: "color" not in state)["result"] == ""
    talk.say("play.back")
    assert "no game" in talk.hear_error()["text"]


MATED = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3"
POLICY_FILE = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
RULE_FILE = str(REPOSITORY / "docs" / "examples" / "my_rule.py")
RUN = {"workers": 4, "first": "calibrated", "second": "ybw", "nodes": 10_000}
LONG = {**RUN, "nodes": 3_000_000, "workers": 64}


@pytest.fixture
def named() -> dict[str, Any]:
    return {"policies": (POLICY_FILE,), "rules": RULE_FILE}


def looks(talk: Any) -> list[Any]:
    talk.say("page.facts")
    talk.hear("page.facts")
    return [payload for type, payload in talk.heard if type == "workers.look"]


def test_snapshots_come_while_there_is_a_search_and_are_confirmed(talk: Any) -> None:
    talk.say("workers.watch")  # before there is an engine, perhaps
    talk.hear("engine.state", lambda state: state["state"] == "ready")
    time.sleep(0.3)
    assert not looks(talk), "nothing is searched"
    talk.say("analysis.start")
    for _ in range(3):
        talk.hear("workers.look")
    time.sleep(0.3)
    assert len(looks(talk)) == 3, "a page that confirms nothing gets no more"
    for _ in range(5):
        talk.say("workers.seen")
        talk.hear("workers.look")
    assert len(looks(talk)) <= 5 + 3
    talk.say("workers.rest")
    time.sleep(0.1)
    count = len(looks(talk))
    time.sleep(0.2)
    assert len(looks(talk)) == count
    talk.say("workers.watch", first=1)
    talk.hear("workers.look")
    talk.say("analysis.stop")
    while not (last := talk.heard[-1][1]).get("done"):
        talk.say("workers.seen")
        talk.hear("workers.look")
    found = looks(talk)
    assert found[-1] == last and not found[-2]["done"], "the last one says that it is over"


def test_bad_wishes_are_refused(talk: Any) -> None:
    for first in (-1, "x", 10**30, None, True):
        talk.say("workers.watch", first=first)
        assert "first must be" in talk.hear("workers.error")["text"]
    for changes in (
        {"workers": 0},
        {"workers": 2.5},
        {"workers": None},
        {"nodes": 10**12},
        {"first": "serial"},
        {"second": ["ybw"]},
        {"first": RULE_FILE},
        {"rules": POLICY_FILE},
        {"pruning": "lmr=1"},
        {"driver": "auto"},
        {"positions": 25},
    ):
        talk.say("laboratory.run", **{**RUN, **changes})
        assert f"{next(iter(changes))} must be" in talk.hear("laboratory.error")["text"]
    talk.say("laboratory.run", **{**RUN, "positions": 12})
    assert "positions after its moves" in talk.hear("laboratory.error")["text"]
    talk.say("board.fen", text=MATED)
    talk.hear("board.position", lambda position: position["over"])
    talk.say("laboratory.run", **RUN)
    assert "nothing to search" in talk.hear("laboratory.error")["text"]
    talk.say("laboratory.run", **{**RUN, "positions": 2})  # others than the one on the board
    assert "positions after its moves" in talk.hear("laboratory.error")["text"]


def test_an_experiment_runs_and_only_one_at_a_time(
    connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATIENCE_S", 0.1)
    with connect("a" * 32) as page, connect("b" * 32) as other:
        page.say("board.fen", text=MIDDLE_GAME)
        page.hear("board.position", lambda position: position["fen"] == MIDDLE_GAME)
        page.say("laboratory.hello")
        choices = page.hear("laboratory.choices")
        assert {"calibrated", "ybw"} <= set(choices["policies"]) and "serial" not in choices["policies"]
        assert choices["policies"][-1] == POLICY_FILE and choices["rules"] == ["", RULE_FILE]
        page.say("laboratory.run", **RUN)
        page.hear("laboratory.progress")
        for one, whose in ((other, "another page"), (page, "this page")):
            one.say("laboratory.run", **RUN)
            assert f"{whose} is still computing" in one.hear("laboratory.error")["text"]
        result = page.hear("laboratory.result")
        assert result["fen"] == MIDDLE_GAME
        page.say("laboratory.hello")
        assert page.hear("laboratory.result") == result, "a page that is loaded again finds it"
        page.say("board.pgn", text="1. e4 e5 2. Nf3 d6 3. d4 Bg4 4. dxe5 Bxf3 *")
        page.hear("board.tree", lambda tree: len(tree["nodes"]) > 2)
        page.say("laboratory.run", **{**RUN, "positions": 4})
        result = page.hear("laboratory.result")
        assert result["positions"] == 4 == result["command"].count("\n") - 1
        other.say("laboratory.run", **LONG)
        other.hear("laboratory.progress")
        other.say("laboratory.stop")
        other.hear("laboratory.stopped")
        other.say("laboratory.stop")
        with connect("c" * 32) as closed:
            closed.say("laboratory.run", **LONG)
            closed.hear("laboratory.progress")
        while True:  # until the work of the page that was closed has ended
            page.say("laboratory.run", **RUN)
            type, payload = page.hear_any()
            while type not in ("laboratory.error", "laboratory.result"):
                type, payload = page.hear_any()
            if type == "laboratory.result":
                break
            assert "another page" in payload["text"]
            time.sleep(0.05)


@pytest.mark.slow
def test_files_of_the_command_line_can_be_chosen(talk: Any) -> None:
    talk.say("laboratory.run", **{**RUN, "second": POLICY_FILE})
    assert talk.hear("laboratory.result")["runs"][1]["policy"] == POLICY_FILE
    talk.say("laboratory.run", **{**RUN, "rules": RULE_FILE})
    assert talk.hear("laboratory.result")["pruning"] == "modern with my_rule.py"
    talk.say("laboratory.run", **{**RUN, "first": POLICY_FILE, "rules": RULE_FILE})
    assert "put both into one file" in talk.hear("laboratory.error")["text"]
