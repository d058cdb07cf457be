"""The guide on rules of one's own works as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paths import REPOSITORY
from printed_guides import blocks_of, check_command, commands_of

PAGE = (REPOSITORY / "docs" / "guides" / "own-rule.md").read_text("utf-8")
EXAMPLE = (REPOSITORY / "docs" / "examples" / "my_rule.py").read_text("utf-8")
BLOCKS = blocks_of(PAGE)
COMMANDS = commands_of(BLOCKS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the reader has saved."""
    found = tmp_path_factory.mktemp("guide")
    (found / "my_rule.py").write_text(BLOCKS[0], "utf-8")
    (found / "broken.py").write_text(BLOCKS[0].replace("visit.move)", "visit.mov)", 1), "utf-8")
    (term,) = (block for block in BLOCKS if "evaluation_of" in block)
    (found / "my_term.py").write_text(term, "utf-8")
    return found


def test_the_file_is_that_of_the_examples() -> None:
    assert BLOCKS[0] == EXAMPLE
    assert len(COMMANDS) == 4


@pytest.mark.parametrize(
    "block",
    # compiles another file
    [pytest.param(one, marks=[pytest.mark.slow] if "my_term.py" in one else []) for one in COMMANDS],
    ids=lambda block: block.split("\n")[0],
)
def test_a_command_does_what_the_page_says(block: str, folder: Path) -> None:
    check_command(block, folder, 2 if "broken" in block.split("\n")[0] else 0)


def test_the_table_has_every_hook() -> None:
    from psearch_core.chess.search import decisions

    hooks = {name for name, kernel in vars(decisions).items() if getattr(kernel, "is_hook", False)}
    assert set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)) == hooks
