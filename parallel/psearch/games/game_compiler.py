"""Compiles a user's file to kernels and tests them before the first search, once for each file, in the compiler.

The file's plain functions become kernels, whose types numba infers from the calls. The machine code then plays random
games in a separate process. A mistake is reported with file and line of the function: an invalid list of moves, a score
beyond the limits, a key that differs for the same position or is equal for two that continue differently, a game
without end, a crash, a function that never returns.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any, cast

import numba
import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher

from psearch.games import rules
from psearch.games.game_file import (
    LARGEST_MOVE,
    MOST_MOVES,
    MOST_SCORE,
    POSITION_BYTES,
    RULES,
    check_game,
    mistake_of,
    move_text,
    place_of,
    record_of,
)
from psearch_core.toolchain import jit
from psearch_core.toolchain.compiler.build import end_with
from psearch_core.toolchain.compiler.front_end import prepare, typed
from psearch_core.toolchain.compiler.plug_ins import mistake_in
from psearch_core.toolchain.intrinsics import view
from psearch_core.toolchain.jit import Kernel
from psearch_core.toolchain.kernel_cache import PlugInError
from psearch_core.views import i64

_WRITERS = ("start", "make")
"""Functions that change a position and return nothing."""
_GAMES = 32
_NARROW_POSITIONS = 6000
"""Number of positions in games that use only two moves of each position, so that many lines reach the same one."""
_WIDTH = 2
_LONGEST_GAME = 2000
_PATIENCE_S = 10
_NAMES = tuple(RULES)
_MOST_LETTERS = 120


class PlainFunction(Kernel):
    """A function that gets its signature from its first call."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function, types.void())
        self.is_typed = False
        self._is_being_typed = False
        jit.registry[self.symbol] = self

    def get_call_template(self, args: Any, kws: Any) -> Any:
        if not self.is_typed:
            self.infer(args)
        return super().get_call_template(args, kws)

    def infer(self, arguments: Sequence[Any]) -> None:
        """Infer the type of the result for arguments of these types. Raises PlugInError."""
        if self._is_being_typed:
            raise PlugInError(f"{place_of(self.py_func)}: it calls itself: no kernel is recursive")
        self._is_being_typed = True
        self.arguments = tuple(types.unliteral(argument) for argument in arguments)
        self.result = None
        try:
            self.result = types.unliteral(typed(self).signature.return_type)
        except PlugInError:
            raise
        except Exception as error:  # numba may raise anything
            if isinstance(error.__cause__, PlugInError):
                raise error.__cause__ from None
            raise mistake_in(self, error) from error
        self.is_typed = True
        prepare([self])


def kernels_of(module: ModuleType, file: str) -> list[Kernel]:
    """Return the kernels of a game. Raises PlugInError for a file that is not a game or cannot be compiled."""
    check_game(vars(module), file)
    made: dict[FunctionType, PlainFunction] = {}
    for name in RULES:
        vars(module)[name] = _compiled(vars(module)[name], made)
    prepare(jit.registry.values())
    record = cast(types.Record, numba.from_dtype(module.POSITION))
    moves_type = rules.Found.typeof("moves")
    given = {"pos": record, "found": moves_type, "move": i64}
    for name, arguments in RULES.items():
        function = vars(module)[name]
        if not function.is_typed:
            function.infer([given[argument] for argument in arguments])
        result = function.result
        if name not in _WRITERS and not isinstance(result, types.Integer | types.Boolean):
            wanted = "True or False" if name == "ended" else "a whole number"
            what = "nothing" if result == types.none else f"{result}, where it must be {wanted}"
            raise PlugInError(f"{place_of(function.py_func)}: it returns {what}")
    names = {f"user_{name}": vars(module)[name] for name in RULES}
    names |= {"position_at": view(record), "found_at": rules.found_at, "count": int(module.MOST_MOVES), "np": np}
    names["__name__"] = f"{module.__name__}.rules"
    stand_ins = []
    for name in (*RULES, "most_moves"):
        copy = FunctionType(vars(rules.Patterns)[name].__code__, dict(names), name)
        copy.__module__ = names["__name__"]
        stand_ins.append(cast(Kernel, jit.replaces(vars(rules)[name])(copy)))
    return [*made.values(), *stand_ins]


def _compiled(value: Any, made: dict[FunctionType, PlainFunction]) -> PlainFunction:
    """Return a function as a kernel, after those that it calls; numba's own decorators are ignored."""
    function = value.py_func if isinstance(value, Dispatcher) else value
    if function not in made:
        made[function] = PlainFunction(function)
        names = function.__globals__
        for name in function.__code__.co_names:
            called = names.get(name)
            if isinstance(called, FunctionType) or (isinstance(called, Dispatcher) and not isinstance(called, Kernel)):
                names[name] = _compiled(called, made)
    return made[function]


def play(module: ModuleType, file: str, functions: dict[str, Callable[..., Any]]) -> None:
    """Play games with a group's entries, in a fork of this process: it may crash. Raises PlugInError."""
    now = mmap.mmap(-1, 1)  # index of the running function, shared with the waiting process
    ours, theirs = os.pipe()
    compiler = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            end_with(compiler)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            _Games(module, file, functions, now).play()
        except Exception as error:
            wrong = error if isinstance(error, PlugInError) else mistake_of(error, file)
            os.write(theirs, str(wrong).encode(errors="backslashreplace"))
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, encoding="utf-8") as pipe:
        words = pipe.read()
    number = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(number):
        is_late = os.WTERMSIG(number) == signal.SIGALRM
        words = f"it crashes: {signal.Signals(os.WTERMSIG(number)).name}"
        words = f"it did not come back within {_PATIENCE_S} seconds" if is_late else words
        words = f"{place_of(vars(module)[_NAMES[now[0]]])}: {words}"
    if words:
        raise PlugInError(words)


class _Games:
    """Random games, which are the same in each run."""

    def __init__(self, module: ModuleType, file: str, functions: dict[str, Callable[..., Any]], now: mmap.mmap) -> None:
        self._module = module
        self._file = file
        self._rule = functions["game_rule"]
        self._now = now
        self._most = int(module.MOST_MOVES)
        self._found = np.zeros(MOST_MOVES + 1, np.uint16)
        self._ended = 0
        self._random = random.Random(1)
        self._by_key: dict[int, np.ndarray] = {}
        """First position with each key."""

    def _wrong(self, name: str, words: str) -> PlugInError:
        return PlugInError(f"{place_of(vars(self._module)[name])}: {words}")

    def _call(self, name: str, pos: np.ndarray, argument: int = 0) -> int:
        self._now[0] = _NAMES.index(name)
        before = pos.copy()
        signal.alarm(_PATIENCE_S)
        value = int(self._rule(self._now[0], pos.ctypes.data, argument))
        signal.alarm(0)
        if name not in _WRITERS and not np.array_equal(before, pos):
            raise self._wrong(name, "it changes the position: only start and make may")
        return value

    def _start(self) -> np.ndarray:
        pos = np.zeros(POSITION_BYTES, np.uint8)
        self._call("start", pos)
        return pos

    def play(self) -> None:
        for _ in range(_GAMES):
            self._play_one()
        if not self._ended:
            raise self._wrong("ended", f"none of {_GAMES} random games has ended within {_LONGEST_GAME} moves")
        left = _NARROW_POSITIONS
        while left > 0:
            left -= self._play_narrow()

    def _play_narrow(self) -> int:
        """Play a game that uses only two moves of each position, and return the number of its positions."""
        pos = self._start()
        for number in range(1, _LONGEST_GAME):
            self._compare_by_key(pos, self._call("key", pos))
            if self._call("ended", pos):
                return number
            self._call("make", pos, self._random.choice(sorted(self._moves(pos))[:_WIDTH]))
        return _LONGEST_GAME

    def _compare_by_key(self, pos: np.ndarray, key: int) -> None:
        """Check that two positions with the same key continue alike to the end of a game, since they share scores."""
        one, other = self._by_key.setdefault(key, pos.copy()).copy(), pos.copy()
        for _ in range(_LONGEST_GAME):
            if np.array_equal(one, other):
                return
            if self._call("key", one) != self._call("key", other):
                raise self._wrong("key", "it is the same for two positions, but differs after the same moves")
            if self._same("ended", self._call("ended", one) != 0, self._call("ended", other) != 0):
                self._same("result", self._call("result", one), self._call("result", other))
                return
            found = self._same("moves", sorted(self._moves(one)), sorted(self._moves(other)))
            move = self._random.choice(found)
            self._call("make", one, move)
            self._call("make", other, move)

    def _same(self, name: str, one: Any, other: Any) -> Any:
        if one != other:
            difference = f"after the same moves {name}() is {one} and {other}"
            raise self._wrong("key", f"it is the same for two positions that differ: {difference[:_MOST_LETTERS]}")
        return one

    def _play_one(self) -> None:
        pos = self._start()
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
                raise self._wrong("moves", "two calls for the same position find different moves")
            if key != self._call("key", pos.copy()):
                raise self._wrong("key", "two calls for the same position return different numbers")
            before = pos.copy()
            move = self._random.choice(found)
            move_text(self._module, record_of(self._module, pos), move, self._file)
            self._call("make", pos, move)
            if np.array_equal(before, pos):
                raise self._wrong("make", "a move leaves the position as it was")
            if pos[self._module.POSITION.itemsize :].any():
                raise self._wrong("make", "it writes beyond the fields of POSITION")
            if self._call("key", pos) == key:
                raise self._wrong("key", "it is the same before and after a move: it must differ for all positions")

    def _moves(self, pos: np.ndarray) -> list[int]:
        self._found[:] = 0
        count = self._call("moves", pos, self._found.ctypes.data)
        if not 1 <= count <= self._most:
            what = "in a position that has not ended" if count == 0 else f"of at most MOST_MOVES = {self._most}"
            raise self._wrong("moves", f"it found {count} moves {what}")
        if self._found[self._most :].any():
            raise self._wrong("moves", f"it writes beyond the {self._most} moves that MOST_MOVES allows")
        found = [int(move) for move in self._found[:count]]
        if max(found) > LARGEST_MOVE:
            raise self._wrong("moves", f"it found the move {max(found)}: moves are numbers from 0 to {LARGEST_MOVE}")
        if len(set(found)) < count:
            raise self._wrong("moves", "it found the same move twice")
        return found

    def _check_score(self, name: str, pos: np.ndarray, most: int) -> None:
        value = self._call(name, pos)
        if abs(value) > most:
            raise self._wrong(name, f"it returned {value}: scores are from -{most} to {most}")
