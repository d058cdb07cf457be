"""Whatever goes on with a file of the user: one that is damaged in the middle, or something else, stays as it is. What
a kill has cut short at its end is cut off, and nothing that was whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from psearch.batch.analysis.analysis_files import AnalysisJournal
from psearch.batch.positions.answer import Answer, Choice, Line
from psearch.files.append_only import Journal
from psearch.files.raw_log import RawLog
from psearch.results import PsearchError


def analysis(path: Path, count: int) -> None:
    with AnalysisJournal(path, {"input": ["x"]}) as target:
        for number in range(count):
            line = Line(number, None, "exact", 1, 1, ["e2e4"])
            target.add(f"line {number}", Answer("e2e4", [line], 1, 0.0, 0, 0, [Choice("e2e4", 0.0, 1, 1)]))


def rows(path: Path, count: int) -> None:
    """Of measurements, a line each."""
    with Journal.at_end(path, b'{"hidden": ') as target:
        for number in range(count):
            target.append({"hidden": 32, "positions": number})


GoOn = Callable[[Path, int], None]
"""Makes a file with so many entries, or opens one and adds so many."""
tools = pytest.mark.parametrize("go_on", [analysis, rows], ids=lambda go_on: go_on.__name__)


def is_refused(go_on: GoOn, path: Path) -> bool:
    try:
        go_on(path, 0)
    except (PsearchError, ValueError, OSError) as error:
        assert "\n" not in str(error) and path.name in str(error)
        return True
    return False


def damaged(data: bytes, dice: random.Random) -> Iterator[bytes]:
    """Bits that flipped, bytes that are missing, and others in their place, further up than the last entry."""
    middle = len(data) * 3 // 5
    for place in [*range(0, min(middle, 24)), *(dice.randrange(middle) for _ in range(40))]:
        yield data[:place] + bytes([data[place] ^ 1 << dice.randrange(8)]) + data[place + 1 :]
    for _ in range(8):
        begin, size = dice.randrange(middle), dice.randrange(1, 40)
        yield data[:begin] + data[begin + size :]
        yield data[:begin] + bytes(size) + data[begin + size :]
        yield data[:begin] + dice.randbytes(size) + data[begin + size :]


@tools
def test_what_is_damaged_in_the_middle_stays(go_on: GoOn, tmp_path: Path) -> None:
    path = tmp_path / "some.file"
    go_on(path, 6)
    refused = 0
    for data in damaged(path.read_bytes(), random.Random(1)):
        path.write_bytes(data)
        refused += is_refused(go_on, path)
        assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]
    assert refused > 20


FOREIGN = [
    b"my thesis\n" * 1000,
    b"my thesis without an end",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    b'{"name": "package", "version": "1.0"}\n',
    b'{"name": "package", "version": "1.0"}',
    b"[1, 2, 3]\n",
    b"\xff" * 5000,
    b'[Event "a game of mine"]\n\n1. d4 *\n',
]


@tools
@pytest.mark.parametrize("data", FOREIGN, ids=lambda data: data[:12].decode("latin-1"))
def test_what_is_something_else_stays(go_on: GoOn, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "some.file"
    path.write_bytes(data)
    assert is_refused(go_on, path)
    assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]


@tools
def test_what_a_kill_has_cut_short_goes_and_nothing_else(go_on: GoOn, tmp_path: Path) -> None:
    """The last entry is cut anywhere, also where a file system has kept zeros of it; then the tool goes on."""
    path = tmp_path / "some.file"
    go_on(path, 4)
    before = path.read_bytes()
    go_on(path, 1)
    after = path.read_bytes()
    dice = random.Random(2)
    begin, end = len(before), len(after)
    for cut in [begin, begin + 1, end - 1, *(dice.randrange(begin, end) for _ in range(20))]:
        for zeros in (0, 7):
            path.write_bytes(after[:cut] + bytes(zeros))
            assert not is_refused(go_on, path), cut
            assert path.read_bytes() == before
            go_on(path, 1)


@pytest.mark.parametrize("data", FOREIGN, ids=lambda data: data[:12].decode("latin-1"))
def test_a_raw_log_takes_the_place_of_another_alone(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    with pytest.raises(PsearchError, match=r"log\.jsonl is not a log of a study, and is not replaced"):
        RawLog(path, {})
    assert path.read_bytes() == data
