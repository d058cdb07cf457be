"""JSON of users' files and of the page, of any depth, size and kind: each reader takes it or refuses it in one line."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from psearch.batch.analysis.analysis_files import AnalysisJournal, OlderResults, read_asked
from psearch.batch.positions.task import Task
from psearch.faces.web.messages import parse
from psearch.files.raw_log import read_log
from psearch.files.safe_files import Journal
from psearch.lab.studies.speedup_study import Sample
from psearch.results import Limits, PsearchError
from psearch.simulation.costs import Costs
from psearch.text.source import read_source
from psearch_core.chess.evaluation.network_file import default_network, read_network

REFUSALS = (PsearchError, ValueError, OSError)
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
ODD = [
    "[" * 100_000,
    '{"a":' * 100_000,
    "[" * 900 + "]" * 900,
    '{"a":' * 900 + "1" + "}" * 900,
    "9" * 5_000,
    "9" * 4_000,
    "-" + "9" * 400,
    "1e999",
    "NaN",
    "-Infinity",
    '"\\ud800"',
    '"' + "x" * 100_000 + '"',
    '"\\u0000\\n\\u001b[31m"',
    "null",
    "true",
    "[]",
    "{}",
    "[null]",
    '{"": null}',
    "0.5",
    "-1",
    '""',
    "",
    "\ufeff{}",
]


def network(path: Path) -> None:
    """The notes of a network are the text."""
    whole = Path(default_network().path).read_bytes()
    head = struct.Struct("<16sHHHHiI")
    magic, version, *sizes, unit, size = head.unpack_from(whole)
    notes = path.read_bytes()
    body = head.pack(magic, version, *sizes, unit, len(notes)) + notes + whole[head.size + size : -32]
    path.write_bytes(body + hashlib.sha256(body).digest())
    read_network(path)


def journal(path: Path) -> None:
    with AnalysisJournal(path, {"input": ["x"]}) as opened:
        if "line 1" in opened:
            opened.get("line 1")


def changed_journal(path: Path) -> None:
    """Another program writes into a journal that is in use."""
    data = path.read_bytes()
    path.write_bytes(b"[1]\n")
    with Journal(path) as opened:
        (line,) = opened.lines()
        path.write_bytes(data.splitlines()[0] + b"\n" if data else b"\n")
        opened.value_at(line.offset)


def older(path: Path) -> None:
    OlderResults(read_source(str(path))).of_position(Task(0, START))


OLDER = {
    "id": 1, "fen": START, "moves": [], "bestmove": "e2e4", "score": {"cp": 20}, "depth": 9, "seldepth": 12,
    "nodes": 1000, "time": 0.1, "tbhits": 0, "pv": ["e2e4"], "notes": [], "version": "1",
}  # fmt: skip
ANSWER = {
    "bestmove": "e2e4", "score": {"cp": 20}, "depth": 9, "seldepth": 12, "nodes": 1000, "time": 0.1, "tbhits": 0,
    "pv": ["e2e4"], "choices": [{"move": "e2e4", "time": 0.1, "depth": 9, "nodes": 1000}], "exact": {"mate": 3},
    "compared": {"depth": 9, "depths": 1, "bestmove": "e2e4", "score": {"cp": 2}, "played": {"cp": 1}, "pv": []},
    "hashfull": 0, "threads": 1, "notes": ["x"], "version": "1",
}  # fmt: skip
GAME = {"file": "x", "game": 1, "positions": [{**OLDER, "move": "e2e4", "compared": None, "ply": 0}]}


def _sample() -> dict[str, Any]:
    kinds = {"str": "x", "int": 1, "float": 1.0, "bool": True}
    return {name: kinds.get(str(field.type)) for name, field in Sample.__dataclass_fields__.items()}


READERS: dict[str, tuple[Callable[[Path], Any], list[Any]]] = {
    "network": (network, [{"made by": "x"}]),
    "journal": (
        journal,
        [{"journal": "psearch analysis 4", "about": {"input": ["x"]}}, {"key": "line 1", "answer": ANSWER}],
    ),
    "changed journal": (changed_journal, [{"key": "line 1"}]),
    "costs": (Costs.load, [{"node": 280.0, "machine": "x"}]),
    "raw log": (lambda path: read_log(path, Sample), [{"about": {"study": "x"}}, _sample()]),
    "message": (lambda path: parse(path.read_text("utf-8")), [{"type": "game.new", "payload": {"a": 1}}]),
    "line": (
        lambda path: list(read_asked(read_source(str(path)), 1, Limits(depth=1))),
        [{"id": "x", "fen": START, "moves": ["e2e4"], "limits": {"depth": 1}, "multipv": 1}],
    ),
    "older result": (older, [OLDER]),
    "older game": (older, [GAME]),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all values, from the whole inwards."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def with_odd(value: Any, path: tuple[Any, ...], odd: str) -> str:
    """The JSON of a value with a text in the place of one inside."""
    mark = "@ the place @"

    def put(inner: Any, rest: tuple[Any, ...]) -> Any:
        if not rest:
            return mark
        copy = dict(inner) if isinstance(inner, dict) else list(inner)
        copy[rest[0]] = put(inner[rest[0]], rest[1:])
        return copy

    return json.dumps(put(value, path)).replace(json.dumps(mark), odd)


def check(reader: Callable[[Path], Any], text: str, folder: Path) -> bool:
    for path in folder.iterdir():
        path.unlink()
    path = folder / "some.file"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        reader(path)
    except REFUSALS as error:
        assert str(error) and "\n" not in str(error), str(error)[:300]
        return True
    return False


@pytest.mark.parametrize("name", READERS)
def test_odd_values_anywhere(name: str, tmp_path: Path) -> None:
    reader, lines = READERS[name]
    texts = [json.dumps(line) for line in lines]
    ending = "" if name in ("network", "costs", "message") else "\n"

    def text_of(replaced: list[str]) -> str:
        return "".join(f"{line}{ending}" for line in replaced)

    assert not check(reader, text_of(texts), tmp_path)
    for number, line in enumerate(lines):
        for path in places(line):
            for odd in ODD:
                odd_line = with_odd(line, path, odd)
                check(reader, text_of([*texts[:number], odd_line, *texts[number + 1 :]]), tmp_path)
