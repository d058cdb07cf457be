"""The command line with the real engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import chess
import pytest
from paths import DATA
from positions import KIWIPETE
from programs import PIPES, PSEARCH, assert_gone, processes_in_session, run_here
from timing import least, wait_until

MIDDLE_GAME = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"
TIMEOUT_S = 240


pytestmark = pytest.mark.usefixtures("search_kernels")


@pytest.mark.parametrize("threads", [1, 2])
def test_json_fields(threads: int) -> None:
    done = run_here("--json", "--threads", str(threads), "--depth", "6", MIDDLE_GAME)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    board = chess.Board(MIDDLE_GAME)
    assert chess.Move.from_uci(report["bestmove"]) in board.legal_moves
    assert report["pv"][0] == report["bestmove"]
    for word in report["pv"]:
        board.push_uci(word)
    assert set(report["score"]) in ({"cp"}, {"mate"})
    assert report["depth"] == 6
    assert report["seldepth"] >= 6 or set(report["score"]) == {"mate"}
    assert report["threads"] == threads == len(report["workers"])
    assert sum(worker["nodes"] for worker in report["workers"]) == report["nodes"] > 0
    assert all(0 <= worker["idle"] <= 1 for worker in report["workers"])
    assert report["time"] > 0
    assert report["nps"] > 0
    assert report["interrupted"] is False
    assert "terminal" not in report


def test_one_worker_searches_the_same_tree() -> None:
    nodes = set()
    for _ in range(2):
        done = run_here("--json", "--threads", "1", "--depth", "7", MIDDLE_GAME)
        nodes.add(json.loads(done.stdout)["nodes"])
    assert len(nodes) == 1


def test_bare_words_and_plain_lines() -> None:
    done = run_here("--threads", "2", "--depth", "5", *MIDDLE_GAME.split())
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    iterations = [line for line in lines if line.startswith("depth ") and " nps " in line]
    assert "\x1b" not in done.stdout
    assert {line.split("/")[0] for line in iterations if "=" not in line.split()[3]} == {
        f"depth {depth}" for depth in range(1, 6)
    }
    for name in ("best move", "score", "pv", "nodes", "workers"):
        assert any(line.startswith(name) for line in lines)


def test_a_search_without_a_terminal_imports_neither_numba_nor_rich() -> None:
    program = """
import sys
from psearch.faces.cli.main import main
status = main(["--threads", "1", "--depth", "1", "startpos"])
assert "psearch.processes.supervisor" in sys.modules
unwanted = {"numba", "rich", "shtab", "matplotlib", "psearch.lab.studies.pruning_counts", "chess.syzygy"}
loaded = {*unwanted, "chess.pgn"} & set(sys.modules)
sys.exit(f"loaded: {loaded}" if loaded else status)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr


def test_finds_mate_for_either_side() -> None:
    for fen in ("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1", "4r1k1/8/8/8/8/8/5PPP/6K1 b - - 0 1"):
        report = json.loads(run_here("--json", "--depth", "4", fen).stdout)
        assert report["score"] == {"mate": 1}
        board = chess.Board(fen)
        board.push_uci(report["bestmove"])
        assert board.is_checkmate()


def test_endgame_tables_have_the_score_and_leave_a_choice() -> None:
    options = ["--syzygy", str(DATA / "syzygy"), "--threads", "1", "--depth", "6", "--multipv", "3"]
    report = json.loads(run_here(*options, "--json", "8/8/8/8/3k4/8/8/3K3R w - - 0 1").stdout)
    assert [line["score"] for line in report["lines"]] == [{"cp": 20_000}] * 3
    done = run_here(*options, "8/8/8/8/3k4/8/8/3K3R w - - 0 1").stdout
    assert "score      won for White\n" in done and "  score won  nodes" in done


def test_chess960_answers_are_legal_there() -> None:
    fen = "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"
    report = json.loads(run_here("--json", "--depth", "5", fen).stdout)
    board = chess.Board(fen, chess960=True)
    for word in report["pv"]:
        board.push_uci(word)


def test_draws_with_legal_moves_are_searched() -> None:
    for fen in ("4k3/8/8/8/8/8/8/4K3 w - - 0 1", "4k3/8/8/8/8/8/8/R3K3 w Q - 100 90"):
        assert json.loads(run_here("--json", "--depth", "3", fen).stdout)["bestmove"] is not None


def test_movetime_is_kept() -> None:
    start = time.monotonic()
    report = json.loads(run_here("--json", "--movetime", "1000", MIDDLE_GAME).stdout)
    assert time.monotonic() - start < 60
    assert 0.5 < report["time"] < 3


SLOW_START = """
import time
from psearch.processes import pool, supervisor
from psearch.scheduler import scheduler_entries

def slowly(function):
    def after_a_second(*arguments, **options):
        time.sleep(1)
        return function(*arguments, **options)
    return after_a_second

scheduler_entries.load_kernels = supervisor.load_kernels = slowly(scheduler_entries.load_kernels)
pool.WorkerPool._wait_until_ready = slowly(pool.WorkerPool._wait_until_ready)
"""


@pytest.mark.parametrize(
    "program",
    [
        "from psearch.faces.cli.main import main; main(['--json', '--threads', '2', '--movetime', '0.4s', 'startpos'])",
        "import psearch; print(dict(time=psearch.search('startpos', threads=2, movetime_ms=400).info.time_s))",
        "import chess, psearch; from chess.engine import Limit\n"
        "with psearch.Engine(2, 1) as e: print(dict(time=e.analyse(chess.Board(), Limit(time=0.4))['time']))",
    ],
)
def test_the_clock_starts_when_everything_is_ready(program: str) -> None:
    """Loading and starting workers take two or three seconds here, of which none is the search's."""

    def seconds() -> float:
        command = [sys.executable, "-c", SLOW_START + program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        return float(json.loads(done.stdout.replace("'", '"'))["time"])

    assert 0.35 <= least(seconds, 0.95) < 0.95


@pytest.mark.parametrize(("depth", "total"), [("1", 48), ("3", 97862), ("4", 4085603)])
def test_perft_counts(depth: str, total: int) -> None:
    done = run_here("perft", depth, *KIWIPETE.split(), "--threads", "2")
    assert done.returncode == 0
    *divide, last = done.stdout.splitlines()
    assert last.startswith(f"total {total}  ")
    assert len(divide) == 48
    assert sum(int(line.split(": ")[1]) for line in divide) == total
    assert sorted(divide) == divide


def test_perft_begins_at_the_initial_position() -> None:
    moves = sorted(move.uci() for move in chess.Board().legal_moves)
    assert run_here("perft", "2").stdout.splitlines()[:-1] == [f"{move}: 20" for move in moves]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("whole_group", [False, True], ids=["parent", "group"])
def test_a_signal_gives_the_best_move_and_leaves_nothing(number: signal.Signals, whole_group: bool) -> None:
    """`group` is what a terminal does on Ctrl-C: the workers get the signal too."""
    command = [*PSEARCH, "--threads", "2", "--movetime", "100000", MIDDLE_GAME]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        assert running.stdout.readline().startswith("depth 1/")
        (os.killpg if whole_group else os.kill)(running.pid, number)
        rest = running.stdout.read()
        assert running.wait(TIMEOUT_S) == 128 + number
    assert "best move  " in rest
    assert "interrupted" in rest
    assert "none" not in rest
    assert_gone(running.pid)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def processor_time_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_interrupted_json_says_so() -> None:
    command = [*PSEARCH, "--json", "--threads", "2", "--movetime", "100000", MIDDLE_GAME]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        # much more than a worker's start takes on a busy machine: before the search there is nothing to report
        wait_until(lambda: min(map(processor_time_s, children(running.pid)), default=0.0) > 1.0, TIMEOUT_S)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130
    report = json.loads(output)
    assert report["interrupted"] is True
    assert chess.Move.from_uci(report["bestmove"]) in chess.Board(MIDDLE_GAME).legal_moves


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [*PSEARCH, "--threads", "2", "--movetime", "100000", MIDDLE_GAME]
    with subprocess.Popen(command, start_new_session=True, **PIPES) as running:
        assert running.stderr is not None
        assert running.stdout.readline().startswith("depth ")
        running.stdout.close()
        # the next line that it writes fails: at the latest when the search ends
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == ""
        assert running.wait(TIMEOUT_S) in (128 + signal.SIGPIPE, 130)
    assert_gone(running.pid)


def test_a_killed_parent_leaves_no_workers() -> None:
    command = [*PSEARCH, "--threads", "2", "--movetime", "100000", MIDDLE_GAME]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        running.stdout.readline()
        assert len(processes_in_session(running.pid)) >= 2
        running.kill()
        running.wait(TIMEOUT_S)
    assert_gone(running.pid)


SUITE = f"""\
# a comment

{KIWIPETE} ;D2 2039 ;D1 48 ;D3 97862 ;D5 193690690
4k3/8/8/8/8/8/8/4K2R w K - 0 1;D3 1197;
1r3kr1/8/8/8/8/8/8/1R3KR1 w KQkq - ;D1 23
3R4/8/q4k2/2B5/1NK5/3b4/8/8 w - - 0 1 ;D1 4 ;D2 125 ;D3 2854
kBQQQQQQ/BR5Q/Q6Q/Q6Q/Q6Q/Q6Q/Q6Q/KQQQQQQQ w - - 0 1 ;D1 270 ;D2 0
"""


def test_perft_suite() -> None:
    done = run_here("perft", "--epd", "-", text=SUITE)
    assert (done.returncode, done.stderr) == (0, "")
    words = "5 positions, 8 counts right, 0 wrong, 1 skipped (more than 10,000,000), 2 skipped (more than 16 pieces of"
    assert done.stdout.startswith(words)
    done = run_here("perft", "--epd", "-", text=SUITE.replace("D1 23", "D1 27"))
    assert done.returncode == 1
    assert done.stdout.startswith("FAIL standard input, line 5: depth 1, expected 27, counted 23: 1r3kr1/")
    done = run_here("perft", "--epd", "-", "--max-nodes", "100", text=f"{KIWIPETE} ;D1 48 ;D2 2039")
    assert done.stdout.startswith("1 position, 1 count right, 0 wrong, 1 skipped (more than 100)")
    done = run_here("perft", "--epd", "-", text="rubbish\n")
    assert done.returncode == 2 and done.stderr.startswith("psearch: standard input, line 1: ")
