"""`psearch.Engine` behind as much of UCI as a long run needs: a Python program with an engine in it.

    python bench/study/python_engine.py

It knows `setoption` for Threads and Hash, `position`, `go` with `movetime`, `nodes` and `depth`, `isready` and `quit`.
What a search reports is printed as it comes; what it raises, as an `info string`, and the answer is `bestmove (none)`.
"""

from __future__ import annotations

import sys

import chess.engine

from psearch.api.blocking import Engine
from psearch.faces.uci.position_command import CurrentPosition
from psearch.results import PsearchError
from psearch.settings import HASH, THREADS
from psearch.text.report import uci_line


def say(*words: object) -> None:
    """Print a line."""
    print(*words, flush=True)


def search(engine: Engine, board: chess.Board, words: list[str]) -> None:
    """Search to the limits of a `go` command, print what is found, and the answer."""
    limits = dict(zip(words[::2], map(int, words[1::2]), strict=False))
    if "movetime" in limits:
        limits["time"] = limits.pop("movetime") / 1000
    move: chess.Move | None = None
    try:
        with engine.analysis(board, chess.engine.Limit(**limits)) as analysis:
            for info in analysis:
                say("info depth", info["depth"], "nodes", info["nodes"], "pv", *uci_line(info["pv"]))
            move = analysis.wait().move
    except PsearchError as error:
        say("info string", error)
    say("bestmove", board.uci(move) if move else "(none)")


def main() -> None:
    """Obey what comes on stdin."""
    position = CurrentPosition()
    with Engine(1, 16) as engine:
        for line in sys.stdin:
            match line.split():
                case ["uci"]:
                    say("\n".join([THREADS.declaration(), HASH.declaration(), "uciok"]))
                case ["isready"]:
                    engine.ping()
                    say("readyok")
                case ["setoption", "name", name, "value", value]:
                    engine.configure({name: value})
                case ["position", *words]:
                    position.set_up(words, chess960=False)
                case ["go", *words]:
                    search(engine, position.board(chess960=False), words)
                case ["quit"]:
                    return


if __name__ == "__main__":
    main()
