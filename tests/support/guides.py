"""Guides whose commands are run as they are printed, and compared with what the page says.

Commands of a guide with files run in a folder that has the files of the page, and the lines printed below each must
come in this order. An example is an indented block that begins with `$ psearch` and shows all that it prints; it is run
in `tests/data/guides`, at a terminal of 100 columns. Its figures must not depend on the machine: one worker, and a
limit of nodes. What does, times, and the version are masked. After a change of the search:

    python tests/support/guides.py
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paths import DATA, REPOSITORY
from programs import PSEARCH, run_here
from terminals import on_terminal, what_stays


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
    with contextlib.chdir(folder):
        done = run_here(*shlex.split(command)[2:])
    said = (done.stdout or done.stderr).replace(str(folder), "/home/me").split("\n")
    assert done.returncode == status, done.stderr
    for line in wanted:
        if line == "...":
            continue
        begin = line.removesuffix("...")
        found = [number for number, one in enumerate(said) if (one.startswith(begin) if begin != line else one == line)]
        assert found, f"{line!r}; printed now: {said}"
        said = said[found[0] + 1 :]


PAGES = (REPOSITORY / "docs" / "guides" / "analyse.md",)
_COLUMNS = 100
_BLOCK = re.compile(r"(?<=\n\n)    \$ (psearch .*)\n((?:    .*\n|\n(?=    ))+)")
_MASKED = (
    (re.compile(r" +\d+\.\d\d(?= +\d+/\d+ )"), " TIME"),
    (re.compile(r"^(found|within) .*$", re.MULTILINE), r"\1 TIME"),
    (re.compile(r" nodes in .*$", re.MULTILINE), " nodes in TIME"),
    (re.compile(r'\[Annotator "psearch [^,"]+'), '[Annotator "psearch VERSION'),
)


@dataclass(frozen=True)
class Example:
    """A command in a page and what the page says that it prints."""

    command: str
    output: str


def examples_of(page: str) -> list[Example]:
    return [Example(match[1], _without_indent(match[2])) for match in _BLOCK.finditer(page)]


def output_of(command: str) -> str:
    """Return what a command leaves on the terminal now."""
    shown, _, status = on_terminal([*PSEARCH, *shlex.split(command)[1:]], _COLUMNS, folder=DATA / "guides")
    if status != 0:
        raise RuntimeError(f"{command}: status {status}: {what_stays(shown)}")
    return what_stays(shown).strip("\n") + "\n"


def masked(output: str) -> str:
    """Return the part of an output that is the same on every machine."""
    for pattern, word in _MASKED:
        output = pattern.sub(word, output)
    return output


def renewed(page: str) -> str:
    """The page's text with outputs of now."""

    def block(match: re.Match[str]) -> str:
        lines = [f"$ {match[1]}", *output_of(match[1]).splitlines()]
        return "".join(f"    {line}".rstrip() + "\n" for line in lines)

    return _BLOCK.sub(block, page)


def _without_indent(block: str) -> str:
    return "".join(f"{line[4:]}\n" for line in block.splitlines())


def _masked_outputs(page: str) -> list[str]:
    return [masked(example.output) for example in examples_of(page)]


def _rewritten() -> Iterator[str]:
    """Write the pages again whose examples print something else now, and name them."""
    for path in PAGES:
        before = path.read_text("utf-8")
        after = renewed(before)
        if _masked_outputs(after) != _masked_outputs(before):
            path.write_text(after, "utf-8")
            yield path.relative_to(REPOSITORY).as_posix()


if __name__ == "__main__":
    print("\n".join(_rewritten()) or "nothing has changed")
