"""`psearch analyse` with the real engine: suites, games, JSON lines; refusals, interruptions, lost workers."""

from __future__ import annotations

import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import chess
import chess.pgn
import fake_workers
import pytest
from paths import DATA
from programs import PIPES, PSEARCH, assert_gone, run_here
from terminals import CONTROL, line_before, on_terminal
from timing import least, wait_until

from psearch.batch.positions.position_pool import make_pool

MIXED = str(DATA / "suites" / "mixed.epd")
TIMEOUT_S = 240

GAME = """\
[Event "Scholar"]
[Result "1-0"]

1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0

[Event "Fischer"]
[Variant "Chess960"]
[SetUp "1"]
[FEN "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"]
[Result "*"]

1. O-O O-O-O *
"""
POSITIONS_IN_GAME = 10


pytestmark = pytest.mark.usefixtures("search_kernels")


def analyse(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return run_here("analyse", "--hash", "1", *words, text=text)


def start(*words: str) -> subprocess.Popen[str]:
    command = [*PSEARCH, "analyse", "--hash", "1", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


DYING = """
import os, signal, sys
from psearch.batch.analysis.analysis_files import AnalysisJournal
from psearch.faces.cli.main import main
add = AnalysisJournal.add
def add_or_die(journal, key, answer):
    if len(journal) == {positions}:
        if {number} == signal.SIGKILL:
            with open(journal.path, "ab") as file:
                file.write(b'{{"key": "line 5", "ans')
        os.kill(os.getpid(), {number})
    add(journal, key, answer)
AnalysisJournal.add = add_or_die
sys.exit(main())
"""


def killed_after(positions: int, *words: str, number: signal.Signals = signal.SIGKILL) -> str:
    """A run that gets a signal before the next line of its journal, SIGKILL in the middle of it: who watches from
    outside may come too late. What it said on stderr."""
    program = DYING.format(positions=positions, number=int(number))
    command = [sys.executable, "-c", program, "analyse", "--hash", "1", *words]
    with subprocess.Popen(command, start_new_session=True, **PIPES) as running:
        _, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert_gone(running.pid)
    return err


def children_of(parent: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


# -- results ---------------------------------------------------------------------------------------------------------


def test_a_suite() -> None:
    done = analyse("--depth", "5", "--threads", "1", MIXED)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("position  result")
    rows = {line.split()[0]: line.split()[1] for line in lines[1:10]}
    assert rows["mix.1"] == "right"
    assert rows["mix.2"] == "wrong"
    assert rows["mated"] == "checkmate"
    assert lines[9].split() == ["line", "10", "stalemate"]
    assert any(line.startswith("solved     ") for line in lines)
    assert any(line.startswith("points     ") for line in lines)


def test_json_lines_are_the_same_each_time() -> None:
    """One worker, fixed depth, each position by itself: only the times differ."""

    def run(suite: str) -> list[dict[str, object]]:
        done = analyse("--depth", "6", "--threads", "1", "--json", "-", text=suite)
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    whole = Path(MIXED).read_text()
    first = run(whole)
    assert set(first[-1]) == {"summary"}
    assert len(first) == 10
    again = run("\n".join(reversed(whole.splitlines())))
    nodes = {str(values["id"]): values["nodes"] for values in first[:7]}
    assert {str(values["id"]): values["nodes"] for values in again[2:9]} == nodes


def test_a_game_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "in.pgn").write_text(GAME)
    out = tmp_path / "out.pgn"
    done = analyse("--depth", "8", "--threads", "2", "--out", str(out), str(tmp_path / "in.pgn"))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("2 games, 10 positions, ")
    with out.open() as stream:
        first, second = chess.pgn.read_game(stream), chess.pgn.read_game(stream)
    assert not first.errors + second.errors
    nodes = list(first.mainline())
    assert all(node.eval() for node in nodes[:-1])
    assert chess.pgn.NAG_BLUNDER in nodes[5].nags
    assert [node.move.uci() for node in second.mainline()] == ["f1g1", "f8b8"]
    assert sorted(os.listdir(tmp_path)) == ["in.pgn", "out.pgn"]


def test_names_in_a_locale_without_them(tmp_path: Path) -> None:
    """UTF-8 goes out, whatever the terminal was said to be."""
    file = tmp_path / "x.pgn"
    file.write_text('[White "Šahović, Ōno"]\n\n1. e4 *\n', encoding="utf-8")
    command = [*PSEARCH, "analyse", "--hash", "1", "--depth", "1", str(file)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, env=environment)
    assert done.returncode == 0
    assert "Šahović, Ōno" in done.stdout.decode()


def test_what_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    """The memory for the table is refused after the journal was opened."""
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    done = analyse("--hash", str(memory_mb - 1), "--out", str(tmp_path / "out"), MIXED)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_stdin_to_stdout() -> None:
    done = analyse("--nodes", "2000", "-", "--out", "-", text=GAME)
    assert done.returncode == 0
    assert done.stdout.count("[%eval ") >= POSITIONS_IN_GAME - 2
    assert chess.pgn.read_game(io.StringIO(done.stdout)) is not None


def test_broken_games_are_told_of_and_the_rest_is_analysed(tmp_path: Path) -> None:
    file = tmp_path / "x.pgn"
    file.write_text('[Event "a"]\n\n1. e4 e5 2. Ke3 *\n\n' + GAME)
    done = analyse("--depth", "2", str(file))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(" 1 game could not be read as written")
    told = [line for line in done.stderr.splitlines() if line.startswith("psearch: ")]
    assert len(told) == 1
    assert told[0].startswith(f"psearch: {file}, game 1, line 3: illegal san: 'Ke3'")
    assert done.stdout.count("[Event ") == 3


def test_a_bad_line_of_a_suite_is_told_of_and_the_rest_is_analysed(tmp_path: Path) -> None:
    file = tmp_path / "x.epd"
    start = chess.STARTING_FEN
    file.write_text(f"{start} bm e4;\n{start} bm e5;\n// remark\n{start} acd 12; BM d4; ID good;\nrubbish\n")
    done = analyse("--depth", "1", str(file))
    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if line.startswith("psearch: ")]
    assert [line.split(": ")[1] for line in told] == [f"{file}, line 2", f"{file}, line 5"]
    assert [line.split()[0] for line in done.stdout.splitlines()[1:3]] == ["line", "good"]
    assert done.stderr.splitlines()[-1] == "2 lines left out"


def test_a_suite_of_which_nothing_was_scored_says_so(tmp_path: Path) -> None:
    file = tmp_path / "x.epd"
    file.write_text(f"{chess.STARTING_FEN} c0 nothing;\n")
    done = analyse("--depth", "1", str(file))
    assert done.returncode == 0
    assert "scored     none: no position that was searched has bm, am or dm" in done.stdout


def test_each_game_of_another_variant_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.pgn"
    file.write_text("".join(f'[Variant "{name}"]\n\n1. e4 *\n\n' for name in ("Atomic", "Horde", "Antichess")))
    done = analyse("--depth", "1", str(file))
    assert done.returncode == 2
    assert [line.split(": ")[2].split()[0] for line in done.stderr.splitlines()] == ["atomic", "horde", "antichess"]


BAD_GAMES = [
    '[SetUp "1"]\n[FEN "garbage"]\n\n1. e4 *',
    '[Variant "nonsense"]\n\n1. e4 *',
    f"1. e4 ${'1' * 5000} e5 *",
    '[FEN "8/8/8/8/8/k7/8/7R w - - 0 1"]\n\n*',
    "1. e4 (1. d4 Qxd4 2. c4) 1... e5 *",
    "((((()))",
    "{ no end",
]


def test_no_game_ends_the_analysis(tmp_path: Path) -> None:
    """Each between two good ones; what cannot be read is in the result as it was."""
    text = "".join(f'[Event "{number}"]\n\n1. f3 *\n\n{game}\n\n' for number, game in enumerate(BAD_GAMES))
    (tmp_path / "x.pgn").write_text(text)
    out = tmp_path / "out.pgn"
    done = analyse("--nodes", "100", "--out", str(out), str(tmp_path / "x.pgn"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert all(line.count("\n") == 0 and len(line) < 400 for line in done.stderr.splitlines())
    written = out.read_text()
    for number in range(len(BAD_GAMES)):
        assert f'[Event "{number}"]' in written
    for game in BAD_GAMES[:2] + BAD_GAMES[3:4]:
        assert f"\n\n{game}\n\n" in written
    again = analyse("--nodes", "100", "--out", str(out), str(tmp_path / "x.pgn"))
    assert (again.returncode, out.read_text()) == (1, written)


def test_json_of_games_of_several_files(tmp_path: Path) -> None:
    """One worker and a fixed depth give the same, whether the files come one by one or together."""
    (tmp_path / "a.pgn").write_text(GAME)
    (tmp_path / "b.pgn").write_text('[White "x"]\n\n1. e4 Ke2 *\n')
    files = [str(tmp_path / name) for name in ("a.pgn", "b.pgn")]

    def run(*names: str) -> list[dict[str, Any]]:
        done = analyse("--depth", "4", "--threads", "1", "--json", *names)
        assert done.returncode == (1 if files[1] in names else 0)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        for position in (position for values in found[:-1] for position in values["positions"]):
            position.pop("time", None)
        return found

    together = run(*files)
    assert [(values["file"], values["game"]) for values in together[:-1]] == [
        (files[0], 1),
        (files[0], 2),
        (files[1], 1),
    ]
    assert "Ke2" in together[2]["problem"]
    assert together[3]["summary"]["positions"] == POSITIONS_IN_GAME + 2
    assert together[:-1] == run(files[0])[:-1] + run(files[1])[:-1]


def test_suites_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "b.fen").write_text("startpos\n")
    done = analyse("--depth", "3", "--threads", "1", MIXED, str(tmp_path / "b.fen"))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[1] == f"{MIXED}:"
    assert lines[11] == f"{tmp_path / 'b.fen'}:"
    assert lines[12].startswith("line 1 ")


def test_names_of_files_that_are_no_text(tmp_path: Path) -> None:
    names = [os.fsdecode(os.fsencode(tmp_path) + b"/\xff%d.epd" % number) for number in range(2)]
    for name in names:
        Path(name).write_text("startpos\n")
    for words in ([], ["--json"]):
        done = analyse("--depth", "2", "--threads", "1", *words, *names)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("udcff") == (4 if words else 2)


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "no file given"),
        (["nowhere.epd"], "cannot read nowhere.epd: No such file"),
        (["."], "cannot read .: Is a directory"),
        (["SUITE", "nowhere.epd"], "cannot read nowhere.epd: No such file"),
        (["SUITE", "EMPTY"], "empty.epd has no positions"),
        (["PGN", "EMPTY_PGN"], "empty.pgn has no game with moves"),
        (["SUITE", "PGN"], "suite.epd is a test suite, game.pgn has games: analyse them in two calls"),
        (["-", "SUITE", "-"], "standard input can be read only once"),
        (["--out", "PGN", "SUITE", "PGN"], "would replace the input"),
        (["--depth", "0", "SUITE"], "1 to 100"),
        (["--policy", "magic", "SUITE"], "magic"),
        (["--hash", "16000000", "SUITE"], "does not fit"),
        (["--out", "SUITE", "SUITE"], "would replace the input"),
        (["--out", "suite", "PART"], "would replace the input"),
        (["--out", "suite", "--merge", "PART", "SUITE"], "--out suite would replace --merge suite.part"),
        (["--marks", "lichess", "SUITE"], "--marks is for games, and suite.epd is a test suite"),
        (["--fresh-marks", "SUITE"], "--fresh-marks is for games"),
        (["--wdl", "SUITE"], "--wdl is for games"),
        (["--wdl", "--json", "PGN"], "--wdl is for annotated games, not for --json"),
        (["--fresh-marks", "--out", "x.csv", "PGN"], "--fresh-marks is for annotated games"),
        (["--multipv", "2", "PGN"], "--multipv needs --json"),
        (["--multipv", "2", "--out", "x.txt", "SUITE"], "--multipv needs --json"),
        (["--json", "--out", "x.pgn", "PGN"], "--json and --out FILE.pgn exclude each other"),
        (["--out", "/dev/null", "SUITE"], "not a regular file"),
        (["--out", ".", "SUITE"], "not a regular file"),
        (["--out", "nowhere/out", "SUITE"], "nowhere/out.journal: No such file"),
        (["BAD"], "line 2: "),
        (["EMPTY"], "has no positions"),
        (["EMPTY_PGN"], "has no game with moves"),
        (["BINARY"], "is not a text file"),
        (["/dev/zero"], "is not a text file"),
        (["KINGLESS"], "king"),
    ],
)
def test_one_line_and_status_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    contents = {
        "SUITE": ("suite.epd", f"{chess.STARTING_FEN} bm e4;\n".encode()),
        "PART": ("suite.part", f"{chess.STARTING_FEN} bm e4;\n".encode()),
        "BAD": ("bad.epd", f"# remark\n{chess.STARTING_FEN} bm e5;\n".encode()),
        "EMPTY": ("empty.epd", b""),
        "EMPTY_PGN": ("empty.pgn", b"\n"),
        "BINARY": ("binary.epd", b"\x00\x01"),
        "PGN": ("game.pgn", GAME.encode()),
        "KINGLESS": ("kingless.epd", b"8/8/8/8/8/k7/8/7R w - - bm Rh3+;"),
    }
    for name, data in contents.values():
        (tmp_path / name).write_bytes(data)
    done = run_here("analyse", *[contents[word][0] if word in contents else word for word in words])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("psearch: ")
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr
    assert sorted(os.listdir(tmp_path)) == sorted(name for name, _ in contents.values())


# -- interruptions ---------------------------------------------------------------------------------------------------


def keys_of(journal: Path) -> list[str]:
    lines = journal.read_text().splitlines(keepends=True)[1:]
    return [json.loads(line)["key"] for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_again_and_again_it_loses_no_finished_position(tmp_path: Path, number: signal.Signals) -> None:
    """Each run is ended in the middle; every position is searched to its end exactly once."""
    source, out, journal = tmp_path / "in.pgn", tmp_path / "out.pgn", tmp_path / "out.pgn.journal"
    source.write_text(GAME)
    words = ["--movetime", "100", "--threads", "2", "--out", str(out), str(source)]
    finished = 0
    for more in (1, 4):
        err = killed_after(finished + more, *words, number=number)
        assert not out.exists()
        kept = len(keys_of(journal))
        assert kept >= finished + more
        if finished:
            assert f"{finished} of {POSITIONS_IN_GAME} positions are in {journal}: continuing from there" in err
        if number != signal.SIGKILL:
            assert err.splitlines()[-1].startswith(f"psearch: interrupted; {kept} of {POSITIONS_IN_GAME} positions")
            assert not (tmp_path / "out.pgn.part").exists()
        finished = kept
    before = keys_of(journal)
    os.link(journal, tmp_path / "kept")
    with start(*words) as running:
        _, err = running.communicate(timeout=TIMEOUT_S)
    grown = keys_of(tmp_path / "kept")
    (tmp_path / "kept").unlink()
    assert grown[: len(before)] == before and len(set(grown)) == len(grown) == POSITIONS_IN_GAME
    assert running.returncode == 0
    assert f"2 games, {POSITIONS_IN_GAME} positions" in err
    assert sorted(os.listdir(tmp_path)) == ["in.pgn", "out.pgn"]
    with out.open() as stream:
        game = chess.pgn.read_game(stream)
    assert all(node.eval() for node in list(game.mainline())[:-1])


def marks_in(path: Path) -> list[tuple[set[int], list[str]]]:
    with path.open() as stream:
        game = chess.pgn.read_game(stream)
    return [(node.nags, [other.uci() for other in node.parent.variations[1:]]) for node in game.mainline()]


def test_an_interrupted_run_gives_the_same_marks(tmp_path: Path) -> None:
    """It may be interrupted between a move and the position behind it."""
    source, out = tmp_path / "in.pgn", tmp_path / "out.pgn"
    source.write_text("1. e4 e5 2. Nf3 d6 3. Bc4 Bg4 4. Nc3 g6 5. Nxe5 Bxd1 6. Bxf7+ Ke7 7. Nd5# 1-0\n")
    words = ["--nodes", "30000", "--threads", "1", "--out", str(out), str(source)]
    assert analyse(*words).returncode == 0
    whole = marks_in(out)
    assert whole[9] == ({chess.pgn.NAG_BLUNDER}, ["d6e5"])
    for finished in (2, 3, 4):  # 5... Bxd1 is the fourth position from the end
        out.unlink()
        killed_after(finished, *words)
        assert analyse(*words).returncode == 0
        assert marks_in(out) == whole


def test_killed_after_the_result_but_before_the_journal_is_gone(tmp_path: Path) -> None:
    """The next run makes the same result again and searches nothing."""
    source, out, journal = tmp_path / "in.pgn", tmp_path / "out.pgn", tmp_path / "out.pgn.journal"
    source.write_text(GAME)
    words = ["--movetime", "300", "--threads", "2", "--out", str(out), str(source)]
    with start(*words) as running:
        wait_for_lines(journal, 1)
        os.link(journal, tmp_path / "kept")
        running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0
    first = out.read_bytes()
    assert not journal.exists()
    before = (tmp_path / "kept").read_bytes()
    os.link(tmp_path / "kept", journal)
    done = analyse(*words)
    assert done.returncode == 0
    assert f"{POSITIONS_IN_GAME} of {POSITIONS_IN_GAME} positions are in {journal}" in done.stderr
    assert out.read_bytes() == first
    assert (tmp_path / "kept").read_bytes() == before
    assert not journal.exists()


def test_a_suite_goes_on_with_the_same_result(tmp_path: Path) -> None:
    """Depth and one worker: what was interrupted ends like what was not, times apart."""
    words = ["--depth", "6", "--threads", "1", "--json"]

    def facts(text: str) -> list[tuple[object, object]]:
        return [(values.get("id"), values.get("nodes")) for values in map(json.loads, text.splitlines()[:-1])]

    whole = facts(analyse(*words, MIXED).stdout)
    out, journal = tmp_path / "out.jsonl", tmp_path / "out.jsonl.journal"
    assert analyse(*words, "--out", str(out), MIXED).returncode == 0
    assert facts(out.read_text()) == whole
    out.unlink()
    killed_after(3, *words, "--out", str(out), MIXED)
    done = analyse(*words, "--out", str(out), MIXED)
    assert done.returncode == 0
    assert f"psearch: 3 of 7 positions are in {journal}: continuing from there" in done.stderr
    assert facts(out.read_text()) == whole
    assert sorted(os.listdir(tmp_path)) == ["out.jsonl"]


def test_several_files_go_on_as_one(tmp_path: Path) -> None:
    """Killed in the second file: nothing of the first is searched again; with another order nothing goes on."""
    for name in ("a.pgn", "b.pgn"):
        (tmp_path / name).write_text(GAME.replace("Scholar", name))
    files = [str(tmp_path / name) for name in ("a.pgn", "b.pgn")]
    words = ["--depth", "8", "--threads", "1"]
    out, journal = tmp_path / "out.pgn", tmp_path / "out.pgn.journal"
    killed_after(POSITIONS_IN_GAME + 2, *words, "--out", str(out), *files)
    assert not out.exists()
    other = analyse(*words, "--out", str(out), *reversed(files))
    assert (other.returncode, "another analysis (different: input)" in other.stderr) == (2, True)
    kept = journal.read_bytes().count(b"\n") - 1
    assert kept == POSITIONS_IN_GAME + 2
    done = analyse(*words, "--out", str(out), *files)
    assert done.returncode == 0
    assert f"{kept} of {2 * POSITIONS_IN_GAME} positions are in {journal}: continuing from there" in done.stderr
    assert f"4 games, {2 * POSITIONS_IN_GAME} positions" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["a.pgn", "b.pgn", "out.pgn"]
    with out.open() as stream:
        games = [chess.pgn.read_game(stream) for _ in range(4)]
        assert chess.pgn.read_game(stream) is None
    assert [game.headers["Event"] for game in games if game is not None] == ["a.pgn", "Fischer", "b.pgn", "Fischer"]
    assert all(node.eval() for game in games if game is not None for node in list(game.mainline())[:6])


def test_json_of_games_that_is_interrupted_is_whole_lines(tmp_path: Path) -> None:
    (tmp_path / "x.pgn").write_text("1. e4 *\n\n" + GAME)
    with start("--movetime", "200", "--threads", "1", "--json", str(tmp_path / "x.pgn")) as running:
        first = running.stdout.readline()
        running.send_signal(signal.SIGINT)
        rest, err = running.communicate(timeout=TIMEOUT_S)
    assert (running.returncode, err) == (130, "psearch: interrupted\n")
    games = [json.loads(line) for line in [first, *rest.splitlines()]]
    assert games[0]["game"] == 1
    assert (games[-1]["summary"]["games"], games[-1]["summary"]["finished"]) == (3, len(games) - 1)


def test_interrupted_on_stdout_what_is_finished_has_been_printed() -> None:
    with start("--movetime", "300", "--threads", "2", MIXED) as running:
        assert running.stdout is not None
        for _ in range(3):
            running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130
    assert err == "psearch: interrupted\n"
    assert "finished   " in out
    assert "solved     " in out
    assert_gone(running.pid)


def test_other_settings_do_not_mix(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with start("--movetime", "1500", "--out", str(out), MIXED) as running:
        # the first line says what is analysed; a journal without a position would be begun anew
        wait_for_lines(Path(f"{out}.journal"), 2)
        running.send_signal(signal.SIGSTOP)  # lest it ends before the second has begun
        second = analyse("--movetime", "1500", "--out", str(out), MIXED)
        running.kill()
        running.communicate()
    assert (second.returncode, second.stderr) == (2, f"psearch: another psearch is writing {out}.journal\n")
    before = Path(f"{out}.journal").read_bytes()
    done = analyse("--movetime", "200", "--out", str(out), MIXED)
    assert done.returncode == 2
    assert "another analysis (different: movetime_ms)" in done.stderr
    assert Path(f"{out}.journal").read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_workers_that_are_lost_cost_no_position(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    words = ["--movetime", "600", "--threads", "2", "--out", str(out), MIXED]
    with start(*words) as running:
        lost = 0
        for done in (2, 4):
            wait_for_lines(Path(f"{out}.journal"), done)
            wait_until(lambda before=lost: children_of(running.pid)[-1:] not in ([], [before]))  # the next one is there
            lost = children_of(running.pid)[-1]
            os.kill(lost, number)
        _, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0
    words = "is replaced: it was killed by signal 9" if number == signal.SIGKILL else "is replaced: it was stopped"
    assert err.count(words) == 2
    assert_gone(running.pid)
    assert out.read_text().splitlines()[-1].startswith("searched   ")
    assert sorted(os.listdir(tmp_path)) == ["out"]


# -- terminals -------------------------------------------------------------------------------------------------------


def at_terminal(columns: int, words: list[str], stdout_too: bool) -> tuple[str, str, int]:
    return on_terminal([*PSEARCH, "analyse", "--hash", "1", "--threads", "1", *words], columns, stdout_too)


def test_the_bar_on_a_terminal(tmp_path: Path) -> None:
    """A terminal shows a bar with the count and the time left, which is gone at the end."""
    suite = tmp_path / "suite.epd"
    suite.write_text(f"{chess.STARTING_FEN} bm a3;\n" * 4)
    # one after the other: two that end together would be shown together
    text, rows, status = at_terminal(100, ["--movetime", "400", "--jobs", "1", str(suite)], stdout_too=False)
    assert status == 0
    assert "2/4" in text
    assert " left" in text
    assert "solved 0/3" in text
    assert "/s" in text
    assert "\x1b[?25h" in text, "the cursor is back"
    assert "\x1b" not in rows
    assert rows.count("\n") >= 7


def test_a_long_analysis_says_where_it_is_and_sums_up_players(tmp_path: Path) -> None:
    file = tmp_path / "x.pgn"
    file.write_text('[White "One"]\n[Black "Two"]\n\n1. e4 e5 2. Nf3 *\n\n[White "Two"]\n[Black "One"]\n\n1. d4 d5 *\n')
    text, _, status = at_terminal(80, ["--movetime", "250", "--jobs", "1", str(file)], stdout_too=False)
    assert status == 0
    assert re.search(r"game 1, 2\. [+-]\d\.\d\d ", text) or re.search(r"game 1, 1\.+ [+-]\d\.\d\d ", text)
    table = CONTROL.sub("", text[text.index("all games:") :]).splitlines()
    assert table[1].split()[:3] == ["player", "games", "accuracy"]
    assert sorted(row.split()[:2] for row in table[2:4]) == [["One", "2"], ["Two", "2"]]
    assert table[4].startswith("2 games, 7 positions, ")


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize("to_file", [True, False])
def test_nothing_is_glued_to_the_bar(tmp_path: Path, columns: int, to_file: bool) -> None:
    """A warning, the players' table and the last line each begin a line of their own."""
    file = tmp_path / "x.pgn"
    file.write_text(f'[White "{"Long Name, " * 12}"]\n\n1. e4 e5 2. Ke3 *\n')
    words = ["--nodes", "500", str(file), *(["--out", str(tmp_path / "out.pgn")] if to_file else [])]
    text, _, status = at_terminal(columns, words, stdout_too=True)
    assert status == 1
    for begin in ("psearch: ", "game 1\r\n", "player", "White, Long Name", "Black ", "1 game, 3 positions, "):
        assert line_before(text, begin) == "", begin
    table = CONTROL.sub("", text[text.index("game 1\r\n") :]).splitlines()[:4]
    assert max(map(len, table)) <= columns
    assert "…" in table[2]


LINES_TIMEOUT_S = 120
NODES = ["--nodes", "3000"]
MATE_IN_1, ALSO_MATE_IN_1 = (f"6k1/5ppp/8/8/8/8/{rank}/4R1K1 w - - 0 1" for rank in ("8", "7P"))


def positions(count: int) -> list[dict[str, Any]]:
    chance = random.Random(3)
    found = []
    for number in range(count):
        board = chess.Board()
        for _ in range(chance.randrange(2, 30)):
            board.push(chance.choice(list(board.legal_moves)))
            if board.is_game_over():
                board = chess.Board()
        found.append({"id": f"p{number}", "fen": board.fen()})
    return found


def written(path: Path, values: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in values))
    return str(path)


def analyse_lines(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return run_here("analyse", *words, text=text)


def results(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def timeless(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one.items() if name != "time"} for one in values]


def test_from_stdin_to_stdout_in_the_order_of_the_input() -> None:
    asked = [*positions(30), {"fen": "8/8 w"}, {"id": 7, "moves": ["e2e4"], "limits": {"depth": 3}, "multipv": 2}]
    done = analyse_lines(*NODES, "-", "--out", "-", text="".join(json.dumps(one) + "\n" for one in asked))
    found = results(done.stdout)
    assert done.returncode == 1  # one is no position
    assert [one["id"] for one in found] == [f"p{number}" for number in range(30)] + [31, 7]
    assert all(one["nodes"] <= 3000 and one["version"] for one in found[:30])
    assert "bad FEN" in found[30]["error"]
    assert (found[31]["depth"], len(found[31]["lines"]), found[31]["moves"]) == (3, 2, ["e2e4"])
    assert done.stderr == ""


def test_jobs_change_nothing(tmp_path: Path) -> None:
    file = written(tmp_path / "in.jsonl", positions(40))
    one, three = (results(analyse_lines(*NODES, "--threads", "1", "--jobs", jobs, file).stdout) for jobs in ("1", "3"))
    assert timeless(one) == timeless(three)
    assert len(one) == 40


def test_a_deeper_older_result_is_kept(tmp_path: Path) -> None:
    asked = positions(6)
    deep = results(analyse_lines("--depth", "7", written(tmp_path / "a.jsonl", asked[:4])).stdout)
    older = written(tmp_path / "older.jsonl", deep)
    out = tmp_path / "out.jsonl"
    file = written(tmp_path / "b.jsonl", [{**one, "id": number} for number, one in enumerate(asked)])
    done = analyse_lines("--depth", "5", "--merge", older, "--out", str(out), file)
    assert (done.returncode, done.stderr) == (0, "6 positions, 4 kept from older results\n")
    found = results(out.read_text())
    assert [one["id"] for one in found] == list(range(6))
    assert [one["depth"] for one in found] == [7, 7, 7, 7, 5, 5]
    assert [one["pv"] for one in found[:4]] == [one["pv"] for one in deep]
    assert [one["depth"] for one in results(analyse_lines("--depth", "8", "--merge", older, file).stdout)] == [8] * 6
    with_lines = written(tmp_path / "c.jsonl", [{**one, "multipv": 2} for one in asked])
    assert [one["depth"] for one in results(analyse_lines("--depth", "5", "--merge", older, with_lines).stdout)] == [
        5
    ] * 6


def test_older_results_of_suites_and_games(tmp_path: Path) -> None:
    """Searched to depth 6, and merged into searches to depth 4: all of it is kept, whatever is written of it."""
    suite, games = tmp_path / "x.epd", tmp_path / "x.pgn"
    suite.write_text(f'{MATE_IN_1} bm Re8#; id "a";\nstartpos\n{ALSO_MATE_IN_1} am Re8#; id "b";\n')
    games.write_text("1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0\n\n1. d4 *\n")
    for file, count in ((suite, 3), (games, 9)):
        older = tmp_path / f"{file.suffix[1:]}.jsonl"
        deep = analyse_lines("--depth", "6", "--threads", "1", "--json", "--out", str(older), str(file))
        assert deep.returncode == 0
        words = ["--threads", "1", "--merge", str(older), str(file)]
        again = analyse_lines("--depth", "4", "--json", *words)
        assert (again.returncode, again.stderr.count("\n")) == (0, file == games)
        *first, before = results(older.read_text())
        *second, after = results(again.stdout)
        assert second == first
        assert after["summary"].pop("kept") == count
        assert after == before
        # deeper searches replace them
        assert results(analyse_lines("--depth", "7", "--json", *words).stdout)[-1]["summary"]["kept"] == 0
        text = analyse_lines("--depth", "4", *words)
        assert text.returncode == 0
        assert f"kept       {count} of {count} from older results" in text.stdout or file == games
    assert "2 games, 9 positions, " in text.stderr
    assert text.stderr.endswith(", 9 kept from older results\n")
    assert text.stdout.count(",6]") >= 7  # the depths in the comments
    # results of JSON lines are results, too
    lines = written(tmp_path / "lines.jsonl", [{"fen": MATE_IN_1}])
    deep = analyse_lines("--depth", "5", "--out", str(tmp_path / "deep.jsonl"), lines)
    assert deep.returncode == 0
    mixed = analyse_lines("--depth", "3", "--threads", "1", "--merge", str(tmp_path / "deep.jsonl"), str(suite))
    assert "kept       1 of 3 from older results" in mixed.stdout
    assert "solved     1 of 2" in mixed.stdout


def piped(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*PSEARCH, "analyse", *words, "-"], stdin=subprocess.PIPE, bufsize=1, **PIPES)


def test_a_pipe_is_answered_as_it_comes() -> None:
    """Each position is written when the result of the one before is there."""
    with piped(*NODES) as running:
        assert running.stdin is not None and running.stdout is not None and running.stderr is not None
        asked = iter(enumerate(positions(36)))

        def seconds_of_eleven() -> float:
            began: list[float] = []
            for number, one in islice(asked, 12):
                running.stdin.write("# said before\n" + json.dumps(one) + "\n")
                assert json.loads(running.stdout.readline())["id"] == f"p{number}"
                began.append(time.monotonic())
            return began[-1] - began[0]

        assert least(seconds_of_eleven, 1.5) < 1.5  # without being told it looks five times a second
        running.stdin.write('{"id": "no line feed"}')
        running.stdin.close()
        assert json.loads(running.stdout.readline())["id"] == "no line feed"
        assert (running.stdout.read(), running.stderr.read()) == ("", "")
        assert running.wait(LINES_TIMEOUT_S) == 0


def test_a_bad_line_of_a_pipe_ends_it_behind_the_results_of_those_before() -> None:
    with piped(*NODES) as running:
        asked = "".join(json.dumps(one) + "\n" for one in positions(20))
        out, err = running.communicate(asked + "{}\n{\n{}\n", timeout=LINES_TIMEOUT_S)
    assert running.returncode == 2
    assert [one["id"] for one in results(out)] == [f"p{number}" for number in range(20)] + [21]
    assert err == "psearch: standard input, line 22: not a JSON object\n"


def test_a_pipe_is_interrupted_while_nothing_comes() -> None:
    with piped(*NODES) as running:
        running.stdin.write('{"id": 1}\n')
        assert json.loads(running.stdout.readline())["id"] == 1
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=LINES_TIMEOUT_S)
    assert (running.returncode, out, err) == (130, "", "psearch: interrupted\n")


def test_a_pipe_whose_result_goes_to_a_file_goes_on(tmp_path: Path) -> None:
    """A journal needs the whole input first."""
    out = tmp_path / "out.jsonl"
    text = "".join(json.dumps(one) + "\n" for one in positions(30))
    assert analyse_lines(*NODES, "--out", str(out), "-", text=text).returncode == 0
    assert timeless(results(out.read_text())) == timeless(results(analyse_lines(*NODES, "-", text=text).stdout))


def test_a_fifo_without_a_line(tmp_path: Path) -> None:
    fifo = tmp_path / "x.jsonl"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_text, args=("# nothing\n",))
    writer.start()
    done = analyse_lines(str(fifo))
    writer.join()
    assert (done.returncode, done.stderr) == (2, f"psearch: {fifo} has no positions\n")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "in.jsonl, line 2: not a JSON object"),
        ('{"id": 1.5}', "line 2: id must be text or a whole number"),
        ('{"fen": 3}', "line 2: fen must be text"),
        ('{"moves": "e4"}', "line 2: moves must be in UCI notation"),
        ('{"limits": {"deep": 3}}', "line 2: limits must be an object with depth, nodes or movetime"),
        ('{"limits": {"depth": 0}}', "line 2: depth must be a whole number from 1 to 100"),
        ('{"multipv": true}', "line 2: multipv must be a whole number"),
    ],
)
def test_lines_that_cannot_be_read(tmp_path: Path, line: str, reason: str) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": 1}\n' + line + "\n")
    done = analyse_lines(*NODES, str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    file = written(tmp_path / "in.jsonl", positions(1))
    suite = tmp_path / "x.epd"
    suite.write_text("startpos\n")
    for words, reason in (
        (["--merge", str(suite), file], "x.epd, line 1: not a JSON object; merged files must hold JSON lines"),
        (["--merge", "-", "-"], "standard input can be read only once"),
        (["--jobs", "0", file], "from 1 to"),
        (["--syzygy", str(tmp_path), file], "no Syzygy tables"),
        ([file, str(suite)], "analyse them in two calls"),
    ):
        done = analyse_lines(*NODES, *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert reason in done.stderr
        assert done.stderr.count("\n") == 1


def lines_of(journal: Path) -> int:
    """Return the number of whole lines of a journal, its heading with them."""
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def killed_at_random(tmp_path: Path, moments: int, count: int, seed: int) -> tuple[int, int]:
    """Kill the whole group at so many random moments, single workers in between, and let it end. Lines of the journal
    before the last run, and runs that were killed before the end. A moment is a number of further lines in the journal
    and up to 20 ms more, not a time: a fast machine would have ended by then, a slow one not begun."""
    chance = random.Random(seed)
    out = tmp_path / "out.jsonl"
    journal = Path(f"{out}.journal")
    file = written(tmp_path / "in.jsonl", positions(count))
    command = [*PSEARCH, "analyse", *NODES, "--threads", "1", "--jobs", "2", "--out", str(out), file]
    expected = timeless(results(analyse_lines(*NODES, "--threads", "1", file).stdout))
    killed = 0
    for moment in range(moments):
        enough = lines_of(journal) + chance.randint(0, count // (2 * moments))
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as running:
            while running.poll() is None and lines_of(journal) < enough:
                time.sleep(0.01)
                if moment % 2 and chance.random() < 0.02:
                    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
                    if running.poll() is None and (pids := children.read_text().split()):
                        os.kill(int(chance.choice(pids)), signal.SIGKILL)
            time.sleep(chance.uniform(0, 0.02))
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                killed += 1
        if out.exists():
            break
    kept = lines_of(journal) - 1
    if journal.exists():
        keys = [json.loads(line)["key"] for line in journal.read_text().splitlines()[1:] if line.endswith("}")]
        assert len(set(keys)) == len(keys)
    if not out.exists():
        assert subprocess.run(command, stderr=subprocess.DEVNULL, timeout=LINES_TIMEOUT_S).returncode == 0
    assert timeless(results(out.read_text())) == expected
    assert not journal.exists()
    return kept, killed


@pytest.mark.parametrize(
    ("moments", "count"), [(3, 1_000), pytest.param(20, 6_000, marks=pytest.mark.slow)], ids=["three", "twenty"]
)
def test_killed_at_random_moments(tmp_path: Path, moments: int, count: int) -> None:
    kept, killed = killed_at_random(tmp_path, moments, count, seed=moments)
    print(f"{killed} runs killed, {kept} positions in the journal before the last run")
    assert kept > 0
    assert killed == moments


def test_a_position_that_kills_is_reported_and_the_rest_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_pool, "__defaults__", (*make_pool.__defaults__[:-1], fake_workers.Poisoned))

    def run(name: str, text: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / name
        file.write_text(text)
        done = analyse_lines("--nodes", "500", "--jobs", "2", str(file))
        assert done.returncode == 1
        assert done.stderr.count(" is replaced: it was killed by signal 9") == 3
        return done

    lines = [{"fen": chess.STARTING_FEN}] * 4 + [{"fen": fake_workers.POISON}] + [{"fen": chess.STARTING_FEN}] * 4
    found = results(run("x.jsonl", "".join(json.dumps(one) + "\n" for one in lines)).stdout)
    assert ["error" in one for one in found] == [False] * 4 + [True] + [False] * 4
    suite = run("x.epd", f'startpos\n{fake_workers.POISON} bm a3; id "p";\nstartpos\n')
    assert ["p", "failed"] in [line.split()[:3] for line in suite.stdout.splitlines()]
    assert "its process was lost 3 times" in suite.stderr
    assert "searched   1,000 nodes" in suite.stdout
    games = run("x.pgn", f'[SetUp "1"]\n[FEN "{fake_workers.POISON}"]\n\n1. a3 Kd7 *\n')
    assert games.stdout.count("[%eval") == 2
    assert "x.pgn, game 1, ply 0: its process was lost 3 times" in games.stderr
