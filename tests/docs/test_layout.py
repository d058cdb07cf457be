"""What the documents say of the program's layout is so: rooms, sizes of records, files that are named."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from psearch_core import records

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "docs" / "design"
ARCHITECTURE = (DESIGN / "architecture.md").read_text("utf-8")
MEMORY = (DESIGN / "memory.md").read_text("utf-8")
FRAMES_PER_STACK = records.MAX_PLY

ROOMS = sorted(
    path.parent.relative_to(ROOT).as_posix()
    for package in ("core", "parallel")
    for path in (ROOT / package).rglob("__init__.py")
)


def _section(text: str, title: str) -> str:
    """From a heading to the next one."""
    return re.split(r"^#+ ", text.split(f"## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(
    ("label", "size"),
    [
        (r"\| header +", round(records.header_dtype.itemsize / 1024)),  # a parameter more changes bytes, not this
        (r"\| worker records +", records.worker_dtype.itemsize),
        (r"\| stack records +", records.stack_dtype.itemsize),
        (r"\| chess tables +", round(records.tables_dtype.itemsize / 1024)),
        (r"\| frames +", records.frame_dtype.itemsize),
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


def test_the_map_has_every_room() -> None:
    said = re.findall(r"^\| `([a-z/_]+)` \|", _section(ARCHITECTURE, "Rooms"), re.MULTILINE)
    assert sorted(said) == ROOMS


@pytest.mark.parametrize("room", [room for room in ROOMS if room.count("/") > 1])
def test_a_room_names_its_modules(room: str) -> None:
    """The docstring of a room names each of its modules in `code`, and nothing else that looks like one; what the
    room itself imports, because all names can be had from it, need not be named."""
    folder = ROOT / room
    source = ast.parse((folder / "__init__.py").read_text("utf-8"))
    named = set(re.findall(r"`([a-z][a-z_0-9]*)`", ast.get_docstring(source) or ""))
    imported = {(node.module or "").rpartition(".")[2] for node in source.body if isinstance(node, ast.ImportFrom)}
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    modules = rooms | {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    assert named <= modules | {"psearch_core"}
    assert modules <= named | imported


@pytest.mark.parametrize("document", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.stem)
def test_files_that_are_named_exist(document: Path) -> None:
    text = document.read_text("utf-8")
    named = set(re.findall(r"`(?:python )?((?:core|parallel|bench|tests)/[\w/]+\.py)\b", text))
    assert not {path for path in named if not (ROOT / path).exists()}
