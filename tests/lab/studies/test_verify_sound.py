"""`psearch verify-sound`: what it prints, its exit status, refusals, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from paths import DATA
from programs import PSEARCH

from psearch.faces.cli.commands.verify_sound_command import _LEGEND
from psearch.lab.studies import soundness as verify_sound
from psearch_core.records import SOUND_BOUND, SOUND_GATES, SOUND_LEGALITY
from psearch_core.records.pruning_record import SOUND
from psearch_core.terms import REST_BOUND

POSITIONS = DATA / "search" / "sound_positions.epd"
BLOCKED = "3q1k2/3r2p1/4Q1Pp/5P1P/3p1P2/8/7K/4R3 w - - 35 78"
STALEMATE_TRICK = "8/5p2/5p1p/5p1p/2K2p1p/5P1P/p7/kbR5 w - - 0 1"
QUEENS = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def suite(tmp_path: Path) -> str:
    path = tmp_path / "suite.epd"
    path.write_text("\n".join([STALEMATE_TRICK, "8/6p1/k7/6bK/8/8/6q1/8 w - - 97 1", "4k3/8/8/8/8/8/8/4K2R w K -", ""]))
    return str(path)


def without(monkeypatch: pytest.MonkeyPatch, gate: int) -> None:
    """Let the command check a mode that lacks a gate."""
    pruning = replace(SOUND, sound_gates=SOUND_GATES & ~gate)
    monkeypatch.setattr(verify_sound, "Verifier", partial(verify_sound.Verifier, pruning))


@pytest.mark.slow
def test_sound_mode_is_sound(run: Run) -> None:
    status, out, _ = run("verify-sound", "--epd", str(POSITIONS), "--depth", "2", "--json")
    assert status == 0
    report = json.loads(out)
    assert report["sound"] and not report["interrupted"]
    assert (report["violations"], report["different_roots"], report["examples"]) == (0, 0, [])
    assert report["bound"] == REST_BOUND
    assert report["positions"] == report["positions_given"] > 30
    assert report["checked"] > 5000
    assert 0 < report["saving"] == round(1 - report["sound_nodes"] / report["plain_nodes"], 4)


def test_the_lines(run: Run, suite: str) -> None:
    status, out, _ = run("verify-sound", "--epd", suite, "--depth", "3", "--positions", "2")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == f"positions         2, depth 3, B = {REST_BOUND}"
    assert [line[:18].strip() for line in lines[1:]] == [
        "moves checked",
        "violations",
        "roots that differ",
        "nodes",
        "nodes a position",
        "",
        *(line[:18].strip() for line in _LEGEND.splitlines()),
    ]
    assert lines[2].split()[-1] == lines[3].split()[-1] == "0"
    assert "plain " in lines[4] and "%)" in lines[4]


def test_a_violation_is_shown_and_the_status_is_1(run: Run, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, SOUND_BOUND)
    status, out, err = run("verify-sound", "--epd", suite, "--depth", "2", "--show", "3")
    assert status == 1
    shown = [line for line in out.splitlines() if line.startswith("violation: ")]
    assert len(shown) == 3
    assert all(" bound " in line and " alpha " in line for line in shown)
    assert "Traceback" not in err


def test_a_different_root_is_shown_and_the_status_is_1(run: Run, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, SOUND_LEGALITY)
    Path(suite).write_text(f"{STALEMATE_TRICK}\n{BLOCKED}\n")
    words = ["verify-sound", "--epd", suite, "--depth", "2", "--bound", "100"]
    status, out, _ = run(*words)
    assert status == 1
    (line,) = [line for line in out.splitlines() if line.startswith("difference: ")]
    assert BLOCKED in line and "plain " in line and "sound " in line
    report = json.loads(run(*words, "--json")[1])
    assert (report["sound"], report["violations"], report["different_roots"]) == (False, 0, 1)


def test_a_position_that_takes_too_much_is_given_up(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "queens.epd"
    path.write_text(f"{QUEENS}\n{STALEMATE_TRICK}\n")
    status, out, _ = run("verify-sound", "--epd", str(path), "--depth", "3", "--max-nodes", "2000", "--json")
    report = json.loads(out)
    assert (status, report["positions"], report["too_big"], report["sound"]) == (0, 2, 1, True)
    assert report["plain_nodes"] < 2000, "of the other position alone"
    assert ", 1 given up" in run("verify-sound", "--epd", str(path), "--depth", "3", "--max-nodes", "2000")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--epd FILE is missing"),
        (["--epd", "nowhere.epd"], "cannot read nowhere.epd"),
        (["--epd", "BAD"], "line 1: "),
        (["--epd", "SUITE", "--depth", "0"], "whole number from 1 to 100"),
        (["--epd", "SUITE", "--positions", "none"], "whole number"),
        (["--epd", "SUITE", "--max-nodes", "0"], "whole number"),
        (["--epd", "SUITE", "more"], " takes no "),
    ],
)
def test_bad_input_is_one_line_and_2(run: Run, suite: str, tmp_path: Path, words: list[str], said: str) -> None:
    bad = tmp_path / "bad.epd"
    bad.write_text("8/8/8 w - -\n")
    status, out, err = run("verify-sound", *({"SUITE": suite, "BAD": str(bad)}.get(word, word) for word in words))
    assert (status, out) == (2, "")
    lines = err.splitlines()
    assert all(line.startswith("psearch: ") for line in lines) and said in lines[0]
    assert len(lines) == (2 if "BAD" in words else 1), "a bad line, and that there is no other"


def test_an_interrupt_keeps_what_is_finished() -> None:
    words = ["verify-sound", "--epd", "-", "--depth", "4", "--json"]
    process = subprocess.Popen(
        [*PSEARCH, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stderr is not None
    # one position that takes no time, and one that takes for ever
    process.stdin.write(
        f"{STALEMATE_TRICK}\n" + "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10\n" * 500
    )
    process.stdin.close()
    process.stdin = None
    while not re.match(r"[1-9]\d*/501 positions", process.stderr.readline()):  # the first is finished
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"] and report["sound"]
    assert 1 <= report["positions"] < report["positions_given"] == 501
    assert report["checked"] > 0
    assert "interrupted; the figures cover the" in err and "Traceback" not in err
