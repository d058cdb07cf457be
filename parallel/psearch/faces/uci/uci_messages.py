"""The wording of the lines that a search prints, and the scores in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import chess

from psearch.results import Info
from psearch.text.chess_files import LOSS, WIN
from psearch.text.report import idle_share, uci_line
from psearch.text.wdl import Wdl, wdl_of_score


def info_line(info: Info, tbhits: int = 0, wdl: Wdl | None = None) -> str:
    """Return an `info` line of the protocol. Scores are for the side to move; a mate counts moves."""
    relative = info.score.relative
    mate = relative.mate()
    score = f"cp {relative.score()}" if mate is None else f"mate {mate}"
    words: list[Any] = ["info depth", info.depth, "seldepth", info.seldepth, "multipv", info.multipv, "score", score]
    if info.bound != "exact":
        words.append(f"{info.bound}bound")
    if wdl is not None:
        words += ["wdl", *wdl]
    words += ["nodes", info.nodes, "nps", info.nps, "hashfull", info.hashfull, "tbhits", tbhits]
    words += ["time", _milliseconds(info.time_s)]
    if info.pv:
        words += ["pv", *uci_line(info.pv)]
    return " ".join(map(str, words))


def live_line(info: Info) -> str:
    """Return an `info` line between two iterations: counters, and the root move that is being searched."""
    line = (
        f"info depth {info.depth} nodes {info.nodes} nps {info.nps} hashfull {info.hashfull}"
        f" time {_milliseconds(info.time_s)}"
    )
    if info.currmove is not None:
        line += f" currmove {info.currmove.uci()} currmovenumber {info.currmovenumber}"
    return line


def statistics_line(info: Info) -> str:
    """Return how the work was shared, as an `info string`."""
    workers = info.workers
    nodes = max(1, sum(worker.nodes for worker in workers))
    aborted = sum(worker.aborted_nodes for worker in workers)
    shares = sorted(worker.nodes / nodes for worker in workers)
    extremes = f" share {shares[0]:.0%} to {shares[-1]:.0%}" if shares else ""
    return (
        f"info string workers {len(workers)} splits {sum(worker.splits for worker in workers)}"
        f" joins {sum(worker.joins for worker in workers)} aborted {aborted / nodes:.1%}"
        f" idle {idle_share(workers):.1%}{extremes}"
    )


def bestmove_line(move: chess.Move | None, ponder: chess.Move | None = None) -> str:
    """Return the answer to a `go`. move: None if there is no legal one; ponder: the reply that is expected. Castling is
    as in the moves."""
    if move is None:
        return "bestmove (none)"
    moves = [move] if ponder is None else [move, ponder]
    return "bestmove " + " ponder ".join(uci_line(moves))


def perft_lines(board: chess.Board, counts: Mapping[chess.Move, int], seconds: float) -> str:
    """Return the answer to `go perft`: leaves below each root move, and their sum."""
    lines = sorted(f"{board.uci(move)}: {nodes}" for move, nodes in counts.items())
    total = sum(counts.values())
    return "\n".join([*lines, f"info nodes {total} time {_milliseconds(seconds)}", "", f"Nodes searched: {total}"])


def shown_wdl(board: chess.Board, info: Info, tablebases: int | None) -> Wdl:
    """Return win, draw and loss in thousandths for `info ... wdl`. tablebases: what they say, WIN to LOSS, if they were
    asked.

    A mate in sight is certain, and so is what tablebases say; else the model has the word.
    """
    score = info.score.relative
    if tablebases is None or score.is_mate():
        return wdl_of_score(score, board)
    return {WIN: (1000, 0, 0), LOSS: (0, 0, 1000)}.get(tablebases, (0, 1000, 0))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
