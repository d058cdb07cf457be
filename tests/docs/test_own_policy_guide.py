"""The tutorial on split policies works as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paths import REPOSITORY
from printed_guides import blocks_of, check_command, commands_of

PAGE = (REPOSITORY / "docs" / "guides" / "own-policy.md").read_text("utf-8")
EXAMPLE = (REPOSITORY / "docs" / "examples" / "my_policy.py").read_text("utf-8")


BLOCKS = blocks_of(PAGE)
COMMANDS = commands_of(BLOCKS)
_SLOW = "$ psearch predict"
"""compiles yet another group"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the reader has saved."""
    found = tmp_path_factory.mktemp("tutorial")
    (found / "my_policy.py").write_text(BLOCKS[0], "utf-8")
    (found / "broken.py").write_text(BLOCKS[0].replace("may_open(ctx, node, ply)", "may_open(ctx, nod, ply)"), "utf-8")
    (suite,) = (block for block in BLOCKS if ' id "' in block)
    (found / "three.epd").write_text(suite, "utf-8")
    return found


def test_the_file_is_that_of_the_examples() -> None:
    assert BLOCKS[0] == EXAMPLE
    assert len(COMMANDS) == 5


@pytest.mark.parametrize(
    "block",
    [pytest.param(one, marks=[pytest.mark.slow] if one.startswith(_SLOW) else []) for one in COMMANDS],
    ids=lambda block: block.split("\n")[0],
)
def test_a_command_does_what_the_page_says(block: str, folder: Path) -> None:
    check_command(block, folder, 2 if "broken" in block.split("\n")[0] else 0)


def test_the_table_has_every_hook() -> None:
    from psearch.scheduler import policy
    from psearch_core.toolchain import jit

    hooks = {
        kernel.py_func.__name__ for kernel in jit.registry.values() if kernel.py_func.__module__ == policy.__name__
    }
    hooks &= {name for name, kernel in vars(policy).items() if getattr(kernel, "is_hook", False)}
    assert set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)) == hooks
