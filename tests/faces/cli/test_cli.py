"""The command line without the engine: parsing, refusals, a stand-in engine; and `psearch serve` as a program."""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import chess
import pytest
from paths import DATA
from positions import KIWIPETE, MATED
from programs import PIPES, PSEARCH, descendants, needs_web, run_here
from reports import cp, moves, workers

from psearch import __version__, search
from psearch.arena.control_groups import usable_cores
from psearch.faces.cli import command_list
from psearch.faces.cli import main as cli
from psearch.faces.cli.command_list import COMMANDS
from psearch.faces.cli.commands import version_command
from psearch.processes.request import SearchRequest
from psearch.results import Info, Limits, Result, WorkerDied
from psearch_core.chess.evaluation.network_file import default_network
from psearch_core.toolchain.kernel_sets import KernelSet

Run = Callable[..., tuple[int, str, str]]
STALEMATED = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"


class StandInEngine:
    """Answers like the supervisor, without processes; one object stands for the class and its instance."""

    def __init__(self) -> None:
        self.arguments: dict[str, int] = {}
        self.limits: Limits | None = None
        self.open = 0
        self.during_search: Callable[[], None] = lambda: None
        self.recorder = None
        self.board = chess.Board()
        self.only: Sequence[chess.Move] | None = None
        self.multipv = 0

    def __call__(
        self, threads: int, hash_mb: int, start_method: str | None, trace: bool, watched: bool, kernels: KernelSet
    ) -> StandInEngine:
        self.arguments = {"threads": threads, "hash_mb": hash_mb, "trace": trace}
        self.open += 1
        return self

    def close(self) -> None:
        self.open -= 1

    def search(self, request: SearchRequest) -> Result:
        board, self.limits = request.board, request.limits
        self.board, self.only, self.multipv = board, request.only, request.multipv
        best = next(iter(board.legal_moves))
        infos = [
            Info(1, 1, cp(20, board.turn), "exact", 30, 0.1, [best], workers(2)),
            Info(1, 1, cp(20, board.turn), "exact", 60, 0.2, [best], workers(2)),
            Info(2, 4, cp(45, board.turn), "lower", 100, 0.3, [best], workers(2)),
            Info(2, 5, cp(50, board.turn), "exact", 200, 0.4, [best], workers(2)),
        ]
        for info in infos:
            if request.on_info is not None:
                request.on_info(info)
        self.during_search()
        return Result(best, infos[-1], interrupted=request.control.is_stopped)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInEngine]:
    stand_in = StandInEngine()
    modules: dict[str, dict[str, object]] = {
        "psearch.searcher.searcher": {"Supervisor": stand_in},
        "psearch.scheduler.scheduler_entries": {"load_kernels": lambda *groups, progress=None: 0.0},
        "psearch.bench": {
            "run_bench": lambda progress, options: (123456, 0.5),
            "BENCH_POSITIONS": ("a", "b"),
            "BENCH_DEPTH": 9,
            "BENCH_NODES": 123457,
        },
    }
    for name, contents in modules.items():
        for attribute, value in contents.items():
            monkeypatch.setattr(importlib.import_module(name), attribute, value)
    yield stand_in
    assert stand_in.open == 0


def refuse(run: Run, *words: str) -> str:
    """Return the line that a bad command line gives."""
    status, out, err = run(*words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("psearch: ")
    return err


# Refusals


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--threads", "0", "startpos"], "--threads: must be a whole number from 1 to 1024, not '0'"),
        (["--threads", "10000", "startpos"], "1 to 1024"),
        (["--threads", "two", "startpos"], "'two'"),
        (["--threads", "1_0", "startpos"], "'1_0'"),
        (["--threads"], "--threads"),
        (["--depth", "0", "startpos"], "1 to 100"),
        (["--depth", "-3", "startpos"], "'-3'"),
        (["--depth", "101", "startpos"], "1 to 100"),
        (["--movetime", "0", "startpos"], "--movetime"),
        (["--nodes", "-1", "startpos"], "--nodes"),
        (["--nodes", "9" * 5000, "startpos"], "--nodes"),
        (["--hash", "0", "startpos"], "--hash"),
        (["--hash", "16000000", "startpos"], "--hash 16000000 does not fit"),
        (["startpos", "e4", "e5"], "'startpos e4 e5' is no position: did you mean `psearch --moves 'e4 e5'`?"),
        (["--frobnicate", "startpos"], "no option --frobnicate (see psearch --help)"),
        (["--movetime", "5x", "startpos"], "--movetime: must be a time like 1500 (milliseconds), 1.5s or 2m, not '5x'"),
        (["--depth", "3"], "no position"),
        ([""], "empty"),
        (["8/8/8/8/8/8/8/8 w - - 0 1"], "board is empty"),
        (["nonsense\nin two lines"], "piece placement 'nonsense' has 1 row, not 8"),
        (["\x1b[31mred"], "1 row, not 8"),
        (["perft"], "perft needs DEPTH, or --epd FILE"),
        (["perft", "startpos", "3"], "DEPTH must be"),
        (["perft", "0", "startpos"], "DEPTH must be"),
        (["perft", "-1", "startpos"], "DEPTH must be"),
        (["perft", "--max-nodes", "5", "3", "startpos"], "--epd"),
        (["perft", "--epd", "a", "3", "startpos"], "leave out"),
        (["perft", "--epd", "/nowhere/suite.epd"], "No such file"),
        (["perft", "--epd", "/"], "directory"),
        (["perft", "--epd", "\0"], "null"),
        (["bench", "5"], "psearch bench takes no '5'"),
        (["--multipv", "0", "startpos"], "1 to 1000"),
        (["--board", "--json", "startpos"], "--board and --json exclude each other"),
        (
            ["--moves", "e2e4 e2e4", "startpos"],
            "--moves, move 2: 'e2e4' is not a legal move in rnbqkbnr/pppppppp/8/8/4P3/",
        ),
        (["--moves", "0000", "startpos"], "move 1: '0000'"),
        (["--searchmoves", "", "startpos"], "names no move"),
        (["--searchmoves", "e2e4 Ke2", "startpos"], "'Ke2' is not a legal move"),
        (["--syzygy", "/nowhere", "startpos"], "cannot read endgame tables in /nowhere: No such file"),
        (["bench", "--pruning", "modern,speed=1"], "no pruning parameter is called 'speed'"),
        (["completion"], "SHELL"),
        (["completion", "tcsh"], "tcsh"),
    ],
)
def test_bad_input_is_one_line(run: Run, words: list[str], expected: str) -> None:
    assert expected in refuse(run, *words)


@pytest.mark.parametrize("words", [[], ["uci"]])
def test_nothing_given_speaks_uci(words: list[str]) -> None:
    done = subprocess.run([*PSEARCH, *words], input="uci\n", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"id name psearch {__version__}\n")
    assert "\nuciok\n" in done.stdout


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = capsys.readouterr().out
    for name, summary in COMMANDS.items():
        assert re.search(rf"^  psearch {name} +{re.escape(summary)}$", out, re.MULTILINE), name


@pytest.mark.parametrize(
    ("commands", "unwanted"),
    [
        ([["--help"]], ["numpy", "chess", "rich", "shtab", "json", "psearch.results"]),
        ([["--version"]], ["numpy", "chess", "rich", "shtab", "json", "psearch.results"]),
        ([["perft", "--help"]], ["numpy", "chess", "rich", "shtab", "json", "psearch.results"]),
        (
            [["speedup", "--help"], ["simulate", "--help"]],
            ["numpy", "chess", "rich", "shtab", "json", "matplotlib", "psearch.results"],
        ),
        (
            [["--threads", "0", "startpos"], ["not", "a", "fen"], ["speedup"], ["simulate", "--workers", "0"]],
            ["numba", "llvmlite", "numpy", "matplotlib"],
        ),
    ],
)
def test_help_and_refusals_import_nothing_that_they_do_not_use(commands: list[list[str]], unwanted: list[str]) -> None:
    program = f"""
import sys
from psearch.faces.cli.main import main
for words in {commands}:
    try:
        main(words)
    except SystemExit:
        pass
loaded = {{"psearch.faces.uci", "psearch.faces.cli.analyses", *{unwanted}}} & set(sys.modules)
sys.exit(f"loaded: {{loaded}}" if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# Searching


@pytest.mark.parametrize(
    "words",
    [
        ["--depth", "3", KIWIPETE],
        ["--depth", "3", *KIWIPETE.split()],
        [*KIWIPETE.split(), "--depth", "3"],
        [*KIWIPETE.split()[:3], "--depth", "3", *KIWIPETE.split()[3:]],
        ["--depth", "3", "--", *KIWIPETE.split()],
    ],
)
def test_fen_as_words_anywhere(capsys: pytest.CaptureFixture[str], engine: StandInEngine, words: list[str]) -> None:
    assert cli.main(words) == 0
    assert engine.limits == Limits(depth=3)
    assert "best move" in capsys.readouterr().out


def test_defaults(engine: StandInEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psearch.arena.control_groups.available_memory", lambda: 5 << 30)
    assert cli.main(["startpos"]) == 0
    assert engine.arguments == {"threads": usable_cores(), "hash_mb": 256, "trace": False}
    assert engine.limits == Limits(movetime_ms=5000)
    search("startpos", threads=3, hash_mb=5)
    assert engine.arguments == {"threads": 3, "hash_mb": 5, "trace": False}
    assert engine.limits == Limits(movetime_ms=5000)


@pytest.mark.parametrize(("option", "limit"), [("--depth", {"depth": 5}), ("--nodes", {"nodes": 5})])
def test_counts_do_not_depend_on_the_memory(
    engine: StandInEngine, monkeypatch: pytest.MonkeyPatch, option: str, limit: dict[str, int]
) -> None:
    monkeypatch.setattr("psearch.arena.control_groups.available_memory", lambda: 50 << 30)
    assert cli.main([option, "5", "startpos"]) == 0
    assert engine.arguments["hash_mb"] == 256
    search(chess.Board(), **limit)
    assert engine.arguments["hash_mb"] == 256
    search(chess.Board(), movetime_ms=5)
    assert engine.arguments["hash_mb"] == 256


def test_options_reach_the_engine(engine: StandInEngine) -> None:
    words = ["--threads", "3", "--depth", "9", "--movetime", "2s", "--nodes", "5000", "--hash", "7", "startpos"]
    assert cli.main(words) == 0
    assert engine.arguments == {"threads": 3, "hash_mb": 7, "trace": False}
    assert engine.limits == Limits(depth=9, movetime_ms=2000, nodes=5000)


def test_moves_are_played_and_count_as_history(engine: StandInEngine) -> None:
    """UCI and SAN may be mixed; the position searched is the one after them."""
    assert cli.main(["--moves", "e2e4 e5 Nf3", "startpos"]) == 0
    assert engine.board.board_fen() == "rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R"
    assert [move.uci() for move in engine.board.move_stack] == ["e2e4", "e7e5", "g1f3"]
    assert cli.main(["--moves", "O-O", "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"]) == 0
    assert engine.board.king(chess.WHITE) == chess.G1


def test_moves_as_they_stand_in_a_game(engine: StandInEngine) -> None:
    assert cli.main(["--moves", "1. e4! e5 {open} 2. Nf3 *", "startpos"]) == 0
    assert [move.uci() for move in engine.board.move_stack] == ["e2e4", "e7e5", "g1f3"]
    assert cli.main(["--searchmoves", "1. d4 c4", "8/8/8/8/8/8/2PP4/K1k5 w"]) == 0
    assert engine.only == moves("d2d4", "c2c4")
    assert cli.main(["--moves", "1. e4"]) == 0
    assert [move.uci() for move in engine.board.move_stack] == ["e2e4"]


def test_moves_can_end_the_game(run: Run, engine: StandInEngine) -> None:
    assert run("--moves", "f3 e5 g4 Qh4", "startpos")[:2] == (0, "checkmate: White is mated\n")
    assert engine.limits is None


def test_moves_to_choose_from_and_lines_reach_the_engine(engine: StandInEngine) -> None:
    assert cli.main(["startpos"]) == 0
    assert (engine.only, engine.multipv) == (None, 1)
    assert cli.main(["--searchmoves", "e4 d2d4 e2e4", "--multipv", "3", "startpos"]) == 0
    assert (engine.only, engine.multipv) == (moves("e2e4", "d2d4"), 3)


ROOK_ENDING = "8/8/8/8/3k4/8/8/3K3R w - - 0 1"
TABLES = str(DATA / "syzygy")


def test_tables_choose_the_moves(run: Run, capsys: pytest.CaptureFixture[str], engine: StandInEngine) -> None:
    assert cli.main(["--syzygy", TABLES, ROOK_ENDING]) == 0
    assert engine.only is not None and len(engine.only) == 15
    assert capsys.readouterr().out.splitlines()[-1].startswith("tables     won, DTZ 25: Rh5 ")
    late = ROOK_ENDING.replace("0 1", "74 80")
    report = json.loads(run("--syzygy", TABLES, "--json", late)[1])
    assert report["syzygy"] == {"wdl": 2, "dtz": 25, "best": ["h1h5"], "hits": 15}
    # the user's choice comes first, the tables choose within it if they can
    assert cli.main(["--syzygy", TABLES, "--searchmoves", "h1h5 h1h6", late]) == 0
    assert engine.only == moves("h1h5")
    assert cli.main(["--syzygy", TABLES, "--searchmoves", "h1h6", late]) == 0
    assert engine.only == moves("h1h6")
    # and where they know nothing, nothing is said
    capsys.readouterr()
    assert cli.main(["--syzygy", TABLES, "--json", "startpos"]) == 0
    assert engine.only is None
    assert "syzygy" not in json.loads(capsys.readouterr().out)


def test_the_board_is_drawn(run: Run, capsys: pytest.CaptureFixture[str], engine: StandInEngine) -> None:
    lines = run("--board", ROOK_ENDING)[1].splitlines()
    assert lines[4].startswith("4  .  .  .  k  .")
    assert lines[7].startswith("1  .  .  .  K  .  .  .  R")
    assert cli.main(["--board", ROOK_ENDING.replace("w", "b")]) == 0
    assert capsys.readouterr().out.splitlines()[:9] == lines[:9], "White is below, as UCI's d has it"


def test_plain_lines(run: Run, engine: StandInEngine) -> None:
    lines = run("--threads", "2", "8/8/8/4k3/8/8/8/4K2R w - - 0 1")[1].splitlines()
    assert lines[0] == "depth 1/1  score +0.20  nodes 30  nps 300  time 0.10  pv Rh8"
    assert lines[1].startswith("depth 2/4  score >=+0.45  ")
    assert lines[2].startswith("depth 2/5  score +0.50  ")
    assert lines[3:] == [
        "best move  Rh8 (h1h8)",
        "score      +0.50 for White",
        "pv         Rh8",
        "depth      2/5",
        "nodes      200 in 0.40 s, 500 nps",
        "workers    2, splits 20, joins 40, idle 12.5%",
    ]


def test_json(run: Run, engine: StandInEngine) -> None:
    assert json.loads(run("--json", "--threads", "2", "8/8/8/4k3/8/8/8/4K2R w - - 0 1")[1]) == {
        "bestmove": "h1h8",
        "score": {"cp": 50},
        "wdl": [54, 935, 11],
        "pv": ["h1h8"],
        "depth": 2,
        "seldepth": 5,
        "nodes": 200,
        "nps": 500,
        "time": 0.4,
        "threads": 2,
        "workers": [
            {"nodes": 1000, "splits": 10, "joins": 20, "aborted": 5, "idle": 0.0},
            {"nodes": 1001, "splits": 10, "joins": 20, "aborted": 5, "idle": 0.25},
        ],
        "interrupted": False,
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_search_gives_the_best_so_far(
    capsys: pytest.CaptureFixture[str], engine: StandInEngine, number: signal.Signals
) -> None:
    before = signal.getsignal(number)
    engine.during_search = lambda: os.kill(os.getpid(), number)
    assert cli.main(["startpos"]) == 128 + number
    captured = capsys.readouterr()
    assert "best move  Nh3 (g1h3), interrupted" in captured.out
    assert captured.err == ""
    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_wait(capsys: pytest.CaptureFixture[str], engine: StandInEngine) -> None:
    def twice() -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.6)  # sooner it would be the same

    engine.during_search = twice
    assert cli.main(["--json", "startpos"]) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "psearch: interrupted\n")


def test_an_interrupt_while_the_command_is_imported_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_list, "load", interrupt)
    assert cli.main(["game", "x.py"]) == 130
    assert capsys.readouterr().err == "psearch: interrupted\n"


def test_a_dead_worker_is_one_line(capsys: pytest.CaptureFixture[str], engine: StandInEngine) -> None:
    def die() -> None:
        raise WorkerDied("worker 1 was killed by signal 9")

    engine.during_search = die
    assert cli.main(["--json", "startpos"]) == 3
    assert capsys.readouterr().err == "psearch: worker 1 was killed by signal 9\n"


@pytest.mark.parametrize(
    ("fen", "answer", "score", "terminal"),
    [
        (MATED, "checkmate: White is mated\n", {"mate": 0}, "checkmate"),
        (STALEMATED, "stalemate: draw\n", {"cp": 0}, "stalemate"),
    ],
)
def test_games_that_are_over(run: Run, fen: str, answer: str, score: dict[str, int], terminal: str) -> None:
    assert run(fen)[:2] == (0, answer)
    report = json.loads(run("--json", "--threads", "2", fen)[1])
    assert (report["bestmove"], report["score"], report["terminal"]) == (None, score, terminal)
    assert report["threads"] == 2
    assert search(fen).bestmove is None


def test_bench_ends_with_its_fingerprint(capsys: pytest.CaptureFixture[str], engine: StandInEngine) -> None:
    assert cli.main(["bench", "--pruning", "ael"]) == 0
    head, last = capsys.readouterr().out.splitlines()
    assert head == "2 positions, 61.7 k nodes per tree (mean, one worker), depth 9; nps: nodes per second"
    assert last == "123456 nodes 246912 nps"


NETWORK = f"network {default_network().name}"


def test_bench_says_whether_its_number_is_the_known_one(
    capsys: pytest.CaptureFixture[str], engine: StandInEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["bench"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "not the known number, 123457: the search has changed",
        NETWORK,
        "123456 nodes 246912 nps",
    ]
    monkeypatch.setattr(sys.modules["psearch.bench"], "BENCH_NODES", 123456)
    assert cli.main(["bench"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["the known number", NETWORK, "123456 nodes 246912 nps"]


def test_broken_pipe_is_quiet() -> None:
    program = f"from psearch.faces.cli.main import main; import sys; sys.exit(main(['--json', '{MATED}']))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_broken_pipe_between_processes_is_not_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psearch.text.fen.parse_position", mock.Mock(side_effect=BrokenPipeError(32, "Broken pipe")))
    done = run_here("startpos")
    assert (done.returncode, done.stderr) == (1, "psearch: cannot continue: [Errno 32] Broken pipe\n")


def test_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        command = [
            sys.executable,
            "-c",
            f"from psearch.faces.cli.main import main; raise SystemExit(main(['{MATED}']))",
        ]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"psearch: ")
    assert done.stderr.count(b"\n") == 1


# Perft


def test_perft_of_a_mated_position(run: Run) -> None:
    assert run("perft", "3", MATED)[:2] == (0, "total 0  time 0.00  nps 0\n")


# Version


def test_one_fact_a_line(run: Run) -> None:
    status, out, err = run("version")
    assert (status, err) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert list(facts)[:4] == ["psearch", "commit", "network", "python"]
    assert facts["psearch"] == __version__
    assert facts["python"].endswith(platform.python_version())
    assert (facts["numba"], facts["llvmlite"]) == (version("numba"), version("llvmlite"))
    assert int(facts["cores"]) >= 1 and int(facts["memory_mb"]) > 100
    assert facts["cpu"]


def test_the_same_as_json(run: Run) -> None:
    status, out, _ = run("version", "--json")
    facts = json.loads(out)
    assert status == 0
    assert list(facts) == [line.split()[0] for line in run("version")[1].splitlines()]


def test_a_library_that_is_missing_is_no_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_command, "_LIBRARIES", ("numba", "no-such-library"))
    assert "no-such-library  not installed" in run("version")[1]


WORDS = ["serve", "--no-browser", "--threads", "2", "--hash", "2"]


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*PSEARCH, *WORDS, "--port", "0"], **PIPES) as process:
        yield process
        process.kill()


def address(server: subprocess.Popen[str]) -> str:
    return server.stdout.readline().strip()


@needs_web
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_its_workers(server: subprocess.Popen[str], number: signal.Signals, kernels: None) -> None:
    url = address(server)
    with urllib.request.urlopen(url) as answer:
        assert b"<title>psearch</title>" in answer.read()
    until = time.monotonic() + 60
    while len(workers := descendants(server.pid)) < 3:  # two, and who forks them
        assert time.monotonic() < until
        time.sleep(0.05)
    server.send_signal(number)
    out, said = server.communicate(timeout=60)
    assert server.returncode == 128 + number
    assert out == "" and said == "psearch: serving on this machine only; Ctrl-C ends it\n"
    until = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in workers):
        assert time.monotonic() < until
        time.sleep(0.05)


@needs_web
def test_a_signal_at_once(server: subprocess.Popen[str]) -> None:
    """Before anybody has asked for anything, and while the engine starts."""
    address(server)
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=60)
    assert server.returncode == 130
    assert "Traceback" not in said


@needs_web
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--game", "gone.py"], "cannot read the game 'gone.py'"),
        (["--policy", "gone.py"], "cannot read the policy 'gone.py'"),
        (["--policy", "magic"], "policy must be one of"),
        (["--with", "gone.py"], "cannot read the file 'gone.py'"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_line(run: Run, words: list[str], said: str) -> None:
    status, out, err = run(*WORDS, "--port", "0", *words)
    assert (status, out, err.count("\n")) == (2, "", 1) and err.startswith(f"psearch: {said}")


@needs_web
def test_without_the_token_it_answers_nobody(server: subprocess.Popen[str]) -> None:
    base = address(server).partition("?")[0]
    for path in ("", "?token=guessed", "app.js", "socket"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(base + path)
        assert caught.value.code in (403, 404)
        caught.value.close()


@needs_web
def test_a_message_that_is_too_long_ends_its_connection_only(server: subprocess.Popen[str], kernels: None) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    base, _, token = address(server).partition("?token=")
    port = base.split(":")[2].strip("/")

    def open_socket() -> Any:
        return connect(
            f"ws://127.0.0.1:{port}/socket",
            origin=f"http://127.0.0.1:{port}",  # type: ignore[arg-type]  # it is a str
            additional_headers={"Cookie": f"psearch-{port}={token}"},
        )

    with open_socket() as socket, pytest.raises(ConnectionClosed) as caught:
        socket.send("x" * (1 << 21))
        while True:
            socket.recv(timeout=60)
    assert caught.value.rcvd is not None and caught.value.rcvd.code == 1009
    with open_socket() as socket:
        assert '"engine.state"' in socket.recv(timeout=60)


@needs_web
def test_only_this_machine_can_reach_it(server: subprocess.Popen[str]) -> None:
    port = int(address(server).split(":")[2].partition("/")[0])
    with socket.socket() as other:
        other.settimeout(2)
        with pytest.raises(OSError):  # refused, or no such way
            other.connect(("127.0.0.2", port))


@needs_web
def test_a_port_that_is_in_use(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = f"psearch: port {port} is in use: use another, such as --port {port + 1}, or any with --port 0\n"
        assert run(*WORDS, "--port", str(port)) == (2, "", said)


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "websockets"])
def test_without_the_extra(missing: str, tmp_path: Path) -> None:
    for name in ("starlette", "uvicorn", "websockets"):  # whatever is installed here
        code = f"raise ModuleNotFoundError('no {name}', name={name!r})\n" if name == missing else ""
        (tmp_path / f"{name}.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*PSEARCH, *WORDS], capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"psearch: {missing} is not installed: pip install starlette uvicorn websockets\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "65536"], "argument --port: must be a whole number from 0 to 65535, not '65536'"),
        (["--hash", "16777216"], "does not fit in the"),
        (["startpos"], "psearch serve takes no 'startpos'"),
    ],
)
def test_bad_arguments(run: Run, words: list[str], said: str) -> None:
    status, _, err = run("serve", *words)
    assert status == 2 and said in err and err.count("\n") == 1


@pytest.mark.parametrize("option", ["--policy", "--with", "--game"])
def test_a_file_with_a_mistake_is_refused_before_the_page_is_served(run: Run, tmp_path: Path, option: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text("NAME = nothing\n")
    status, out, err = run(*WORDS, "--port", "0", option, str(file))
    assert (status, out) == (2, "") and "mine.py:1" in err and "nothing" in err and err.count("\n") == 1, err


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "psearch", "version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("psearch ")


INTERRUPTED = """
import sys
from psearch.__main__ import main
class Late:
    def find_spec(self, name, *others):
        raise KeyboardInterrupt
sys.meta_path.insert(0, Late())
sys.exit(main())
"""


def test_an_interruption_before_the_command_line_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "psearch: interrupted\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--infinite", "--nodes", "3k"],
        ["--mate", "1", "--moves", "f3 e5 g4"],
        ["--wtime", "1s", "--winc", "0", "--movestogo", "20"],
        ["--nodes", "1e3"],
    ],
)
def test_limits_of_a_game_and_of_an_analysis_end_a_search(words: list[str], run: Run) -> None:
    """None of them takes the five seconds of a search without a limit."""
    status, out, _ = run(*words, "--wdl", "--threads", "1", "--hash", "1", "startpos")
    assert status == 0
    assert re.search(r"^wdl        win \d+%, draw \d+%, loss \d+%$", out, re.MULTILINE)
    found = re.search(r"nodes +([\d,]+) in ([\d.]+) s", out)
    assert found is not None and float(found[2]) < 4.0
