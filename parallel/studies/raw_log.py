"""The raw log of a study: one JSON object a line, written as the study goes on.

The first line says what was measured, with what and where (`about`); each search is a line of its own; facts that are
known only at the end (`{"ceilings": ...}`) come last. A study that was interrupted leaves every finished search.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from psearch.results import PsearchError
from psearch.version import __version__

Sample = TypeVar("Sample")


def machine() -> dict[str, Any]:
    """What a figure depends on: processor, cores this process may use, Python, and the version of psearch."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    for line in info.read_text("utf-8", "replace").splitlines() if info.exists() else ():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cpu": model, "cores": cores, "python": platform.python_version(), "psearch": __version__}


class RawLog:
    """An open log; a context manager. Every line reaches the file before the next search begins."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        try:
            self._out = path.open("w", encoding="utf-8")
        except OSError as error:
            raise PsearchError(f"cannot write the log {path}: {error.strerror}") from None
        self.path = path
        written = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        self._write({"about": {**about, "machine": machine(), "written": written}})

    def __enter__(self) -> RawLog:
        return self

    def __exit__(self, *exception: object) -> None:
        self._out.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()

    def add(self, sample: Any) -> None:
        """One finished search: a dataclass."""
        self._write(asdict(sample))

    def note(self, **facts: Any) -> None:
        """Facts about the whole study."""
        self._write(facts)


def read_log(path: Path, make: Callable[..., Sample]) -> tuple[list[Sample], dict[str, Any]]:
    """The searches of a log, each made by `make(**fields)`, and the facts: `about` and what was noted.

    Raises PsearchError naming the line that is not such a log's.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise PsearchError(f"cannot read the log {path}: {reason}") from None
    samples: list[Sample] = []
    facts: dict[str, Any] = {}
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
            if "position" in values:
                samples.append(make(**values))
            else:
                facts.update(values)
        except (ValueError, TypeError):
            raise PsearchError(f"{path}, line {number}: not a line of this study's log") from None
    if not samples:
        raise PsearchError(f"{path} holds no finished search")
    return samples, facts
