"""The recipes of CONTRIBUTING.md: what they name is there, and the one for a pruning technique works as written."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from paths import SUPPORT
from positions import KIWIPETE
from test_lists import PRUNING_PAGES, section, undescribed

from psearch.bench import BENCH_NODES
from psearch.faces.cli.command_list import COMMANDS

ROOT = Path(__file__).parents[2]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


class Step(NamedTuple):
    text: str
    """The page without its block."""
    block: str
    """The lines to be typed, without their indentation."""


def steps_of(title: str) -> list[Step]:
    found = []
    for part in re.split(r"^[0-9]\. ", section(CONTRIBUTING, title), flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        block = [line[7:] for line in lines if line.startswith(" " * 7)]
        text = " ".join(line.strip() for line in lines if not line.startswith(" " * 7))
        found.append(Step(text, "\n".join(block)))
    return found


def paths_of(text: str) -> list[Path]:
    """The files and folders that a text names; `pawns.py` alone lies beside the one before."""
    found: list[Path] = []
    for code in re.findall(r"`([^`]+)`", text):
        word = code.removeprefix("python ").split()[0]
        if re.match(r"(core|parallel|tests|docs|bench)/", word):
            found.append(ROOT / word)
        elif re.fullmatch(r"\w+\.(py|md)", word):
            found.append((found[-1].parent if found else ROOT) / word)
    return found


def unknown_names(text: str) -> set[str]:
    """Identifiers in `code` that are in none of the files that the text names."""
    sources = "\n".join(path.read_text("utf-8") for path in paths_of(text) if path.is_file())
    names = {code for code in re.findall(r"`([^`]+)`", text) if re.fullmatch(r"[A-Za-z_]\w+", code)} - {"NAME"}
    return {name for name in names if not re.search(rf"\b{name}\b", sources)}


@pytest.mark.parametrize("title", re.findall(r"^### (.*)", section(CONTRIBUTING, "Recipes"), re.MULTILINE))
def test_what_a_recipe_names_is_there(title: str) -> None:
    for step in steps_of(title):
        assert not [path for path in paths_of(step.text) if not path.exists()]
        assert unknown_names(step.text) == set()
        for module in re.findall(r"`(psearch(?:\.\w+)+)`", step.text):
            assert importlib.util.find_spec(module), module
        for command in re.findall(r"`psearch (\w+)", step.text):
            assert command in COMMANDS


def test_paths_of_the_other_tables_are_there() -> None:
    for title in ("Wanted", "What decides"):
        paths = paths_of(section(CONTRIBUTING, title))
        assert paths and not [path for path in paths if not path.exists()]


def test_a_name_that_is_not_there_is_noticed() -> None:
    assert unknown_names("`core/psearch_core/chess/pruning/node_pruning.py`: `prune_node`, `prune_everything`") == {
        "prune_everything"
    }
    assert not (paths_of("`core/psearch_core/chess/pruning/node_pruning.py` or `leaf.py`")[1]).exists()


class Copy:
    """The packages, copied to where they can be changed and run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        leave_out = shutil.ignore_patterns("__pycache__")
        for root in ("parallel", "core"):
            shutil.copytree(ROOT / root, folder / root, ignore=leave_out)

    def insert(self, path: str, line: int, text: str) -> None:
        file = self.folder / path
        lines = file.read_text("utf-8").splitlines()
        lines[line - 1 : line - 1] = text.splitlines()
        file.write_text("\n".join(lines) + "\n", "utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        file = self.folder / path
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), "utf-8")

    def tree(self, path: str) -> ast.Module:
        return ast.parse((self.folder / path).read_text("utf-8"))

    def run(self, program: str) -> str:
        path = ":".join(map(str, (self.folder / "parallel", self.folder / "core", SUPPORT)))
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        words = [sys.executable, "-c", program]
        done = subprocess.run(words, capture_output=True, text=True, timeout=500, env=environment, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def psearch(self, *words: str) -> str:
        return self.run(f"import sys; from psearch.faces.cli.main import main; sys.exit(main({list(words)!r}))")


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


PROBE = """
import json, sys
import chess, chess.engine
from psearch_core.toolchain import groups
from psearch_core.chess.chess_entries import CHESS
from psearch.scheduler.scheduler_entries import load_kernels
load_kernels()

from inspect_entries import INSPECT
from inspect_pruning import PruningProbe
from psearch_core.records.pruning_record import MODES, parse_pruning
from psearch_core.chess.pruning.node_pruning import PRUNE_NOTHING, PRUNE_RETURN
from psearch_core.records.pruning_record import PARAMETERS
from psearch_core.chess.tables import make_tables
groups.load(CHESS, INSPECT)

# the margin to the centipawn, 300 a ply, up to depth 4
probe = PruningProbe(make_tables(), parse_pruning("plain,alpha_pruning=1"), chess.Board())
for depth in range(1, 6):
    alpha = probe.evaluate() + 300 * depth
    for low, action in ((alpha, PRUNE_RETURN if depth <= 4 else PRUNE_NOTHING), (alpha - 1, PRUNE_NOTHING)):
        probe.enter(depth, low)
        assert probe.prune_node()[0] == action, (depth, low)
counts = probe.counts()["alpha_pruning"]

command = [sys.executable, "-c", "from psearch.faces.cli.main import main; main(['uci'])"]
nodes = {}
with chess.engine.SimpleEngine.popen_uci(command, timeout=60) as engine:
    for value in ("", "alpha_pruning=1"):
        engine.configure({"PruningParameters": value})
        board = chess.Board("FEN")
        nodes[value] = engine.analyse(board, chess.engine.Limit(depth=12), game=value)["nodes"]

print(json.dumps({
    "file": groups.__file__,
    "off": [mode for mode in MODES if not MODES[mode].alpha_pruning],
    "parameters": list(PARAMETERS),
    "counts": counts,
    "uci": nodes,
}))
""".replace("FEN", KIWIPETE)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy with a technique and a setting more, each as its recipe has it: compiled once."""
    copy = Copy(tmp_path_factory.mktemp("recipes"))
    declared, decided, *_ = steps_of("A pruning technique")
    declaration, decision = (paths_of(step.text)[0].relative_to(ROOT).as_posix() for step in (declared, decided))
    (record,) = (one for one in copy.tree(declaration).body if isinstance(one, ast.ClassDef) and one.name == "Pruning")
    last = [one for one in record.body if isinstance(one, ast.AnnAssign)][-1]  # the gates, which no user sets
    copy.insert(declaration, last.lineno, indented(declared.block))
    body = copy.tree(decision).body
    (function,) = (one for one in body if isinstance(one, ast.FunctionDef) and one.name == "prune_node")
    copy.insert(decision, function.body[-1].lineno, indented(decided.block))
    (first, *_) = (one for one in body if isinstance(one, ast.ImportFrom) and one.module != "__future__")
    copy.insert(decision, first.lineno, "from psearch_core.techniques import ALPHA_PRUNING")

    declared, recorded, read, *_ = steps_of("A setting of the search")
    paths = [paths_of(step.text)[0].relative_to(ROOT).as_posix() for step in (declared, recorded, read)]
    settings, header, kernel = paths
    for name, line in zip(("SearchSettings", "SearchKeywords"), declared.block.splitlines(), strict=True):
        (owner,) = (one for one in copy.tree(settings).body if isinstance(one, ast.ClassDef) and one.name == name)
        assert owner.end_lineno is not None
        copy.insert(settings, owner.end_lineno + 1, indented(line))
    copy.replace(header, '("mate_distance", "i4"),', f'("mate_distance", "i4"),\n        {recorded.block}')
    copy.replace(kernel, "wk.value = DRAW", read.block)
    return copy


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_recipe_of_a_pruning_technique_works(changed: Copy) -> None:
    described = steps_of("A pruning technique")[2]
    # off it is not there, on it is another search
    assert int(changed.psearch("bench").splitlines()[-1].split()[0]) == BENCH_NODES
    assert (
        int(changed.psearch("bench", "--pruning", "modern,alpha_pruning=1").splitlines()[-1].split()[0]) != BENCH_NODES
    )

    found = json.loads(changed.run(PROBE))
    assert Path(found["file"]).is_relative_to(changed.folder)
    assert found["off"] == ["plain", "sound", "ael", "modern"]
    assert found["counts"] == [8, 4]
    assert found["uci"][""] != found["uci"]["alpha_pruning=1"]

    listed = changed.psearch("--parameters")
    assert re.search(r"^alpha_pruning +0 +0 +0 +0 +the evaluation is far below alpha", listed, re.MULTILINE)
    assert re.search(r"^alpha_pruning_margin +300 ", listed, re.MULTILINE)
    words = ("--pruning", "modern,alpha_pruning=1", "--depth", "12", "--threads", "1", "--hash", "4", *KIWIPETE.split())
    assert re.search(
        r"^alpha_pruning +[\d,]+ +[1-9][\d,]* +[\d.]+% +nodes: cut$", changed.psearch("--stats", *words), re.M
    )

    pages = "".join((ROOT / "docs" / page).read_text("utf-8") for page in PRUNING_PAGES)
    assert undescribed(found["parameters"], pages) == {"alpha_pruning", "alpha_pruning_margin"}
    assert not undescribed(found["parameters"], pages + described.block)


DRAWN = "8/8/8/8/8/8/1k1p4/3K4 w - - 0 1"
"""White takes the last pawn: a draw, worth -50 with a contempt of 50."""

SETTING_PROBE = """
import asyncio, inspect, json, sys
import chess, chess.engine
import psearch
from psearch.faces.web.analysing import PAGE_SETTINGS
from psearch.faces.web.messages import setting_facts, setting_of

LIMIT = chess.engine.Limit(depth=4)

def centipawns(info):
    return info["score"].relative.score()

async def by_async_engine():
    async with psearch.AsyncEngine(hash_mb=1, contempt=50) as engine:
        return centipawns(await engine.analyse("FEN", LIMIT))

found = {"search": psearch.search("FEN", depth=4, hash_mb=1, contempt=50).score.relative.score()}
found["off"] = psearch.search("FEN", depth=4, hash_mb=1).score.relative.score()
with psearch.Engine(hash_mb=1, contempt=50) as engine:
    found["engine"] = centipawns(engine.analyse("FEN", LIMIT))
    assert engine.options["Contempt"].max == 100
    engine.configure({"Contempt": 20})
    found["configured"] = centipawns(engine.analyse("FEN", LIMIT, game=1))
found["async"] = asyncio.run(by_async_engine())
with psearch.analyse_many(["FEN"], LIMIT, workers=1, contempt=50) as results:
    found["many"] = [result.score.relative.score() for result in results]
command = [sys.executable, "-c", "from psearch.faces.cli.main import main; main(['uci'])"]
with chess.engine.SimpleEngine.popen_uci(command, timeout=60) as engine:
    engine.configure({"Contempt": 50})
    found["uci"] = centipawns(engine.analyse(chess.Board("FEN"), LIMIT))
(option,) = [option for option in PAGE_SETTINGS if option.field == "contempt"]
found["page"] = [setting_facts(option)["name"], setting_of({"contempt": 50}, option)]
for function in (psearch.search, psearch.Engine, psearch.AsyncEngine, psearch.analyse_many):
    assert inspect.signature(function).parameters["contempt"].default == 0
for function in (psearch.search, psearch.Engine, psearch.analyse_many):
    assert "contempt: centipawns that a draw is worth less" in function.__doc__
print(json.dumps(found))
""".replace("FEN", DRAWN)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_setting_of_all_faces_costs_three_files(changed: Copy) -> None:
    assert "--contempt N" in changed.psearch("--help")
    words = ("--contempt", "50", "--depth", "4", "--threads", "1", "--hash", "1", "--json", *DRAWN.split())
    assert json.loads(changed.psearch(*words))["score"]["cp"] == -50
    assert json.loads(changed.run(SETTING_PROBE)) == {
        **dict.fromkeys(("search", "engine", "async", "uci"), -50),
        **{"off": 0, "configured": -20, "many": [-50], "page": ["Contempt", 50]},
    }
