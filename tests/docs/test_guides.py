"""The commands of the README and of the guides work as they are printed."""

from __future__ import annotations

import doctest
import json
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
from guides import PAGES, Example, blocks_of, check_command, commands_of, examples_of, masked, output_of
from paths import REPOSITORY

from psearch.faces.cli.main import main
from psearch.games.game_file import RULES, WORDS

README = (REPOSITORY / "README.md").read_text("utf-8")
GUIDES = REPOSITORY / "docs" / "guides"
EXAMPLES = REPOSITORY / "docs" / "examples"


FILES = {
    "own-game": ("tic_tac_toe.py", "found[count] = square", "found[count] = squares"),
    "own-policy": ("my_policy.py", "may_open(ctx, node, ply)", "may_open(ctx, nod, ply)"),
    "own-rule": ("my_rule.py", "visit.move)", "visit.mov)"),
}
"""The file that each guide begins with, and the mistake in its `broken.py`."""
BLOCKS = {guide: blocks_of((GUIDES / f"{guide}.md").read_text("utf-8")) for guide in FILES}
COMMANDS = {"own-game": 7, "own-policy": 5, "own-rule": 4}
SLOW = ("$ psearch predict", "my_term.py")
"""Commands that compile yet another group, or another file."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return, by guide, the files that the reader has saved."""
    found = {}
    for guide, (name, right, wrong) in FILES.items():
        found[guide] = place = tmp_path_factory.mktemp(guide)
        first, *others = BLOCKS[guide]
        (place / name).write_text(first, "utf-8")
        (place / "broken.py").write_text(first.replace(right, wrong, 1), "utf-8")
        (place / "connect_four.py").write_text((EXAMPLES / "connect_four.py").read_text("utf-8"), "utf-8")
        for saved, mark in (("three.epd", ' id "'), ("my_term.py", "evaluation_of")):
            for block in others:
                if mark in block and not block.startswith(("$ ", ">>> ")):
                    (place / saved).write_text(block, "utf-8")
    return found


@pytest.mark.parametrize("guide", FILES)
def test_the_file_is_that_of_the_examples(guide: str) -> None:
    assert BLOCKS[guide][0] == (EXAMPLES / FILES[guide][0]).read_text("utf-8")
    assert len(commands_of(BLOCKS[guide])) == COMMANDS[guide]


@pytest.mark.parametrize(
    ("guide", "block"),
    [
        pytest.param(
            guide,
            block,
            marks=[pytest.mark.slow] if any(word in block.split("\n")[0] for word in SLOW) else [],
            id=block.split("\n")[0],
        )
        for guide, blocks in BLOCKS.items()
        for block in commands_of(blocks)
    ],
)
def test_a_command_does_what_the_page_says(guide: str, block: str, folder: dict[str, Path]) -> None:
    fails = any(word in block.split("\n")[0] for word in ("broken", "15x"))
    check_command(block, folder[guide], 2 if fails else 0)


def test_python_does_what_the_page_says(folder: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder["own-game"])
    (examples,) = (block for block in BLOCKS["own-game"] if block.startswith(">>> "))
    test = doctest.DocTestParser().get_doctest(examples, {}, "own-game.md", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_table_has_every_function_of_a_game() -> None:
    said = re.findall(r"^\| `(\w+)\(([\w, ]+)\)` \|", (GUIDES / "own-game.md").read_text("utf-8"), re.MULTILINE)
    assert {name: tuple(arguments.split(", ")) for name, arguments in said} == {**RULES, **WORDS}


@pytest.mark.parametrize(
    ("guide", "module"),
    [("own-policy", "psearch.scheduler.policy"), ("own-rule", "psearch_core.chess.search.decisions")],
)
def test_the_table_has_every_hook(guide: str, module: str) -> None:
    hooks = {name for name, kernel in vars(import_module(module)).items() if getattr(kernel, "is_hook", False)}
    if guide == "own-policy":
        hooks = {name for name in hooks if getattr(import_module(module), name).py_func.__module__ == module}
    assert set(re.findall(r"^\| `(\w+)\(", (GUIDES / f"{guide}.md").read_text("utf-8"), re.MULTILINE)) == hooks


# -- examples whose output is shown whole (`tests/support/guides.py` writes them again) --------------------------------

SHOWN = [example for path in PAGES for example in examples_of(path.read_text("utf-8"))]


@pytest.mark.parametrize("example", SHOWN, ids=lambda example: str(example.command))
def test_the_output_is_that_of_the_command(example: Example) -> None:
    assert "--threads 1" in example.command and "--nodes" in example.command, "else the figures are the machine's"
    assert masked(output_of(example.command)) == masked(example.output)


def test_only_times_and_versions_are_masked() -> None:
    row = "WAC.001   right      Qg6      Qg6         {}     7/17        #2         43,706\n"
    assert masked(row.format("0.03")) == masked(row.format("9.87"))
    assert "43,706" in masked(row.format("0.03"))
    assert masked("searched   1,000 nodes in 0.1 s, 10,000 nps\n") == "searched   1,000 nodes in TIME\n"


FENCED = re.findall(r"^```\w*\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
README_COMMANDS = [line for block in FENCED for line in block.splitlines() if line.startswith("psearch")]
assert len(README_COMMANDS) > 10
SHORTER = {"game": ["--depth", "2"], "simulate": ["--tree-nodes", "2000", "--positions", "1"]}
"""Options that make a command short, by its name; `--nodes 500` for all others."""


@pytest.mark.parametrize("line", README_COMMANDS)
def test_it_runs_as_printed(
    line: str, kernels: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It runs shorter than printed."""
    for name in ("docs", "tests"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    monkeypatch.chdir(tmp_path)  # what is written does not stay
    words = shlex.split(line, comments=True)[1:]
    words += SHORTER.get(words[0], ["--nodes", "500"])
    status = main(words)
    captured = capsys.readouterr()
    assert (status, captured.out + captured.err != "") == (0, True), captured.err


@pytest.mark.slow
def test_the_comparison_in_virtual_time_prints_the_line_of_the_readme(
    kernels: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Virtual time is the same on every machine, so the ratio and its interval are, too."""
    monkeypatch.chdir(REPOSITORY)
    (command,) = re.findall(r"^psearch (simulate [^#\n]*)$", README, re.MULTILINE)
    (line,) = re.findall(r"^ +(\d+ workers, \w+ over .*)$", README, re.MULTILINE)
    assert main(shlex.split(command)) == 0
    assert line in capsys.readouterr().out


def test_the_example_of_a_trace_has_many_events_and_busy_workers(
    kernels: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^psearch (.* --trace [^#\n]*?)(?: +#.*)?$", README, re.MULTILINE)
    assert f"\n    psearch {command}\n" in (GUIDES / "trace.md").read_text("utf-8")
    assert main([*shlex.split(command), "--json"]) == 0
    events = json.loads(Path("trace.json").read_text("utf-8"))["traceEvents"]
    assert 1000 < len(events) < 20_000
    for name in ("idle", "search"):
        assert len({event["tid"] for event in events if event["name"].split()[0] == name}) >= 2
    # by nodes: other programs may have the cores, while a worker that waits for the other one is idle
    nodes = [worker["nodes"] for worker in json.loads(capsys.readouterr().out)["workers"]]
    assert len(nodes) == 2 and min(nodes) > 0.25 * sum(nodes)
