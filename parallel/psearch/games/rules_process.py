"""The rules of a user's game, called in a process of their own: whoever asks outlives a rule that crashes, or that does
not come back.

An answer takes some 150 microseconds. A question whose process is lost is asked once more, of a new one, which says
before each call which function it is in: somebody else may have killed the first.
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
"""Processor time of an answer, however busy the machine is."""
_ANSWER_S = RULE.look_s * RULE.silent_looks
"""Time of an answer, for a process that gets no processor."""
_PERFT = "perft"
_NAMES = tuple(RULES)
_ROOM = 1 << 16
"""Moves; a rule that finds too many must not crash before that is reported."""


class Rules:
    """The compiled rules of a game, called in this process; positions are bytes. tell: called with the name of each
    function before it is called."""

    def __init__(self, group: Group, tell: Callable[[str], None] | None = None) -> None:
        self._group = group
        self.tell = tell
        self._found = np.zeros(_ROOM, np.uint16)

    def _call(self, name: str, position: np.ndarray, argument: int = 0) -> int:
        if self.tell is not None:
            self.tell(name)
        if name == _PERFT:
            return int(self._group.function("game_perft")(position.ctypes.data, argument))
        return int(self._group.function("game_rule")(_NAMES.index(name), position.ctypes.data, argument))

    def start(self) -> bytes:
        """Return the starting position."""
        pos = np.zeros(POSITION_BYTES, np.uint8)
        self._call("start", pos)
        return pos.tobytes()

    def number(self, rule: str, position: bytes) -> int:
        """Return what `result`, `evaluate` or `key` says of a position."""
        return self._call(rule, _copy_of(position))

    def look(self, position: bytes) -> tuple[int, list[int]]:
        """Return how many moves are found, and the moves; -1 and none where the game is over."""
        pos = _copy_of(position)
        if self._call("ended", pos):
            return -1, []
        count = self._call("moves", pos, self._found.ctypes.data)
        return max(count, 0), self._found[: max(count, 0)].tolist()

    def along(self, position: bytes, moves: list[int]) -> list[bytes]:
        """Return the positions of a line, the first one included; it ends before the first move that is not legal."""
        line = [position]
        for move in moves:
            if move not in self.look(line[-1])[1]:
                break
            line.append(self.after(line[-1], move))
        return line

    def after(self, position: bytes, move: int) -> bytes:
        """Return the position after a legal move."""
        pos = _copy_of(position)
        self._call("make", pos, move)
        return pos.tobytes()

    def perft(self, position: bytes, depth: int) -> int:
        """Return the number of ways to play `depth` moves, -1 where a list of moves is wrong."""
        levels = np.zeros(depth + 1, level_dtype)
        levels[0]["position"] = _copy_of(position)
        return self._call(_PERFT, levels, depth)


def _copy_of(position: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(position), np.uint8)


class RulesProcess:
    """The rules of a game in a process of their own, which is started when it is first asked. For any thread.

    kernels: loaded here; place: says where a function stands, or the file where there is no function of the name.
    """

    def __init__(self, kernels: KernelSet, place: Callable[[str], str]) -> None:
        self._kernels = kernels
        self._place = place
        self._lock = threading.Lock()
        self._running: list[ChildProcess] = []
        """one or none"""
        self._owner = os.getpid()
        self._wrong: dict[str, str] = {}
        """questions that processes were lost of, and what was said: the search, or a page, asks them again"""
        weakref.finalize(self, _end, self._running, self._owner)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Return what this method of `Rules` returns. Raises PlugInError, a line, for a rule that crashes or does not
        come back; PsearchError where no process can be had."""
        question = (name, *arguments)
        with self._lock:
            known = self._wrong.get(repr(question))
            if known is not None:
                raise PlugInError(known)
            if self._owner != os.getpid():  # in a fork: the process is another's
                self._running, self._owner = [], os.getpid()
                weakref.finalize(self, _end, self._running, self._owner)
            try:
                for tells in (False, True):
                    function, trouble, answer = self._answer(question, tells)
                    if not trouble:
                        return answer
                    _end(self._running, self._owner)
            except BaseException:  # Ctrl-C: the answer, if it comes, would be taken for the next one
                _end(self._running, self._owner)
                raise
            said = self._wrong[repr(question)] = f"{self._place(function)}: {trouble}"
            raise PlugInError(said)

    def _answer(self, question: tuple[Any, ...], tells: bool) -> tuple[str, str, Any]:
        """The function that was called last, as far as the process said so, what went wrong with it, and the answer."""
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
            children.send(process, (tells, _PROCESSOR_S if is_limited else 0, question))
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
            tells, limit_s, (name, *arguments) = pipe.recv()
            rules.tell = (lambda function: pipe.send((True, function))) if tells else None
            signal.setitimer(signal.ITIMER_PROF, limit_s)
            answer = getattr(rules, name)(*arguments)
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send((False, answer))
