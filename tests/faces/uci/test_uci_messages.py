"""The wording of the UCI engine's lines."""

from __future__ import annotations

from typing import Any

import chess
import chess.engine
import pytest
from uci_client import BESTMOVE, INFO, LIVE

from psearch.faces.uci.uci_messages import (
    bestmove_line,
    info_line,
    live_line,
    perft_lines,
    shown_wdl,
    statistics_line,
)
from psearch.results import Info, WorkerStats
from psearch.text.chess_files import RootProbe


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
    line = info_line(info(score, **more), tbhits=3)
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
    assert RootProbe(wdl, 0, pv[1:], 1).scored(info(score)) == info(score)


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
    assert bestmove_line(None) == "bestmove (none)"
    for is_chess960, words in ((False, ("e1g1", "e8c8")), (True, ("e1h1", "e8a8"))):
        board = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", chess960=is_chess960)
        short = board.parse_uci("e1g1")
        board.push(short)
        long = board.parse_uci("e8c8")
        assert bestmove_line(short) == f"bestmove {words[0]}"
        assert bestmove_line(short, long) == "bestmove {} ponder {}".format(*words)
        assert BESTMOVE.fullmatch(bestmove_line(short, long))


def test_perft_lines() -> None:
    counts = {chess.Move.from_uci("e2e4"): 20, chess.Move.from_uci("a2a3"): 19}
    assert perft_lines(chess.Board(), counts, 0.0126) == (
        "a2a3: 19\ne2e4: 20\ninfo nodes 39 time 13\n\nNodes searched: 39"
    )


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
