"""Moves along games, and what another engine says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import judge
import pytest
from matchplay.scripts import MatchError
from paths import DATA

GAMES = DATA / "games" / "blunders.pgn"


def test_sides_alternate_and_positions_are_counted() -> None:
    found = list(judge.lines(GAMES, 1, 10, 3, 4))
    assert [line.number for line in found] == [2, 3, 4]
    assert [list(line.asked) for line in found] == [[3, 5, 7, 9], [4, 6, 8, 10], [3, 5]]
    with pytest.raises(MatchError, match="positions of the 100000 that are wanted"):
        list(judge.lines(GAMES, 0, 100_000, 3, 4))


def test_a_run_that_goes_on_has_the_answers_of_an_unbroken_one(tmp_path: Path) -> None:
    """The engine remembers what it was asked before the break."""

    def entries() -> list[dict[str, Any]]:
        return [json.loads(line) | {"seconds": 0} for line in log.read_bytes().splitlines()[1:]]

    log = tmp_path / "moves.jsonl"
    words = ["moves", "--games", str(GAMES), "--engine", "name=a option.Hash=1", "--nodes", "3000", "--positions", "6"]
    assert judge.run([*words, "--out", str(log)]) == 0
    whole, unbroken = log.read_bytes(), entries()
    assert len(unbroken) == 6 and all(entry["nodes"] <= 3000 and entry["engine"] == "a" for entry in unbroken)
    for kept in (2, 4, 5):
        lines = whole.splitlines(True)
        log.write_bytes(b"".join(lines[:kept]) + lines[kept][:20])
        assert judge.run([*words, "--out", str(log)]) == 0
        assert entries() == unbroken
    log.write_bytes(whole + b'{"game": 1')
    assert sum(map(len, judge.read_moves([log])[1].values())) == 6
    log.write_bytes(whole)
    with pytest.raises(MatchError, match="positions was 6, is 5"):
        judge.run([*words[:-1], "5", "--out", str(log)])


def test_the_verdict_is_of_moves_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, verdict = tmp_path / "moves.jsonl", tmp_path / "verdict.jsonl"
    words = [
        "moves",
        "--games",
        str(GAMES),
        "--positions",
        "12",
        "--from",
        "6",
        "--out",
        str(log),
        "--concurrency",
        "2",
    ]
    assert (
        judge.run([*words, "--engine", "name=weak nodes=2 option.Hash=1", "--engine", "name=b nodes=900 option.Hash=1"])
        == 0
    )
    asked = ["verdict", str(log), "--judge", "option.Hash=1", "--nodes", "500", "--out", str(verdict)]
    assert judge.run(asked) == 0
    head, _, weak, strong = capsys.readouterr().out.splitlines()
    assert (
        "thousandths over weak" in head and weak.startswith("| weak | 12 | 100% |") and strong.startswith("| b | 12 |")
    )
    moves = [json.loads(line) for line in log.read_text("utf-8").splitlines()[1:]]
    judged = [json.loads(line) for line in verdict.read_text("utf-8").splitlines()[1:]]
    by_position: dict[str, set[str]] = {}
    for one in moves:
        by_position.setdefault(one["fen"], set()).add(one["move"])
    wanted = {(fen, move) for fen, chosen in by_position.items() if len(chosen) > 1 for move in chosen}
    assert {(one["fen"], one["move"]) for one in judged} == wanted and wanted
    before = verdict.read_bytes()
    assert judge.run(asked) == 0 and verdict.read_bytes() == before


def test_the_table_takes_games_together() -> None:
    answers = {
        (1, "x"): {"a": {"move": "e2e4", "depth": 3, "nodes": 10}, "b": {"move": "d2d4", "depth": 5, "nodes": 30}},
        (1, "y"): {"a": {"move": "e2e4", "depth": 3, "nodes": 10}, "b": {"move": "e2e4", "depth": 5, "nodes": 30}},
        (2, "z"): {"a": {"move": "e2e4", "depth": 3, "nodes": 10}, "b": {"move": "d2d4", "depth": 5, "nodes": 30}},
        (3, "q"): {"b": {"move": "e2e4", "depth": 5, "nodes": 30}},
    }
    worth = {("x", "e2e4"): 0.5, ("x", "d2d4"): 0.6, ("z", "e2e4"): 0.5, ("z", "d2d4"): 0.7}
    *_, row = judge.table(["a", "b"], answers, worth).splitlines()
    # gains 0.1, 0.0 in one game and 0.2 in another: mean 0.1; sums of games are 0.1 off on either side
    assert row == "| b | 3 | 33% | 5 | 30 | +100.00 +- 92.40 |"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "the first word is moves or verdict"),
        (["moves", "--games", "g", "--out", "o", "--engine", "name=a"], "no limit"),
        (["moves", "--games", "g", "--out", "o", "--nodes", "1", "--engine", "", "--engine", ""], "one name"),
        (["moves", "--games", "g", "--out", "o", "--engine", "tc=1+1"], "a clock has no meaning"),
        (["verdict", "none.jsonl", "--judge", "", "--out", "o"], "no file none.jsonl"),
    ],
)
def test_bad_input(words: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MatchError, match=text):
        judge.run(words)
    assert not list(tmp_path.iterdir())
