"""A process that does tasks for the program, seen from inside; the program's side is `task_processes`.

What it does is the program's: the first message holds a pickled function `make`, which is called once, with a
`Program`, and returns what is called with each task. What `make` raises is told in place of `ProcessJoined`. A task
that takes long calls `Program.look` now and then, or `make` calls `Program.end_with_it`.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from typing import Any

from psearch.processes.lifetime import end_if_orphan, ended_with_parent, is_orphan, open_pidfd
from psearch.processes.patience import BEAT_S
from psearch.processes.tasks.task_messages import (
    Alive,
    Answered,
    Ask,
    Give,
    ProcessJoined,
    Raised,
    Told,
    performed,
    pickled_error,
)

TARGET = "psearch.processes.tasks.task_main:main"


def main(pipe: Connection, parent: int) -> None:
    """Do tasks until the pipe or the parent ends. parent: the number of the process that has forked this one."""
    if not is_orphan(parent):
        Program(pipe, parent).serve()


class Program:
    """The program, for a process that does its tasks.

    place: this process's, of as many as there are at a time; another that comes instead of it has the same.
    """

    def __init__(self, pipe: Connection, parent: int) -> None:
        self._pipe = pipe
        self._parent = parent
        self._waiting: deque[Give] = deque()
        """tasks"""
        self._at = 0
        """the number of the present task"""
        self._said_at = 0.0
        self._do: Any = None
        self._life = ExitStack()
        self._number, self.place, self._make = pipe.recv()

    def serve(self) -> None:
        """Begin, and do tasks until there is nobody to work for."""
        try:
            self._do = pickle.loads(self._make)(self)
        except Exception as error:
            self._say(Raised(self._number, -1, pickled_error(error)))
            return
        self._say(ProcessJoined(self._number, "", str(os.getpid())))
        watched = open_pidfd(self._parent)
        awaited: list[Any] = [self._pipe] if watched is None else [self._pipe, watched]
        while True:
            while not self._waiting:
                if self._pipe not in wait(awaited):
                    return
                self._take()
            task = self._waiting.popleft()
            self._at = task.number
            is_done, answer = performed(self._do, task.work)
            self._say((Answered if is_done else Raised)(self._number, task.number, answer))

    def tell(self, what: Any) -> None:
        """Say something about the present task."""
        self._say(Told(self._number, self._at, pickle.dumps(what, pickle.HIGHEST_PROTOCOL)))

    def look(self) -> None:
        """End with the program, say that this process works, and take what the program has sent: questions go to the
        method `beside` of what does the tasks."""
        end_if_orphan(self._parent, self._pipe)
        while self._pipe.poll():
            self._take()
        if time.monotonic() - self._said_at >= BEAT_S:
            self._say(Alive())

    def end_with_it(self) -> None:
        """Have a thread end this process with the program, from now on, for tasks that do not look."""
        self._life.enter_context(ended_with_parent(self._parent, self._pipe))

    def _take(self) -> None:
        message: Give | Ask = self._pipe.recv()
        if isinstance(message, Ask):
            self._do.beside(pickle.loads(message.question))
        else:
            self._waiting.append(message)

    def _say(self, message: object) -> None:
        self._pipe.send(message)
        self._said_at = time.monotonic()


def unwatched(make: Callable[[], Callable[[Any], Any]], program: Program) -> Callable[[Any], Any]:
    """Make what does tasks that know nothing of the program."""
    program.end_with_it()
    return make()
