"""`psearch --stats` and `--parameters`: what is counted, and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import chess
import pytest
from positions import KIWIPETE
from serial import AEL, DEFAULT, search

from psearch import PRUNING_MODES
from psearch.arena.arena import Arena
from psearch.lab.studies.pruning_counts import collect, stats_table
from psearch_core import techniques
from psearch_core.records.pruning_record import PARAMETERS
from psearch_core.techniques import TECHNIQUE_NAMES, TECHNIQUES

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
    search(arena, KIWIPETE, 8, AEL)
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
        search(arena, KIWIPETE, depth, DEFAULT)
        seen.append(sum(one["nodes"] for one in collect(arena)["types"]))
    assert 0 < seen[0] < seen[1]
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
