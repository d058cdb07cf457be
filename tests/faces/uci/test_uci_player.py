"""The UCI engine in this process: the order of its jobs, its lines, what it does with tables and book (stand-ins)."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import chess
import chess.engine
import pytest
from uci_client import BESTMOVE, INFO, LIVE, Talk, infos

from psearch.faces.uci import player, turn
from psearch.faces.uci.go import Go, parse_go
from psearch.faces.uci.player import Player
from psearch.faces.uci.turn import bestmove_line, info_line, live_line, shown_wdl, statistics_line
from psearch.faces.uci.uci_options import OptionValues
from psearch.results import Info, PsearchError, WorkerStats
from psearch.text.chess_files import RootProbe
from psearch_core.chess.chess_entries import PERFT

KRK = "8/8/8/8/8/2k5/8/K6R w - - 0 1"
KNNK = "8/8/8/4k3/8/8/8/KNN5 w - - 0 1"


class StandInProber:
    """Knows two positions; its best moves are none that a search would choose."""

    opened: list[str]
    problems: tuple[str, ...] = ()

    def __init__(self, path: str) -> None:
        if "missing" in path:
            raise PsearchError(f"no tablebases in {path}")
        StandInProber.opened = [*getattr(StandInProber, "opened", []), path]

    def probe(self, board: chess.Board) -> RootProbe | None:
        if board.fen() == KRK:
            return RootProbe(2, 21, [chess.Move.from_uci("h1h8"), chess.Move.from_uci("h1g1")], 4)
        if board.fen() == KNNK:
            return RootProbe(0, 0, [chess.Move.from_uci("a1a2")], 3)
        return None

    def close(self) -> None:
        StandInProber.opened.pop()


class StandInBook:
    def __init__(self, path: str) -> None:
        if "missing" in path:
            raise PsearchError(f"cannot read {path}")

    def pick(self, board: chess.Board, dice: random.Random | None) -> chess.Move | None:
        return chess.Move.from_uci("a2a4") if board == chess.Board() else None

    def expected(self, board: chess.Board) -> chess.Move | None:
        return chess.Move.from_uci("h7h5") if board.ply() == 1 else None

    def close(self) -> None:
        pass


def stand_in_wdl(score_cp: int, board: chess.Board) -> tuple[int, int, int]:
    return (700, 200, 100) if score_cp >= 0 else (100, 200, 700)


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    monkeypatch.setattr("psearch.text.chess_files.RootProber", StandInProber)
    monkeypatch.setattr("psearch.text.chess_files.Book", StandInBook)
    monkeypatch.setattr("psearch.text.wdl.wdl", stand_in_wdl)
    with Talk() as conversation:
        yield conversation


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
    assert talk.go("depth 3", chess.STARTING_FEN) == ["info string book move a2a4", "bestmove a2a4 ponder h7h5"]
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


def test_internal_errors_are_reported_and_cost_no_move(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(score_cp: int, board: chess.Board) -> tuple[int, int, int]:
        raise RuntimeError("broken model")

    monkeypatch.setattr("psearch.text.wdl.wdl", fail)
    talk.send("setoption name UCI_ShowWDL value true", "position startpos", "go depth 3 searchmoves h2h4 a2a3")
    lines = talk.until("bestmove")
    assert [line for line in lines if "broken model" in line] == [
        "info string internal error: RuntimeError: broken model"
    ]
    assert lines[-1].split()[1] in ("h2h4", "a2a3")
    talk.send("setoption name UCI_ShowWDL value false")
    assert infos(talk.go("depth 3", chess.STARTING_FEN))
    assert capsys.readouterr().err.count("Traceback") == 1


# The order of jobs, without kernels


class Jobs:
    """A player that does not search: a `go` is answered with g1h3, when it may be; a count fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.may_load = threading.Event()
        monkeypatch.setattr(Player, "_load", lambda player: self.may_load.wait(60) and player._is_loaded.set())
        monkeypatch.setattr(Player, "_find_answer", self.find_answer)
        self.player = Player(self.said.put, OptionValues())
        self.searched: list[Go] = []

    def find_answer(self, go: Go, values: OptionValues, debug: bool) -> None:
        self.searched.append(go)
        if go.command.perft is not None:
            raise PsearchError("cannot count")
        go.answer("bestmove g1h3")

    def go(self, words: str) -> Go:
        go = Go(parse_go(words.split(), chess.Board(), print), self.said.put)
        self.player.search(go, debug=False)
        return go

    def next(self) -> str:
        return self.said.get(timeout=60)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    jobs = Jobs(monkeypatch)
    yield jobs
    jobs.player.close()
    jobs.player._thread.join(60)
    assert not jobs.player._thread.is_alive()
    assert jobs.said.empty()


def test_isready_is_answered_when_all_is_loaded(jobs: Jobs) -> None:
    jobs.go("depth 1")
    jobs.player.ready()
    assert jobs.said.empty()
    jobs.may_load.set()
    assert [jobs.next(), jobs.next()] == ["readyok", "bestmove g1h3"]


def test_isready_never_waits_for_the_end_of_a_search(jobs: Jobs) -> None:
    """Whether it comes before the search is begun, while that happens, or after."""
    jobs.may_load.set()
    for _ in range(300):
        go = jobs.go("infinite")
        jobs.player.ready()
        assert jobs.next() == "readyok"
        go.stop()
        assert jobs.next() == "bestmove g1h3"


def test_each_isready_is_answered_once(jobs: Jobs) -> None:
    go = jobs.go("infinite")
    for _ in range(5):
        jobs.player.ready()
    jobs.may_load.set()
    assert [jobs.next() for _ in range(5)] == ["readyok"] * 5
    go.stop()
    assert jobs.next() == "bestmove g1h3"


def test_a_go_that_was_given_up_in_the_queue_is_not_searched(jobs: Jobs) -> None:
    jobs.go("ponder").give_up()
    go = jobs.go("depth 1")
    jobs.may_load.set()
    assert jobs.next() == "bestmove g1h3"
    assert jobs.searched == [go]


def test_a_stop_before_the_search_is_not_lost(jobs: Jobs) -> None:
    first, second = jobs.go("infinite"), jobs.go("infinite")
    first.stop()
    second.stop()
    jobs.may_load.set()
    assert [jobs.next(), jobs.next()] == ["bestmove g1h3"] * 2


def test_a_count_that_fails_is_over(jobs: Jobs) -> None:
    go = jobs.go("perft 3")
    jobs.player.ready()
    jobs.may_load.set()
    assert {jobs.next(), jobs.next()} == {"readyok", "info string cannot count"}
    jobs.go("depth 1")
    assert jobs.next() == "bestmove g1h3"
    assert go.is_answered


def test_the_end_of_the_conversation_waits_for_a_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    def bench(progress: Callable[[str], None]) -> tuple[int, float]:
        time.sleep(0.3)
        return 1_000, 0.5

    monkeypatch.setattr("psearch.bench.run_bench", bench)
    monkeypatch.setattr(player, "_STOP_TIMEOUT_S", 0.05)
    jobs = Jobs(monkeypatch)
    for _ in range(3):
        jobs.player.bench()
    jobs.player._is_compiling = True  # the first run on a machine
    threading.Timer(0.3, jobs.may_load.set).start()
    jobs.player.close()
    assert [jobs.said.get_nowait() for _ in range(3)] == ["1000 nodes 2000 nps"] * 3


def test_a_count_tells_that_it_compiles_and_does_not_count_that_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first `go perft` on a machine."""

    def count(*arguments: object) -> tuple[dict[chess.Move, int], float]:
        assert told == ["compiling perft"]
        return {chess.Move.from_uci("e2e4"): 20, chess.Move.from_uci("a2a3"): 19}, 0.2504

    def load(*groups: object, progress: Callable[[str], None]) -> float:
        assert groups == (PERFT,)
        progress("compiling perft")
        return 7.0

    told: list[str] = []
    monkeypatch.setattr(turn, "load_kernels", load)
    monkeypatch.setattr(turn, "count_leaves", count)
    lines = turn.count_moves(chess.Board(), 2, 1, told.append, lambda: False).split("\n")
    assert lines == ["a2a3: 19", "e2e4: 20", "info nodes 39 time 250", "", "Nodes searched: 39"]


def info(score: chess.engine.Score, **more: Any) -> Info:
    fields = {"pv": [chess.Move.from_uci(word) for word in ("e2e4", "e7e5")], "hashfull": 12, "multipv": 2, **more}
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
    line = info_line(info(score, tbhits=3, **more))
    assert expected in line
    assert line.startswith("info depth 7 seldepth 11 multipv 2 score ")
    assert line.endswith("nodes 1000 nps 4000 hashfull 12 tbhits 3 time 250 pv e2e4 e7e5")
    assert INFO.fullmatch(line)
    assert " wdl 500 300 200 nodes" in info_line(info(score, **more), wdl=(500, 300, 200))


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
    pv = info(score).pv
    assert RootProbe(wdl, 0, pv[:1], 1).scored(info(score)).score.relative == expected
    # another move than one that keeps the result
    assert RootProbe(wdl, 0, pv[1:], 1).scored(info(score)).score == info(score).score


def test_live_lines() -> None:
    live = info(chess.engine.Cp(0))
    line = "info depth 7 nodes 1000 nps 4000 hashfull 12 time 250"
    assert live_line(live) == line
    live = info(chess.engine.Cp(0), currmove=chess.Move.from_uci("g1f3"), currmovenumber=3)
    assert live_line(live) == f"{line} currmove g1f3 currmovenumber 3"
    assert LIVE.fullmatch(live_line(live))


def test_statistics_lines() -> None:
    workers = [WorkerStats(300, 4, 1, 20, 0.5), WorkerStats(100, 2, 3, 20, 0.25)]
    assert statistics_line(info(chess.engine.Cp(0), workers=workers)) == (
        "info string workers 2 splits 6 joins 4 aborted 10.0% idle 37.5% share 25% to 75%"
    )
    assert statistics_line(info(chess.engine.Cp(0))) == "info string workers 0 splits 0 joins 0 aborted 0.0% idle 0.0%"


def test_bestmove_lines() -> None:
    assert bestmove_line() == "bestmove (none)"
    for is_chess960, words in ((False, ("e1g1", "e8c8")), (True, ("e1h1", "e8a8"))):
        board = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", chess960=is_chess960)
        short = board.parse_uci("e1g1")
        board.push(short)
        long = board.parse_uci("e8c8")
        assert bestmove_line(short) == f"bestmove {words[0]}"
        assert bestmove_line(short, long) == "bestmove {} ponder {}".format(*words)
        assert BESTMOVE.fullmatch(bestmove_line(short, long))


@pytest.mark.parametrize(
    ("score", "tablebases", "expected"),
    [
        (chess.engine.Mate(3), None, (1000, 0, 0)),
        (chess.engine.Mate(-3), None, (0, 0, 1000)),
        (chess.engine.Mate(3), 2, (1000, 0, 0)),
        (chess.engine.Cp(20_000), 2, (1000, 0, 0)),
        (chess.engine.Cp(0), 1, (0, 1000, 0)),
        (chess.engine.Cp(0), 0, (0, 1000, 0)),
        (chess.engine.Cp(0), -1, (0, 1000, 0)),
        (chess.engine.Cp(-20_000), -2, (0, 0, 1000)),
        (chess.engine.Cp(35), None, (700, 200, 100)),
    ],
)
def test_wdl(
    monkeypatch: pytest.MonkeyPatch, score: chess.engine.Score, tablebases: int | None, expected: tuple[int, int, int]
) -> None:
    monkeypatch.setattr("psearch.text.wdl.wdl", lambda score_cp, board: (700, 200, 100))
    assert shown_wdl(chess.Board(), info(score), tablebases) == expected
