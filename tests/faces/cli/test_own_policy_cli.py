"""`--policy FILE` at the command line and in UCI: what a user sees of a policy of his own, and of a mistake in it."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import pytest
from paths import REPOSITORY
from positions import KIWIPETE
from programs import PSEARCH, processes_in_session, without_waiting
from uci_client import Client

from psearch.faces.cli import main as cli
from psearch.faces.cli.analyses import _about
from psearch.faces.cli.arguments import search_options
from psearch.faces.cli.commands import analyse_command
from psearch.faces.cli.study import kernels_of

FILE = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
BROKEN = "from psearch.own_policy import *\n\n@replaces(may_open)\ndef mine(ctx, node):\n    return True\n"
TIMEOUT_S = 120


@pytest.fixture
def broken(tmp_path: Path) -> str:
    file = tmp_path / "broken.py"
    file.write_text(BROKEN)
    return str(file)


def test_a_search_under_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--policy", FILE, "--threads", "1", "--depth", "4", "--json", "startpos"]) == 0
    assert json.loads(capsys.readouterr().out)["depth"] == 4


def test_a_mistake_is_one_line_and_nothing_is_left_running(broken: str) -> None:
    words = [*PSEARCH, "--policy", broken, "--threads", "2", "startpos"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    output, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, output) == (2, "")
    assert (
        without_waiting(errors)
        == f"psearch: {broken}:4: mine takes (ctx, node), and may_open is called with (ctx, node, ply)\n"
    )
    assert processes_in_session(process.pid) == []


@pytest.mark.parametrize(
    "words",
    [
        ["--policy", "gone.py", "startpos"],
        ["simulate", "--policy", "ybw,gone.py", "--workers", "2", "--depth", "1", "--suite", "SUITE"],
        ["speedup", "--policy", "gone.py", "--suite", "SUITE"],
        ["predict", "--policy", "gone.py", "--depth", "1", "--suite", "SUITE"],
        ["analyse", "--policy", "gone.py", "SUITE"],
    ],
    ids=lambda words: words[0],
)
def test_a_file_that_is_not_there_is_one_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "SUITE").write_text('4k3/8/8/8/8/8/8/4K2R w K - id "one";\n')
    assert cli.main(words) == 2
    assert capsys.readouterr().err == "psearch: cannot read the policy 'gone.py': No such file or directory\n"


def test_uci_searches_under_a_file_and_tells_of_one_that_will_not_do(broken: str) -> None:
    with Client() as client:
        client.send(f"setoption name Policy value {FILE}", "position startpos", "go depth 3")
        assert client.answer()[1]
        client.send(f"setoption name Policy value {broken}", "go depth 3")
        _, said = client.answer()
    told = [line for line in said if "mine takes (ctx, node)" in line]
    assert len(told) == 1 and told[0].startswith(f"info string Policy: {broken}:4:")
    assert said[-1].startswith("bestmove")


@pytest.mark.slow
def test_uci_compiles_a_file_when_it_is_named_and_again_when_it_is_named_again(broken: str) -> None:
    """That is no part of the clock of `go`."""
    with Client() as client:
        client.ready()
        client.send(f"setoption name Policy value {broken}")
        assert client.until(lambda line: "mine takes (ctx, node)" in line)
        Path(broken).write_text("x = 1\n")
        client.send(f"setoption name Policy value {broken}")
        assert client.until(lambda line: "it replaces nothing" in line)
        Path(broken).write_text(BROKEN.replace("(ctx, node)", "(ctx, node, ply)"))
        client.send(f"setoption name Policy value {broken}")
        assert not [line for line in client.ready() if broken in line]
        client.send("position startpos", "go depth 3")
        assert not [line for line in client.answer()[1] if "Policy" in line]


def test_logs_and_journals_know_a_file_by_its_content() -> None:
    parser = argparse.ArgumentParser()
    analyse_command.add_arguments(parser)
    options = parser.parse_args(["--policy", FILE, "games.pgn"])
    digest = kernels_of([FILE])[FILE].digest
    assert _about([], options, search_options(options), 16)["policy file"] == digest
    assert {name: own.digest for name, own in kernels_of([FILE, "ybw"]).items()} == {FILE: digest}
    assert kernels_of(["ybw"]) == {}


WRONG = """
from psearch.own_policy import atomic_store, header_of, may_open, replaces

@replaces(may_open)
def mine(ctx, node, ply):
    workers = header_of(ctx).worker_count
    if workers < 3:
        atomic_store(ctx.plug_in_words - 1, 1)
    while workers == 3 and node.depth >= 3 or workers == 4 and ctx.workers != 0:
        ply += 1
    return ply > 0
"""
"""It crashes; with three workers it does not return, with four not even at once. So it is compiled once."""


SEARCH = "--policy FILE --movetime 500 startpos --threads"
PREDICT = "predict --policy FILE --depth 4 --suite SUITE"
SIMULATE = "simulate --policy FILE --workers 2 --depth 5 --suite SUITE"


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose kernel crashes, or never returns."""
    file = tmp_path_factory.mktemp("policy") / "wrong.py"
    file.write_text(WRONG)
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (f"{SEARCH} 2", 3, "was killed by signal 11, as those before it; the search was stopped"),
        (f"{SEARCH} 3", 0, "best move"),
        (f"{SEARCH} 4", 0, "the answer is of a small search with the package's kernels"),
        (SIMULATE, 3, "psearch: a process of the study ended; the study was stopped"),
        (PREDICT, 3, "psearch: a kernel of a file has ended the process that ran it: SIGSEGV"),
    ],
)
def test_what_goes_wrong_in_a_worker_ends_and_is_told(
    command: str, status: int, said: str, wrong: Path, tmp_path: Path
) -> None:
    suite = tmp_path / "suite.epd"
    suite.write_text(f'{KIWIPETE} id "one";\n')
    words = command.replace("FILE", str(wrong)).replace("SUITE", str(suite)).split()
    process = subprocess.Popen(
        [*PSEARCH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    output, errors = process.communicate(timeout=TIMEOUT_S)
    assert said in output + errors
    assert process.returncode == status
    assert processes_in_session(process.pid) == []
