"""Search results as text and as JSON. Scores are from the side to move's point of view throughout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import chess

from psearch.results import Info, Result, WorkerStats, relative_text

if TYPE_CHECKING:
    import chess.engine

LABEL_WIDTH = 10
"""Width of the labels of an answer, in columns."""


def finished_result(board: chess.Board) -> Result | None:
    """Return the result for a board without legal moves, which needs no search; None for any other board."""
    if any(board.legal_moves):
        return None
    import chess.engine  # slow to import, because of asyncio

    score = chess.engine.Mate(0) if board.is_check() else chess.engine.Cp(0)
    return Result(None, Info(0, 0, chess.engine.PovScore(score, board.turn), "exact", 0, 0.0))


def terminal_kind(board: chess.Board) -> str:
    """Return `checkmate` or `stalemate`, for a board without legal moves."""
    return "checkmate" if board.is_check() else "stalemate"


def terminal_line(board: chess.Board) -> str:
    """Return the one-line answer for a board without legal moves."""
    if terminal_kind(board) == "checkmate":
        return f"checkmate: {side_name(board.turn)} is mated"
    return "stalemate: draw"


def side_name(color: chess.Color) -> str:
    """Return `White` or `Black`."""
    return chess.COLOR_NAMES[color].capitalize()


def chances(score: chess.engine.PovScore, board: chess.Board) -> list[int]:
    """Return win, draw and loss per mille for the side to move."""
    from psearch.text.wdl import pov_wdl  # slow to import, because of asyncio

    return list(pov_wdl(score, board).pov(board.turn))


def wdl_text(score: chess.engine.PovScore, board: chess.Board) -> str:
    """Return the chances of the side to move as text: `win 43%, draw 50%, loss 7%`."""
    words = zip(("win", "draw", "loss"), chances(score, board), strict=True)
    return ", ".join(f"{word} {round(chance / 10)}%" for word, chance in words)


def score_text(score: chess.engine.PovScore, board: chess.Board, bound: str = "exact") -> str:
    """Return a score in the notation of `relative_text`, for the side to move."""
    return relative_text(score.pov(board.turn), bound)


def san_line(board: chess.Board, moves: Iterable[chess.Move]) -> str:
    """Return a variation in standard algebraic notation. Raises ValueError for an illegal move."""
    position = board.copy(stack=False)
    words = []
    for move in moves:
        words.append(position.san(move))
        position.push(move)
    return " ".join(words)


def uci_line(moves: Iterable[chess.Move]) -> list[str]:
    """Return a variation in UCI notation. Castling is written as in the moves: king takes rook on a Chess960 board."""
    return [move.uci() for move in moves]


def iteration_line(board: chess.Board, info: Info) -> str:
    """Return the line of an iteration or of a failed aspiration window, for one of the best moves."""
    line = f"line {info.multipv}  " if info.multipv > 1 else ""
    return (
        f"depth {info.depth}/{info.seldepth}  {line}score {score_text(info.score, board, info.bound)}  "
        f"nodes {info.nodes:,}  nps {info.nps:,}  time {info.time_s:.2f}  pv {san_line(board, info.pv)}"
    ).rstrip()


def final_report(board: chess.Board, result: Result, exact: Info | None = None, shows_wdl: bool = False) -> str:
    """Return the result of a search for people: the best move, the figures, and how the work was shared. exact: last
    exact report of the best line, for a score that is a bound; shows_wdl: with the chances to win, draw and lose."""
    info = result.info
    score = f"{score_text(info.score, board, info.bound)} for {side_name(board.turn)}"
    if exact is not None and info.bound != "exact":
        score += f"; last exact {score_text(exact.score, board)} at depth {exact.depth}"
    best = f"{board.san(result.bestmove)} ({board.uci(result.bestmove)})" if result.bestmove else "none"
    return labelled(
        ("best move", best + (", interrupted" if result.interrupted else "")),
        ("score", score),
        *([("wdl", wdl_text(info.score, board))] if shows_wdl else []),
        ("pv", san_line(board, info.pv)),
        *(
            (f"line {line.multipv}", f"{score_text(line.score, board, line.bound)}  {san_line(board, line.pv)}")
            for line in result.lines[1:]
        ),
        ("depth", f"{info.depth}/{info.seldepth}"),
        *effort_rows(info),
    )


def labelled(*rows: tuple[str, str]) -> str:
    """Return rows as lines, each with its label in front."""
    return "\n".join(f"{name:<{LABEL_WIDTH}} {text}".rstrip() for name, text in rows)


def effort_rows(found: Any) -> list[tuple[str, str]]:
    """Return rows for the effort of a search and for its workers. found: an `Info`, or a game's result."""
    workers = found.workers
    splits, joins = (sum(getattr(worker, name) for worker in workers) for name in ("splits", "joins"))
    shared = f"{len(workers)}, splits {splits:,}, joins {joins:,}, idle {idle_share(workers):.1%}"
    return [("nodes", f"{found.nodes:,} in {found.time_s:.2f} s, {found.nps:,} nps"), ("workers", shared)]


def idle_share(workers: list[WorkerStats]) -> float:
    """Return the share of the workers' time without work, 0 to 1."""
    return sum(worker.idle_share for worker in workers) / len(workers) if workers else 0.0


def json_object(board: chess.Board, result: Result, threads: int, exact: Info | None = None) -> dict[str, Any]:
    """Return the object that `--json` prints. It has `lines` only for several best moves, `exact` (the last exact
    score) only for a bound, and `terminal` only when the game is over on the board."""
    info = result.info
    last = {} if exact is None or info.bound == "exact" else {"exact": score_object(exact.score.relative, "exact")}
    report: dict[str, Any] = {
        "bestmove": board.uci(result.bestmove) if result.bestmove else None,
        "score": score_object(info.score.pov(board.turn), info.bound),
        **last,
        "wdl": chances(info.score, board),
        "pv": uci_line(info.pv),
        "depth": info.depth,
        "seldepth": info.seldepth,
        **effort_object(info, threads, result.interrupted),
    }
    if len(result.lines) > 1:
        report["lines"] = [
            {
                "score": score_object(line.score.pov(board.turn), line.bound),
                "wdl": chances(line.score, board),
                "depth": line.depth,
                "pv": uci_line(line.pv),
            }
            for line in result.lines
        ]
    if not any(board.legal_moves):
        report["terminal"] = terminal_kind(board)
    return report


def score_object(score: chess.engine.Score, bound: str) -> dict[str, Any]:
    """Return a score for JSON: `cp` or `mate`, and `bound` (`lower` or `upper`) unless it is exact."""
    mate = score.mate()
    values: dict[str, Any] = {"mate": mate} if mate is not None else {"cp": score.score()}
    return values if bound == "exact" else {**values, "bound": bound}


def effort_object(found: Any, threads: int, is_interrupted: bool) -> dict[str, Any]:
    """Return the effort of a search for JSON. found: an `Info`, or a game's result."""
    return {
        "nodes": found.nodes,
        "nps": found.nps,
        "time": round(found.time_s, 3),
        "threads": threads,
        "workers": [
            {
                "nodes": worker.nodes,
                "splits": worker.splits,
                "joins": worker.joins,
                "aborted": worker.aborted_nodes,
                "idle": round(worker.idle_share, 4),
            }
            for worker in found.workers
        ],
        "interrupted": is_interrupted,
    }
