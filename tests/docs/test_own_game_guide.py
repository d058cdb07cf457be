"""The tutorial on games works as it is printed."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from paths import REPOSITORY
from programs import PSEARCH
from test_own_policy_guide import blocks_of

from psearch.games.limits import RULES, WORDS

PAGE = (REPOSITORY / "docs" / "guides" / "own-game.md").read_text("utf-8")
EXAMPLE = (REPOSITORY / "docs" / "examples" / "tic_tac_toe.py").read_text("utf-8")
BLOCKS = blocks_of(PAGE)
COMMANDS = [block for block in BLOCKS if block.startswith("$ psearch ")]


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
    """The lines printed below it come in this order; `...` stands for others."""
    command, *wanted = block.rstrip("\n").split("\n")
    words = [*PSEARCH, *shlex.split(command)[2:]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, cwd=folder)
    said = (done.stdout or done.stderr).replace(str(folder), "/home/me").split("\n")
    assert done.returncode == (2 if "broken" in command or "15x" in command else 0), done.stderr
    for line in wanted:
        assert line == "..." or line in said, f"printed now: {said}"
        said = said[said.index(line) + 1 :] if line in said else said


def test_python_does_what_the_page_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (examples,) = (block for block in BLOCKS if block.startswith(">>> "))
    test = doctest.DocTestParser().get_doctest(examples, {}, "own-game.md", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_table_has_every_function() -> None:
    said = re.findall(r"^\| `(\w+)\(([\w, ]+)\)` \|", PAGE, re.MULTILINE)
    assert {name: tuple(arguments.split(", ")) for name, arguments in said} == {**RULES, **WORDS}
