"""Matches between programs, and games in this process: misbehaving engines, the journal, odds, changes, cells."""

from __future__ import annotations

import json
import lzma
import math
import os
import random
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import chess.pgn
import fit_wdl
import match as runner
import numpy as np
import pytest
from fitting.positions import quiet_positions
from gate import _read, cells, rounds
from matchplay.scripts import EXIT_BAD_INPUT, MatchError
from matchplay.time_odds import report, worth
from netdata.blocks import read_blocks
from netdata.reader import Reader
from paths import BENCH, REPOSITORY, SUPPORT
from programs import PIPES, assert_gone, run_bench
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
    return subprocess.Popen([sys.executable, str(MATCH), *arguments], cwd=folder, start_new_session=True, **PIPES)


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


def test_an_engine_that_ends_between_games_loses_none(tmp_path: Path) -> None:
    """Its third move is the last one of the first game; it is started anew, and reported."""
    for first, second in ((fake("--leave", "3"), fake()), (fake(), fake("--leave", "3"))):
        status, out, _ = match(
            tmp_path, "--first", first, "--second", second, "--games", "2", "--depth", "1", "--most-moves", "3"
        )
        assert status == 0 and "+0 =2 -0" in out
        assert out.count("COMPLAINT") == out.count("ended between games (exit status 0)") == 1, out


def test_a_button_is_pressed_once(tmp_path: Path) -> None:
    guilty = fake("--heard", "heard.txt") + " 'option.Clear Hash=' option.Hash=2"
    status, _, _ = match(
        tmp_path, "--first", guilty, "--second", fake(), "--games", "2", "--depth", "1", "--most-moves", "3"
    )
    heard = (tmp_path / "heard.txt").read_text().splitlines()
    assert status == 0 and heard.count("setoption name Clear Hash") == 1 and heard.count("go depth 1") == 6


def test_what_an_engine_cannot_play_ends_the_match_in_a_line(tmp_path: Path) -> None:
    status, out, err = match(
        tmp_path, "--first", fake(), "--second", fake(), "--games", "2", "--depth", "1", "--chess960", "--out", "m"
    )
    assert status != 0 and err.count("\n") == 1 and "UCI_Chess960" in err and "COMPLAINT" not in out
    wait_until(lambda: not engines_left(tmp_path))


def test_uci_engines_claim_no_draws(tmp_path: Path) -> None:
    """In a rook ending both shuffle; the seventh move could be the third repetition."""
    (tmp_path / "book.fen").write_text("8/8/8/8/8/k7/8/K6R w - - 4 1\n")
    status, out, _ = match(
        tmp_path, "--first", fake("--fault", "null", "--at", "4"), "--second", fake(), "--games", "2", "--depth", "1",
        "--book", "book.fen",
    )  # fmt: skip
    assert status == 0 and "draw claimed" not in out and out.count("COMPLAINT") == 2


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


GAMES = REPOSITORY / "bench" / "training" / "games" / "manifest.games"
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
    found = next(iter(read_blocks(GAMES)))
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


def script(name: str, *words: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a script."""
    done = run_bench(f"match/{name}.py", *words)
    return done.returncode, done.stdout, done.stderr


def test_games_are_counted_and_the_same_again(kernels: None, book: Path) -> None:
    """Against itself every pair is one point."""
    words = ("--nodes", "300", "--games", "6", "--book", str(book))
    status, out, err = script("quick", "--second", "modern", *words)
    assert (status, err) == (0, "")
    assert "6 games, pairs [0, 0, 3, 0, 0]: Elo +0.0, all pairs alike: no interval" in out
    first = script("quick", "--second", "plain", *words, "--jobs", "1")
    assert first[0] == 0 and "6 games" in first[1]
    assert script("quick", "--second", "plain", *words, "--jobs", "2") == first


def test_pairs_are_played_and_written(kernels: None, book: Path, tmp_path: Path) -> None:
    """Sides that play alike but for something that never happens at 300 nodes draw each pair."""
    log = tmp_path / "log.jsonl"
    words = ("null_verify_depth=90:99", "singular_depth=80:90+double_margin=1:2", "--nodes", "300", "--games", "4")
    status, out, err = script("factors", *words, "--book", str(book), "--skip", "1", "--log", str(log), "--jobs", "1")
    assert (status, out, err) == (0, "2 pairs: too few for 3 values\n", "")
    head, *rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert head["changes"] == ["null_verify_depth=90:99", "singular_depth=80:90+double_margin=1:2"]
    assert [row["half_points"] for row in rows] == [2, 2]
    assert all(abs(sign) == 1 for row in rows for sign in row["signs"])


def test_the_table_finds_what_was_put_in(tmp_path: Path) -> None:
    """Results drawn with +69 Elo for one change (a score of 0.6) and nothing for the other."""
    dice = random.Random(16)
    lines = [{"changes": ["lmr_base=60:100", "probcut=0:1"]}]
    for _ in range(4000):
        signs = [dice.choice((-1, 1)), dice.choice((-1, 1))]
        won = sum(dice.random() < 0.5 + 0.1 * signs[0] for _ in range(2))
        lines.append({"signs": signs, "half_points": 2 * won})
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    packed = log.with_suffix(".jsonl.xz")
    packed.write_bytes(lzma.compress(log.read_bytes()))
    status, out, err = script("factors", "--read", str(log))
    assert (status, err) == (0, "")
    assert script("factors", "--read", str(packed)) == (0, out, "")
    log.write_text(log.read_text() + '{"signs": [1, ')  # killed within a line
    assert script("factors", "--read", str(log)) == (0, out, "")
    packed.write_bytes(packed.read_bytes()[:-50])
    assert script("factors", "--read", str(packed))[0] == EXIT_BAD_INPUT
    title, *rows = out.splitlines()
    assert title.startswith("8000 games")
    found = {row.split()[-1]: (float(row.split()[0]), float(row.split()[2])) for row in rows}
    for name, expected in (("first", 0), ("lmr_base=60:100", 69.5), ("probcut=0:1", 0)):
        elo, half_width = found[name]
        assert 6 < half_width < 9
        assert abs(elo - expected) < 1.5 * half_width


def test_logs_of_different_changes_are_pooled(tmp_path: Path) -> None:
    """A change that both logs have is worth a score of 0.6 in each, one that only the second has 0.4 there."""
    dice = random.Random(17)
    logs = []
    designs: list[tuple[list[str], list[float], str | None]] = [
        (["probcut=0:1", "lmr_base=60:100"], [0, 0.1], None),
        (["lmr_base=60:100", "iid=0:1"], [0.1, -0.1], "sound"),
    ]
    for names, shares, second in designs:
        lines: list[dict[str, object]] = [{"changes": names, "first": "modern", "second": second}]
        for _ in range(3000):
            signs = [dice.choice((-1, 1)) for _ in names]
            chance = (0.55 if second else 0.5) + sum(sign * one for sign, one in zip(signs, shares, strict=True))
            won = sum(dice.random() < chance for _ in range(2))
            lines.append({"signs": signs, "half_points": 2 * won})
        logs.append(tmp_path / f"{len(logs)}.jsonl")
        logs[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
    status, out, err = script("factors", "--read", *map(str, logs))
    assert (status, err) == (0, "")
    title, *rows = out.splitlines()
    assert title.startswith("12000 games")
    found = [(row.split("  ")[-1], float(row.split()[0]), float(row.split()[2])) for row in rows]
    expected = {
        "modern against modern": (0, 9),
        "modern against sound": (35, 9),
        "probcut=0:1": (0, 9),
        "lmr_base=60:100": (70, 6),
        "iid=0:1": (-70, 9),
    }
    assert [name for name, _, _ in found] == list(expected)
    for name, elo, half_width in found:
        assert abs(elo - expected[name][0]) < 1.5 * half_width
        assert half_width == pytest.approx(expected[name][1], abs=1.5)


def test_changes_that_are_always_made_together_are_not_told_apart(tmp_path: Path) -> None:
    dice = random.Random(5)
    log = tmp_path / "log.jsonl"
    lines: list[dict[str, object]] = [{"changes": ["probcut=0:1", "iid=0:1", "iir=0:1"], "first": "modern"}]
    for _ in range(50):
        one, other = dice.choice((-1, 1)), dice.choice((-1, 1))
        lines.append({"signs": [one, other, other], "half_points": dice.randrange(5)})
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = script("factors", "--read", str(log))[1]
    assert [line.startswith("not told apart") for line in out.splitlines()[1:]] == [False, False, True, True]


def pairs_at(odds: float, level: float, doubling_elo: float, seed: int, number: int = 2000) -> list[int]:
    """Pairs of games without draws against a side that is `doubling_elo` stronger for each doubling beyond `level`."""
    score = 1 / (1 + 10 ** (doubling_elo * math.log2(odds / level) / 400))
    won = np.random.default_rng(seed).binomial(2, score, number)
    return [int((won == points).sum()) for points in (0, 0.5, 1, 1.5, 2)]


@pytest.mark.parametrize("level", [3.0, 4.6, 7.0])
def test_the_odds_behind_the_games_are_found(level: float) -> None:
    held = 0
    for seed in range(10):
        found = worth({k: pairs_at(k, level, 100, 100 * seed + int(10 * k)) for k in (3.0, 4.5, 6.0)})
        assert found.odds == pytest.approx(level, rel=0.2)
        assert found.doubling_elo == pytest.approx(100, abs=40)
        held += found.low < level < found.high
    assert held >= 8, "95% of the intervals hold the truth"


def test_intervals_shrink_with_games() -> None:
    wide, narrow = (worth({k: pairs_at(k, 4, 100, 1, n) for k in (3.0, 6.0)}) for n in (100, 10_000))
    ratio = math.log(wide.high / wide.low) / math.log(narrow.high / narrow.low)
    assert 6 < ratio < 20, "ten times, for a hundred times the games"


def test_the_report() -> None:
    text = report("8 workers", "1 worker", {3.0: [0, 2, 6, 8, 4], 6.0: [4, 8, 6, 2, 0]})
    assert "| x3 | 40 | [0, 2, 6, 8, 4] | +127.0 +- 80.0 |" in text
    assert "8 workers are worth x4.2 the time of 1 worker (3.6 to 5); twice the time is worth 251 Elo" in text
    outside = report("8 workers", "1 worker", {3.0: [0, 2, 6, 8, 4], 3.5: [0, 3, 6, 8, 3]})
    assert outside.endswith("; outside the odds played")
    assert "no gain from more time" in report("8 workers", "1 worker", {3.0: [0, 0, 4, 0, 0], 6.0: [0, 0, 4, 1, 0]})
    assert "worth" not in report("8 workers", "8 workers (lazy)", {1.0: [0, 2, 6, 8, 4]}), (
        "one of the odds says nothing"
    )


def test_without_mercy() -> None:
    """One side wins everything: the fit has a place all the same, but nobody knows how certain it is."""
    pairs = {1.0: [0, 0, 0, 0, 20], 16.0: [20, 0, 0, 0, 0]}
    found = worth(pairs)
    assert found is not None and found.odds == pytest.approx(4.0) and math.isnan(found.low) and math.isnan(found.high)
    assert "x4 the time of b (no interval);" in report("a", "b", pairs)


def test_games_go_on_where_they_were(kernels: None, book: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ("--first", "2", "--nodes", "200", "--odds", "1,4", "--book", str(book), "--out", str(log))
    status, out, err = script("odds", *words, "--games", "4")
    assert (status, err) == (0, "") and "| x1 | 4 |" in out and "| x4 | 4 |" in out
    about, *games = map(json.loads, log.read_text().splitlines())
    assert about["about"]["first"] == {"workers": 2, "policy": "calibrated", "driver": "auto"}
    assert about["about"]["nodes"] == 200
    assert [(game["odds"], game["pair"], game["white"]) for game in games] == [
        (k, pair, white) for pair in (0, 1) for k in (1.0, 4.0) for white in (0, 1)
    ]
    assert {game["position"] for game in games} <= set(book.read_text().splitlines())

    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:4]) + lines[4][:30])  # killed within a line
    status, out, err = script("odds", *words, "--games", "6", "--resume")
    assert (status, err) == (0, "")
    again = [json.loads(line) for line in log.read_text().splitlines()]
    assert "resumed" in again[4] and again[1:4] + again[5:10] == games, "the same games"
    assert len(again) == 14
    assert script("odds", "--from-log", str(log)) == (0, out, "")

    other = tmp_path / "other.jsonl"
    other.write_text(log.read_text())
    assert script("odds", "--from-log", str(log), str(other)) == (0, out, ""), "the same game counts once"

    about["about"]["costs"] = {"node": 300.0}
    other.write_text("".join(json.dumps(line) + "\n" for line in (about, *games)))
    both = script("odds", "--from-log", str(log), str(other))[1]
    assert both.count(" nodes a move:") == 2, "other costs, other games"
    status, out, err = script("odds", *words[:-1], str(other), "--games", "6", "--resume")
    assert (status, out) == (2, "") and "costs" in err
    other.write_text(log.read_text())

    status, out, err = script("odds", *words[:-1], str(other), "--games", "6", "--nodes", "300", "--resume")
    assert (status, out) == (2, "") and "nodes was 200, is 300" in err
    status, out, err = script("odds", *words, "--games", "6")
    assert (status, out) == (2, "") and "--resume goes on with it" in err


SMALL = ("--workers", "2", "--nodes", "200", "--hash", "1", "--second", "lazy", "--round", "2")


def test_cells_that_take_least_time_come_first() -> None:
    options = _read(["--out", "x", "--workers", "2,8", "--nodes", "1000,4000", "--games", "60", "--limit", "4000=20"])
    found = cells(options)
    assert len(found) == 2 * 2 * 2 * 2 and len({cell.name for cell in found}) == len(found)
    assert [cell.nodes * cell.workers for cell in found] == sorted(cell.nodes * cell.workers for cell in found)
    games = {cell: number for cell, number in rounds(options)}
    assert {number for cell, number in games.items() if cell.nodes == 4000} == {20}
    assert {number for cell, number in games.items() if cell.nodes == 1000} == {60}


def test_a_run_goes_on_where_it_was(kernels: None, book: Path, tmp_path: Path) -> None:
    out = tmp_path / "logs"
    words = (*SMALL, "--book", str(book), "--out", str(out))
    done = run_bench("match/gate.py", *words, "--games", "2")
    assert done.returncode == 0 and done.stdout.count("| `calibrated`, `lazy` | 2 |") == 2
    logs = {path.name: path.read_text().splitlines() for path in out.iterdir()}
    assert set(logs) == {"2-calibrated-lazy-200-far.jsonl", "2-calibrated-lazy-200-near.jsonl"}
    about = json.loads(logs["2-calibrated-lazy-200-near.jsonl"][0])["about"]
    assert about["costs"]["transfer"] < 100 and about["second"]["policy"] == "lazy"
    again = run_bench("match/gate.py", *words, "--games", "4", "--costs", "far")
    assert again.returncode == 0 and "| 2 | far | 200 | 4 |" in again.stdout
    begun = out / "2-calibrated-lazy-200-near.jsonl"  # killed before the first game
    begun.write_text(begun.read_text().splitlines(keepends=True)[0])
    again = run_bench("match/gate.py", *words, "--games", "2", "--costs", "near")
    assert again.returncode == 0 and "| 2 | near | 200 | 2 |" in again.stdout, again.stderr
    more = (out / "2-calibrated-lazy-200-far.jsonl").read_text().splitlines()
    assert more[:3] == logs["2-calibrated-lazy-200-far.jsonl"] and len(more) == 6
    table = run_bench("match/gate.py", *words, "--table")
    assert "| 2 | far | 200 | 4 |" in table.stdout and "| 2 | near | 200 | 2 |" in table.stdout


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("quick", "--second modern,lmr=7 --games 4", "pruning parameter lmr"),
        ("quick", "--second modern --games 100", "need 50 different openings"),
        ("quick", "--second modern --sprt=0,-3", "two numbers of Elo"),
        ("quick", "--second modern --book /nowhere.epd", "cannot read"),
        ("factors", "lmr_base --log OUT", "a change is NAME=LOW:HIGH"),
        ("factors", "nothing=0:1 --log OUT", "no pruning parameter is called 'nothing'"),
        ("factors", "lmr_divisor=0:200 --log OUT", "lmr_divisor"),
        ("factors", "lmr_base=60:100 --games 100 --log OUT", "100 games need 50 different openings"),
        ("factors", "--read /nowhere.jsonl", "cannot read"),
        ("factors", "--log OUT", "some changes and a --log are needed"),
        ("odds", "--first 0", "must be a whole number from 1 to 1024"),
        ("odds", "--first 8,pvs,null", "one driver, not pvs and null"),
        ("odds", "--second 8,greedy", "the policy is one of"),
        ("odds", "--second 8,lazy,ybw", "the policy is one of"),
        ("odds", "--second 8,ports=2", "ports=2"),
        ("odds", "--second 8,roots=many", "roots=many"),
        ("odds", "--second 8,roots=-1", "roots must be from 0"),
        ("odds", "--costs /nowhere.json --out OUT --games 2", "cannot read costs"),
        ("odds", "--odds 3,3", "different numbers"),
        ("odds", "--odds 0,1", "different numbers"),
        ("odds", "--odds three", "different numbers"),
        ("odds", "", "--out LOG.jsonl and --book FILE are needed"),
        ("odds", "--out OUT --games 100", "need 50 different openings, and there are 3"),
        ("odds", "--out OUT --games 2 --resume", "does not exist"),
        ("odds", "--out /nowhere/log.jsonl --games 2", "cannot write"),
        ("odds", "--from-log BOOK", "line 1: not a line of this study's log"),
        ("odds", "--from-log /nowhere.jsonl", "cannot read"),
        ("gate", "", "--out"),
        ("gate", "--out OUT --limit 9", "NODES=GAMES"),
        ("gate", "--out OUT --workers 2,y", "whole number"),
        ("gate", "--out OUT --workers 2048 --table", "at most 1024"),
    ],
)
def test_bad_games_are_one_line(book: Path, tmp_path: Path, name: str, words: str, said: str) -> None:
    names = {"BOOK": str(book), "OUT": str(tmp_path / "log.jsonl")}
    given = [names.get(word, word) for word in words.split()]
    with pytest.raises((MatchError, PsearchError)) as refused:
        import_module(name).run([*given, *([] if "--book" in given else ["--book", str(book)])])
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_script_says_what_is_bad_in_one_line() -> None:
    status, out, err = script("gate", "--out", "x")
    assert (status, out) == (2, "") and err == "gate.py: --book FILE is needed, or --table\n"
