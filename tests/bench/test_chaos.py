"""`bench/study/chaos.py`: a short run of it, and what it says of engines that do wrong."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import chaos
import chess
import chess.engine
import pytest
from chaos import Answer
from processes import family, holdings, in_session, start, workers_of

STUB = """
import sys
searched = False
for line in sys.stdin:
    word = line.split()[0]
    if word == "quit":
        break
    spins = [f"option name {name} type spin default 1 min 1 max 8" for name in ("Threads", "Hash")]
    said = {"uci": "|".join([*spins, "uciok"]), "isready": "readyok"}.get(word)
    if word == "go":
        said = sys.argv[1] if searched else "bestmove e2e4"
        searched = True
    if said:
        print(said.replace("|", chr(10)), flush=True)
"""
"""An engine that answers every `go` but the first with the same lines."""


def run(tmp_path: Path, words: str) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
    """Exit status, the lines of the searches, and the summary."""
    log = tmp_path / "chaos.jsonl"
    status = chaos.main([*shlex.split(words), "--log", str(log)])
    about, *rows, last = map(json.loads, log.read_text().splitlines())
    assert "commit" in about["about"]
    return status, rows, last["summary"]


def run_until_struck(tmp_path: Path, words: str, signals: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines of the searches and the summary of the first run in which so many signals were sent.

    Where the machine has no time to start workers there is nobody to send one to, so searches are added until there
    was. Every run must be right: late the answers may be, as the tests share the machine.
    """
    for searches in (3, 6, 12, 24, 48, 96):
        _, rows, found = run(tmp_path, f"{words} --searches {searches}")
        assert found["searches"] == searches
        assert set(found["problems"]) <= {"late"} and found["leaving"] == []
        assert found["signals"] == sum(len(row["signals"]) for row in rows)
        if found["signals"] >= signals:
            return rows, found
    raise AssertionError(f"{found['signals']} signals in {searches} searches")


def test_workers_are_killed_and_the_answers_are_right(tmp_path: Path) -> None:
    rows, found = run_until_struck(tmp_path, "--workers 2 --hash 1 --movetime 300 --interval 100", 3)
    assert len(rows) == found["searches"] * 2
    for row in rows:
        assert chess.Move.from_uci(row["bestmove"]) in chess.Board(row["position"]).legal_moves
        assert row["depth"] > 0 and (row["tormented"] or not row["signals"])


def test_a_stopped_worker_is_continued(tmp_path: Path) -> None:
    words = "--workers 2 --hash 1 --movetime 200 --interval 80 --alone --signals STOP --stopped 0.3"
    rows, _ = run_until_struck(tmp_path, words, 1)
    assert {name for row in rows for _, name in row["signals"]} == {"SIGSTOP"}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("bestmove e2e4", "no line was reported"),
        ("info depth 1 nodes 1 pv d2d4|bestmove e2e4", "not the move of the latest line"),
        ("info depth 0 nodes 1 pv e2e4|bestmove e2e4", "not searched"),
        ("info depth 1 nodes 1 pv e2e4|bestmove e2e5", "not a legal move"),
        ("info depth 1 nodes 1 pv e2e4", "no answer within 0.2 s of its time"),
    ],
)
def test_engines_that_do_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, problem: str) -> None:
    monkeypatch.setattr(chaos, "PATIENCE_S", 0.2 if "no answer" in problem else 60.0)
    command = shlex.join([sys.executable, "-c", STUB, said])
    status, rows, found = run(tmp_path, f"--searches 1 --hash 1 --movetime 200 --alone --engine {shlex.quote(command)}")
    assert status == 1 and list(found["problems"]) == [problem]
    assert rows[0]["problems"][0].startswith(problem)


def test_late_answers_count_unless_it_is_the_machine() -> None:
    def summary(late: list[float], in_peace: list[float]) -> dict[str, Any]:
        answers = [Answer("x", 1, True, late_ms=ms, problems=["late"] if ms > 30 else []) for ms in late]
        answers += [Answer("x", 1, False, late_ms=ms) for ms in in_peace]
        return {"leaving": [], **chaos.summary(answers, 30.0)}

    good = summary([-20.0, 5.0, 40.0], [-20.0, -20.0, 35.0])
    assert good["late_ms"] == {"answers": 3, "p50": 5.0, "p90": 33.0, "p99": 39.3, "p100": 40.0} | {
        "after_time": 2,
        "after_overhead": 1,
    }
    assert good["problems"] == {"late": 1}
    assert chaos.is_good(good)
    assert not chaos.is_good(summary([-20.0, 5.0, 40.0], [-20.0, -20.0, 25.0]))
    assert not chaos.is_good({**good, "problems": {"not a legal move": 1}})
    assert not chaos.is_good({**good, "leaving": ["processes left behind: [7]"]})
    assert not chaos.is_good({**good, "holdings": {"descriptors": {"flat": False}}})


def rows(**series: list[int]) -> list[dict[str, int]]:
    return [dict(zip(series, values, strict=True)) for values in zip(*series.values(), strict=True)]


def grows(**series: list[int]) -> set[str]:
    """The figures that the verdict does not call flat, with two workers."""
    return {name for name, values in chaos.verdict(rows(**series), 2).items() if not values["flat"]}


def test_the_verdict() -> None:
    ready = [1000 * min(step, 15) for step in range(40)]  # grows at first, as anything does
    leak = [40_000 + 60 * step for step in range(40)]  # 1.2 MB in the second half
    noise = [40_000 + 700 * (step % 2) for step in range(40)]
    assert grows(program_kb=ready, workers_kb=ready, shared_kb=noise) == set()
    assert grows(program_kb=leak, shared_kb=leak) == {"program_kb", "shared_kb"}
    assert grows(workers_kb=leak) == set(), "two workers, half of it each"
    assert grows(descriptors=[39] * 39 + [40], threads=[6] * 40) == set(), "one more at the end is seen by the next run"
    assert grows(descriptors=[39 + (step > 30) for step in range(40)]) == {"descriptors"}
    assert grows(processes=[4] * 40, threads=[6 + step // 20 for step in range(40)]) == set()
    assert grows(threads=[6 + step // 10 for step in range(40)]) == {"threads"}


def test_a_family_and_what_it_holds(tmp_path: Path) -> None:
    program = (
        "import os, sys, subprocess\n"
        "memory = os.memfd_create('x'); os.write(memory, bytes(8 << 20)); again = os.dup(memory)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(60)'],"
        " pass_fds=[memory])\n"
        "sys.stdin.read(); child.kill(); child.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"1\n"
        pids = family(process.pid)
        held = holdings(process.pid)
        assert pids[0] == process.pid and len(pids) == 2 and sorted(in_session(process.pid)) == sorted(pids)
        assert workers_of(process.pid) == pids[1:]
        assert (held["processes"], held["threads"]) == (2, 2)
        assert held["shared_kb"] == 8 << 10, "each file once"
        assert held["descriptors"] >= 9 and held["program_kb"] > 1000 and held["workers_kb"] > 1000
        process.stdin.close()  # type: ignore[union-attr]  # it has one
        process.wait(60)
    assert family(process.pid) == [] and in_session(process.pid) == []
    assert family(os.getppid())[0] == os.getppid()


def test_an_engine_that_leaves() -> None:
    with pytest.raises(chess.engine.EngineTerminatedError):
        start([sys.executable, "-c", "import sys; sys.exit(3)"], {})
