"""Results of a game's search as text and as JSON; scores are in the game's unit, for the side to move."""

from __future__ import annotations

from typing import Any

from psearch.games.own_game import GamePosition
from psearch.games.searching import GameResult
from psearch.text.report import BOUND_MARKS, LABEL_WIDTH, worker_object, workers_text


def _score_text(result: GameResult) -> str:
    return BOUND_MARKS[result.bound] + (f"{result.score:+d}" if result.score else "0")


def iteration_text(result: GameResult) -> str:
    """Return one line for an iteration."""
    return (
        f"depth {result.depth}  score {_score_text(result)}  nodes {result.nodes:,}  nps {result.nps:,}  "
        f"time {result.time_s:.2f}  line {' '.join(result.line)}"
    ).rstrip()


def final_text(position: GamePosition, result: GameResult) -> str:
    """Return the answer for people."""
    if result.bestmove is None:
        return f"the game is over: score {_score_text(result)} for the side to move"
    end = ", solved: the whole game was searched" if result.solved else ""
    rows = [
        ("game", position.game.name),
        ("best move", result.bestmove + (", interrupted" if result.interrupted else "")),
        ("score", f"{_score_text(result)} for the side to move"),
        ("line", " ".join(result.line)),
        ("depth", f"{result.depth}{end}"),
        ("nodes", f"{result.nodes:,} in {result.time_s:.2f} s, {result.nps:,} nps"),
        ("workers", workers_text(result.workers)),
    ]
    return "\n".join(f"{name:<{LABEL_WIDTH}} {text}".rstrip() for name, text in rows)


def json_object(position: GamePosition, result: GameResult, threads: int) -> dict[str, Any]:
    """Return what `--json` prints; `bestmove` and `line` in the game's words."""
    return {
        "game": position.game.name,
        "bestmove": result.bestmove,
        "score": result.score,
        **({} if result.bound == "exact" else {"bound": result.bound}),
        "line": result.line,
        "depth": result.depth,
        "solved": result.solved,
        "over": result.bestmove is None,
        "nodes": result.nodes,
        "nps": result.nps,
        "time": round(result.time_s, 3),
        "threads": threads,
        "workers": [worker_object(worker) for worker in result.workers],
        "interrupted": result.interrupted,
    }
