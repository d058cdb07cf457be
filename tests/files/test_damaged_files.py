"""Whatever goes on with a file of the user: one that is damaged in the middle, or something else, stays as it is. What
a kill has cut short at its end is cut off, and nothing that was whole."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pack_logs
import pytest
from chess.engine import Cp
from fitting.weights import check_ours
from matchplay.game import Record
from matchplay.journal import MatchJournal
from matchplay.scripts import MatchError
from netdata.blocks import Appender, Block, Game, pack, read_blocks
from odds import Game as OddsGame
from odds import OddsLog
from programs import run_bench

from psearch.batch.analysis.analysis_files import AnalysisJournal
from psearch.batch.positions.task import Answer, Choice, Line
from psearch.files.raw_log import RawLog
from psearch.files.safe_files import Journal
from psearch.results import PsearchError

REFUSALS = (PsearchError, MatchError, ValueError, OSError)
SETTINGS = {"games": 3, "nodes": 100}


def block(number: int) -> Block:
    dice = np.random.default_rng(number)
    ranks, scores = dice.integers(0, 20, 60).astype(np.uint8), dice.integers(-99, 99, 60).astype(np.int16)
    return Block({"block": number, "seed": 1}, [Game("", 0, ranks, scores, 1, 0)])


def games(path: Path, count: int) -> None:
    with closing(Appender(path)) as target:
        for number in range(count):
            target.append(block(number))


def match(path: Path, count: int) -> None:
    with MatchJournal(path.with_suffix(""), SETTINGS, resume=path.exists()) as target:
        for number in range(count):
            pgn = f'[Event "a match"]\n[Round "{number}"]\n\n1. e4 e5 1-0\n\n'
            target.add(Record(number, 0, "1-0", "mate", pgn=pgn))


def odds(path: Path, count: int) -> None:
    with OddsLog(path, SETTINGS, resume=path.exists()) as target:
        for number in range(count):
            target.add(OddsGame("startpos", 2.0, number, 0, "1-0", "mate", 40))


def analysis(path: Path, count: int) -> None:
    with AnalysisJournal(path, {"input": ["x"]}) as target:
        for number in range(count):
            line = Line(Cp(number), "exact", 1, 1, ["e2e4"])
            target.add(f"line {number}", Answer("e2e4", [line], 1, 0.0, 0, 0, [Choice("e2e4", 0.0, 1, 1)]))


def rows(path: Path, count: int) -> None:
    """Append rows as train.py and torture.py do."""
    with Journal.at_end(path, b'{"hidden": ') as target:
        for number in range(count):
            target.append({"hidden": 32, "positions": number})


@dataclass(frozen=True)
class Tool:
    """go_on: makes a file with so many entries, or opens one and adds so many; beside: other files of it; each is
    written before the next."""

    go_on: Callable[[Path, int], None]
    name: str
    beside: tuple[str, ...] = ()


TOOLS = [
    Tool(games, "some.games"),
    Tool(match, "some.jsonl", ("some.pgn",)),
    Tool(odds, "some.jsonl"),
    Tool(analysis, "some.journal"),
    Tool(rows, "some.jsonl"),
]
tools = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.go_on.__name__)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def restore(folder: Path, files: dict[str, bytes]) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def check_kept(tool: Tool, folder: Path, files: dict[str, bytes]) -> None:
    """Odds are told of each time they are gone on with, in a line behind the others."""
    found = contents(folder)
    if tool.go_on is odds:
        found = {name: data[: len(files[name])] for name, data in found.items()}
    assert found == files


def is_refused(tool: Tool, folder: Path) -> bool:
    try:
        tool.go_on(folder / tool.name, 0)
    except REFUSALS as error:
        assert "\n" not in str(error) and (tool.name[:4] if tool.beside else tool.name) in str(error)
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
def test_what_is_damaged_in_the_middle_stays(tool: Tool, tmp_path: Path) -> None:
    tool.go_on(tmp_path / tool.name, 6)
    whole = contents(tmp_path)
    dice = random.Random(1)
    refused = 0
    for name in whole:
        for data in damaged(whole[name], dice):
            files = {**whole, name: data}
            restore(tmp_path, files)
            refused += is_refused(tool, tmp_path)
            check_kept(tool, tmp_path, files)
    assert refused > 20


FOREIGN = [
    b"my thesis\n" * 1000,
    b"my thesis without an end",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    b'{"name": "package", "version": "1.0"}\n',
    b'{"name": "package", "version": "1.0"}',
    b"[1, 2, 3]\n",
    b"\xff" * 5000,
    b"psg",
    b'[Event "a game of mine"]\n\n1. d4 *\n',
]


@tools
@pytest.mark.parametrize("data", FOREIGN, ids=lambda data: data[:12].decode("latin-1"))
def test_what_is_something_else_stays(tool: Tool, tmp_path: Path, data: bytes) -> None:
    if data == b"psg" and tool.go_on is games:
        pytest.skip("a block that was cut short")
    for name in (tool.name, *tool.beside):
        restore(tmp_path, {name: data})
        if name == tool.name or (tmp_path / tool.name).exists():
            assert is_refused(tool, tmp_path), name
            assert contents(tmp_path)[name] == data
    tool.go_on(tmp_path / f"other-{tool.name}", 2)
    others = contents(tmp_path)
    for name in (tool.name, *tool.beside):
        files = {key.removeprefix("other-"): text for key, text in others.items() if key.startswith("other-")}
        files[name] = data
        restore(tmp_path, files)
        assert is_refused(tool, tmp_path), name
        assert contents(tmp_path) == files


@tools
def test_what_a_kill_has_cut_short_goes_and_nothing_else(tool: Tool, tmp_path: Path) -> None:
    """The last entry is cut anywhere, also where a file system has kept zeros of it; then the tool goes on."""
    tool.go_on(tmp_path / tool.name, 4)
    before = contents(tmp_path)
    tool.go_on(tmp_path / tool.name, 1)
    after = contents(tmp_path)
    names = {"match": ("some.pgn", "some.jsonl")}.get(tool.go_on.__name__, (tool.name,))
    dice = random.Random(2)
    for place, name in enumerate(names):
        begin, end = len(before[name]), len(after[name])
        for cut in [begin, begin + 1, end - 1, *(dice.randrange(begin, end) for _ in range(20))]:
            for zeros in (0, 7):
                torn = after[name][:cut] + bytes(zeros)
                files = {**before, **{other: after[other] for other in names[:place]}, name: torn}
                if torn.startswith(after[name]):
                    continue
                restore(tmp_path, files)
                assert not is_refused(tool, tmp_path), (name, cut)
                check_kept(tool, tmp_path, before)
                tool.go_on(tmp_path / tool.name, 1)


def test_a_block_whose_length_has_changed_is_not_torn(tmp_path: Path) -> None:
    """In the last block, too, where nothing follows: its body says where it ends."""
    path = tmp_path / "some.games"
    games(path, 3)
    whole = path.read_bytes()
    last = len(whole) - len(pack(block(2)))
    for place in range(last, last + 16):
        for bit in range(8):
            data = whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
            path.write_bytes(data)
            assert is_refused(TOOLS[0], tmp_path)
            assert path.read_bytes() == data
    path.write_bytes(whole)
    assert len(list(read_blocks(path))) == 3


def test_a_match_begins_beside_no_file_of_its_names(tmp_path: Path) -> None:
    for ending in (".jsonl", ".pgn", ".json"):
        restore(tmp_path, {f"package{ending}": b"{}\n"})
        with pytest.raises(MatchError, match=f"package{ending} exists"):
            MatchJournal(tmp_path / "package", SETTINGS, resume=False)
        assert contents(tmp_path) == {f"package{ending}": b"{}\n"}


def test_another_run_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    odds(path, 2)
    data = path.read_bytes() + b'{"position": "st'
    path.write_bytes(data)
    with pytest.raises(MatchError, match="another run"):
        OddsLog(path, {**SETTINGS, "nodes": 5}, resume=True)
    assert path.read_bytes() == data


@pytest.mark.parametrize("data", FOREIGN, ids=lambda data: data[:12].decode("latin-1"))
def test_a_raw_log_takes_the_place_of_another_alone(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    with pytest.raises(PsearchError, match=r"log\.jsonl is not a log of a study, and is not replaced"):
        RawLog(path, {})
    assert path.read_bytes() == data


@pytest.mark.parametrize("data", FOREIGN, ids=lambda data: data[:12].decode("latin-1"))
def test_fitted_parameters_take_the_place_of_others_alone(tmp_path: Path, data: bytes) -> None:
    path, opening = tmp_path / "weights.py", '"""The evaluation\'s weights'
    check_ours(path, opening)
    path.write_bytes(b"")
    check_ours(path, opening)
    path.write_text(f"{opening} in centipawns.")
    check_ours(path, opening)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"weights\.py was not written by this program"):
        check_ours(path, opening)


def test_packed_logs_that_are_damaged_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed, log = tmp_path / "logs.jsonl.xz", tmp_path / "a.jsonl"
    log.write_text(json.dumps({"about": {}}) + "\n")
    assert pack_logs.main(["add", str(packed), str(log)]) == 0
    whole = packed.read_bytes()
    dice = random.Random(3)
    for data in (whole[:-1], whole + whole[:-9], whole + b"more", whole + bytes(3), *damaged(whole, dice), *FOREIGN):
        packed.write_bytes(data)
        for words in (["add", str(packed), str(log)], ["list", str(packed)]):
            status, err = pack_logs.main(words), capsys.readouterr().err
            assert status == 1 and err.startswith("pack_logs: ") and err.count("\n") == 1, (data, err)
        assert packed.read_bytes() == data
    packed.write_bytes(whole)
    for text in FOREIGN:
        log.write_bytes(text)
        if text.startswith(b"{"):
            continue
        assert pack_logs.main(["add", str(packed), str(log)]) == 1
        assert capsys.readouterr().err.count("\n") == 1
        assert packed.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "logs.jsonl.xz"]


@pytest.mark.parametrize(
    "words",
    [("training/generate.py", "FILE", "--games", "1"), ("study/torture.py", "--minutes", "0", "--log", "FILE")],
    ids=lambda words: words[0],
)
def test_the_commands_refuse_in_a_line(words: tuple[str, ...], tmp_path: Path) -> None:
    file, other = tmp_path / "thesis.txt", tmp_path / "none.games"
    file.write_bytes(FOREIGN[0])
    other.write_bytes(b"")
    done = run_bench(*({"FILE": file, "GAMES": other}.get(word, word) for word in words))
    assert done.returncode == 2, done.stderr
    assert "thesis.txt" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr
    assert file.read_bytes() == FOREIGN[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none.games", "thesis.txt"]
