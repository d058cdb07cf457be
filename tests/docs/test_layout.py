"""What the documents say of the program's layout is so: rooms, entries, sizes of records, the walk."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import psearch
import psearch.core
from psearch.core import records
from psearch.scheduler.entries import load_kernels

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "docs" / "design"
ARCHITECTURE = (DESIGN / "architecture.md").read_text("utf-8")
KERNELS = (DESIGN / "kernels.md").read_text("utf-8")
MEMORY = (DESIGN / "memory.md").read_text("utf-8")
FRAMES_PER_STACK = records.MAX_PLY
MOST_LINES = 300
"""Of the map, so that it stays one."""

ROOMS = sorted(
    folder.relative_to(ROOT).as_posix()
    for package in ("core", "parallel")
    for folder in (ROOT / package, *(ROOT / package).iterdir())
    if (folder / "__init__.py").exists()
)


def _section(text: str, title: str) -> str:
    """From a heading to the next one."""
    return re.split(r"^#+ ", text.split(f"## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


WALK = _section(ARCHITECTURE, "A walk: `psearch --threads 2 FEN`")


@pytest.mark.parametrize(
    ("label", "size"),
    [
        (r"\| header +", round(records.header_dtype.itemsize / 1024)),  # a parameter more changes bytes, not this
        (r"\| worker records +", records.worker_dtype.itemsize),
        (r"\| stack records +", records.stack_dtype.itemsize),
        (r"\| chess tables +", round(records.tables_dtype.itemsize / 1024)),
        (r"\| frames +", records.frame_dtype.itemsize),
        (r"\| store logs +", records.store_log_dtype.itemsize),
        (r"\| node +", records.node_dtype.itemsize),
        (r"\| visit +", records.visit_dtype.itemsize),
        (r"\| position \(copy-make\) +", records.position_dtype.itemsize),
        (r"\| learning +", records.learning_dtype.itemsize),
        (r"\| prediction +", records.prediction_dtype.itemsize),
        (r"frame, ", records.frame_dtype.itemsize // 64),
        (r"context, ", records.context_dtype.itemsize),
        (r"outcomes \(", records.outcomes_dtype.itemsize),
        (r"evaluation\s+\(", records.evaluation_dtype.itemsize),
        (
            r"One stack with its frames takes\s+",
            records.stack_dtype.itemsize + FRAMES_PER_STACK * records.frame_dtype.itemsize,
        ),
    ],
)
def test_sizes_of_records(label: str, size: int) -> None:
    said = {int(number.replace(",", "")) for number in re.findall(label + r"([0-9][0-9,]*)\b", MEMORY)}
    assert said == {size}


def test_the_map_has_every_room_and_stays_short() -> None:
    said = re.findall(r"^\| `([a-z/_]+)` \|", _section(ARCHITECTURE, "Rooms"), re.MULTILINE)
    assert sorted(said) == ROOMS
    assert len(ARCHITECTURE.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("room", [room for room in ROOMS if "/" in room])
def test_a_room_names_its_modules(room: str) -> None:
    """The docstring of a room names each of its modules in `code`, and nothing else that looks like one; what the
    room itself imports, because all names can be had from it, need not be named."""
    folder = ROOT / room
    source = ast.parse((folder / "__init__.py").read_text("utf-8"))
    named = set(re.findall(r"`([a-z][a-z_0-9]*)`", ast.get_docstring(source) or ""))
    imported = {(node.module or "").rpartition(".")[2] for node in source.body if isinstance(node, ast.ImportFrom)}
    modules = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    assert named <= modules
    assert modules <= named | imported


def test_all_entries_are_listed() -> None:
    said: dict[str, set[str]] = {}
    for module, names in re.findall(r"^\| `([a-z/_]+\.py)` \| .*? \| (.*) \|$", KERNELS, re.MULTILINE):
        said.setdefault(module, set()).update(re.findall(r"`(\w+)`", names))
    found: dict[str, set[str]] = {}
    for package in ("core", "parallel"):
        for path in sorted((ROOT / package).rglob("*.py")):
            names = re.findall(r"^@entry\(.*\)\ndef (\w+)", path.read_text("utf-8"), re.MULTILINE)
            if names:
                found[path.relative_to(ROOT).as_posix().removeprefix("parallel/")] = set(names)
    assert said == found


@pytest.mark.parametrize("document", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.stem)
def test_files_that_are_named_exist(document: Path) -> None:
    text = document.read_text("utf-8")
    named = set(re.findall(r"`(?:python )?((?:core|parallel|bench|tests)/[\w/]+\.py)\b", text))
    assert not {path for path in named if not (ROOT / path).exists()}


WALKED = re.findall(r"`([a-z_/]+\.py)`", WALK)

RUN = """
import sys
from psearch.cli.main import main
assert main(["--threads", "2", "--depth", "4", "startpos"]) == 0
files = {module.__file__ for name, module in sys.modules.items() if name.startswith("psearch") and module.__file__}

from importlib import import_module
from psearch.core import jit
from psearch.core.compiler.dependencies import closure
from psearch.core.entries import CHESS
from psearch.scheduler.entries import SEARCH
for module in CHESS.modules + SEARCH.modules:
    import_module(module)
entries = [jit.registry[f"{name}.{entry}"] for group in (CHESS, SEARCH) for name in group.modules
           for entry in vars(sys.modules[name]) if isinstance(jit.registry.get(f"{name}.{entry}"), jit.EntryKernel)]
files |= {sys.modules[kernel.py_func.__module__].__file__ for kernel in closure(entries).values()}
print("\\n" + "\\n".join(sorted(files)))
"""


def test_the_walk_names_no_file_twice() -> None:
    assert sorted(set(WALKED)) == sorted(WALKED)


def test_the_walk_names_every_file_on_the_way(kernels: None) -> None:
    """What the parent imports, and where the kernels are that a search of two workers consists of."""
    load_kernels()
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, timeout=120, check=True)
    files = {Path(line) for line in done.stdout.splitlines() if line.endswith(".py")}
    core, outer = Path(str(psearch.core.__file__)).parent, Path(str(psearch.__file__)).parent
    used = {
        f"core/{path.relative_to(core)}" if path.is_relative_to(core) else str(path.relative_to(outer))
        for path in files
        if path.name != "__init__.py"
    }
    assert used == set(WALKED)
