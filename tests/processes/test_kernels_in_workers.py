"""No kernel of a user's policy runs in the program: whatever it does there, the program answers and lives on.

The file has the two hooks that are asked once a search. How many workers there are says which of them does what.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from programs import PIPES, PSEARCH, processes_in_session
from uci_client import Client

POLICY = """
from psearch.own_policy import Context, atomic_add, claim_depth, header_of, i64, kernel, replaces, splits_nothing

@kernel(i64(Context, i64))
def trap(ctx, workers):
    count = 0
    if header_of(ctx).worker_count == workers:
        return atomic_add(8, 1)
    while header_of(ctx).worker_count == workers + 1:
        count += 1
    return count

@replaces(claim_depth)
def claim(ctx):
    return trap(ctx, 2)

@replaces(splits_nothing)
def splits(ctx):
    return trap(ctx, 4) == 1
"""
TIMEOUT_S = 120
CRASHES, LOOPS = ["2", "4"], ["3", "5"]
GIVEN_UP = "worker 0 was killed by signal 11, as those before it; the search was stopped"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("policy") / "traps.py"
    path.write_text(POLICY)
    subprocess.run([*PSEARCH, "--policy", str(path), "--threads", "1", "--depth", "1", "startpos"], check=True)
    return str(path)


def run(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*PSEARCH, *words], start_new_session=True, **PIPES)


@pytest.mark.parametrize("threads", CRASHES)
def test_one_that_crashes_ends_the_search_with_a_line(threads: str, file: str) -> None:
    process = run("--policy", file, "--threads", threads, "--depth", "6", "startpos")
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 3
    assert errors.endswith(f"psearch: {GIVEN_UP}\n")
    assert processes_in_session(process.pid) == []


@pytest.mark.parametrize("threads", LOOPS)
def test_one_without_end_costs_the_time_of_the_search(threads: str, file: str) -> None:
    process = run("--policy", file, "--threads", threads, "--movetime", "300", "startpos")
    output, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0 and "best move" in output
    assert "the answer comes from a small search with the package's kernels" in errors
    assert processes_in_session(process.pid) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_search_that_has_no_other_end(number: int, file: str) -> None:
    process = run("--policy", file, "--threads", "3", "--depth", "6", "startpos")
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=3)
    process.send_signal(number)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + number
    assert processes_in_session(process.pid) == []


@pytest.mark.parametrize("threads", ["2", "3"])
def test_uci_answers_and_goes_on(threads: str, file: str) -> None:
    with Client("uci") as client:
        client.send("setoption name Threads value 1", f"setoption name Policy value {file}")
        client.ready()
        client.send(f"setoption name Threads value {threads}", "go movetime 300")
        assert client.answer()[0]
        client.send("setoption name Threads value 1", "go depth 2")
        assert client.answer()[0]


def test_a_program_outlives_it(file: str) -> None:
    program = f"""
import psearch
for threads in (2, 4):
    try:
        psearch.search("startpos", threads=threads, policy={file!r}, depth=6)
    except psearch.PsearchError as error:
        print(error)
print(psearch.search("startpos", policy={file!r}, depth=2).info.depth)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0
    assert done.stdout == f"{GIVEN_UP}\n{GIVEN_UP}\n2\n"
