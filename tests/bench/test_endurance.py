"""`bench/study/endurance.py`: what a long run measures, how it is judged, and a short run of all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import chess.engine
import endurance
import pytest
from processes import family, holdings, in_session, start, workers_of

MEASURED = {"processes", "threads", "descriptors", "program_kb", "workers_kb", "shared_kb"}
COUNTED = {"processes", "threads", "descriptors"}


def test_a_short_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every part with both engines: what is counted is the same at every measurement."""
    log = tmp_path / "endurance.jsonl"
    kinds = 2 * len(endurance.LIMITS)
    words = f"--searches {kinds} --hash-changes 4 --games 2 --nodes 20 --hash 1 --log {log}"
    endurance.main(words.split())
    about, *rows = map(json.loads, log.read_text().splitlines())
    assert about["about"]["searches"] == kinds and "commit" in about["about"]
    measured = [row for row in rows if "done" in row]
    judged = [row for row in rows if "verdict" in row]
    assert [(row["subject"], row["part"]) for row in judged] == [
        (subject, part) for subject in endurance.SUBJECTS for part in endurance.PARTS
    ]
    for row in judged:
        steps = [step for step in measured if (step["subject"], step["part"]) == (row["subject"], row["part"])]
        assert steps[-1]["done"] == row["count"]
        assert set(row["verdict"]) == MEASURED | ({"objects"} if row["subject"] == "engine" else set())
        for name in COUNTED:
            assert len({step[name] for step in steps}) == 1, (row["subject"], row["part"], name)
    assert measured[0]["processes"] >= 3 and measured[0]["shared_kb"] > 1024 and measured[0]["workers_kb"] > 1024
    assert "uci, 2 games" in capsys.readouterr().out


def test_an_interrupted_run_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "endurance.jsonl"
    measure = endurance.Subject.measure
    seen = 0

    def interrupt(subject: endurance.Subject) -> dict[str, int]:
        nonlocal seen
        seen += 1
        if seen == 3:
            raise KeyboardInterrupt
        return measure(subject)

    monkeypatch.setattr(endurance.Subject, "measure", interrupt)
    with pytest.raises(KeyboardInterrupt):
        endurance.main(f"--subjects engine --parts searches --searches 40 --hash 1 --log {log}".split())
    assert [json.loads(line).get("done") for line in log.read_text().splitlines()] == [None, 1, 2]


def rows(**series: list[int]) -> list[dict[str, int]]:
    return [dict(zip(series, values, strict=True)) for values in zip(*series.values(), strict=True)]


def grows(**series: list[int]) -> set[str]:
    """The figures that the verdict does not call flat, with two workers."""
    found = endurance.verdict(rows(**series), 2)
    return {name for name, values in found.items() if not values["flat"]}


def test_the_verdict() -> None:
    ready = [1000 * min(step, 15) for step in range(40)]  # grows at first, as anything does
    leak = [40_000 + 60 * step for step in range(40)]  # 1.2 MB in the second half
    noise = [40_000 + 700 * (step % 2) for step in range(40)]
    assert (
        grows(program_kb=ready, workers_kb=ready, shared_kb=noise, objects=[9000 + step for step in range(40)]) == set()
    )
    assert grows(program_kb=leak, shared_kb=leak) == {"program_kb", "shared_kb"}
    assert grows(workers_kb=leak) == set(), "two workers, half of it each"
    assert grows(objects=[30 * step for step in range(40)]) == {"objects"}
    assert grows(descriptors=[39] * 39 + [40], threads=[6] * 40) == set(), "one more at the end is seen by the next run"
    assert grows(descriptors=[39 + (step > 30) for step in range(40)]) == {"descriptors"}
    assert grows(processes=[4] * 40, threads=[6 + step // 20 for step in range(40)]) == set()
    assert grows(threads=[6 + step // 10 for step in range(40)]) == {"threads"}


# -- what processes hold -----------------------------------------------------------------------------------------------


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
