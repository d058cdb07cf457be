"""Users' own policies, rules and games at the command line, in UCI and in Python, and mistakes in them."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import chess
import chess.engine
import pytest
from paths import DATA, REPOSITORY
from positions import KIWIPETE
from programs import PIPES, PSEARCH, processes_in_session, without_waiting
from uci_client import Client

import psearch
from psearch.faces.cli.analyses import _about
from psearch.faces.cli.arguments import search_options
from psearch.faces.cli.commands import analyse_command
from psearch.faces.cli.study import kernels_of
from psearch.faces.uci.uci_options import OptionValues
from psearch.options import SearchOptions
from psearch.settings import SETTINGS
from psearch.text.values import shown
from psearch_core.toolchain import compiler_client
from psearch_core.toolchain.kernel_cache import PlugInError
from psearch_core.toolchain.kernel_sets import KernelSet

Run = Callable[..., tuple[int, str, str]]
RULES = str(REPOSITORY / "docs" / "examples" / "my_rule.py")
POLICY = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
BROKEN = {
    "policy": "from psearch.own_policy import *\n\n@replaces(may_open)\ndef mine(ctx, node):\n    return True\n",
    "rules": "from psearch.own_rule import *\n\n@replaces(prunes_move)\ndef mine(ctx, wk):\n    return True\n",
}
TIMEOUT_S = 120
DEPTH = chess.engine.Limit(depth=6)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    file = tmp_path / "broken.py"
    file.write_text(BROKEN["rules"])
    return str(file)


@pytest.fixture
def suite(tmp_path: Path) -> str:
    file = tmp_path / "suite.epd"
    file.write_text(f'{KIWIPETE} id "one";\n')
    return str(file)


def test_a_search_and_its_counters(run: Run) -> None:
    words = ("--with", RULES, "--threads", "1", "--depth", "9", "--json", "startpos")
    status, out, _ = run("--stats", *words)
    report = json.loads(out)
    assert (status, report["pruning"]) == (0, "modern with my_rule.py")
    mine = report["stats"]["techniques"][-1]
    assert mine["name"] == "my_rule.py" and mine["tried"] > 0
    status, out, _ = run(*words)
    assert status == 0 and json.loads(out)["nodes"] == report["nodes"]
    status, out, _ = run(*words[2:])
    assert json.loads(out)["nodes"] != report["nodes"]


@pytest.mark.parametrize(
    "words",
    [
        ("startpos",),
        ("--stats", "startpos"),
        ("bench",),
        ("analyse", "--depth", "1", "SUITE"),
        ("simulate", "--workers", "2", "--depth", "1", "--suite", "SUITE"),
        ("speedup", "--depth", "1", "--suite", "SUITE"),
        ("predict", "--depth", "1", "--suite", "SUITE"),
    ],
    ids=lambda words: words[0],
)
def test_a_mistake_is_one_line_everywhere(
    words: tuple[str, ...], run: Run, broken: str, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_nothing(*arguments: object) -> NoReturn:
        raise PlugInError("mine.py:4: what is wrong")

    monkeypatch.setattr(compiler_client, "compile_groups", compile_nothing)
    status, out, err = run(*(suite if word == "SUITE" else word for word in words), "--with", broken)
    assert (status, out, without_waiting(err)) == (2, "", "psearch: mine.py:4: what is wrong\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--with", "gone.py"], "cannot read the file 'gone.py': No such file or directory"),
        (["--with", RULES, "--policy", POLICY], "cannot be used together: put both into one file"),
        (["--with", RULES, "--pruning", "sound"], "it cannot be used with a file's reduction_of"),
    ],
)
def test_refusals(run: Run, words: list[str], complaint: str) -> None:
    status, out, err = run(*words, "startpos")
    assert (status, out) == (2, "")
    assert complaint in err and err.count("\n") == 1


def test_a_game_of_ones_own_has_no_rules_of_chess(run: Run) -> None:
    game = str(REPOSITORY / "docs" / "examples" / "tic_tac_toe.py")
    status, _, err = run("simulate", "--with", RULES, "--game", game, "--workers", "2", "--depth", "3")
    assert status == 2 and "--with is for chess" in err


@pytest.mark.slow
def test_studies_search_with_it_also_by_one_worker(run: Run, suite: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    common = ("--suite", suite, "--depth", "10", "--hash", "1", "--with", RULES, "--json", "--log", str(log))
    nodes = set()
    for command in (("simulate", "--workers", "2"), ("speedup", "--threads", "1,2", "--repeat", "1")):
        status, out, err = run(*command, *common)
        assert status == 0, err
        assert json.loads(out)["pruning"] == "modern with my_rule.py"
        samples = [json.loads(line) for line in log.read_text().splitlines()]
        nodes |= {one["nodes"] for one in samples if one.get("threads") == 1 and command[0] == "speedup"}
        log.unlink()
    status, out, _ = run("speedup", "--threads", "1", *common[:-5], "--repeat", "1", "--log", str(log), "--json")
    samples = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(nodes) == 1 and not nodes & {one["nodes"] for one in samples if one.get("threads") == 1}


@pytest.mark.slow
def test_prediction_is_judged_with_it(run: Run, suite: str) -> None:
    words = ("predict", "--suite", suite, "--depth", "10", "--json")
    mine, usual = (json.loads(run(*words, *more)[1]) for more in (("--with", RULES), ()))
    assert mine["pruning"] == "modern with my_rule.py"
    assert [one["rule"] for one in mine["rules"]] == [one["rule"] for one in usual["rules"]]
    assert mine["tree_nodes"] != usual["tree_nodes"]


def test_many_positions_are_searched_with_it() -> None:
    limit = chess.engine.Limit(depth=10)
    nodes = set()
    for with_ in (RULES, None):
        with psearch.analyse_many([KIWIPETE], limit, workers=1, hash_mb=1, with_=with_) as results:
            nodes |= {result.nodes for result in results}
    assert len(nodes) == 2


def test_every_policy_of_a_study_has_it() -> None:
    assert set(kernels_of(["ybw", "serial"], RULES)) == {"ybw", "serial"}
    assert set(kernels_of([POLICY, "ybw"])) == {POLICY}
    with pytest.raises(psearch.PsearchError, match="put both into one file"):
        kernels_of(["ybw", POLICY], RULES)


@pytest.mark.parametrize(
    ("words", "name", "own"),
    [
        (["--with", RULES], "rules file", SearchOptions(with_=RULES).kernels),
        (["--policy", POLICY], "policy file", kernels_of([POLICY])[POLICY]),
    ],
)
def test_a_journal_knows_a_file_by_its_content(words: list[str], name: str, own: KernelSet) -> None:
    parser = argparse.ArgumentParser()
    analyse_command.add_arguments(parser)
    options = parser.parse_args([*words, "games.pgn"])
    assert _about([], options, search_options(options), 16)[name] == own.digest


@pytest.mark.parametrize(
    "words",
    [
        ["startpos"],
        ["simulate", "--workers", "2", "--depth", "1", "--suite", "SUITE"],
        ["speedup", "--suite", "SUITE"],
        ["predict", "--depth", "1", "--suite", "SUITE"],
        ["analyse", "SUITE"],
    ],
    ids=lambda words: words[0],
)
def test_a_policy_that_is_not_there_is_one_line(words: list[str], run: Run, suite: str) -> None:
    policy = "ybw,gone.py" if words[0] == "simulate" else "gone.py"
    status, _, err = run(*(suite if word == "SUITE" else word for word in words), "--policy", policy)
    assert (status, err) == (2, "psearch: cannot read the policy 'gone.py': No such file or directory\n")


def test_a_search_under_a_policy_of_a_file(run: Run) -> None:
    status, out, _ = run("--policy", POLICY, "--threads", "1", "--depth", "4", "--json", "startpos")
    assert status == 0 and json.loads(out)["depth"] == 4


def ended(*words: str) -> tuple[int, str, str]:
    """Run a program to its end; nothing of it is left."""
    process = subprocess.Popen([*PSEARCH, *words], start_new_session=True, **PIPES)
    output, errors = process.communicate(timeout=TIMEOUT_S)
    assert processes_in_session(process.pid) == []
    return process.returncode, output, without_waiting(errors)


def test_a_mistake_is_one_line_and_nothing_is_left_running(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(BROKEN["policy"])
    said = f"psearch: {file}:4: mine takes (ctx, node), and may_open is called with (ctx, node, ply)\n"
    assert ended("--policy", str(file), "--threads", "2", "startpos") == (2, "", said)


def test_an_engine_has_it_and_may_change_it(tmp_path: Path) -> None:
    with psearch.Engine(with_=Path(RULES), hash_mb=1) as engine:
        first = engine._searcher.supervisor.arena
        assert first.kernels.file == RULES
        engine.analyse(chess.Board(), DEPTH)
        engine.configure({"Policy": "ybw"})
        assert engine._searcher.supervisor.arena is first, "the same kernels"
        with pytest.raises(psearch.PsearchError, match="Rules, SyzygyPath and a file as Policy are for all searches"):
            engine.analyse(chess.Board(), DEPTH, options={"Rules": ""})
        engine.configure({"Rules": ""})
        assert not engine._searcher.supervisor.arena.tt.any(), "nothing of it is left in the table"
        assert engine.analyse(chess.Board(), DEPTH)["nodes"] == psearch.search("startpos", depth=6, hash_mb=1).nodes
    with pytest.raises(psearch.PsearchError, match="with_"):
        psearch.search("startpos", with_=5, depth=1)  # type: ignore[arg-type]


def test_uci_searches_with_it_and_tells_of_what_will_not_do(broken: str) -> None:
    together = "info string Rules: with a file as Policy, put both into one file; continuing without Rules"
    with Client() as client:
        client.send(f"setoption name Rules value {RULES}", "position startpos", "go depth 9")
        mine = client.answer()[1]
        client.send("setoption name Rules value", "go depth 9")
        usual = client.answer()[1]
        assert _nodes(mine) != _nodes(usual)
        client.send(f"setoption name Rules value {RULES}", f"setoption name Policy value {POLICY}", "go depth 3")
        assert client.answer()[1].count(together) == 1
        client.send("setoption name Policy value ybw", "go depth 9")
        assert _nodes(client.answer()[1]) == _nodes(mine)
        client.send(f"setoption name Rules value {broken}", "go depth 9")
        said = client.answer()[1]
    assert len([line for line in said if line.startswith(f"info string Rules: {broken}:4: mine takes")]) == 1
    assert _nodes(said) == _nodes(usual)


def _nodes(said: list[str]) -> str:
    """Return the nodes of the last iteration."""
    line = [line for line in said if line.startswith("info depth 9 ") and " score " in line][-1]
    return line.split(" nodes ")[1].split()[0]


def test_where_files_are_forbidden_there_are_no_rules() -> None:
    values = OptionValues(files=False)
    assert SETTINGS["with_"] not in values.declared()
    with pytest.raises(ValueError, match="Rules is not available: PSEARCH_NO_FILES forbids all files"):
        values.set("Rules", RULES)


@pytest.mark.slow
def test_uci_compiles_a_file_when_it_is_named_and_again_when_it_is_named_again(tmp_path: Path) -> None:
    """Compiling takes nothing from the clock of `go`."""
    file = tmp_path / "broken.py"
    file.write_text(BROKEN["policy"])
    with Client() as client:
        client.ready()
        client.send(f"setoption name Policy value {file}")
        assert client.until(lambda line: "mine takes (ctx, node)" in line)
        file.write_text("x = 1\n")
        client.send(f"setoption name Policy value {file}")
        assert client.until(lambda line: "it replaces nothing" in line)
        file.write_text(BROKEN["policy"].replace("(ctx, node)", "(ctx, node, ply)"))
        client.send(f"setoption name Policy value {file}")
        assert not [line for line in client.ready() if str(file) in line]
        client.send("position startpos", "go depth 3")
        assert not [line for line in client.answer()[1] if "Policy" in line]


WRONG = """
from psearch.own_policy import atomic_store, may_open, replaces

@replaces(may_open)
def mine(ctx, node, ply):
    atomic_store(ctx.plug_in_words - 1, 1)
    return True
"""
"""Policy whose kernel crashes; tests/processes/test_kernels_in_workers.py has what a search makes of that."""
PREDICT = "predict --policy FILE --depth 4 --suite SUITE"
SIMULATE = "simulate --policy FILE --workers 2 --depth 5 --suite SUITE"


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("policy") / "wrong.py"
    file.write_text(WRONG)
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (SIMULATE, "psearch: a process of the study ended; the study was stopped"),
        (PREDICT, "psearch: a kernel of your file crashed: SIGSEGV"),
    ],
)
def test_what_goes_wrong_in_a_worker_ends_and_is_told(command: str, said: str, wrong: Path, suite: str) -> None:
    code, output, errors = ended(*command.replace("FILE", str(wrong)).replace("SUITE", suite).split())
    assert said in output + errors and code == 3


TIC_TAC_TOE = str(REPOSITORY / "docs" / "examples" / "tic_tac_toe.py")
TAKE_AWAY = str(DATA / "games" / "take_away.py")


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
        ([TIC_TAC_TOE, "--policy", RULES], f"{shown(RULES)} replaces reduction_of, a rule of chess"),
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
    said = f"psearch: {file}:31: moves: NameError: name 'counts' is not defined\n"
    assert ended("game", str(file), "--threads", "2") == (2, "", said)


def test_ctrl_c_gives_the_best_line_so_far() -> None:
    words = [*PSEARCH, "game", TAKE_AWAY, "--threads", "2", "--movetime", "60s"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
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
    assert [(row["threads"], row["positions"]) for row in json.loads(out)["rows"]] == [(2, 2)]
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
