"""Documents agree with the code, the logs and each other: lists, names, sizes, figures, links."""

from __future__ import annotations

import ast
import json
import lzma
import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pack_logs import read_packed

from psearch.defaults import POLICY_NAMES
from psearch.faces.cli.command_list import COMMANDS
from psearch.faces.uci.uci_options import OPTIONS
from psearch_core import records
from psearch_core.records.pruning_record import PARAMETERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PRUNING_PAGES = ("design/search.md", "design/soundness.md")


def section(page: Path, title: str) -> str:
    """Return the text from a heading to the next of its level or above."""
    level, text = re.split(rf"^(#+) {re.escape(title)}\n", page.read_text("utf-8"), maxsplit=1, flags=re.MULTILINE)[1:]
    return re.split(rf"^#{{1,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def first_column(text: str) -> list[str]:
    """The names in `code` that begin the rows of a table."""
    cells = re.findall(r"^\| (`[^|]*?) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell.partition(" (")[0])]


def undescribed(parameters: Collection[str], text: str) -> set[str]:
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


DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("tests/data/*.md"))
)

_LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)


def _prose(text: str) -> str:
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<=\n\n)(?:    .*\n|\n)+", "\n", text)


@cache
def _anchors(path: Path) -> frozenset[str]:
    """Return GitHub's anchors of the headings: small letters, hyphens for blanks, no other signs; a second one is
    counted."""
    count: Counter[str] = Counter()
    anchors = []
    for title in re.findall(r"^#{1,6} (.+)$", _prose(path.read_text("utf-8")), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        anchors.append(f"{anchor}-{count[anchor]}" if count[anchor] else anchor)
        count[anchor] += 1
    return frozenset(anchors)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links(document: str) -> None:
    path = ROOT / document
    broken = []
    for inline, reference in _LINK.findall(_prose(path.read_text("utf-8"))):
        link = inline or reference
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        if not there.exists() or (anchor and anchor not in _anchors(there)):
            broken.append(link)
    assert not broken


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    named = {inline.partition("#")[0] for inline, _ in _LINK.findall(index)}
    pages = {document.removeprefix("docs/") for document in DOCUMENTS if document.startswith("docs/")}
    assert pages - {"README.md"} == {link for link in named if link.endswith(".md") and not link.startswith("../")}


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("A walk: `psearch --threads 2 FEN`", "a-walk-psearch---threads-2-fen"),
        ("P(needed)", "pneeded"),
        ("What's new?", "whats-new"),
    ],
)
def test_anchors_are_those_of_github(tmp_path: Path, title: str, anchor: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# {title}\n\n    # code\n\n## {title}\n", "utf-8")
    assert _anchors(page) == {anchor, f"{anchor}-1"}


README = (ROOT / "README.md").read_text("utf-8")
STUDY = ROOT / "docs" / "studies" / "study.md"
MEASUREMENTS = ROOT / "docs" / "measurements"
LOG = r"\[`(.*)`\]\[(games|suites|logs|tables|cores)\]"
"""A log, and the kind of file that it lies in."""

Line = dict[str, Any]


def _readme_rows() -> Iterator[tuple[str, str, list[str]]]:
    """Yield of each row the log that it names, where that lies, and the numbers that were measured."""
    section = README.split("## Figures\n", 1)[1].split("\n## ", 1)[0]
    for row in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]:
        _, measured, log = row.split(" | ")
        yield *re.findall(LOG, log)[0], re.findall(r"\d+(?:\.\d+)?", measured)


def _study_rows() -> Iterator[tuple[str, str, dict[int, str]]]:
    """Yield the same of each row of the study's first table that names a log, its numbers by their worker counts."""
    head, _, *rows = re.findall(r"^\|.*\|$", STUDY.read_text("utf-8").split("\n## ", 1)[0], re.MULTILINE)
    counts = [int(cell.replace(",", "")) for cell in head.split("|")[2:-2]]
    for row in rows:
        if "[`" in row:
            cells = [cell.strip(" *") for cell in row.split("|")[2:-2]]
            yield *re.findall(LOG, row)[0], {count: cell for count, cell in zip(counts, cells, strict=True) if cell}


def _speedups(lines: list[Line]) -> dict[int, float]:
    """Return, by number of workers, the mean over positions of the time of one worker over theirs."""
    times: dict[int, dict[str, list[float]]] = {}
    for line in lines:
        if "position" in line:
            times.setdefault(line["threads"], {}).setdefault(line["fen"], []).append(line["seconds"])
    seconds = {
        count: {fen: statistics.geometric_mean(values) for fen, values in row.items()} for count, row in times.items()
    }
    alone = seconds.pop(1)
    return {
        count: statistics.geometric_mean(alone[fen] / taken for fen, taken in row.items())
        for count, row in sorted(seconds.items())
    }


def _match(name: str) -> list[int]:
    result = json.loads((MEASUREMENTS / "games" / f"{name}.json").read_text("utf-8"))
    return [result["wins"], result["draws"], result["losses"]]


def _suite(lines: list[Line]) -> list[float]:
    """Solved, all, million nodes a second."""
    rows = [line for line in lines if "id" in line]
    solved = sum(row["result"] == "right" for row in rows)
    return [solved, len(rows), sum(row["nodes"] for row in rows) / sum(row["time"] for row in rows) / 1e6]


def _lines(log: str, where: str) -> list[Line]:
    folder = {"suites": "suites", "cores": "real-cores"}.get(where, "study-selective")
    return read_packed(MEASUREMENTS / folder / f"{'tables' if where == 'tables' else 'logs'}.jsonl.xz")[log]


def _agree(said: list[str], found: list[float] | list[int]) -> bool:
    decimals = [len(number.partition(".")[2]) for number in said]
    return said == [f"{value:.{places}f}" for value, places in zip(found, decimals, strict=True)]


def test_every_figure_has_a_log() -> None:
    assert list(_readme_rows())
    ours = [line for line in STUDY.read_text("utf-8").splitlines() if line.startswith(("| **virtual", "| **processes"))]
    assert ours and len(list(_study_rows())) == len(ours)


@pytest.mark.parametrize(("log", "where", "said"), list(_readme_rows()))
def test_a_figure_of_the_readme(log: str, where: str, said: list[str]) -> None:
    if where == "games":
        assert _agree(said, _match(log))
    elif where == "suites":
        assert _agree(said, _suite(_lines(log, where)))
    else:
        assert _agree(said, list(_speedups(_lines(log, where)).values()))


@pytest.mark.parametrize(("log", "where", "cells"), list(_study_rows()))
def test_the_figures_of_a_run_of_the_study(log: str, where: str, cells: dict[int, str]) -> None:
    found = _speedups(_lines(log, where))
    assert list(cells) == list(found)
    assert _agree(list(cells.values()), list(found.values()))


def test_no_record_names_a_place_on_the_machine_that_made_it() -> None:
    for path in (DOCS / "measurements").rglob("*"):
        if path.suffix in (".xz", ".json", ".jsonl", ".txt", ".pgn"):
            data = path.read_bytes()
            found = re.search(
                rb"/(?:home|root|srv|tmp|work)/[^\"\s]*", lzma.decompress(data) if path.suffix == ".xz" else data
            )
            assert found is None, (path.name, found)
