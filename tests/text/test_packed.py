"""Compressed files and UTF-16: the same text as from a plain file, whole, in lines and in parts."""

from __future__ import annotations

import bz2
import gzip
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from psearch.results import PsearchError
from psearch.text.pgn_text import read_games
from psearch.text.source import Source, Stream, read_source

GAME = '[White "Müller"]\n\n1. e4 e5 {Ünïcode ♞} *\n\n'
TEXT = "".join(GAME.replace("Müller", f"Müller {number}") for number in range(2_000))


def zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    half = len(data) // 2  # two frames, as pzstd writes them
    return b"".join(zstandard.ZstdCompressor().compress(part) for part in (data[:half], data[half:]))


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstd,
    "utf16": lambda data: data.decode().encode("utf-16"),
    "utf16.gz": lambda data: gzip.compress(("\ufeff" + data.decode()).encode("utf-16-be")),
}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_packed_file_is_the_plain_one(ending: str, tmp_path: Path) -> None:
    plain = Source.of_text("plain", TEXT)
    path = tmp_path / f"games.pgn.{ending}"
    path.write_bytes(PACKERS[ending](TEXT.encode()))
    packed = read_source(str(path))
    assert (packed.size, packed.sha256) == (plain.size, plain.sha256)
    assert list(packed.lines()) == list(plain.lines())
    lines = list(plain.lines())
    for line in (lines[5_000], lines[7_000], lines[10]):  # forwards, and back
        assert packed.text_between(line.begin, line.end) == line.text
    games = list(read_games(packed))
    assert len(games) == 2_000
    assert games[1_999].original().startswith('[White "Müller 1999"]')


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_a_damaged_file_is_one_line(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"games.pgn.{ending}"
    data = PACKERS[ending](TEXT.encode())
    path.write_bytes(data[: len(data) // 2] + b"\x00" * 200)
    with pytest.raises(PsearchError, match=r"^cannot read .*games\.pgn\."):
        read_source(str(path))


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
@pytest.mark.parametrize("missing", [1, 6, 100])
def test_a_file_without_its_end_is_one_line(missing: int, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"games.pgn.{ending}"
    path.write_bytes(PACKERS[ending](TEXT.encode())[:-missing])
    with pytest.raises(PsearchError, match=r"^cannot read .*games\.pgn\."):
        read_source(str(path))


@pytest.mark.parametrize("ending", PACKERS)
def test_a_packed_pipe_is_read_as_it_comes(ending: str) -> None:
    reader, writer = os.pipe()
    stream, data, found = Stream("a pipe", reader), PACKERS[ending](TEXT.encode()), []
    lines, early = stream.lines(), False
    size = len(data) // 20
    for at in range(0, len(data), size):
        early = bool(found)
        os.write(writer, data[at : at + size])
        found += itertools.takewhile(lambda line: line is not None, lines)
    assert early or ending == "bz2"  # of one block
    os.close(writer)
    assert "".join([*found, *lines]) == TEXT


@pytest.mark.parametrize("ending", PACKERS)
def test_a_packed_pipe_is_copied_as_it_is(ending: str) -> None:
    reader, writer = os.pipe()
    stream = Stream("a pipe", reader)
    os.write(writer, PACKERS[ending](GAME.encode()))
    os.close(writer)
    assert next(stream.first_lines()) == GAME.partition("\n")[0] + "\n"
    assert [line.text for line in stream.copied().lines()] == GAME.splitlines(True)


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_a_packed_pipe_that_breaks_off_is_one_line(ending: str) -> None:
    reader, writer = os.pipe()
    stream = Stream("a pipe", reader)
    os.write(writer, PACKERS[ending](GAME.encode())[:-5])
    os.close(writer)
    with pytest.raises(PsearchError, match=r"^cannot read a pipe: damaged: its end is missing"):
        list(stream.lines())


def test_without_its_package_a_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "a.pgn.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + os.urandom(20))
    with pytest.raises(PsearchError, match=r"a\.pgn\.zst is compressed by zstd: pip install 'psearch-chess\[zst\]'"):
        read_source(str(path))
