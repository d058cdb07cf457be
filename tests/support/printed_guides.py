"""Guides whose commands are run as they are printed, in a folder that has the files of the page."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from programs import PSEARCH


def blocks_of(page: str) -> list[str]:
    """Return the blocks of a page that are indented, without the indent."""
    return [
        "".join(f"{line[4:]}\n" for line in block.rstrip("\n").split("\n"))
        for block in re.findall(r"(?<=\n\n)((?: {4}.*\n|\n+(?= {4}))+)", page)
    ]


def commands_of(blocks: list[str]) -> list[str]:
    """Return the blocks that are a command, and what it prints."""
    return [block for block in blocks if block.startswith("$ psearch ")]


def check_command(block: str, folder: Path, status: int = 0) -> None:
    """Run a command, and see that the lines printed below it come in this order; `...` stands for others, and for the
    end of a line."""
    command, *wanted = block.rstrip("\n").split("\n")
    words = [*PSEARCH, *shlex.split(command)[2:]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, cwd=folder)
    said = (done.stdout or done.stderr).replace(str(folder), "/home/me").split("\n")
    assert done.returncode == status, done.stderr
    for line in wanted:
        if line == "...":
            continue
        begin = line.removesuffix("...")
        found = [number for number, one in enumerate(said) if (one.startswith(begin) if begin != line else one == line)]
        assert found, f"{line!r}; printed now: {said}"
        said = said[found[0] + 1 :]
