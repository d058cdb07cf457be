"""What pages say about workers, laboratory and traces."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chess
import pytest
from paths import REPOSITORY
from positions import MIDDLE_GAME

from psearch.faces.web import connection
from psearch.faces.web.watching_tabs import LONGEST_PART
from psearch.options import SearchOptions
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator

MATED = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3"
POLICY_FILE = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
RULE_FILE = str(REPOSITORY / "docs" / "examples" / "my_rule.py")
RUN = {"workers": 4, "first": "calibrated", "second": "ybw", "nodes": 10_000}
LONG = {**RUN, "nodes": 3_000_000, "workers": 64}


@pytest.fixture
def named() -> dict[str, Any]:
    return {"policies": (POLICY_FILE,), "rules": RULE_FILE}


def looks(talk: Any) -> list[Any]:
    """All snapshots so far."""
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
    ):
        talk.say("laboratory.run", **{**RUN, **changes})
        assert f"{next(iter(changes))} must be" in talk.hear("laboratory.error")["text"]
    talk.say("board.fen", text=MATED)
    talk.hear("board.position", lambda position: position["over"])
    talk.say("laboratory.run", **RUN)
    assert "nothing to search" in talk.hear("laboratory.error")["text"]


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


def test_a_trace_comes_in_parts(talk: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    simulator = Simulator(4, 1, Costs(), 1 << 12)
    simulator.search("", chess.Board(MIDDLE_GAME), 6, SearchOptions())
    assert simulator.recorder is not None
    simulator.recorder.write(path, {"policy": "calibrated"})
    simulator.close()
    text = path.read_text()
    talk.say("trace.begin", characters=len(text))
    for at in range(0, len(text), LONGEST_PART):
        talk.say("trace.part", text=text[at : at + LONGEST_PART])
    assert talk.hear("trace.result")["workers"] == 4
    for length, part, words in (
        (5, "hello", "not a trace of psearch"),
        (None, "more", "no trace was announced for this part"),
        (5, "hello again", "longer than announced"),
        (10**6, "x" * (LONGEST_PART + 1), "longer than"),
    ):
        if length is not None:
            talk.say("trace.begin", characters=length)
        talk.say("trace.part", text=part)
        assert words in talk.hear("trace.error")["text"]
    for payload in ({"characters": 0}, {"characters": 1 << 40}, {}, {"path": "/etc/passwd"}):
        talk.say("trace.begin", **payload)
        assert "characters must be" in talk.hear("trace.error")["text"]
