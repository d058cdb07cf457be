"""`psearch --stats`, `--parameters` and `psearch verify-sound`: what is counted and printed, refusals, Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import chess
import pytest
from paths import DATA
from positions import KIWIPETE
from programs import PIPES, PSEARCH
from serial import AEL, DEFAULT, search

from psearch import PRUNING_MODES
from psearch.arena.arena import Arena
from psearch.faces.cli.commands.verify_sound_command import _LEGEND
from psearch.lab.studies import soundness as verify_sound
from psearch.lab.studies.pruning_counts import collect, stats_table
from psearch_core import techniques
from psearch_core.records import SOUND_BOUND, SOUND_GATES, SOUND_LEGALITY
from psearch_core.records.pruning_record import PARAMETERS, SOUND
from psearch_core.techniques import TECHNIQUE_NAMES, TECHNIQUES
from psearch_core.terms import REST_BOUND

Run = Callable[..., tuple[int, str, str]]


def test_every_counter_says_what_it_counts() -> None:
    assert all(one.tried and one.pruned for one in TECHNIQUES.values())
    # the numbers that kernels count under, by the names that users read; NULL_MOVE is a move
    names = [name.upper() if name != "null_move" else "NULL_MOVE_PRUNING" for name in TECHNIQUE_NAMES]
    assert [getattr(techniques, name) for name in names] == list(range(len(TECHNIQUE_NAMES)))
    for wrong in ("NULL_MOVE", "RAZOURING", "razoring"):
        with pytest.raises(AttributeError, match=f"declares no technique '{wrong.lower()}'"):
            getattr(techniques, wrong)


def test_every_technique_can_be_switched_off_and_most_by_their_own_name() -> None:
    assert [name for name in TECHNIQUE_NAMES if name not in PARAMETERS] == ["multicut", "see_quiescence"]


def test_counters_of_one_worker() -> None:
    arena = Arena(workers=1, hash_mb=4)
    search(arena, KIWIPETE, 8, replace(AEL, record=True))
    counted = collect(arena)
    assert [one["name"] for one in counted["techniques"]] == list(TECHNIQUE_NAMES)
    for one, (tried, pruned) in zip(counted["techniques"], arena.worker[0]["pruned"], strict=False):
        assert (one["tried"], one["pruned"]) == (int(tried), int(pruned))
        assert one["share"] == (round(pruned / tried, 6) if tried else 0.0)
    by_name = {one["name"]: one for one in counted["techniques"]}
    assert by_name["futility"]["pruned"] > 100 and by_name["limited_razoring"]["pruned"] > 0
    assert by_name["lmr"]["tried"] == by_name["lmp"]["tried"] == 0
    types = {one["expected"]: one for one in counted["types"]}
    assert list(types) == ["PV", "CUT", "ALL"]
    for one in counted["types"]:
        assert 0 <= one["first_move_cuts"] <= one["cut"] <= one["nodes"] and 0 <= one["right"] <= one["nodes"]
    cut, all_ = types["CUT"], types["ALL"]
    assert cut["nodes"] > types["PV"]["nodes"] > 0
    assert cut["right"] > 0.8 * cut["nodes"] and all_["right"] > 0.8 * all_["nodes"]
    assert cut["first_move_cuts"] > 0.8 * cut["cut"]
    # every judged node has been entered, and those of quiescence are not judged
    worker = arena.worker[0]
    assert sum(one["nodes"] for one in counted["types"]) < int(worker["nodes"]) - int(worker["counters"]["qnodes"])
    assert collect(arena) == counted, "asking changes nothing"
    table = stats_table(counted)
    assert f"{by_name['futility']['pruned']:,}" in table and "lmr" not in table
    arena.close()


def test_types_are_counted_over_all_workers_and_iterations() -> None:
    arena = Arena(workers=1, hash_mb=4)
    seen = []
    for depth in (4, 8):
        arena.forget()
        search(arena, KIWIPETE, depth, replace(DEFAULT, record=True))
        seen.append(sum(one["nodes"] for one in collect(arena)["types"]))
    assert 0 < seen[0] < seen[1]
    arena.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_one_worker_counts_outcomes_only_if_asked(workers: int) -> None:
    arena = Arena(workers=workers, hash_mb=4)
    nodes = {}
    for record in (None, False, True):
        arena.forget()
        nodes[record] = search(arena, KIWIPETE, 6, replace(DEFAULT, record=record)).nodes
        counted = sum(one["nodes"] for one in collect(arena)["types"])
        assert (counted > 0) == (workers > 1 if record is None else record)
    assert workers > 1 or len(set(nodes.values())) == 1, "outcomes steer only splits"
    arena.close()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_stats_of_a_search(run: Run, threads: str) -> None:
    status, out, _ = run("--stats", "--depth", "8", "--threads", threads, "--hash", "4", "--json", *KIWIPETE.split())
    report = json.loads(out)
    assert status == 0
    assert (report["depth"], report["pruning"], report["threads"]) == (8, "modern", int(threads))
    assert chess.Move.from_uci(report["bestmove"]) in chess.Board(KIWIPETE).legal_moves
    techniques = {one["name"]: one for one in report["stats"]["techniques"]}
    assert techniques["lmr"]["tried"] >= techniques["lmr"]["pruned"] > 0
    assert techniques["futility"]["tried"] == 0
    assert [one["expected"] for one in report["stats"]["types"]] == ["PV", "CUT", "ALL"]


def test_the_table_names_what_was_on(run: Run) -> None:
    how = ("--pruning", "ael,futility_margin=250", "--policy", "ybw", "--driver", "null")
    status, out, _ = run("--stats", *("--depth", "7", "--threads", "1", "--hash", "4", *how), "startpos")
    assert status == 0
    lines = out.splitlines()
    head = next(line for line in lines if line.startswith("pruning "))
    lines = lines[lines.index(head) + 1 :]
    assert "pruning ael,futility_margin=250" in head and "policy ybw  driver null  threads 1" in head
    names = [line.split()[0] for line in lines if line]
    assert "extended_futility" in names and "null_move" in names and "lmr" not in names
    assert names[-7:-4] == ["PV", "CUT", "ALL"]
    assert [line.split("  ")[1] for line in lines[-4:]] == ["tried, pruned", "expected", "right", "cut by 1st move"]


def test_stats_beside_the_answer(run: Run) -> None:
    words = ("--stats", "--depth", "6", "--threads", "1", "--hash", "4")
    status, out, _ = run(*words, "startpos")
    assert status == 0 and "best move" in out and "\ntechnique" in out
    status, out, _ = run(*words, "--json", "startpos")
    assert status == 0 and json.loads(out)["stats"]["techniques"]
    status, out, _ = run(*words[1:], "--json", "startpos")
    assert status == 0 and "stats" not in json.loads(out)


def test_parameters(run: Run) -> None:
    status, out, _ = run("--parameters")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split() == ["parameter", *PRUNING_MODES, "meaning"]
    assert [line.split()[0] for line in lines[1:]] == list(PARAMETERS)
    assert all(line.endswith(PARAMETERS[line.split()[0]].meaning) for line in lines[1:])
    status, out, _ = run("--parameters", "--json")
    listed = json.loads(out)["parameters"]
    assert status == 0 and [one["name"] for one in listed] == list(PARAMETERS)
    assert all(set(one["values"]) == set(PRUNING_MODES) for one in listed)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--stats"], "no position given"),
        (["--parameters", "startpos"], "leave out FEN"),
        (["--stats", "--pruning", "fast", "startpos"], "pruning must begin with one of"),
        (["--stats", "--pruning", "modern,lmr=9", "startpos"], "pruning parameter lmr must be"),
        (["--pruning", "modern,speed=9", "startpos"], "no pruning parameter is called 'speed'"),
        (["--stats", "--hash", "0", "startpos"], "--hash"),
    ],
)
def test_refusals(run: Run, words: list[str], complaint: str) -> None:
    status, out, err = run(*words)
    assert status == 2 and out == ""
    assert err.count("\n") == 1 and err.startswith("psearch: ") and complaint in err


def test_a_bad_mode_leaves_no_file_behind(run: Run, tmp_path: Path) -> None:
    suite = tmp_path / "suite.epd"
    suite.write_text(KIWIPETE + "\n")
    log, out = tmp_path / "log.jsonl", tmp_path / "out.epd"
    for words in (
        ("analyse", "--pruning", "fast", "--out", str(out), str(suite)),
        ("speedup", "--pruning", "fast", "--log", str(log), "--suite", str(suite)),
        ("simulate", "--pruning", "fast", "--workers", "2", "--depth", "2", "--log", str(log), "--suite", str(suite)),
        ("predict", "--pruning", "fast", "--depth", "2", "--suite", str(suite)),
    ):
        status, _, err = run(*words)
        assert status == 2 and "pruning must begin with one of" in err, words
    assert [path.name for path in tmp_path.iterdir()] == ["suite.epd"]


def test_studies_say_what_was_pruned(run: Run, tmp_path: Path) -> None:
    suite, log = tmp_path / "suite.epd", tmp_path / "log.jsonl"
    suite.write_text(KIWIPETE + "\n")
    common = ("--pruning", "ael,null_move=0", "--depth", "4", "--suite", str(suite))
    nodes = []
    for mode in (common, (*common[2:],)):
        status, out, _ = run("simulate", *mode, "--workers", "2", "--hash", "1", "--log", str(log), "--json")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert status == 0
        assert json.loads(out)["pruning"] == lines[1]["pruning"] == ("ael,null_move=0" if mode is common else "modern")
        nodes.append(lines[1]["nodes"])
    assert nodes[0] != nodes[1]
    status, out, _ = run("simulate", "--from-log", str(log))
    assert status == 0 and "; pruning modern, driver pvs\n" in out
    status, out, _ = run("speedup", *common, "--repeat", "1", "--hash", "1", "--log", str(log), "--threads", "1")
    assert status == 0 and "pruning ael,null_move=0" in out
    status, out, _ = run("predict", *common, "--json")
    assert status == 0 and json.loads(out)["pruning"] == "ael,null_move=0"


POSITIONS = DATA / "search" / "sound_positions.epd"
BLOCKED = "6k1/3p4/P2P4/8/5Kp1/1p4Q1/p5p1/b7 w - - 0 1"
STALEMATE_TRICK = "8/5p2/5p1p/5p1p/2K2p1p/5P1P/p7/kbR5 w - - 0 1"
QUEENS = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"


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
    path.write_text(f"{QUEENS}\n")
    _, _, err = run("verify-sound", "--epd", str(path), "--depth", "3", "--max-nodes", "2000")
    assert "every position was given up: use a smaller --depth" in err and "larger --depth" not in err


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
    process = subprocess.Popen([*PSEARCH, *words], stdin=subprocess.PIPE, **PIPES)
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
