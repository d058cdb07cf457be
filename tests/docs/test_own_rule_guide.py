"""The guide on rules of one's own works as it is printed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from paths import REPOSITORY
from programs import PSEARCH
from test_own_policy_guide import blocks_of

PAGE = (REPOSITORY / "docs" / "guides" / "own-rule.md").read_text("utf-8")
EXAMPLE = (REPOSITORY / "docs" / "examples" / "my_rule.py").read_text("utf-8")
BLOCKS = blocks_of(PAGE)
COMMANDS = [block for block in BLOCKS if block.startswith("$ psearch ")]


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


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.split("\n")[0])
def test_a_command_does_what_the_page_says(block: str, folder: Path) -> None:
    """The lines printed below it come in this order; `...` stands for others, and for the end of a line."""
    command, *wanted = block.rstrip("\n").split("\n")
    words = [*PSEARCH, *shlex.split(command)[2:]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, cwd=folder)
    said = (done.stdout or done.stderr).replace(str(folder), "/home/me").split("\n")
    assert done.returncode == (2 if "broken" in command else 0), done.stderr
    for line in wanted:
        begin = line.removesuffix("...")
        found = [number for number, one in enumerate(said) if (one.startswith(begin) if begin != line else one == line)]
        assert found, f"{line!r}; printed now: {said}"
        said = said[found[0] + 1 :] if begin else said


def test_the_table_has_every_hook() -> None:
    from psearch.core.chess.search import decisions

    hooks = {name for name, kernel in vars(decisions).items() if getattr(kernel, "is_hook", False)}
    assert set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)) == hooks
