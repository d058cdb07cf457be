"""What the documents list and name is what there is: techniques, policies, options, commands, rooms, sizes, tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from pathlib import Path

import pytest

from psearch.defaults import POLICY_NAMES
from psearch.faces.cli.command_list import COMMANDS
from psearch.faces.uci.uci_options import OPTIONS
from psearch_core import records
from psearch_core.records.pruning_record import PARAMETERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PRUNING_PAGES = ("design/search.md", "design/soundness.md")


def section(page: Path, title: str) -> str:
    """From a heading to the next of its level or above."""
    level, text = re.split(rf"^(#+) {re.escape(title)}\n", page.read_text("utf-8"), maxsplit=1, flags=re.MULTILINE)[1:]
    return re.split(rf"^#{{1,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def first_column(text: str) -> list[str]:
    """The names in `code` that begin the rows of a table."""
    cells = re.findall(r"^\| (`[^|]*?) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell.partition(" (")[0])]


def undescribed(parameters: Collection[str], text: str) -> set[str]:
    """Return the parameters that no page names in `code`."""
    return {name for name in parameters if f"`{name}`" not in text}


def test_every_parameter_of_selective_search_is_described() -> None:
    pages = "".join((DOCS / page).read_text("utf-8") for page in PRUNING_PAGES)
    assert not undescribed(PARAMETERS, pages)
    assert undescribed(["no_such_switch"], pages) == {"no_such_switch"}


def test_the_tables_of_techniques_have_only_what_there_is() -> None:
    rows = first_column(section(DOCS / "design" / "search.md", "Selective search"))
    assert len(rows) > 15
    assert set(rows) <= PARAMETERS.keys() | {"see_pruning"}  # an option of its own


def test_policies() -> None:
    rules = section(DOCS / "design" / "architecture.md", "Rules")
    for table in (rules, section(DOCS / "design" / "prediction.md", "What each policy uses")):
        assert sorted(first_column(table)) == sorted(POLICY_NAMES)


def test_uci_options_in_their_order_with_their_defaults() -> None:
    text = section(DOCS / "guides" / "uci.md", "Options")
    assert first_column(text) == [option.name for option in OPTIONS]
    said = dict(re.findall(r"^\| `([^`]+)` \|[^|]*\|([^|]*)\|", text, re.MULTILINE))
    for option in OPTIONS:
        default = str(option.default)
        shown = {"True": "true", "False": "false", "": "empty", "None": ""}.get(default, default)
        assert said[option.name].strip("` ") == shown, option.name


def test_every_script_is_in_the_list_of_bench() -> None:
    text = (ROOT / "bench" / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| \[([\w/]+\.py)\]\(\1\) \|", text, re.MULTILINE)
    scripts = {
        path.relative_to(ROOT / "bench").as_posix()
        for path in (ROOT / "bench").rglob("*.py")
        if path.name.startswith("test_") or '\nif __name__ == "__main__":\n' in path.read_text("utf-8")
    }
    assert sorted(listed) == sorted(scripts)


def test_every_command_is_shown_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    assert not {name for name in COMMANDS if not re.search(rf"\bpsearch {name}\b", text)}


# -- rooms, sizes, files -----------------------------------------------------------------------------------------------

ROOMS = sorted(
    path.parent.relative_to(ROOT).as_posix()
    for package in ("core", "parallel")
    for path in (ROOT / package).rglob("__init__.py")
)


MEMORY = (DOCS / "design" / "memory.md").read_text("utf-8")


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
            records.stack_dtype.itemsize + records.MAX_PLY * records.frame_dtype.itemsize,
        ),
    ],
)
def test_sizes_of_records(label: str, size: int) -> None:
    assert {int(number.replace(",", "")) for number in re.findall(label + r"([0-9][0-9,]*)\b", MEMORY)} == {size}


def test_the_map_has_every_room() -> None:
    said = re.findall(r"^\| `([a-z/_]+)` \|", section(DOCS / "design" / "architecture.md", "Rooms"), re.MULTILINE)
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


# -- the steps of a node, and the tests of reliability.md --------------------------------------------------------------

SOURCES = (
    *sorted((ROOT / "core" / "psearch_core" / "chess" / "search").glob("*.py")),
    ROOT / "parallel" / "psearch" / "scheduler" / "step.py",
)


def test_every_step_of_the_document_begins_somewhere_in_the_source() -> None:
    text = (ROOT / "docs" / "design" / "search.md").read_text("utf-8")
    steps = re.split(r"^## ", text.split("## The steps\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    said = [int(number) for number in re.findall(r"^([0-9]+)\. \*\*", steps, re.MULTILINE)]
    marked = {int(number) for path in SOURCES for number in re.findall(r"# step ([0-9]+):", path.read_text("utf-8"))}
    assert said == list(range(13))
    assert marked == set(said)


RELIABILITY = (ROOT / "docs/reliability.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]*test_\w+(?:\.py|…)?)`", RELIABILITY)))
TEST_FILES = {path.name: path.read_text() for path in (ROOT / "tests").rglob("*.py")}


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name: str) -> None:
    """A file, a function, or with … at its end the beginning of one."""
    if name.endswith(".py"):
        assert name.rpartition("/")[2] in TEST_FILES
        return
    begin = name.removesuffix("…")
    ends = r"\w*\(" if name.endswith("…") else r"\("
    assert any(re.search(rf"^def {begin}{ends}", text, re.MULTILINE) for text in TEST_FILES.values())
