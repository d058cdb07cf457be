"""`--with FILE` at the command line, `Rules` in UCI, `with_` in Python: what a user sees of rules of his own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import chess
import chess.engine
import pytest
from paths import REPOSITORY
from positions import KIWIPETE
from programs import without_waiting
from uci_client import Client

import psearch
from psearch.faces.cli.analyses import _about
from psearch.faces.cli.arguments import search_options
from psearch.faces.cli.commands import analyse_command
from psearch.faces.cli.study import kernels_of
from psearch.faces.uci.uci_options import OptionValues
from psearch.options import SearchOptions
from psearch.settings import SETTINGS
from psearch_core.toolchain import compiler_client
from psearch_core.toolchain.kernel_cache import PlugInError

Run = Callable[..., tuple[int, str, str]]
FILE = str(REPOSITORY / "docs" / "examples" / "my_rule.py")
POLICY_FILE = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
BROKEN = "from psearch.own_rule import *\n\n@replaces(prunes_move)\ndef mine(ctx, wk):\n    return True\n"
DEPTH = chess.engine.Limit(depth=6)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    file = tmp_path / "broken.py"
    file.write_text(BROKEN)
    return str(file)


@pytest.fixture
def suite(tmp_path: Path) -> str:
    file = tmp_path / "suite.epd"
    file.write_text(f'{KIWIPETE} id "one";\n')
    return str(file)


def test_a_search_and_its_counters(run: Run) -> None:
    words = ("--with", FILE, "--threads", "1", "--depth", "9", "--json", "startpos")
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
        (["--with", FILE, "--policy", POLICY_FILE], "cannot be used together: put both into one file"),
        (["--with", FILE, "--pruning", "sound"], "it cannot be used with a file's reduction_of"),
    ],
)
def test_refusals(run: Run, words: list[str], complaint: str) -> None:
    status, out, err = run(*words, "startpos")
    assert (status, out) == (2, "")
    assert complaint in err and err.count("\n") == 1


def test_a_game_of_ones_own_has_no_rules_of_chess(run: Run) -> None:
    game = str(REPOSITORY / "docs" / "examples" / "tic_tac_toe.py")
    status, _, err = run("simulate", "--with", FILE, "--game", game, "--workers", "2", "--depth", "3")
    assert status == 2 and "--with is for chess" in err


@pytest.mark.slow
def test_studies_search_with_it_also_by_one_worker(run: Run, suite: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    common = ("--suite", suite, "--depth", "8", "--hash", "1", "--with", FILE, "--json", "--log", str(log))
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
    words = ("predict", "--suite", suite, "--depth", "8", "--json")
    mine, usual = (json.loads(run(*words, *more)[1]) for more in (("--with", FILE), ()))
    assert mine["pruning"] == "modern with my_rule.py"
    assert [one["rule"] for one in mine["rules"]] == [one["rule"] for one in usual["rules"]]
    assert mine["tree_nodes"] != usual["tree_nodes"]


def test_many_positions_are_searched_with_it() -> None:
    limit = chess.engine.Limit(depth=8)
    nodes = set()
    for with_ in (FILE, None):
        with psearch.analyse_many([KIWIPETE], limit, workers=1, hash_mb=1, with_=with_) as results:
            nodes |= {result.nodes for result in results}
    assert len(nodes) == 2


def test_every_policy_of_a_study_has_it() -> None:
    assert set(kernels_of(["ybw", "serial"], FILE)) == {"ybw", "serial"}
    assert kernels_of(["ybw"]) == {}
    with pytest.raises(psearch.PsearchError, match="put both into one file"):
        kernels_of(["ybw", POLICY_FILE], FILE)


def test_a_journal_knows_the_file_by_its_content() -> None:
    parser = argparse.ArgumentParser()
    analyse_command.add_arguments(parser)
    options = parser.parse_args(["--with", FILE, "games.pgn"])
    how = search_options(options)
    assert _about([], options, how, 16)["rules file"] == SearchOptions(with_=FILE).kernels.digest


# -- Python ----------------------------------------------------------------------------------------------------


def test_an_engine_has_it_and_may_change_it(tmp_path: Path) -> None:
    with psearch.Engine(with_=Path(FILE), hash_mb=1) as engine:
        first = engine._searcher.supervisor.arena
        assert first.kernels.file == FILE
        engine.analyse(chess.Board(), DEPTH)
        engine.configure({"Policy": "ybw"})
        assert engine._searcher.supervisor.arena is first, "the same kernels"
        with pytest.raises(psearch.PsearchError, match="Rules and a file as Policy are for all searches"):
            engine.analyse(chess.Board(), DEPTH, options={"Rules": ""})
        engine.configure({"Rules": ""})
        assert not engine._searcher.supervisor.arena.tt.any(), "nothing of it is left in the table"
        assert engine.analyse(chess.Board(), DEPTH)["nodes"] == psearch.search("startpos", depth=6, hash_mb=1).nodes
    with pytest.raises(psearch.PsearchError, match="with_"):
        psearch.search("startpos", with_=5, depth=1)  # type: ignore[arg-type]


# -- UCI -------------------------------------------------------------------------------------------------------


def test_uci_searches_with_it_and_tells_of_what_will_not_do(broken: str) -> None:
    together = "info string Rules: with a file as Policy, put both into one file; going on without Rules"
    with Client() as client:
        client.send(f"setoption name Rules value {FILE}", "position startpos", "go depth 9")
        mine = client.answer()[1]
        client.send("setoption name Rules value", "go depth 9")
        usual = client.answer()[1]
        assert _nodes(mine) != _nodes(usual)
        client.send(f"setoption name Rules value {FILE}", f"setoption name Policy value {POLICY_FILE}", "go depth 3")
        both = client.answer()[1]
        assert both.count(together) == 1
        client.send("setoption name Policy value ybw", "go depth 9")
        assert _nodes(client.answer()[1]) == _nodes(mine)
        client.send(f"setoption name Rules value {broken}", "go depth 9")
        said = client.answer()[1]
    assert len([line for line in said if line.startswith(f"info string Rules: {broken}:4: mine takes")]) == 1
    assert _nodes(said) == _nodes(usual)


def _nodes(said: list[str]) -> str:
    """Of the last iteration."""
    line = [line for line in said if line.startswith("info depth 9 ") and " score " in line][-1]
    return line.split(" nodes ")[1].split()[0]


def test_where_files_are_forbidden_there_are_no_rules() -> None:
    values = OptionValues(files=False)
    assert SETTINGS["with_"] not in values.declared()
    with pytest.raises(ValueError, match="Rules is not available: PSEARCH_NO_FILES forbids all files"):
        values.set("Rules", FILE)
