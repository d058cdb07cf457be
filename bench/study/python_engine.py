"""`psearch.Engine` behind as much of UCI as a long run needs: a Python program with an engine in it.

    python bench/study/python_engine.py

It knows `setoption` for Threads and Hash, `position fen F [moves ...]` and `position startpos [moves ...]`, `go` with
`movetime`, `nodes` and `depth`, `isready` and `quit`. What a search reports is printed as it comes; what it raises, as
an `info string`, and the answer is `bestmove (none)` then.
"""

from __future__ import annotations

import sys

import chess
import chess.engine

from psearch.api.blocking import Engine
from psearch.faces.uci.uci_conversation import CurrentPosition
from psearch.results import PsearchError
from psearch.text.report import uci_line

_LIMITS = {"movetime": "time", "nodes": "nodes", "depth": "depth"}


def say(*words: object) -> None:
    """Print a line."""
    print(*words, flush=True)


def read_limit(words: list[str]) -> chess.engine.Limit:
    """The limits of a `go` command."""
    found = dict(zip(words[::2], map(int, words[1::2]), strict=False))
    fields = {_LIMITS[word]: value / 1000 if word == "movetime" else value for word, value in found.items()}
    return chess.engine.Limit(**fields)


def search(engine: Engine, board: chess.Board, limit: chess.engine.Limit) -> None:
    """Search, print what is found, and the answer."""
    move: chess.Move | None = None
    try:
        with engine.analysis(board, limit) as analysis:
            for info in analysis:
                say("info depth", info["depth"], "nodes", info["nodes"], "pv", *uci_line(info["pv"]))
            move = analysis.wait().move
    except PsearchError as error:
        say("info string", error)
    say("bestmove", board.uci(move) if move else "(none)")


def main() -> None:
    """Obey what comes on stdin."""
    position = CurrentPosition()
    settings = {"Threads": 1, "Hash": 16}
    engine: Engine | None = None
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["uci"]:
            say("uciok")
        elif words[:1] == ["setoption"]:
            settings[words[2]] = int(words[4])
            if engine is not None:
                engine.close()
                engine = None
        elif words[:1] == ["position"]:
            position.set_up(words[1:], chess960=False)
        elif words[:1] == ["quit"]:
            break
        elif words:
            engine = engine or Engine(settings["Threads"], settings["Hash"])
            if words[0] == "isready":
                say("readyok")
            elif words[0] == "go":
                search(engine, position.board(chess960=False), read_limit(words[1:]))
    if engine is not None:
        engine.close()


if __name__ == "__main__":
    main()
