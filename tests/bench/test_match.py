"""The match runner: its judgement of engines that misbehave, its journal, its ends."""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path

import chess.pgn
import fit_wdl
import match as runner
import pytest
from fitting.positions import quiet_positions
from matchplay.scripts import MatchError
from netdata.blocks import read_blocks
from netdata.reader import Reader
from paths import BENCH, REPOSITORY, SUPPORT
from programs import assert_gone
from timing import wait_until

from psearch.results import PsearchError
from psearch_core.chess.tables import make_tables

MATCH = BENCH / "match" / "match.py"
FAKE = SUPPORT / "fake_engine.py"
TIMEOUT_S = 240.0


def fake(*arguments: str) -> str:
    command = " ".join([sys.executable, str(FAKE), *(f'"{word}"' if " " in word else word for word in arguments)])
    return f"cmd='{command}'"


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(MATCH), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def match(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout, stderr; nothing may be left running."""
    process = start(folder, *arguments)
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    return process.returncode, out, err


def engines_left(folder: Path) -> list[str]:
    """Command lines of fake engines that still run, wherever: they are in groups of their own. The runner names them in
    its own command line, and is none."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_text(errors="replace").split("\0")
                if str(FAKE) in words and (entry / "cwd").resolve() == folder.resolve():
                    found.append(" ".join(words))
            except OSError:
                continue
    return found


def games_of(path: Path) -> list[chess.pgn.Game]:
    with path.open() as file:
        games = []
        while (game := chess.pgn.read_game(file)) is not None:
            assert not game.errors
            games.append(game)
    return games


def test_psearch_against_itself(tmp_path: Path) -> None:
    """A whole match: pairs with both colours, PGN with scores and times, summary; no complaint."""
    status, out, err = match(tmp_path, "--nodes", "400", "--games", "4", "--most-moves", "40", "--out", "m")
    assert (status, err) == (0, "")
    assert "games 4:" in out
    summary = json.loads((tmp_path / "m.json").read_text())
    assert summary["games"] == summary["wins"] + summary["draws"] + summary["losses"] == 4
    assert sum(summary["pairs"]) == 2
    assert summary["complaints"] == []
    assert all(name.startswith("psearch") for name in summary["id_names"])
    assert summary["machine"]["cores"] >= 1
    games = games_of(tmp_path / "m.pgn")
    assert sorted((game.headers["Round"], game.headers["White"], game.headers["Black"]) for game in games) == [
        ("1.1", "psearch-1", "psearch-2"),
        ("1.2", "psearch-2", "psearch-1"),
        ("2.1", "psearch-1", "psearch-2"),
        ("2.2", "psearch-2", "psearch-1"),
    ]
    for game in games:
        played = [node for node in game.mainline() if node.emt() is not None]
        assert len(played) > 5
        assert all(node.eval() is not None and node.eval_depth() for node in played)


def test_psearch_keeps_its_clock(tmp_path: Path) -> None:
    status, out, err = match(tmp_path, "--tc", "3+0.1", "--games", "2", "--most-moves", "12", "--out", "m")
    assert (status, err) == (0, "")
    assert "least left" in out
    for game in games_of(tmp_path / "m.pgn"):
        clocks = [node.clock() for node in game.mainline() if node.emt() is not None]
        # a game may be drawn by repetition before its twelfth move
        assert len(clocks) == 24 or game.end().board().is_game_over(claim_draw=True)
        assert len(clocks) > 5
        assert all(clock is not None and 0 < clock <= 4.3 for clock in clocks)


@pytest.mark.parametrize(
    ("fault", "kind", "arguments"),
    [
        ("illegal", "illegal", ("--tc", "20+0")),
        ("null", "no move", ("--tc", "20+0")),
        ("none", "no move", ("--tc", "20+0")),
        ("die", "died", ("--tc", "20+0")),
        ("slow", "time", ("--tc", "1+0")),
        ("slow", "time", ("--movetime", "0.7")),
        ("hang", "stall", ("--tc", "0.5+0.1", "--stall", "1")),
        ("claim", "mate claim", ("--tc", "20+0", "--most-moves", "12")),
    ],
)
def test_faults(tmp_path: Path, fault: str, kind: str, arguments: tuple[str, ...]) -> None:
    """Each fault is reported, costs the game where the rules say so, and the match goes on; psearch's is status 1."""
    guilty = fake("--name", "psearch-fake", "--fault", fault)
    status, out, err = match(tmp_path, "--first", guilty, "--second", fake(), "--games", "2", "--out", "m", *arguments)
    summary = json.loads((tmp_path / "m.json").read_text())
    assert [complaint["kind"] for complaint in summary["complaints"]] == [kind, kind]
    assert status == 1
    assert f"COMPLAINT game 2, python-1: {kind}: " in out or f"COMPLAINT game 2, {Path(sys.executable).name}" in out
    assert kind in err
    assert summary["games"] == 2
    if kind != "mate claim":
        assert summary["losses"] == 2
    if fault == "die":
        assert "(out of luck)" in out
    wait_until(lambda: not engines_left(tmp_path))


def test_a_fault_of_another_engine_is_no_failure(tmp_path: Path) -> None:
    status, out, _ = match(
        tmp_path, "--first", fake(), "--second", fake("--fault", "illegal"), "--games", "2", "--depth", "1"
    )
    assert status == 0
    assert out.count("COMPLAINT") == 2


def test_xboard_is_spoken(tmp_path: Path) -> None:
    """An engine that answers UCI only is refused in one line, and nothing stays behind."""
    status, out, err = match(
        tmp_path, "--first", fake() + " proto=xboard", "--second", fake(), "--tc", "5", "--out", "m"
    )
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "does not start" in err
    assert not (tmp_path / "m.jsonl").exists()
    wait_until(lambda: not engines_left(tmp_path))


def test_thrown_away_is_listed(tmp_path: Path) -> None:
    """Both shuffle, one says it is winning; the rook ending is drawn by repetition."""
    (tmp_path / "book.fen").write_text("8/8/8/8/8/k7/8/K6R w - - 0 1\n")
    winning = fake("--say", "score cp 500")
    status, out, _ = match(
        tmp_path, "--first", winning, "--second", fake("--say", "score cp -500"), "--games", "2", "--depth", "1",
        "--book", "book.fen", "--out", "m",
    )  # fmt: skip
    assert status == 0
    summary = json.loads((tmp_path / "m.json").read_text())
    assert summary["draws"] == 2
    assert [entry for entry in summary["thrown_away"] if "at +5.00" in entry["text"]]
    assert "thrown away, game" in out


def test_repeated_openings_are_reported(tmp_path: Path) -> None:
    (tmp_path / "book.fen").write_text("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1\n")
    arguments = ("--first", fake(), "--second", fake(), "--depth", "1", "--book", "book.fen", "--most-moves", "3")
    status, out, err = match(tmp_path, *arguments, "--games", "4", "--out", "b")
    assert (status, err) == (0, "match.py: 2 pairs from 1 openings: openings are repeated\n")
    assert "length 4" in out


def test_adjudication(tmp_path: Path) -> None:
    lost, won = fake("--say", "score cp -700"), fake("--say", "score cp 700")
    status, out, _ = match(
        tmp_path, "--first", won, "--second", lost, "--games", "2", "--depth", "1", "--resign", "600,4", "--out", "m"
    )
    assert status == 0
    assert "adjudication 2" in out
    games = games_of(tmp_path / "m.pgn")
    assert [game.headers["Result"] for game in games] == ["1-0", "0-1"]
    assert {len([node for node in game.mainline() if node.emt() is not None]) for game in games} == {8}
    status, out, _ = match(
        tmp_path, "--first", fake(), "--second", fake(), "--games", "2", "--depth", "1", "--draw", "30,3,5"
    )
    assert "=2" in out and "adjudication 2" in out


def test_sprt_ends_the_match(tmp_path: Path) -> None:
    status, out, _ = match(
        tmp_path, "--first", fake(), "--second", fake("--fault", "illegal", "--at", "1"), "--games", "5000",
        "--depth", "1", "--sprt", "0,50", "--concurrency", "2", "--out", "m",
    )  # fmt: skip
    assert status == 0
    assert "H1 accepted" in out
    summary = json.loads((tmp_path / "m.json").read_text())
    assert 2 * 2 <= summary["games"] < 500
    assert summary["sprt"]["llr"] >= summary["sprt"]["bounds"][1]


def test_resumed_after_a_kill(tmp_path: Path) -> None:
    """SIGKILL while games are under way, a torn line, a PGN that got further: all games are there once, no more."""
    arguments = (
        "--first", fake("--wait", "0.004"), "--second", fake("--wait", "0.004", "--say", "score cp 1"),
        "--games", "24", "--depth", "1", "--concurrency", "2", "--most-moves", "20", "--out", "m",
    )  # fmt: skip
    journal, pgn = tmp_path / "m.jsonl", tmp_path / "m.pgn"
    process = start(tmp_path, *arguments)
    wait_until(lambda: journal.exists() and journal.read_bytes().count(b'"game"') >= 5, 120)
    os.killpg(process.pid, signal.SIGKILL)  # the runner and its processes for games; engines have groups of their own
    process.communicate()
    wait_until(lambda: not engines_left(tmp_path))
    assert_gone(process.pid)
    kept = [line for line in journal.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    journal.write_bytes(b"".join(kept) + b'{"game": {"number": 99')
    with pgn.open("a") as file:
        file.write('[Event "torn"]\n\n1. e4 ')
    status, _, err = match(tmp_path, *arguments)
    assert (status, err.count("\n")) == (2, 1)
    assert "--resume" in err
    status, _, err = match(tmp_path, *arguments, "--resume", "--margin", "5")
    assert (status, err.count("\n")) == (2, 1)
    assert "rules.margin_s was 0.0, is 0.005" in err
    status, out, _ = match(tmp_path, *arguments, "--resume")
    assert status == 0
    assert "games 24:" in out
    assert journal.read_bytes().startswith(b"".join(kept))
    numbers = [json.loads(line)["game"]["number"] for line in journal.read_text().splitlines() if '"game"' in line]
    assert sorted(numbers) == list(range(24))
    rounds = [game.headers["Round"] for game in games_of(pgn)]
    assert sorted(rounds) == sorted(f"{pair}.{half}" for pair in range(1, 13) for half in (1, 2))
    # nothing more to play: the same result again
    assert match(tmp_path, *arguments, "--resume")[1] == out


def test_the_runner_alone_is_killed(tmp_path: Path) -> None:
    """Its processes for games see that, and end their engines."""
    process = start(tmp_path, "--first", fake("--fault", "hang"), "--second", fake(), "--tc", "500", "--out", "m")
    wait_until(lambda: len(engines_left(tmp_path)) == 2, 60)
    process.kill()
    process.communicate()
    wait_until(lambda: not engines_left(tmp_path))
    assert_gone(process.pid)


def test_a_game_s_process_is_killed(tmp_path: Path) -> None:
    """One line, what was played is kept, and no engine is left."""
    process = start(tmp_path, "--first", fake("--fault", "hang"), "--second", fake(), "--tc", "500", "--out", "m")
    wait_until(lambda: len(engines_left(tmp_path)) == 2, 60)
    (seat,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(seat), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.count("\n") == 1 and "--resume goes on" in err
    wait_until(lambda: not engines_left(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    process = start(
        tmp_path, "--first", fake("--wait", "0.002"), "--second", fake("--wait", "0.002"), "--games", "10000",
        "--depth", "1", "--most-moves", "10", "--concurrency", "2", "--out", "m",
    )  # fmt: skip
    journal = tmp_path / "m.jsonl"
    wait_until(lambda: journal.exists() and journal.read_bytes().count(b'"game"') >= 3, 120)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    summary = json.loads((tmp_path / "m.json").read_text())
    assert summary["interrupted"] and summary["games"] >= 3
    assert f"games {summary['games']}:" in out
    wait_until(lambda: not engines_left(tmp_path))
    assert_gone(process.pid)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "no limit"),
        (("--nodes", "5", "--games", "0"), "--games"),
        (("--nodes", "5", "--tc", "1"), "not allowed with"),
        (("--nodes", "5", "--sprt", "5,0"), "--sprt"),
        (("--nodes", "5", "--sprt", "0,500"), "--sprt"),
        (("--nodes", "5", "--sprt-model", "logistic"), "needs --sprt"),
        (("--nodes", "5", "--resign", "600"), "--resign"),
        (("--nodes", "5", "--resume"), "needs --out"),
        (("--nodes", "5", "extra"), "extra"),
        (("--tc", "x"), "time control"),
        (("--nodes", "5", "--book", "no.epd"), "cannot read no.epd"),
        (("--nodes", "5", "--first", "option.Nonsense=1"), "Nonsense"),
        (("--nodes", "5", "--out", "no/such/m"), "cannot write"),
        (("--nodes", "5", "--resume", "--out", "m"), "no match to resume"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)  # a match would hear Ctrl-C from then on
    with pytest.raises(MatchError) as refused:
        runner.run(arguments)
    assert reason in str(refused.value) and "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


GAMES = REPOSITORY / "bench" / "training" / "games"
BAD = [
    "8/8/8/8/8/8/8/8 w - - 0 1",
    "8/8/8/8/8/8/8/K7 w - - 0 1",
    "8/8/8/8/8/8/8/k7 b - - 0 1",
    "k7/8/8/8/8/8/8/KK6 w - - 0 1",
    "kk6/8/8/8/8/8/8/K7 w - - 0 1",
    "k6R/8/8/8/8/8/8/K7 w - - 0 1",
    "k7/8/8/8/8/8/8/K6P w - - 0 1",
    "kP6/8/8/8/8/8/8/K7 w - - 0 1",
    "k7/QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/K7 b - - 0 1",
    "k7/8/8/8/8/8/8/K7/8/8 w - - 0 1",
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkk w - - 0 1",
    "hello",
]


boards = pytest.mark.parametrize("fen", BAD)


@boards
def test_games_of_a_block_are_refused(fen: str) -> None:
    found = next(iter(read_blocks(next(GAMES.glob("*.games")))))
    reader = Reader()
    assert len(reader.game(found.games[0]))
    with pytest.raises((ValueError, PsearchError)):
        reader.game(found.games[0]._replace(fen=fen))


@boards
def test_positions_to_be_fitted_are_refused(fen: str, tmp_path: Path) -> None:
    good = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1;20;0.5\n"
    text, packed = tmp_path / "some.txt", tmp_path / "some.xz"
    text.write_text(good)
    assert len(quiet_positions(text, make_tables())[0]) == 1
    text.write_text(f"{good}{fen};20;0.5\n{good}")
    with pytest.raises(ValueError, match=r"some\.txt: position 2 is not legal"):
        quiet_positions(text, make_tables())
    packed.write_bytes(lzma.compress(text.read_bytes()))
    with pytest.raises((ValueError, PsearchError)):
        fit_wdl.read_sample(packed, 3, 1)
