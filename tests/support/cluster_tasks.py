"""Tasks for processes of a cluster in tests."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path


def make() -> Callable[[object], object]:
    return perform


def make_broken() -> Callable[[object], object]:
    raise ValueError("this node has no luck")


def perform(task: object) -> object:
    """A number: its square. A pair of a word and a path: that once, then 0. A word alone: that each time."""
    if isinstance(task, int):
        time.sleep(0.01)
        return task * task
    if isinstance(task, tuple):
        word, path = task
        if Path(path).exists():
            return 0
        Path(path).touch()
    else:
        word = task
    if word == "die":
        raise SystemExit
    if word == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(600)  # it takes a moment to get to all threads
    raise ValueError(f"I do not {word}")
