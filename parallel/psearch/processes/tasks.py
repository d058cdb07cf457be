"""Messages between a program and the processes that do tasks for it, and the code that runs inside such a process.

Messages are pickled plain data. The processes are on this machine (`task_processes`), or on the nodes of a cluster
(`psearch.remote`). Tasks, answers and exceptions are pickled separately; only the program and the function that does
the tasks unpickle them. The first message to a process of this machine holds a pickled function `make`, which is called
once, with a `Program`, and returns the function that does each task; if it raises, the exception is sent in place of
`ProcessJoined`. A long task calls `Program.look` now and then, or `make` calls `Program.end_with_it`.
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
"""Most characters of a line about an exception; Ray's messages are paragraphs."""

# -- to a process ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Give:
    """A task for a process, which does its tasks one after the other. number: chosen by the program, repeated in the
    answer; limit_s: seconds after which the task has hung and the process is killed."""

    process: int
    number: int
    work: bytes
    limit_s: float | None = None


@dataclass(frozen=True)
class Ask:
    """A question to a process besides its task; it has no direct answer."""

    process: int
    question: bytes


# -- from a process ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alive:
    """A heartbeat: the sender runs."""


@dataclass(frozen=True)
class ProcessJoined:
    """A process is ready for tasks. Its number is never used again. node: identifier of its node, empty on this
    machine; name: name of the node, or on this machine the operating system's process number."""

    process: int
    node: str
    name: str


@dataclass(frozen=True)
class ProcessLost:
    """A process is lost, with the tasks that it has not answered; the reason is one line."""

    process: int
    reason: str


@dataclass(frozen=True)
class _TaskMessage:
    process: int
    number: int
    answer: bytes


class Answered(_TaskMessage):
    """A task is done."""


class Told(_TaskMessage):
    """A message of a process about an unfinished task."""


class Raised(_TaskMessage):
    """A task ended with an exception, see `pickled_error`; the process can do others."""


class BackEnd(Protocol):
    """Processes that do tasks, here (`TaskProcesses`) or on a cluster (`ClusterProcesses`); a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        """Queue a task for a process, without waiting; `messages` reports if the process is lost."""

    def dismiss(self, process: int, reason: str) -> None:
        """End a process, which then counts as lost, and start another in its place."""

    def messages(self, timeout_s: float, awaited: int | None = None) -> list[Any]:
        """Return the messages received; wait for the first one, or until the descriptor `awaited` is readable, for at
        most about `timeout_s` seconds. Raises PsearchError when no more processes can be started."""

    def close(self) -> None:
        """End all processes at once. May be called twice."""


# -- contents of messages ----------------------------------------------------------------------------------------------


def performed(function: Callable[[Any], Any], text: bytes) -> tuple[bool, bytes]:
    """Call a function with a pickled argument; return whether it returned, and the pickled answer or error."""
    try:
        return True, pickle.dumps(function(pickle.loads(text)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return False, pickled_error(error)


class RemoteTraceback(Exception):
    """Cause of an exception that another process has raised: the traceback there, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def pickled_error(error: Exception) -> bytes:
    """Pickle an exception and its traceback for `error_of`; one that cannot be pickled becomes a PsearchError."""
    where = "".join(traceback.format_exception(error))
    try:
        text = pickle.dumps((error, where))
        pickle.loads(text)
    except Exception:
        return pickle.dumps((PsearchError(f"{type(error).__name__}: {one_line(error)}"), where))
    return text


def error_of(text: bytes) -> Exception:
    """Return an exception of another process; its cause is the traceback there."""
    error: Exception
    error, where = pickle.loads(text)
    error.__cause__ = RemoteTraceback(where)
    return error


def one_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or the name of its type if it has none."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip()[:_LONGEST]


# -- inside a process --------------------------------------------------------------------------------------------------

TARGET = "psearch.processes.tasks:main"


def main(pipe: Connection, parent: int) -> None:
    """Do tasks until the parent, whose process number is given, ends or closes the pipe."""
    Program(pipe, parent).serve()


class Program:
    """Connection to the program, inside a process that does its tasks.

    place: index of this process among those that run at the same time; its replacement gets the same index.
    """

    def __init__(self, pipe: Connection, parent: int) -> None:
        self._pipe = pipe
        self._parent = parent
        self._waiting: deque[Give] = deque()
        self._at = 0
        """Number of the present task."""
        self._sent_at = 0.0
        self._do: Any = None
        self._life = ExitStack()
        self._number, self.place, self._make = pipe.recv()

    def serve(self) -> None:
        """Make the function for the tasks, and do tasks until the program ends."""
        try:
            self._do = pickle.loads(self._make)(self)
        except Exception as error:
            self._send(Raised(self._number, -1, pickled_error(error)))
            return
        self._send(ProcessJoined(self._number, "", str(os.getpid())))
        for message in messages_of(self._pipe, self._parent):
            self._take(message)
            while self._waiting:
                task = self._waiting.popleft()
                self._at = task.number
                is_done, answer = performed(self._do, task.work)
                self._send((Answered if is_done else Raised)(self._number, task.number, answer))

    def tell(self, what: Any) -> None:
        """Send a message about the present task."""
        self._send(Told(self._number, self._at, pickle.dumps(what, pickle.HIGHEST_PROTOCOL)))

    def look(self) -> None:
        """Exit if the program has ended, send a heartbeat, take messages; the function's `beside` gets questions."""
        end_if_orphan(self._parent, self._pipe)
        while self._pipe.poll():
            self._take(self._pipe.recv())
        if time.monotonic() - self._sent_at >= BEAT_S:
            self._send(Alive())

    def end_with_it(self) -> None:
        """Start a thread that ends this process with the program, for tasks that do not call `look`."""
        self._life.enter_context(ended_with_parent(self._parent, self._pipe))

    def _take(self, message: Give | Ask) -> None:
        if isinstance(message, Ask):
            self._do.beside(pickle.loads(message.question))
        else:
            self._waiting.append(message)

    def _send(self, message: object) -> None:
        self._pipe.send(message)
        self._sent_at = time.monotonic()


def unwatched(make: Callable[[], Callable[[Any], Any]], program: Program) -> Callable[[Any], Any]:
    """Return the function for tasks that know nothing of the program, and end this process with the program."""
    program.end_with_it()
    return make()
