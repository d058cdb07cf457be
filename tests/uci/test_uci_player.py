"""The words of the UCI engine, and what it does with tablebases, book and a limited strength (with stand-ins)."""

from __future__ import annotations

import queue
import random
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import chess
import chess.engine
import pytest
from uci_client import INFO, check_lines, infos

from psearch.results import Info, PsearchError
from psearch.uci.conversation import Uci
from psearch.uci.go import parse_go
from psearch.uci.options import OPTIONS, OptionValues
from psearch.uci.player import info_line, with_tablebase_score
from psearch.uci.strength import choose_line, node_limit, noise_cp

KRK = "8/8/8/8/8/2k5/8/K6R w - - 0 1"
KNNK = "8/8/8/4k3/8/8/8/KNN5 w - - 0 1"


@dataclass
class Probe:
    wdl: int
    dtz: int
    best: list[chess.Move]
    hits: int


class StandInProber:
    """Knows two positions; its best moves are none that a search would choose."""

    opened: list[str]

    def __init__(self, path: str) -> None:
        if "missing" in path:
            raise PsearchError(f"no tablebases in {path}")
        StandInProber.opened = [*getattr(StandInProber, "opened", []), path]

    def probe(self, board: chess.Board) -> Probe | None:
        if board.fen() == KRK:
            return Probe(2, 21, [chess.Move.from_uci("h1h8"), chess.Move.from_uci("h1g1")], 4)
        if board.fen() == KNNK:
            return Probe(0, 0, [chess.Move.from_uci("a1a2")], 3)
        return None

    def close(self) -> None:
        StandInProber.opened.pop()


class StandInBook:
    def __init__(self, path: str) -> None:
        if "missing" in path:
            raise PsearchError(f"cannot read {path}")

    def pick(self, board: chess.Board, dice: random.Random | None) -> chess.Move | None:
        return chess.Move.from_uci("a2a4") if board == chess.Board() else None

    def close(self) -> None:
        pass


def stand_in_wdl(score_cp: int, board: chess.Board) -> tuple[int, int, int]:
    return (700, 200, 100) if score_cp >= 0 else (100, 200, 700)


@dataclass
class Talk:
    """A conversation in this process."""

    said: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    input: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=lambda: Uci(self.said.put).run(iter(self.input.get, None)))
        self.thread.start()

    def send(self, *lines: str) -> None:
        for line in lines:
            self.input.put(line)

    def until(self, start: str) -> list[str]:
        lines: list[str] = []
        while not lines or not lines[-1].startswith(start):
            lines += self.said.get(timeout=120).split("\n")
        return lines

    def go(self, words: str, fen: str) -> list[str]:
        self.send(f"position fen {fen}", f"go {words}")
        lines = self.until("bestmove")
        check_lines(lines, chess.Board(fen))
        return lines


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    contents: dict[str, dict[str, Any]] = {
        "psearch.notation.syzygy": {"RootProber": StandInProber, "RootProbe": Probe},
        "psearch.notation.polyglot": {"Book": StandInBook},
        "psearch.notation.wdl": {"wdl": stand_in_wdl},
    }
    for name, names in contents.items():
        module = types.ModuleType(name)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)
    conversation = Talk()
    yield conversation
    conversation.input.put(None)
    conversation.thread.join(20)
    assert not conversation.thread.is_alive()


def test_tablebases_at_the_root(talk: Talk) -> None:
    talk.send("setoption name SyzygyPath value /tables")
    lines = talk.go("depth 4", KRK)
    assert lines[-1].split()[1] in ("h1h8", "h1g1")
    assert all(info["tbhits"] == "4" for info in infos(lines))
    assert all(info["score"] == "cp 20000" for info in infos(lines))
    lines = talk.go("depth 4", KNNK)
    assert lines[-1].startswith("bestmove a1a2")
    assert all(info["score"] == "cp 0" for info in infos(lines))
    assert infos(talk.go("depth 3 searchmoves h1h2 h1g1", KRK))[-1]["pv"].split()[0] == "h1g1"
    assert talk.go("depth 3 searchmoves h1h2", KRK)[-1].startswith("bestmove h1h2")
    assert infos(talk.go("depth 3", chess.STARTING_FEN))[-1]["tbhits"] == "0"
    talk.send("setoption name UCI_ShowWDL value true")
    assert {info["wdl"] for info in infos(talk.go("depth 3", KRK))} == {"1000 0 0"}
    talk.send("setoption name SyzygyPath value <empty>", "isready")
    talk.until("readyok")
    assert StandInProber.opened == []
    assert infos(talk.go("depth 3", KRK))[-1]["tbhits"] == "0"


def test_files_that_are_not_there_are_reported(talk: Talk) -> None:
    talk.send("setoption name SyzygyPath value /missing", "setoption name BookFile value missing.bin", "isready")
    text = "\n".join(talk.until("readyok"))
    assert "info string SyzygyPath: no tablebases in /missing" in text
    assert "info string BookFile: cannot read missing.bin" in text
    assert infos(talk.go("depth 3", chess.STARTING_FEN))


def test_the_book_is_used_when_it_is_ours(talk: Talk) -> None:
    talk.send("setoption name BookFile value book.bin")
    assert infos(talk.go("depth 3", chess.STARTING_FEN))  # OwnBook is off
    talk.send("setoption name OwnBook value true")
    assert talk.go("depth 3", chess.STARTING_FEN) == ["info string book move a2a4", "bestmove a2a4"]
    assert infos(talk.go("depth 3", KRK))
    assert infos(talk.go("depth 3 searchmoves e2e4", chess.STARTING_FEN))
    talk.send("go ponder", "ponderhit")  # at the position of before
    talk.until("bestmove")
    talk.send("setoption name UCI_AnalyseMode value true")
    assert infos(talk.go("depth 3", chess.STARTING_FEN))


def test_wdl_is_shown_when_asked_for(talk: Talk) -> None:
    assert {info["wdl"] for info in infos(talk.go("depth 3", chess.STARTING_FEN))} == {None}
    talk.send("setoption name UCI_ShowWDL value true")
    assert {info["wdl"] for info in infos(talk.go("depth 3", KRK))} <= {"700 200 100", "1000 0 0"}
    mate = infos(talk.go("depth 4", "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"))[-1]
    assert (mate["score"], mate["wdl"]) == ("mate 1", "1000 0 0")


def test_internal_errors_are_reported_and_cost_no_move(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(score_cp: int, board: chess.Board) -> tuple[int, int, int]:
        raise RuntimeError("broken model")

    sys.modules["psearch.notation.wdl"].wdl = fail  # type: ignore[attr-defined]
    talk.send("setoption name UCI_ShowWDL value true", "position startpos", "go depth 3")
    lines = talk.until("info string internal error")
    lines += talk.until("bestmove") if not lines[0].startswith("bestmove") else []
    assert any("broken model" in line for line in lines)
    talk.send("setoption name UCI_ShowWDL value false")
    assert infos(talk.go("depth 3", chess.STARTING_FEN))
    assert "RuntimeError" in capsys.readouterr().err


# Words


def info(score: chess.engine.Score, **more: Any) -> Info:
    pv = [chess.Move.from_uci(word) for word in ("e2e4", "e7e5")]
    fields = {"pv": pv, "hashfull": 12, "multipv": 2, **more}
    return Info(7, 11, chess.engine.PovScore(score, chess.WHITE), fields.pop("bound", "exact"), 1000, 0.25, **fields)


@pytest.mark.parametrize(
    ("score", "more", "expected"),
    [
        (chess.engine.Cp(31), {}, "score cp 31 nodes"),
        (chess.engine.Cp(-31), {"bound": "lower"}, "score cp -31 lowerbound nodes"),
        (chess.engine.Mate(3), {}, "score mate 3 nodes"),
        (chess.engine.Mate(-2), {"bound": "upper"}, "score mate -2 upperbound nodes"),
    ],
)
def test_info_lines(score: chess.engine.Score, more: dict[str, Any], expected: str) -> None:
    line = info_line(chess.Board(), info(score, **more), tbhits=3)
    assert expected in line
    assert line.startswith("info depth 7 seldepth 11 multipv 2 score ")
    assert line.endswith("nodes 1000 nps 4000 hashfull 12 tbhits 3 time 250 pv e2e4 e7e5")
    assert INFO.fullmatch(line)
    assert " wdl 500 300 200 nodes" in info_line(chess.Board(), info(score, **more), wdl=(500, 300, 200))


@pytest.mark.parametrize(
    ("score", "wdl", "expected"),
    [
        (chess.engine.Cp(50), 2, chess.engine.Cp(20_000)),
        (chess.engine.Mate(4), 2, chess.engine.Mate(4)),
        (chess.engine.Mate(-4), 2, chess.engine.Cp(20_000)),
        (chess.engine.Cp(500), 1, chess.engine.Cp(0)),
        (chess.engine.Cp(500), 0, chess.engine.Cp(0)),
        (chess.engine.Mate(-4), -1, chess.engine.Cp(0)),
        (chess.engine.Cp(500), -2, chess.engine.Cp(-20_000)),
        (chess.engine.Mate(-9), -2, chess.engine.Mate(-9)),
    ],
)
def test_scores_the_tablebases_know(score: chess.engine.Score, wdl: int, expected: chess.engine.Score) -> None:
    assert with_tablebase_score(info(score), wdl).score.relative == expected


def test_go_words() -> None:
    complaints: list[str] = []
    board = chess.Board()

    def parse(words: str) -> Any:
        return parse_go(words.split(), board, complaints.append)

    assert parse("").infinite
    assert parse("winc 5 movestogo 3").infinite  # no limit among them
    assert not parse("depth 3").infinite
    assert parse("infinite wtime 5").infinite
    assert parse("wtime -5").white_ms == 0
    assert parse("depth 0").depth == 1
    assert parse("movestogo 0 wtime 1").moves_to_go == 1
    assert not parse("ponder wtime 5").may_answer.is_set()
    assert parse("wtime 5").may_answer.is_set()
    assert parse("wtime 5").own_ms == (5, 0)
    assert parse("btime 7 binc 2").own_ms == (7, 2)  # white to move, only black's clock known
    assert parse("wtime 5 btime 7 binc 2").own_ms == (5, 0)
    assert complaints == []
    assert parse("depth x nodes 5 quickly searchmoves e2e5").nodes == 5
    assert len(complaints) == 3


def test_ponderhit_and_stop_release_the_answer() -> None:
    go = parse_go(["ponder", "wtime", "5"], chess.Board(), print)
    go.ponderhit()
    assert go.may_answer.is_set()
    go = parse_go(["ponder", "infinite"], chess.Board(), print)
    go.ponderhit()
    assert not go.may_answer.is_set()
    go.stop()
    assert go.may_answer.is_set()
    go = parse_go(["infinite"], chess.Board(), print)
    go.ponderhit()  # nobody ponders
    assert not go.may_answer.is_set()


def test_options_declare_what_they_take() -> None:
    values = OptionValues()
    for option in OPTIONS:
        assert option.declaration().startswith(f"option name {option.name} type {option.kind}")
        if option.kind == "spin":
            for good in (option.low, option.high):
                values.set(option.name, str(good))
                assert values.number(option.name) == good
            for bad in (option.low - 1, option.high + 1, "", "1.5"):
                with pytest.raises(ValueError, match=option.name):
                    values.set(option.name, str(bad))
            assert values.number(option.name) == option.high
        elif option.kind == "combo":
            for choice in option.choices:
                values.set(option.name, choice.upper())
                assert values.text(option.name) == choice
        elif option.kind == "check":
            values.set(option.name, "true")
            assert values.flag(option.name)
            values.set(option.name, "false")
            assert not values.flag(option.name)
    copy = values.copy()
    values.set("Hash", "77")
    assert copy.number("Hash") != 77


# A limited strength


def test_levels_are_ordered() -> None:
    limits = [node_limit(elo) for elo in range(1000, 2201, 100)]
    assert limits == sorted(set(limits))
    noises = [noise_cp(elo) for elo in range(1000, 2201, 100)]
    assert noises == sorted(set(noises), reverse=True)


def test_weak_levels_choose_worse_moves_now_and_then() -> None:
    lines = [info(chess.engine.Cp(score), multipv=number) for number, score in enumerate((40, 20, -30, -900), start=1)]
    counts = {}
    for elo in (1000, 1600, 2200):
        dice = random.Random(elo)
        chosen = [choose_line(lines, elo, dice).multipv for _ in range(2000)]
        counts[elo] = [chosen.count(number) for number in (1, 2, 3, 4)]
        assert counts[elo] == sorted(counts[elo], reverse=True)
        assert counts[elo][3] == 0  # nobody throws a queen away for fun
    assert counts[2200] == [2000, 0, 0, 0]
    assert counts[1000][0] < counts[1600][0] < 2000
