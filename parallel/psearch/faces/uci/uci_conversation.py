"""The UCI conversation: the thread that reads commands, answers quick ones and passes the others to a second thread.

This thread imports nothing heavy, so `uciok` appears before python-chess or numba are loaded. The second thread
(`player.py`) loads the kernels and searches; meanwhile `isready`, `stop`, `ponderhit` and `quit` are still answered.
A `go` passes through `Uci._go`, `parse_go`, `Player.search`, and in the second thread `Turn.run`, `Supervisor.search`
and `Go.answer`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from errno import EBADF
from typing import TYPE_CHECKING

from psearch.faces.uci.go import Go, parse_go
from psearch.faces.uci.player import Player
from psearch.faces.uci.uci_options import NO_FILES, OptionValues
from psearch.faces.uci.uci_streams import NO_POSITION, Say, Streams, info_string
from psearch.results import PsearchError
from psearch.searcher.notices import Notices
from psearch.text.values import quoted
from psearch.version import __version__

if TYPE_CHECKING:
    import chess

_SETTLED_AT_ONCE = ("Threads", "Hash", "SyzygyPath", "BookFile", "Trace", "Policy", "Rules")
"""Options that are applied at once, not at the next `go`: they take time, or the system may refuse them."""
_VALUE = re.compile(r"(?:^|[ \t])value(?:[ \t]|$)")
_BLANK = " \t\r\v\f\n"
"""Characters stripped from both ends of an option's value; inside it they are kept."""
HELP = """\
psearch speaks UCI, the protocol of chess programs. You can type commands, too:

  position startpos moves e2e4 e7e5      or: position fen FEN [moves ...]
  go movetime 3000                       search for three seconds, then answer

go takes   depth N, nodes N, mate N, movetime MS, infinite, searchmoves MOVES,
           wtime btime winc binc MS, movestogo N, ponder, perft N
stop       answer now
setoption  setoption name Threads value 2; `uci` lists all options
isready    print readyok when all earlier commands are done
ucinewgame forget the last game
d          draw the position
eval       print the static evaluation of the position
bench      search fixed positions; the number of nodes identifies this version
debug on   print more about how the work is shared
quit       end the program

Scores are in centipawns for the side to move. For searches with a live display,
games and test suites, run `psearch --help` in a shell."""
"""Output of `help`: one screen for a user who types commands."""


class CurrentPosition:
    """Holds the position that the next `go` searches: at first the initial one; none after a refused `position`."""

    def __init__(self) -> None:
        self._base: tuple[object, ...] = ()
        self._moves: list[str] = []
        self._board: chess.Board | None = None
        self._is_refused = False

    def set_up(self, words: Sequence[str], chess960: bool) -> None:
        """Carry out a `position` command. Raises PsearchError; there is no position then. Clients send the whole game
        at each move, so only new moves are played if it continues the last good position."""
        from psearch.text.fen import parse_position
        from psearch.text.moves import parse_move

        self._is_refused = True
        cut = words.index("moves") if "moves" in words else len(words)
        base, moves = (chess960, *words[:cut]), list(words[cut + 1 :])
        if not cut:
            raise PsearchError("startpos or fen is missing")
        known = len(self._moves)
        if self._board is not None and base == self._base and moves[:known] == self._moves:
            board = self._board.copy()
        else:
            known = 0
            board = parse_position(words[:cut], chess960=chess960)
        for number, word in enumerate(moves[known:], start=known + 1):
            board.push(parse_move(board, word, f"move {number}"))
        self._board, self._base, self._moves = board, base, moves
        self._is_refused = False

    def board(self, chess960: bool) -> chess.Board:
        """Return a copy of the board with its moves; without pieces if the last position was refused."""
        import chess

        if self._is_refused:
            return chess.Board(None)
        if self._board is None:
            self.set_up(["startpos"], chess960)
        assert self._board is not None
        board = self._board.copy()
        board.chess960 = board.chess960 or chess960
        return board


class Uci:
    """Conversation with one client. say: prints whole lines, given without the last newline; called by two threads."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._notices = Notices(lambda text: say(info_string(text)))
        self.complain = self._notices.tell
        """Reports a problem of the input."""
        self._values = OptionValues(files=os.environ.get(NO_FILES, "0") in ("", "0"))
        self._debug = False
        self._position = CurrentPosition()
        player = self._player = Player(say, self._values)
        self._commands: dict[str, Callable[[list[str]], None]] = {
            "uci": self._uci,
            "debug": self._set_debug,
            "isready": lambda words: player.ready(),
            "register": lambda words: None,
            "ucinewgame": lambda words: player.new_game(),
            "position": self._set_position,
            "go": self._go,
            "stop": self._stop,
            "ponderhit": lambda words: player.latest.ponderhit() if player.latest is not None else None,
        }
        self._own_commands: dict[str, Callable[[], None]] = {
            "help": lambda: self._say(HELP),
            "d": lambda: self._on_board(lambda board: self._say(f"{board}\nFEN: {board.fen()}")),
            "eval": lambda: self._on_board(player.evaluate),
            "bench": player.bench,
        }

    def run(self, lines: Iterable[str]) -> None:
        """Carry out commands until `quit` or the end of the input. Failures are reported, and the next command is read.
        No worker remains at the end, but a compiling thread may."""
        try:
            for line in lines:
                try:
                    if not self._obey(line):
                        break
                except Exception as error:
                    self._notices.internal_error(error)
        finally:
            self._stop([])
            self._player.close()

    def _obey(self, line: str) -> bool:
        """Carry out one command; return False for `quit`. Unknown words before it are ignored, as UCI demands."""
        words = line.split()
        if words and words[0] in self._own_commands:
            self._own_commands[words[0]]()
            return True
        known = (*self._commands, "quit", "setoption")
        begin = next((place for place, word in enumerate(words) if word in known), len(words))
        if begin:
            self.complain(f"unknown command: {quoted(' '.join(words[:begin]))}")
        if begin == len(words):
            return True
        command = words[begin]
        if command == "quit":
            return False
        if command == "setoption":
            rest = line.split(maxsplit=begin + 1)[begin + 1 :]
            self._setoption("".join(rest))
        else:
            self._commands[command](words[begin + 1 :])
        return True

    def _uci(self, words: list[str]) -> None:
        lines = [f"id name psearch {__version__}", "id author the psearch authors"]
        self._say("\n".join([*lines, *(option.declaration() for option in self._values.declared()), "uciok"]))
        self._player.start()

    def _set_debug(self, words: list[str]) -> None:
        if words not in (["on"], ["off"]):
            self.complain("debug takes on or off")
        else:
            self._debug = words == ["on"]

    def _setoption(self, text: str) -> None:
        """Carry out `setoption name N value V`. The value is kept verbatim: file names may contain any blanks."""
        words = text.split(maxsplit=1)
        if not words or words[0] != "name":
            self.complain("setoption: `name` is missing")
            return
        name, *value = _VALUE.split(words[1] if len(words) > 1 else "", maxsplit=1)
        try:
            option = self._values.set(name, "".join(value).strip(_BLANK))
        except ValueError as error:
            self.complain(f"setoption: {error}")
            return
        if option.name == "Clear Hash":
            self._player.clear_hash()
        elif option.name in _SETTLED_AT_ONCE:
            self._player.settle()

    def _set_position(self, words: list[str]) -> None:
        try:
            self._position.set_up(words, self._values["UCI_Chess960"])
            self._player.start()  # a user who types may skip `uci`
        except PsearchError as error:
            self.complain(f"position: {error}; until a good one comes, go is answered with bestmove 0000")

    def _go(self, words: list[str]) -> None:
        try:
            command = parse_go(words, self._board(), self.complain)
        except PsearchError as error:
            self.complain(str(error))
            return
        # after a stop the next go may precede the answer (polyglot does that); it is queued
        running = self._player.latest
        if running is not None and not running.is_answered:
            if running.is_pondering:
                # python-chess may abandon a ponder search without a stop, and expects one answer only
                running.give_up()
                self.complain("the ponder search was given up for the next go")
            elif not running.control.is_stopped:
                self.complain("a search is already running: go was ignored")
                return
        self._player.search(Go(command, self._say), self._debug)

    def _stop(self, words: list[str]) -> None:
        if self._player.latest is not None:
            self._player.latest.stop()

    def _board(self) -> chess.Board:
        return self._position.board(self._values["UCI_Chess960"])

    def _on_board(self, show: Callable[[chess.Board], None]) -> None:
        board = self._board()
        if board.occupied:
            show(board)
        else:
            self.complain(NO_POSITION)


def run_uci(is_over: Callable[[], bool] = lambda: False) -> None:
    """Speak UCI on stdin and stdout until `quit`, the end of the input, or a signal that makes `is_over()` true. Raises
    OSError when stdout is closed or no longer read."""
    if sys.stdin is None:
        return
    if not hasattr(sys.stdout, "fileno"):
        raise OSError(EBADF, "standard output is closed")
    with Streams(sys.stdin.fileno(), sys.stdout.fileno(), is_over) as streams:
        uci = Uci(streams.say)
        uci.run(streams.lines(uci.complain))
