"""The manifest of files of games: what they were, so that they can be played again, and one block in a thousand.

`manifest.jsonl` has a line for each file: the header that its blocks share (`games`: in one block), first and last of
their numbers, by commit, games, usable positions and bytes in all, and the SHA-256 of the blocks by ascending number.
`manifest.games` has copies of blocks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from netdata.blocks import Packed, pack, read_packed, unpacked
from netdata.playing import Book, Settings, Table
from netdata.reader import Reader
from psearch.files.safe_files import AtomicFile, json_object

FOLDER = Path(__file__).parents[1] / "games"
SAMPLES = "manifest.games"
_ROWS = "manifest.jsonl"
_SAMPLE_EVERY = 1000
_OF_A_BLOCK = ("block", "commit", "count", "plies", "searched", "lines")
"""Facts of a header that the blocks of a file do not share"""


def _shared(header: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in header.items() if name not in _OF_A_BLOCK}


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """First and last of each row of ascending numbers without a gap."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _row(path: Path, blocks: Sequence[Packed]) -> dict[str, Any]:
    reader = Reader()
    headers = [block.header for block in blocks]
    if not headers or any(_shared(header) != _shared(headers[0]) for header in headers):
        raise ValueError(f"{path}: its blocks are not of one run")
    commits: dict[str, list[int]] = {}
    for header in headers:
        commits.setdefault(header["commit"], []).append(header["block"])
    return {
        "file": path.name,
        **_shared(headers[0]),
        "blocks": {commit: _ranges(numbers) for commit, numbers in commits.items()},
        "all_games": sum(header["count"] for header in headers),
        "usable": sum(len(reader.block(unpacked(block))[0]) for block in blocks),
        "bytes": sum(len(block.text) for block in blocks),
        "sha256": hashlib.sha256(b"".join(block.text for block in blocks)).hexdigest(),
    }


def describe(paths: Sequence[Path], folder: Path) -> Iterator[dict[str, Any]]:
    """Put files into the manifest of a folder, in place of those with the same names; yields their rows.

    Raises OSError, Torn, and ValueError for a file whose blocks were played with different settings.
    """
    rows_at, samples_at = folder / _ROWS, folder / SAMPLES
    rows: dict[str, dict[str, Any]] = {}
    for line in rows_at.read_text("utf-8").splitlines() if rows_at.exists() else ():
        row = json_object(line)
        rows[row["file"]] = row
    samples = list(read_packed(samples_at)) if samples_at.exists() else []
    for path in paths:
        blocks = sorted(read_packed(path), key=lambda block: int(block.header["block"]))
        row = rows[path.name] = _row(path, blocks)
        numbers = {block.header["block"] for block in blocks}
        samples = [
            old
            for old in samples
            if _shared(old.header) != _shared(blocks[0].header) or old.header["block"] not in numbers
        ]
        if "seed" in row:  # else there is nothing to compare with
            samples += blocks[::_SAMPLE_EVERY]
        yield row
    part = samples_at.with_name(SAMPLES + ".part")
    part.write_bytes(b"".join(block.text for block in samples))
    with AtomicFile(rows_at, rows_at.with_name(_ROWS + ".part")) as file:
        file.write("".join(f"{json.dumps(rows[name])}\n" for name in sorted(rows)))
        part.replace(samples_at)
        file.commit()


def play_again(
    path: Path, book: Book, network: str | None, name: str, commit: str
) -> Iterator[tuple[str, bool | None]]:
    """Play the blocks of a file again; yields what each is, and whether it came out the same.

    network, name: the network that there is, and its name. None: this commit has other settings or another network.
    """
    for packed in read_packed(path):
        header = packed.header
        settings = Settings(**{name: header[name] for name in Settings._fields if name in header})
        number = header["block"]
        text = f"block {number}, seed {settings.seed}, {settings.nodes} nodes, commit {settings.commit}"
        mine = settings._replace(book=book.digest, network=name)
        if _shared(mine.header(number)) != _shared({**settings._asdict(), **header}):
            yield f"{text}: has other rules, another book or another network than this commit", None
            continue
        is_same = pack(Table(settings, book, network).play(number)) == pack(unpacked(packed))
        found = "the same" if is_same else f"comes out differently at {commit}"
        yield f"{text}: {found}", is_same
