"""A game tried out before anybody searches it: some games at random, played by the machine code in a process apart.

What is wrong with it then is a line with file and line of the function: a list of moves that is none, a score beyond
the limits, a key that differs for the same position, or is the same for two that go on differently, a game that goes on
for ever, a crash, a function that never returns. In the compiler's process alone, so once for each file.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from psearch.games.game_file import move_text, place_of, record_of
from psearch.games.game_limits import LARGEST_MOVE, MOST_MOVES, MOST_SCORE, POSITION_BYTES, RULES
from psearch_core.toolchain.compiler.build import end_with
from psearch_core.toolchain.kernel_cache import PlugInError

_GAMES = 32
_NARROW_POSITIONS = 6000
"""of games in which a position has two moves only: so the same ones are reached in many ways"""
_WIDTH = 2
_LONGEST_GAME = 2000
_PATIENCE_S = 10
_NAMES = tuple(RULES)
_WRITERS = ("start", "make")
_MOST_LETTERS = 120

Functions = dict[str, Callable[..., Any]]


class _Wrong(Exception):
    """A function, and what is wrong with it."""


def play(module: ModuleType, file: str, functions: Functions) -> None:
    """Play games with a group's entries. Raises PlugInError."""
    now = mmap.mmap(-1, 1)  # the function under way, for the one who waits
    ours, theirs = os.pipe()
    compiler = os.getpid()
    child = os.fork()
    if child == 0:
        end_with(compiler)
        _play_and_exit(module, file, functions, now, theirs)
    os.close(theirs)
    with open(ours, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    name, _, words = said.partition("\n")
    if os.WIFSIGNALED(status):
        name = _NAMES[now[0]]
        number = os.WTERMSIG(status)
        words = f"it crashes: {signal.Signals(number).name}"
        if number == signal.SIGALRM:
            words = f"it did not come back within {_PATIENCE_S} seconds"
    if words:
        raise PlugInError(f"{place_of(vars(module)[name])}: {words}" if name else words)


def _play_and_exit(module: ModuleType, file: str, functions: Functions, now: mmap.mmap, pipe: int) -> None:
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        said = ""
        try:
            _Games(module, file, functions, now).play()
        except _Wrong as wrong:
            said = f"{wrong.args[0]}\n{wrong.args[1]}"
        except PlugInError as wrong:
            said = f"\n{wrong}"
        os.write(pipe, said.encode())
        status = 0
    finally:
        os._exit(status)


class _Games:
    """Games at random, always the same ones."""

    def __init__(self, module: ModuleType, file: str, functions: Functions, now: mmap.mmap) -> None:
        self._module = module
        self._file = file
        self._functions = functions
        self._now = now
        self._most = int(module.MOST_MOVES)
        self._found = np.zeros(MOST_MOVES + 1, np.uint16)
        self._ended = 0
        self._random = random.Random(1)
        self._by_key: dict[int, np.ndarray] = {}
        """a position with each key"""

    def _call(self, name: str, pos: np.ndarray, *arguments: Any) -> int:
        self._now[0] = _NAMES.index(name)
        before = pos.copy()
        signal.alarm(_PATIENCE_S)
        plain = [one.ctypes.data if isinstance(one, np.ndarray) else one for one in (pos, *arguments)]
        value = int(self._functions[f"game_{name}"](*plain))
        signal.alarm(0)
        if name not in _WRITERS and not np.array_equal(before, pos):
            raise _Wrong(name, "it changes the position: only start and make may")
        return value

    def play(self) -> None:
        for _ in range(_GAMES):
            self._play_one()
        if not self._ended:
            raise _Wrong("ended", f"none of {_GAMES} games at random has ended within {_LONGEST_GAME} moves")
        left = _NARROW_POSITIONS
        while left > 0:
            left -= self._play_narrow()

    def _play_narrow(self) -> int:
        """Play a game in few of the ways that there are; returns how many positions it had."""
        pos = np.zeros(POSITION_BYTES, np.uint8)
        self._call("start", pos)
        for number in range(1, _LONGEST_GAME):
            self._compare_by_key(pos, self._call("key", pos))
            if self._call("ended", pos):
                return number
            self._call("make", pos, self._random.choice(sorted(self._moves(pos))[:_WIDTH]))
        return _LONGEST_GAME

    def _compare_by_key(self, pos: np.ndarray, key: int) -> None:
        """Two positions with one key must go on alike to the end of a game, for they share scores."""
        one, other = self._by_key.setdefault(key, pos.copy()).copy(), pos.copy()
        for _ in range(_LONGEST_GAME):
            if np.array_equal(one, other):
                return
            if self._call("key", one) != self._call("key", other):
                raise _Wrong("key", "it is the same for two positions, and not after the same moves")
            has_ended = self._same("ended", self._call("ended", one) != 0, self._call("ended", other) != 0)
            if has_ended:
                self._same("result", self._call("result", one), self._call("result", other))
                return
            found = self._same("moves", sorted(self._moves(one)), sorted(self._moves(other)))
            move = self._random.choice(found)
            self._call("make", one, move)
            self._call("make", other, move)

    def _same(self, name: str, one: Any, other: Any) -> Any:
        if one != other:
            said = f"after the same moves {name}() is {one} and {other}"
            raise _Wrong("key", f"it is the same for two positions that differ: {said[:_MOST_LETTERS]}")
        return one

    def _play_one(self) -> None:
        pos = np.zeros(POSITION_BYTES, np.uint8)
        self._call("start", pos)
        for _ in range(_LONGEST_GAME):
            if self._call("ended", pos):
                self._ended += 1
                self._check_score("result", pos, MOST_SCORE)
                return
            self._check_score("evaluate", pos, MOST_SCORE - 1)
            key = self._call("key", pos)
            self._compare_by_key(pos, key)
            found = self._moves(pos)
            if found != self._moves(pos):
                raise _Wrong("moves", "called twice for the same position it finds other moves")
            if key != self._call("key", pos.copy()):
                raise _Wrong("key", "called twice for the same position it returns another number")
            before = pos.copy()
            move = self._random.choice(found)
            move_text(self._module, record_of(self._module, pos), move, self._file)
            self._call("make", pos, move)
            if np.array_equal(before, pos):
                raise _Wrong("make", "a move leaves the position as it was")
            if pos[self._module.POSITION.itemsize :].any():
                raise _Wrong("make", "it writes beyond the fields of POSITION")
            if self._call("key", pos) == key:
                raise _Wrong("key", "it is the same before and after a move: it must tell all positions apart")

    def _moves(self, pos: np.ndarray) -> list[int]:
        self._found[:] = 0
        count = self._call("moves", pos, self._found)
        if not 1 <= count <= self._most:
            what = "of a position that has not ended" if count == 0 else f"of at most MOST_MOVES = {self._most}"
            raise _Wrong("moves", f"it has found {count} moves {what}")
        if self._found[self._most :].any():
            raise _Wrong("moves", f"it writes beyond the {self._most} moves that MOST_MOVES allows")
        found = [int(move) for move in self._found[:count]]
        if max(found) > LARGEST_MOVE:
            raise _Wrong("moves", f"it has found the move {max(found)}: moves are numbers from 0 to {LARGEST_MOVE}")
        if len(set(found)) < count:
            raise _Wrong("moves", "it has found the same move twice")
        return found

    def _check_score(self, name: str, pos: np.ndarray, most: int) -> None:
        value = self._call(name, pos)
        if abs(value) > most:
            raise _Wrong(name, f"it returned {value}: scores are from -{most} to {most}")
