"""What a program and the processes that do tasks for it tell each other, and such a process seen from inside.

Messages are plain data, pickled. The processes are on this machine (`task_processes`), or on the nodes of a cluster
(`psearch.remote`). What a task is belongs to the program: tasks, answers and exceptions are pickled once more, and
nothing on the way unpickles them. The first message to a process of this machine holds a pickled function `make`, which
is called once, with a `Program`, and returns what is called with each task; what it raises comes in place of
`ProcessJoined`. A task that takes long calls `Program.look` now and then, or `make` calls `Program.end_with_it`.
"""

from __future__ import annotations

import os
import pickle
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol, Self

from psearch.processes.lifetime import end_if_orphan, ended_with_parent, messages_of
from psearch.processes.patience import BEAT_S
from psearch.results import PsearchError

_LONGEST = 200
"""Characters of a line about an exception; Ray writes paragraphs."""

# -- to a process ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Give:
    """A task for a process, which does one after the other. number: of the task, given by the program; answers have
    it; limit_s: what takes longer has hung, and the process is ended."""

    process: int
    number: int
    work: bytes
    limit_s: float | None = None


@dataclass(frozen=True)
class Ask:
    """What a process is asked to do beside its task; it does not answer."""

    process: int
    question: bytes


# -- from a process ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alive:
    """The sender runs. Said every few seconds."""


@dataclass(frozen=True)
class ProcessJoined:
    """A process is warm and can be given tasks. Its number is never given to another. node: where it is, empty on this
    machine; name: of the node, on this machine the process number that the system has given it."""

    process: int
    node: str
    name: str


@dataclass(frozen=True)
class ProcessLost:
    """A process is gone, with the tasks that it has not answered; the reason is one line."""

    process: int
    reason: str


@dataclass(frozen=True)
class _Said:
    process: int
    number: int
    answer: bytes


class Answered(_Said):
    """A task is done."""


class Told(_Said):
    """A process says something before a task is done."""


class Raised(_Said):
    """A task ended with an exception, see `pickled_error`; the process is as good as before."""


class BackEnd(Protocol):
    """Processes that do tasks, here (`TaskProcesses`) or on a cluster (`ClusterProcesses`); a context manager. For one
    thread."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        """Send a task to a process, behind those that it has. Never waits; `messages` reports one that is lost."""

    def dismiss(self, process: int, reason: str) -> None:
        """Have a process ended; it is lost, and another comes."""

    def messages(self, timeout_s: float, awaited: int | None = None) -> list[Any]:
        """Return what has been heard; waits for the first message, but no longer, and not much longer than until
        `awaited`, a descriptor, can be read. Raises PsearchError when no processes can be had any more."""

    def close(self) -> None:
        """End all processes at once. May be called twice."""


# -- what they hold ----------------------------------------------------------------------------------------------------


def performed(function: Callable[[Any], Any], text: bytes) -> tuple[bool, bytes]:
    """Call a function with what was pickled. Whether it returned, and the pickled answer, or error."""
    try:
        return True, pickle.dumps(function(pickle.loads(text)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return False, pickled_error(error)


class RemoteTraceback(Exception):
    """The cause of an exception that another process has raised: where that was, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def pickled_error(error: Exception) -> bytes:
    """Return an exception and its traceback for `error_of`. What cannot be pickled, or read again, becomes a
    PsearchError."""
    where = "".join(traceback.format_exception(error))
    try:
        text = pickle.dumps((error, where))
        pickle.loads(text)
    except Exception:
        return pickle.dumps((PsearchError(f"{type(error).__name__}: {one_line(error)}"), where))
    return text


def error_of(text: bytes) -> Exception:
    """Return what another process has raised; its traceback there is the cause."""
    error: Exception
    error, where = pickle.loads(text)
    error.__cause__ = RemoteTraceback(where)
    return error


def one_line(error: BaseException) -> str:
    """Return the first line of what an exception says, or the name of its type where it says nothing."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip()[:_LONGEST]


# -- a process, seen from inside ---------------------------------------------------------------------------------------

TARGET = "psearch.processes.tasks:main"


def main(pipe: Connection, parent: int) -> None:
    """Do tasks until the pipe or the parent ends. parent: the number of the process that has forked this one."""
    Program(pipe, parent).serve()


class Program:
    """The program, for a process that does its tasks.

    place: this process's, of as many as there are at a time; another that comes instead of it has the same.
    """

    def __init__(self, pipe: Connection, parent: int) -> None:
        self._pipe = pipe
        self._parent = parent
        self._waiting: deque[Give] = deque()
        self._at = 0
        """the number of the present task"""
        self._said_at = 0.0
        self._do: Any = None
        self._life = ExitStack()
        self._number, self.place, self._make = pipe.recv()

    def serve(self) -> None:
        """Begin, and do tasks until the program goes."""
        try:
            self._do = pickle.loads(self._make)(self)
        except Exception as error:
            self._say(Raised(self._number, -1, pickled_error(error)))
            return
        self._say(ProcessJoined(self._number, "", str(os.getpid())))
        for message in messages_of(self._pipe, self._parent):
            self._take(message)
            while self._waiting:
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
            self._take(self._pipe.recv())
        if time.monotonic() - self._said_at >= BEAT_S:
            self._say(Alive())

    def end_with_it(self) -> None:
        """Have a thread end this process with the program, from now on, for tasks that do not look."""
        self._life.enter_context(ended_with_parent(self._parent, self._pipe))

    def _take(self, message: Give | Ask) -> None:
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
