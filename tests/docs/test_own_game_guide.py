"""The tutorial on games works as it is printed."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest
from paths import REPOSITORY
from printed_guides import blocks_of, check_command, commands_of

from psearch.games.game_file import RULES, WORDS

PAGE = (REPOSITORY / "docs" / "guides" / "own-game.md").read_text("utf-8")
EXAMPLE = (REPOSITORY / "docs" / "examples" / "tic_tac_toe.py").read_text("utf-8")
BLOCKS = blocks_of(PAGE)
COMMANDS = commands_of(BLOCKS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the reader has saved."""
    found = tmp_path_factory.mktemp("tutorial")
    (found / "tic_tac_toe.py").write_text(BLOCKS[0], "utf-8")
    shutil.copy(REPOSITORY / "docs" / "examples" / "connect_four.py", found)
    (found / "broken.py").write_text(BLOCKS[0].replace("found[count] = square", "found[count] = squares"), "utf-8")
    return found


def test_the_file_is_that_of_the_examples() -> None:
    assert BLOCKS[0] == EXAMPLE
    assert len(COMMANDS) == 7


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.split("\n")[0])
def test_a_command_does_what_the_page_says(block: str, folder: Path) -> None:
    check_command(block, folder, 2 if any(word in block.split("\n")[0] for word in ("broken", "15x")) else 0)


def test_python_does_what_the_page_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (examples,) = (block for block in BLOCKS if block.startswith(">>> "))
    test = doctest.DocTestParser().get_doctest(examples, {}, "own-game.md", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_table_has_every_function() -> None:
    said = re.findall(r"^\| `(\w+)\(([\w, ]+)\)` \|", PAGE, re.MULTILINE)
    assert {name: tuple(arguments.split(", ")) for name, arguments in said} == {**RULES, **WORDS}
