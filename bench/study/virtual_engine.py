"""A UCI engine that thinks in virtual time, with as many workers as one likes: for games that tell what they are worth.

    python bench/match/match.py --games 400 --book book.epd --out 8-against-1 \\
        --first "name=eight cmd='python bench/study/virtual_engine.py' option.Threads=8 nodes=10000" \\
        --second "name=one cmd='python bench/study/virtual_engine.py' nodes=40000"

`go nodes N` gives every worker the virtual time in which one worker searches about N nodes, the mean of what a node of
the main search and one of quiescence cost. So at equal N eight workers have the clock of one, and no machine needs
eight cores: each of its games takes eight times as long. Table and history are kept from move to move as in any engine.
Costs are those of `psearch simulate`. Deterministic: the same moves in the same game, on every machine.

Options: Threads, Hash (MiB), Policy, Pruning, Driver. Of the protocol it knows what bench/match/match.py needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from psearch.faces.uci.position_command import CurrentPosition
from psearch.options import SearchOptions, pruning_named
from psearch.processes.search_reports import to_score
from psearch.results import PsearchError
from psearch.settings import HASH, SETTINGS, THREADS
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator
from psearch_core.chess.board.bridge import to_chess_move

_ANY_PRUNING = replace(SETTINGS["pruning"], kind="string", check=pruning_named)
_OPTIONS = (THREADS, replace(HASH, default=16), SETTINGS["policy"], _ANY_PRUNING, SETTINGS["driver"])
OPTIONS = {option.name: option for option in _OPTIONS}
"""By name; declared and read as in `psearch uci`, but Pruning takes changes to a mode, too."""


class VirtualEngine:
    """One conversation; answers each line of input with lines of output."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {name: option.default for name, option in OPTIONS.items()}
        self._position = CurrentPosition()
        self._simulator: Simulator | None = None

    def obey(self, line: str) -> Iterable[str]:
        """What to say to a command. Raises PsearchError when it cannot be obeyed; unknown ones are passed over."""
        words = line.split()
        command, rest = (words[0], words[1:]) if words else ("", [])
        if command == "uci":
            yield "id name psearch in virtual time"
            yield from (option.declaration() for option in OPTIONS.values())
            yield "uciok"
        elif command == "isready":
            yield "readyok"
        elif command == "setoption":
            self._set_option(rest)
        elif command == "ucinewgame" and self._simulator is not None:
            self._simulator.forget()
        elif command == "position":
            self._position.set_up(rest, chess960=False)
        elif command == "go":
            yield from self._go(rest)

    def _set_option(self, words: list[str]) -> None:
        if len(words) != 4 or words[0] != "name" or words[2] != "value":
            raise PsearchError("setoption takes name NAME value VALUE")
        option = OPTIONS.get(words[1])
        if option is None:
            raise PsearchError(f"no option is called {words[1]!a}")
        try:
            self._values[option.name] = option.of_text(words[3])
        except ValueError as error:
            raise PsearchError(str(error)) from None
        self.close()

    def _go(self, words: list[str]) -> Iterable[str]:
        if len(words) != 2 or words[0] != "nodes" or not words[1].isdecimal():
            raise PsearchError("go takes nodes N")
        board = self._position.board(chess960=False)
        if not board.occupied:  # the last one was refused
            yield "bestmove 0000"
            return
        if board.is_game_over():
            raise PsearchError("the game is over")
        if self._simulator is None:
            self._simulator = Simulator(self._values["Threads"], self._values["Hash"], Costs())
        seconds = self._simulator.costs.seconds_of(int(words[1]))
        found = self._simulator.play(board, seconds, self._options())
        move = to_chess_move(found.bestmove, board)
        score = to_score(found.score, board.turn).relative
        mate = score.mate()
        text = f"cp {score.score()}" if mate is None else f"mate {mate}"
        virtual_ms = round(found.seconds * 1000)
        yield f"info depth {found.depth} score {text} nodes {found.nodes} time {virtual_ms} pv {move.uci()}"
        yield f"bestmove {move.uci()}"

    def _options(self) -> SearchOptions:
        return SearchOptions(
            policy=self._values["Policy"], pruning=pruning_named(self._values["Pruning"]), driver=self._values["Driver"]
        )

    def close(self) -> None:
        """Give the memory back."""
        if self._simulator is not None:
            self._simulator.close()
            self._simulator = None


def main() -> None:
    """Converse until `quit`."""
    engine = VirtualEngine()
    try:
        for line in sys.stdin:
            if line.strip() == "quit":
                break
            try:
                for answer in engine.obey(line):
                    print(answer, flush=True)
            except PsearchError as error:
                print(f"info string {error}", flush=True)
    finally:
        engine.close()


if __name__ == "__main__":
    main()
