"""What a program and the processes that do tasks for it tell each other: plain data, pickled. They are on this machine
(`task_processes`), or on the nodes of a cluster (`psearch.remote`).

What a task is belongs to the program: tasks, answers and exceptions are pickled once more, and nobody on the way
unpickles them.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from psearch.results import PsearchError

_LONGEST = 200
"""characters; Ray writes paragraphs"""

# -- to a process ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Give:
    """A task for a process, which does one after the other."""

    process: int
    number: int
    """of the task, given by the program; answers have it"""
    work: bytes
    """pickled"""
    limit_s: float | None = None
    """what takes longer has hung, and the process is ended"""


@dataclass(frozen=True)
class Ask:
    """What a process is asked to do beside its task; it does not answer."""

    process: int
    question: bytes
    """pickled"""


# -- from a process ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alive:
    """The sender runs. Said every few seconds."""


@dataclass(frozen=True)
class ProcessJoined:
    """A process is warm and can be given tasks. Its number is never given to another."""

    process: int
    node: str
    """where it is; empty: on this machine"""
    name: str
    """of the node; on this machine the process number that the system has given it"""


@dataclass(frozen=True)
class ProcessLost:
    """A process is gone, with the tasks that it has not answered; the reason is one line."""

    process: int
    reason: str


@dataclass(frozen=True)
class Answered:
    """A task is done."""

    process: int
    number: int
    answer: bytes
    """pickled"""


@dataclass(frozen=True)
class Told:
    """What a process says before a task is done."""

    process: int
    number: int
    answer: bytes
    """pickled"""


@dataclass(frozen=True)
class Raised:
    """A task ended with an exception; the process is as good as before."""

    process: int
    number: int
    error: bytes
    """see `pickled_error`"""


class BackEnd(Protocol):
    """Processes that do tasks, here (`TaskProcesses`) or on a cluster (`ClusterProcesses`). For one thread."""

    def give(self, process: int, number: int, work: Any, limit_s: float | None = None) -> None:
        """Send a task to a process, behind those that it has. Never waits; of one that is lost `messages` tells."""

    def dismiss(self, process: int, reason: str) -> None:
        """Have a process ended; it is lost, and another comes."""

    def messages(self, timeout_s: float, awaited: int | None = None) -> list[Any]:
        """Return what has been heard; waits for the first message, but no longer, and not much longer than until
        `awaited`, a descriptor, can be read. Raises PsearchError when no processes can be had any more."""

    def close(self) -> None:
        """End all processes at once. May be called twice."""


# -- what they hold ----------------------------------------------------------------------------------------------------


class RemoteTraceback(Exception):
    """The cause of an exception that another process has raised: where that was, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def performed(function: Callable[[Any], Any], text: bytes) -> tuple[bool, bytes]:
    """Call a function with what was pickled. Whether it returned, and the pickled answer, or error."""
    try:
        return True, pickle.dumps(function(pickle.loads(text)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return False, pickled_error(error)


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
