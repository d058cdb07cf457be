"""The rules of a user's game, called in a separate process, so that the caller survives a rule that crashes or hangs.

An answer takes about 150 microseconds. A question whose process was lost is asked once more, of a new process, which
reports each function before it calls it: the first process may have been killed from outside.
"""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from psearch.games.game_file import POSITION_BYTES, RULES, level_dtype
from psearch.processes.child import ChildProcess, Children, end
from psearch.processes.lifetime import ended_with_parent
from psearch.processes.patience import LONG_RULE, RULE
from psearch.processes.starting import launch_process
from psearch.scheduler.scheduler_entries import SEARCH
from psearch_core.toolchain.groups import Group
from psearch_core.toolchain.kernel_cache import PlugInError
from psearch_core.toolchain.kernel_sets import KernelSet

_TARGET = "psearch.games.rules_process:main"
_PROCESSOR_S = 1.0
"""Most processor time of an answer, in seconds; it does not depend on the load of the machine."""
_ANSWER_S = RULE.look_s * RULE.silent_looks
"""Longest wait for an answer, in seconds, for a process that gets no processor time."""
_PERFT = "perft"
_NAMES = tuple(RULES)
_ROOM = 1 << 16
"""Size of the list of moves: a rule that finds too many must not crash before that is reported."""


class Rules:
    """The compiled rules of a game, called in this process; positions are bytes."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.on_call: Callable[[str], None] | None = None
        """Callback with the name of each function before it is called."""
        self._found = np.zeros(_ROOM, np.uint16)

    def _call(self, name: str, position: np.ndarray, argument: int = 0) -> int:
        if self.on_call is not None:
            self.on_call(name)
        if name == _PERFT:
            return int(self._group.function("game_perft")(position.ctypes.data, argument))
        return int(self._group.function("game_rule")(_NAMES.index(name), position.ctypes.data, argument))

    def start(self) -> bytes:
        pos = np.zeros(POSITION_BYTES, np.uint8)
        self._call("start", pos)
        return pos.tobytes()

    def number(self, position: bytes, rule: str) -> int:
        """Return `result`, `evaluate` or `key` of a position."""
        return self._call(rule, _copy_of(position))

    def look(self, position: bytes) -> tuple[int, list[int]]:
        """Return the number of moves, and the moves; -1 and none if the game is over."""
        pos = _copy_of(position)
        if self._call("ended", pos):
            return -1, []
        count = self._call("moves", pos, self._found.ctypes.data)
        return max(count, 0), self._found[: max(count, 0)].tolist()

    def along(self, position: bytes, moves: list[int]) -> list[bytes]:
        """Return the positions of a line, including the first, up to the first move that is not legal."""
        line = [position]
        for move in moves:
            if move not in self.look(line[-1])[1]:
                break
            line.append(self.after(line[-1], move))
        return line

    def after(self, position: bytes, move: int) -> bytes:
        pos = _copy_of(position)
        self._call("make", pos, move)
        return pos.tobytes()

    def perft(self, position: bytes, depth: int) -> int:
        """Return the number of ways to play `depth` moves; -1: a list of moves is wrong."""
        levels = np.zeros(depth + 1, level_dtype)
        levels[0]["position"] = _copy_of(position)
        return self._call(_PERFT, levels, depth)


def _copy_of(position: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(position), np.uint8)


class RulesProcess:
    """The rules of a game in a separate process, which the first question starts. For any thread. kernels: kernels of
    the game, loaded in this process; place: returns the place of a function, or the file for any other name."""

    def __init__(self, kernels: KernelSet, place: Callable[[str], str]) -> None:
        self._kernels = kernels
        self._place = place
        self._lock = threading.Lock()
        self._running: list[ChildProcess] = []
        """The process, if it is running."""
        self._owner = os.getpid()
        self._wrong: dict[str, str] = {}
        """Errors of the questions with which processes were lost, since a search or a page may ask them again."""
        weakref.finalize(self, _end, self._running, self._owner)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method of `Rules` in the process and return its result. Raises PlugInError for a rule that crashes or
        hangs, PsearchError when no process can be started."""
        question = (name, *arguments)
        with self._lock:
            known = self._wrong.get(repr(question))
            if known is not None:
                raise PlugInError(known)
            if self._owner != os.getpid():  # in a fork: the process belongs to the parent
                self._running, self._owner = [], os.getpid()
                weakref.finalize(self, _end, self._running, self._owner)
            try:
                for reports in (False, True):
                    function, trouble, answer = self._answer(question, reports)
                    if not trouble:
                        return answer
                    _end(self._running, self._owner)
            except BaseException:  # Ctrl-C: a late answer would be taken for that of the next question
                _end(self._running, self._owner)
                raise
            message = self._wrong[repr(question)] = f"{self._place(function)}: {trouble}"
            raise PlugInError(message)

    def _answer(self, question: tuple[Any, ...], reports: bool) -> tuple[str, str, Any]:
        """Return the last function that the process has reported, the problem, and the answer."""
        is_limited = question[0] != _PERFT
        patience, function, children = RULE if is_limited else LONG_RULE, "", Children()
        try:
            is_new = not self._running
            if is_new:
                self._running.append(launch_process(0, _TARGET))
            process = self._running[0]
            children.add(process)
            if is_new:
                children.send(process, (self._kernels, self._kernels.group(SEARCH).packed()))
            children.send(process, (reports, _PROCESSOR_S if is_limited else 0, question))
            process.expect(process.heard)
            while True:
                news = children.wait(patience.look_s)
                for _, messages, has_ended in news:
                    for is_name, word in messages:
                        if not is_name:
                            return "", "", word
                        function = word
                    if has_ended:
                        return function, _ending(process), None
                if not news and process.why_lost(process.heard, patience) is not None:
                    return function, f"it did not come back within {_ANSWER_S:.0f} seconds", None
        finally:
            children.close()


def _ending(process: ChildProcess) -> str:
    process.join(_ANSWER_S)
    number = -(process.exitcode or 0)
    if number == signal.SIGPROF:
        return f"it did not come back within {_PROCESSOR_S:.0f} s of processor time"
    return f"it crashes: {signal.Signals(number).name}" if number in signal.valid_signals() else f"it {process.ending}"


def _end(running: list[ChildProcess], owner: int) -> None:
    if owner == os.getpid():
        for process in running:
            process.kill()
        end(running)
        running.clear()


def main(pipe: Connection, parent: int) -> None:
    """Answer questions until the pipe or the parent ends."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with ended_with_parent(parent, pipe):
        kernels, packed = pipe.recv()
        group = kernels.group(SEARCH)
        group.take_packed(packed)
        rules = Rules(group)
        while True:
            reports, limit_s, (name, *arguments) = pipe.recv()
            rules.on_call = (lambda function: pipe.send((True, function))) if reports else None
            signal.setitimer(signal.ITIMER_PROF, limit_s)
            answer = getattr(rules, name)(*arguments)
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send((False, answer))
