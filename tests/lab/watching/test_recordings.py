"""Recordings: of virtual searches, of live ones, written and read again."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from paths import REPOSITORY
from positions import KIWIPETE, MIDDLE_GAME
from reading_recordings import read_recordings

import psearch
from psearch.lab.watching.laboratory import Experiment, run
from psearch.lab.watching.recordings import VERSION, write_recording
from psearch.lab.watching.tracks import ABORTED, SEARCH

SMALL = Experiment(KIWIPETE, False, 8, ("calibrated", "ybw"), 10_000, looks=True)


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return run(SMALL, lambda text, share: None)


def test_what_is_recorded_is_the_search_that_was_measured(result: dict[str, Any]) -> None:
    for one in result["runs"]:
        looks = one["looks"]
        last = looks[-1]
        assert last["done"] and last["nodes"] == [] and last["now"] == one["end"]
        assert last["counters"]["nodes"] == one["nodes"] and last["counters"]["joins"] == one["joins"]
        assert last["counters"]["aborted_nodes"] / one["nodes"] == pytest.approx(one["aborted"], abs=1e-5)
        assert any(look["nodes"] for look in looks) and not any(look["hidden"] for look in looks)
        for worker in range(8):
            plain = [part for look in looks for part in look["tracks"][worker] if part[0] != ABORTED]
            assert plain[0][1] == 0 and plain[-1][2] == last["now"]
            assert all(part[2] == after[1] for part, after in itertools.pairwise(plain))


def test_the_same_picture_on_every_machine(result: dict[str, Any]) -> None:
    again = run(SMALL, lambda text, share: None)
    assert [one["looks"] for one in again["runs"]] == [one["looks"] for one in result["runs"]]


def test_a_file_is_read_as_it_was_written(result: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    text = ""
    for one in result["runs"]:
        write_recording(path, {"policy": one["policy"], "workers": 8}, one["looks"])
        text += path.read_text()
    found = read_recordings(text)
    assert [facts["policy"] for facts, _ in found] == ["calibrated", "ybw"]
    assert [looks for _, looks in found] == [one["looks"] for one in result["runs"]]
    assert found[0][0]["psearch_recording"] == VERSION


def test_the_command_line_records_what_it_sees(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    status, _, said = run(*MIDDLE_GAME.split(" "), "--threads", "2", "--depth", "13", "--record", str(path))
    assert status == 0 and f"recording: {path}" in said
    [(facts, looks)] = read_recordings(path.read_text())
    assert (facts["workers"], facts["clock"], facts["position"]) == (2, "real", MIDDLE_GAME)
    assert looks[-1]["done"] and looks[-1]["line"]["words"] and not looks[-1]["nodes"]
    assert run("startpos", "--record", str(tmp_path))[0] == 2


def test_virtual_searches_are_recorded(run: Any, tmp_path: Path) -> None:
    path, suite = tmp_path / "search.jsonl", tmp_path / "suite.epd"
    suite.write_text(f'{" ".join(KIWIPETE.split()[:4])} id "one";\n')
    words = ["simulate", "--suite", str(suite), "--depth", "5", "--record", str(path)]
    status, out, _ = run(*words, "--workers", "4", "--json")
    assert status == 0 and json.loads(out)
    [(facts, looks)] = read_recordings(path.read_text())
    assert (facts["workers"], facts["clock"], facts["policy"]) == (4, "virtual", "calibrated")
    assert looks[-1]["done"] and len(looks) == 300
    status, _, said = run(*words, "--workers", "4", "--jobs", "2")
    assert status == 2 and "--record follows one search" in said


def test_another_engines_threads_are_recorded(tmp_path: Path) -> None:
    """The example of docs/examples, whose threads wait for each other after each iteration."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program, path = tmp_path / "threads", tmp_path / "threads.jsonl"
    source = REPOSITORY / "docs" / "examples" / "threads.c"
    command = [compiler, "-O2", "-Wall", "-Werror", "-pthread", "-o", str(program), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run([program, path], check=True)
    [(facts, looks)] = read_recordings(path.read_text())
    assert facts["by"] == "threads.c" and len(looks) == 6 and looks[-1]["done"]
    for look in looks:
        assert len(look["tracks"]) == 4 and look["nodes"][0]["id"] == "root"
        # every root move was searched by somebody
        assert sum(part[0] == SEARCH for track in look["tracks"] for part in track) == 8
        assert all(look["begin"] <= part[1] < part[2] <= look["now"] for track in look["tracks"] for part in track)
    assert subprocess.run([program, tmp_path / "no" / "file"], capture_output=True).returncode == 2


TOURS = sorted((Path(psearch.__file__).parent / "faces" / "web" / "static" / "recordings").glob("*"))


@pytest.mark.parametrize("path", TOURS, ids=lambda path: path.name)
def test_the_tours_that_ship_show_what_they_say(path: Path) -> None:
    """They are small, and the node of each step is open in the snapshot of its moment."""
    assert len(TOURS) == 3 and path.stat().st_size < 100_000
    found = read_recordings(gzip.decompress(path.read_bytes()).decode())
    [steps] = [facts["tour"] for facts, _ in found if "tour" in facts]
    assert len(steps) == 10
    for step in steps:
        assert step["text"].endswith((".", "?"))
        looks = found[step.get("stage", 0)][1]
        shown = [look for look in looks if look["now"] <= step["at"]][-1]
        assert step.get("node") is None or step["node"] in {node["id"] for node in shown["nodes"]}
    assert all(looks[-1]["done"] for _, looks in found)
