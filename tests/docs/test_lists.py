"""Lists in the documents are those of the program: techniques, policies, options, commands, scripts."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from psearch.defaults import POLICY_NAMES
from psearch.faces.cli.command_list import COMMANDS
from psearch.faces.uci.uci_options import OPTIONS
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
    """Those that no page names in `code`."""
    return {name for name in parameters if f"`{name}`" not in text}


def test_every_parameter_of_selective_search_is_described() -> None:
    pages = "".join((DOCS / page).read_text("utf-8") for page in PRUNING_PAGES)
    assert not undescribed(PARAMETERS, pages)
    assert undescribed(["no_such_switch"], pages) == {"no_such_switch"}


def test_the_tables_of_techniques_have_only_what_there_is() -> None:
    text = section(DOCS / "design" / "search.md", "Selective search")
    rows = first_column(text)
    assert len(rows) > 15
    assert set(rows) <= PARAMETERS.keys() | {"see_pruning"}  # an option of its own


def test_policies() -> None:
    rules = section(DOCS / "design" / "architecture.md", "Rules")
    uses = section(DOCS / "design" / "prediction.md", "What each policy uses")
    for table in (rules, uses):
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
