"""The match runner: its arithmetic against published figures, its judgement of engines that misbehave, its journal."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import chess
import chess.pgn
import match as runner
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matchplay.elo import PAIR_SCORES, Sprt, elo_of_score, moments, score_of_elo, strength
from matchplay.engines import TimeControl, parse_engine, parse_limit
from matchplay.errors import MatchError
from matchplay.game import Rules
from matchplay.mate_claims import MateClaims, thrown_away
from matchplay.openings import read_book
from matchplay.slot import Ready
from paths import BENCH, SUPPORT
from programs import processes_in_session

MATCH = BENCH / "match" / "match.py"
FAKE = SUPPORT / "fake_engine.py"
TIMEOUT_S = 240.0


# -- arithmetic ------------------------------------------------------------------------------------------------------

# (pairs with 0, 1/2, 1, 3/2, 2 points), elo0, elo1, LLR as published
LOGISTIC = [  # Stockfish pull requests 3209 (both), 2971, 3331: bounds were in logistic Elo then
    ((253, 4282, 17604, 4431, 286), -0.25, 1.25, 2.94),
    ((58, 3302, 33130, 3518, 84), 0.25, 1.25, 2.97),
    ((17, 253, 1042, 337, 39), -0.5, 1.5, 2.96),
    ((115, 2196, 11328, 2317, 136), -0.25, 1.25, 2.94),
]
NORMALISED = [  # Stockfish pull requests 5712 (both), 4194 (both), and an early small one of another engine
    ((831, 31795, 68460, 32448, 834), 0.0, 2.0, 2.93),
    ((307, 54901, 140959, 56230, 281), 0.5, 2.5, 2.95),
    ((371, 10263, 24989, 10642, 379), 0.0, 2.0, 2.95),
    ((47, 8181, 25234, 8575, 47), 0.5, 2.5, 2.94),
    ((0, 0, 1, 8, 1), 0.0, 50.0, 1.24),
]


@pytest.mark.parametrize(("pairs", "elo0", "elo1", "llr"), LOGISTIC)
def test_llr_of_published_tests_in_logistic_elo(pairs: tuple[int, ...], elo0: float, elo1: float, llr: float) -> None:
    assert Sprt(elo0, elo1, model="logistic").llr(pairs) == pytest.approx(llr, abs=0.006)


@pytest.mark.parametrize(("pairs", "elo0", "elo1", "llr"), NORMALISED)
def test_llr_of_published_tests_in_normalised_elo(pairs: tuple[int, ...], elo0: float, elo1: float, llr: float) -> None:
    assert Sprt(elo0, elo1).llr(pairs) == pytest.approx(llr, abs=0.006)


def test_elo_of_a_published_match() -> None:
    """fastchess on (1, 10, 78, 48, 13): Elo 72.85 +/- 22.33, nElo 132.30."""
    found = strength((1, 10, 78, 48, 13))
    assert found is not None
    assert found.pairs == 150
    assert found.elo == pytest.approx(72.85, abs=0.01)
    assert (found.high - found.low) / 2 == pytest.approx(22.33, abs=0.01)
    assert found.normalised_elo == pytest.approx(132.30, abs=0.01)
    assert found.los > 0.9999999


def test_bounds_and_decision() -> None:
    test = Sprt(0.0, 5.0)
    assert test.bounds == pytest.approx((-2.944438979, 2.944438979))
    assert Sprt(0, 5, alpha=0.01, beta=0.1).bounds == pytest.approx((math.log(0.1 / 0.99), math.log(0.9 / 0.01)))
    assert [test.decision(llr) for llr in (-3.0, -2.9, 2.9, 3.0)] == ["H0", None, None, "H1"]


@pytest.mark.parametrize(("elo", "score"), [(0, 0.5), (100, 0.640065), (-400, 1 / 11), (200, 0.759747)])
def test_elo_and_score(elo: float, score: float) -> None:
    assert score_of_elo(elo) == pytest.approx(score, abs=1e-6)
    assert elo_of_score(score) == pytest.approx(elo, abs=1e-3)


def test_results_without_spread() -> None:
    assert strength((0, 0, 0, 0, 0)) is None
    draws, wins = strength((0, 0, 9, 0, 0)), strength((0, 0, 0, 0, 9))
    assert draws is not None and wins is not None
    assert (draws.elo, draws.low, draws.high, draws.los, draws.normalised_elo) == (0.0, 0.0, 0.0, 0.5, 0.0)
    assert (wins.elo, wins.los) == (math.inf, 1.0)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(*[st.integers(0, 10) | st.integers(0, 10**6)] * 5).filter(any),
    st.floats(-90, 80),
    st.floats(1, 10),
    st.sampled_from(["logistic", "normalised"]),
)
def test_llr_is_finite_and_turns_with_the_colours(
    pairs: tuple[int, ...], elo0: float, width: float, model: str
) -> None:
    """What speaks for `elo1` against `elo0` speaks, seen from the other side, for -elo1 against -elo0."""
    llr = Sprt(elo0, elo0 + width, model=model).llr(pairs)
    assert math.isfinite(llr)
    mirrored = Sprt(-elo0 - width, -elo0, model=model).llr(pairs[::-1])
    assert llr == pytest.approx(-mirrored, rel=1e-6, abs=1e-9)


def test_near_the_normal_approximation() -> None:
    """Van den Bergh's approximation: N (s1 - s0) (2 s - s0 - s1) / (2 variance)."""
    pairs = (120, 900, 2100, 980, 150)
    mean, variance = moments(pairs)
    low, high = score_of_elo(1), score_of_elo(4)
    expected = sum(pairs) * (high - low) * (2 * mean - low - high) / (2 * variance)
    assert Sprt(1, 4, model="logistic").llr(pairs) == pytest.approx(expected, rel=0.01)
    assert len(PAIR_SCORES) == len(pairs)


# -- claims ----------------------------------------------------------------------------------------------------------


def claims(*mates: int | None) -> list[str | None]:
    made = MateClaims()
    return [made.move(f"position {number}", mate) for number, mate in enumerate(mates, 1)]


def test_a_mate_that_comes_in_time() -> None:
    assert claims(3, 2, 1) == [None, None, None]
    assert claims(5, None, 3, 2, 1) == [None] * 5


def test_a_mate_that_does_not_come() -> None:
    assert claims(2, None, None) == [None, None, "announced mate in 2 in position 1 and did not mate"]
    assert claims(1, 1)[1] == "announced mate in 1 in position 1 and did not mate"
    # a longer promise does not move the day
    assert claims(2, 5, 4)[2] == "announced mate in 2 in position 1 and did not mate"


def test_a_mate_announced_again() -> None:
    assert claims(3, 3, 3, 2, 1) == [None] * 5
    made = MateClaims()
    made.move("here", 4)
    assert made.end("repetition") == "announced mate in 4 in here: repetition"
    assert MateClaims().end("repetition") is None


def test_being_mated_is_no_promise() -> None:
    assert claims(-2, -1, None, None) == [None] * 4


def test_thrown_away() -> None:
    assert thrown_away("repetition", 300)
    assert not thrown_away("repetition", 299)
    assert not thrown_away("insufficient material", 900)
    assert not thrown_away("stalemate", None)


# -- what is given ---------------------------------------------------------------------------------------------------


def test_engines_and_limits() -> None:
    spec = parse_engine("name=a cmd='true --deep' option.Hash=16 'option.Clear Hash=' tc=40/60+0.5 proto=xboard", None)
    assert (spec.name, spec.command, spec.protocol) == ("a", ("true", "--deep"), "xboard")
    assert spec.options == {"Hash": "16", "Clear Hash": ""}
    assert spec.limit == TimeControl(base_s=60, increment_s=0.5, moves=40)
    assert parse_engine("", TimeControl(depth=3)).limit.depth == 3
    assert str(parse_limit("tc", "5")) == "5+0"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tc=5+",
        "tc=0",
        "tc=5+-1",
        "nodes=1.5",
        "nodes=0",
        "movetime=nan",
        "depth=999",
        "tc=1 nodes=5",
        "nodes=1 nodes=2",
        "colour=red nodes=5",
        "cmd=/no/such/program nodes=5",
        "cmd='' nodes=5",
        "name='a nodes=5",
        "proto=cecp nodes=5",
        "proto=xboard nodes=5",
        "dir=/no/such/folder nodes=5",
    ],
)
def test_bad_engines_are_refused(text: str) -> None:
    with pytest.raises(MatchError):
        parse_engine(text, None)


def test_books(tmp_path: Path) -> None:
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 3 9"
    (tmp_path / "a.epd").write_text(f"# a book\n{fen}\n\n4k3/8/8/8/8/8/4P3/4K3 b - - hmvc 5; fmvn 7;\n")
    first, second = read_book(tmp_path / "a.epd")
    assert first.board().fen() == fen
    assert (second.board().halfmove_clock, second.board().fullmove_number) == (5, 7)
    (tmp_path / "a.pgn").write_text('[Event "x"]\n\n1. e4 e5 2. Nf3 *\n\n[Event "y"]\n\n1. d4 *\n')
    assert [opening.moves for opening in read_book(tmp_path / "a.pgn")] == [("e2e4", "e7e5", "g1f3"), ("d2d4",)]
    built_in = read_book(None)
    assert len({opening.board().fen() for opening in built_in}) == len(built_in) == 10


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.epd", "", "no opening"),
        ("a.epd", "4k3/8/8/8/8/8/4P3/4K3 w - -\nrubbish\n", "line 2"),
        ("a.epd", "8/8/8/8/8/8/8/4K3 w - -\n", "line 1: illegal position: Black has no king"),
        ("a.epd", "7k/5KQ1/8/8/8/8/8/8 b - -\n", "line 1: the game is over"),
        ("a.pgn", "1. e4 Ke4 *\n", "game 1"),
    ],
)
def test_bad_books_are_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(MatchError, match=reason):
        read_book(tmp_path / name)


# -- matches ---------------------------------------------------------------------------------------------------------


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


def wait_until(condition: Any, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


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
    seats = sorted((game.headers["Round"], game.headers["White"], game.headers["Black"]) for game in games)
    assert seats == [
        ("1.1", "psearch-1", "psearch-2"),
        ("1.2", "psearch-2", "psearch-1"),
        ("2.1", "psearch-1", "psearch-2"),
        ("2.2", "psearch-2", "psearch-1"),
    ]
    for game in games:
        played = [node for node in game.mainline() if node.emt() is not None]
        assert len(played) > 5
        assert all(node.eval() is not None and node.eval_depth() for node in played)


@pytest.mark.slow
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
    assert wait_until(lambda: not engines_left(tmp_path), 60)


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
    assert wait_until(lambda: not engines_left(tmp_path), 60)


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
    listed = [entry for entry in summary["thrown_away"] if "at +5.00" in entry["text"]]
    assert listed
    assert "thrown away, game" in out


def test_repeated_openings_are_reported(tmp_path: Path) -> None:
    (tmp_path / "book.fen").write_text("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1\n")
    arguments = ("--first", fake(), "--second", fake(), "--depth", "1", "--book", "book.fen", "--most-moves", "3")
    assert match(tmp_path, *arguments, "--games", "2", "--out", "a")[2] == ""
    status, out, err = match(tmp_path, *arguments, "--games", "4", "--out", "b")
    assert status == 0
    assert err == "match.py: 2 pairs from 1 openings: openings are repeated\n"
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
    assert wait_until(lambda: journal.exists() and journal.read_bytes().count(b'"game"') >= 5, 120)
    os.killpg(process.pid, signal.SIGKILL)  # the runner and its processes for games; engines have groups of their own
    process.communicate()
    assert wait_until(lambda: not engines_left(tmp_path), 60)
    assert wait_until(lambda: processes_in_session(process.pid) == [], 60)
    before = journal.read_bytes()
    kept = [line for line in before.splitlines(keepends=True) if line.endswith(b"\n")]
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
    assert wait_until(lambda: len(engines_left(tmp_path)) == 2, 60)
    process.kill()
    process.communicate()
    assert wait_until(lambda: not engines_left(tmp_path) and not processes_in_session(process.pid), 60)


def test_a_game_s_process_is_killed(tmp_path: Path) -> None:
    """One line, what was played is kept, and no engine is left."""
    process = start(tmp_path, "--first", fake("--fault", "hang"), "--second", fake(), "--tc", "500", "--out", "m")
    journal = tmp_path / "m.jsonl"
    assert wait_until(lambda: journal.exists() and b'"engines"' in journal.read_bytes(), 60)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    slots = [child for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]
    assert len(slots) == 1
    os.kill(int(slots[0]), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.count("\n") == 1 and "--resume goes on" in err
    assert wait_until(lambda: not engines_left(tmp_path), 60)


def test_a_game_s_process_that_only_begins_does_not_hear_ctrl_c() -> None:
    engine = parse_engine(fake(), parse_limit("depth", "1"))
    slot = runner._Slot((engine, engine), Rules())
    try:
        os.kill(slot.process.pid, signal.SIGINT)  # type: ignore[arg-type]  # it has been started
        assert isinstance(slot.receive(), Ready)
    finally:
        slot.process.kill()
        slot.process.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    process = start(
        tmp_path, "--first", fake("--wait", "0.002"), "--second", fake("--wait", "0.002"), "--games", "10000",
        "--depth", "1", "--most-moves", "10", "--concurrency", "2", "--out", "m",
    )  # fmt: skip
    journal = tmp_path / "m.jsonl"
    assert wait_until(lambda: journal.exists() and journal.read_bytes().count(b'"game"') >= 3, 120)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    summary = json.loads((tmp_path / "m.json").read_text())
    assert summary["interrupted"] and summary["games"] >= 3
    assert f"games {summary['games']}:" in out
    assert wait_until(lambda: not engines_left(tmp_path), 60)
    assert wait_until(lambda: processes_in_session(process.pid) == [], 60)


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
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    status, out, err = match(tmp_path, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert reason in err
    assert list(tmp_path.iterdir()) == []
