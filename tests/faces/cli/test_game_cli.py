"""`psearch game` and `psearch simulate --game`: what a user sees of a game of his own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import DATA, REPOSITORY
from programs import PSEARCH, processes_in_session, without_waiting

from psearch.text.values import shown

TIC_TAC_TOE = str(REPOSITORY / "docs" / "examples" / "tic_tac_toe.py")
TAKE_AWAY = str(DATA / "games" / "take_away.py")
RULE = str(REPOSITORY / "docs" / "examples" / "my_rule.py")
POLICY = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
TIMEOUT_S = 120
Run = Callable[..., tuple[int, str, str]]


def test_the_answer_is_in_the_words_of_the_game(run: Run) -> None:
    status, out, _ = run("game", TIC_TAC_TOE, "14", "2", "5", "--threads", "2")
    assert status == 0
    said = out.splitlines()
    assert "best move  3" in said
    assert "score      +1 for the side to move" in said
    assert any(line.startswith("depth 1  score +1  nodes 6  ") for line in said)


def test_json_is_one_object(run: Run) -> None:
    status, out, _ = run("game", TIC_TAC_TOE, "--json", "--threads", "1")
    assert status == 0
    found = json.loads(out)
    assert (found["game"], found["bestmove"], found["score"], found["solved"]) == ("tic-tac-toe", "5", 0, True)
    assert len(found["line"]) == found["depth"] == 9
    assert len(found["workers"]) == found["threads"] == 1


def test_a_game_that_is_over(run: Run) -> None:
    assert run("game", TIC_TAC_TOE, "14253")[:2] == (0, "the game is over: score -1 for the side to move\n")
    status, out, _ = run("game", TIC_TAC_TOE, "14253", "--json")
    assert status == 0
    found = json.loads(out)
    assert (found["bestmove"], found["score"], found["over"]) == (None, -1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gone.py"], "cannot read the game 'gone.py': No such file or directory"),
        ([TIC_TAC_TOE, "x"], "position 'x': no move begins 'x'; there are 5 1 3 7 9 2 4 6 8"),
        ([TIC_TAC_TOE, "--board"], "the game cannot draw its board: its file has no function board_text"),
        ([TIC_TAC_TOE, "--board", "--json"], "--board and --json exclude each other"),
        ([TIC_TAC_TOE, "--threads", "0"], "argument --threads: must be a whole number from 1 to 1024, not '0'"),
        ([TIC_TAC_TOE, "--policy", "gone.py"], "cannot read the policy 'gone.py': No such file or directory"),
        ([TIC_TAC_TOE, "--policy", RULE], f"{shown(RULE)} replaces reduction_of, a rule of chess"),
        ([], "the following arguments are required: FILE [POSITION]"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str, run: Run) -> None:
    status, out, err = run("game", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"psearch: {said}")


def test_a_mistake_in_the_file_is_one_line_and_nothing_is_left_running(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(Path(TIC_TAC_TOE).read_text("utf-8").replace("found[count] =", "found[counts] ="))
    process = subprocess.Popen(
        [*PSEARCH, "game", str(file), "--threads", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    output, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, output) == (2, "")
    assert without_waiting(errors) == f"psearch: {file}:31: moves: NameError: name 'counts' is not defined\n"
    assert processes_in_session(process.pid) == []


def test_ctrl_c_gives_the_best_line_so_far() -> None:
    words = [*PSEARCH, "game", TAKE_AWAY, "--threads", "2", "--movetime", "60s"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        for _ in range(12):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        said = process.stdout.read()
        process.wait(TIMEOUT_S)
        assert processes_in_session(process.pid) == []
    assert process.returncode in (128 + signal.SIGINT, 0)  # 0: it had the whole game already
    assert "best move" in said


def test_in_virtual_time(run: Run) -> None:
    words = ["simulate", "--game", TAKE_AWAY, "", "5. 5.", "--workers", "2,16", "--depth", "12"]
    status, out, _ = run(*words, "--policy", "calibrated,ybw", "--json")
    assert status == 0
    found = json.loads(out)
    assert {(row["policy"], row["threads"]) for row in found["rows"]} == {
        (policy, count) for policy in ("calibrated", "ybw") for count in (2, 16)
    }
    assert found["positions"] == 2
    again = run(*words, "--policy", "calibrated,ybw", "--json", "--jobs", "2")[1]
    assert json.loads(again)["rows"] == found["rows"]


@pytest.mark.slow
def test_on_real_cores(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ["speedup", "--game", TAKE_AWAY, "", "5. 5.", "--depth", "16", "--repeat", "1", "--json"]
    status, out, _ = run(*words, "--log", str(log))
    assert status == 0
    found = json.loads(out)
    assert [(row["threads"], row["positions"]) for row in found["rows"]] == [(2, 2)]
    samples = [json.loads(line) for line in log.read_text().splitlines() if '"bestmove"' in line]
    for position in ("take away", "5. 5."):
        assert len({sample["score"] for sample in samples if sample["position"] == position}) == 1


@pytest.mark.slow
def test_in_virtual_time_under_a_policy_from_a_file(run: Run) -> None:
    words = ["simulate", "--game", TAKE_AWAY, "--workers", "8", "--depth", "12", "--policy", f"ybw,{POLICY}", "--json"]
    joins = {row["policy"]: row["joins"] for row in json.loads(run(*words)[1])["rows"]}
    assert joins[POLICY] not in (0, joins["ybw"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--suite", "x.epd"], "--game cannot be combined with --suite"),
        (["--on", "local"], "--game cannot be combined with --on"),
        (["--policy", "gone.py"], "cannot read the policy 'gone.py': No such file or directory"),
    ],
)
def test_what_a_study_of_a_game_cannot_have(words: list[str], said: str, run: Run) -> None:
    status, _, err = run("simulate", "--game", TAKE_AWAY, "--workers", "2", "--depth", "2", *words)
    assert status == 2 and err.startswith(f"psearch: {said}")
