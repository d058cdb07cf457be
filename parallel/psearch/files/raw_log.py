"""The raw log of a study: one JSON object per line, written during the study.

The first line says what was measured, with which options and on which machine (`about`). Each further line is one
search; facts that are known only at the end (`{"ceilings": ...}`) come last. The log of an interrupted study has every
finished search.

A log may be compressed (`.xz`). One file may hold several logs: then each line names its log in the field `run`, and
`FILE#RUN` is one of them.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import platform
import subprocess
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from psearch.closing import Closing
from psearch.files.safe_files import DamagedLine, Journal, json_value
from psearch.results import PsearchError
from psearch.version import __version__

Sample = TypeVar("Sample")

OPENING = b'{"about": {'
"""First bytes of a log."""
_LONGEST_LIST = 200
"""Most characters for the names of runs in a message."""
_LONGEST_LINE = 1 << 24
"""Longest line in characters, more than any log has."""
_SIGNED = ("score",)
"""Names of the fields whose numbers may be negative."""


def machine() -> dict[str, Any]:
    """Describe what figures depend on: processor, usable cores, and the versions of Python and psearch."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    for line in info.read_text("utf-8", "replace").splitlines() if info.exists() else ():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cpu": model, "cores": cores, "python": platform.python_version(), "psearch": __version__}


def machine_name(about: Mapping[str, Any]) -> str:
    """Return a description of a machine. about: the result of `machine`."""
    return f"{about.get('cpu', '?')}, {about.get('cores', '?')} cores"


def source_commit() -> str:
    """Return `git describe` of the checkout that psearch runs from or was built from, with `-dirty` if it was changed;
    without a checkout, the version."""
    root = Path(__file__).parents[3]
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=10"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    built_from = Path(__file__).parents[1] / "commit.txt"  # written by setup.py
    return built_from.read_text("ascii").strip() if built_from.exists() else __version__


class RawLog(Closing):
    """An open log; a context manager. Every line reaches the file before the next search begins. The first one replaces
    the log of another study. Raises PsearchError for any other file, and if the log cannot be written."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self._is_new = not os.path.lexists(path)
        try:
            self._lines = Journal(path, OPENING, fresh=True)
        except DamagedLine:
            text = f"{path} is not a log of a study, and is not replaced: choose another name, or delete it"
            raise PsearchError(text) from None
        except BlockingIOError:
            raise PsearchError(f"another psearch is writing the log {path}") from None
        except OSError as error:
            raise PsearchError(f"cannot write the log {path}: {error.strerror}") from None
        written = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        self._about: dict[str, Any] | None = {
            **about,
            "commit": source_commit(),
            "machine": machine(),
            "written": written,
        }

    def close(self) -> None:
        if self._is_new and self._about is not None:
            self._lines.path.unlink(missing_ok=True)  # empty
        self._lines.close()

    def add(self, sample: Any) -> None:
        """Add a finished search, which is a dataclass."""
        self.note(**asdict(sample))

    def note(self, **facts: Any) -> None:
        """Add facts about the whole study."""
        if self._about is not None:
            self._lines.append({"about": self._about})
            self._about = None
        self._lines.append(facts)


def split_run(path: Path) -> tuple[Path, str | None]:
    """Return the file and the run of `FILE#RUN`; the run is None for FILE alone, and if a file has the whole name."""
    file, mark, run = str(path).rpartition("#")
    return (Path(file), run) if mark and not path.exists() else (path, None)


def read_log(path: Path, make: Callable[..., Sample], *, is_begun: bool = False) -> tuple[list[Sample], dict[str, Any]]:
    """Return the searches of a log, each made by `make(**fields)`, and its facts, `about` among them.

    path: `FILE` with a single log, or `FILE#RUN`; compressed if FILE ends in `.xz`. is_begun: it may hold no search
    yet. Raises PsearchError, which names the bad line or the runs to choose from.
    """
    file, run = split_run(path)
    samples: list[Sample] = []
    facts: dict[str, Any] = {}
    for number, values in _lines_of(file, run):
        try:
            if "position" in values:
                _check_fields(make, values)
                samples.append(make(**values))
            else:
                facts.update(values)
        except (ValueError, TypeError):
            raise _not_a_line(file, number) from None
    if not samples and not is_begun:
        raise PsearchError(f"{path} holds no finished search")
    return samples, facts


def _check_fields(make: Callable[..., Any], values: dict[str, Any]) -> None:
    """Raise ValueError for a value that does not have the type of its field in a dataclass, and for impossible numbers.
    Only texts and numbers are checked."""
    kinds = {"str": (str,), "bool": (bool,), "int": (int,), "float": (int, float)}
    for field in fields(make) if isinstance(make, type) and is_dataclass(make) else ():
        value = values.get(field.name, field.default)
        wanted = kinds.get(str(field.type), (type(value),))
        least = -(2**63) if field.name in _SIGNED else 0
        if type(value) not in wanted or (isinstance(value, (int, float)) and not least <= value < 2**63):
            raise ValueError


def _lines_of(file: Path, run: str | None) -> list[tuple[int, dict[str, Any]]]:
    """Return number and content of each line of a run; None: the only run of the file."""
    by_run: dict[str | None, list[tuple[int, dict[str, Any]]]] = {}
    is_packed = file.suffix == ".xz"
    try:
        with lzma.open(file, "rt", encoding="utf-8") if is_packed else file.open(encoding="utf-8") as lines:
            for number, line in enumerate(iter(lambda: lines.readline(_LONGEST_LINE), ""), start=1):
                if len(line) == _LONGEST_LINE:
                    raise _not_a_line(file, number)
                try:
                    values = json_value(line)
                    by_run.setdefault(values.pop("run", None), []).append((number, values))
                except (ValueError, TypeError, AttributeError):
                    if not line.endswith("\n"):
                        break  # a kill or a full disk has cut the line short
                    raise _not_a_line(file, number) from None
    except OSError as error:
        raise PsearchError(f"cannot read the log {file}: {error.strerror}") from None
    except (UnicodeDecodeError, EOFError, lzma.LZMAError):
        kind = "a complete xz file" if is_packed else "a text file"
        raise PsearchError(f"cannot read the log {file}: not {kind}") from None
    if run is None and len(by_run) <= 1:
        return next(iter(by_run.values()), [])
    if run is not None and run in by_run:
        return by_run[run]
    names = textwrap.shorten(", ".join(name for name in by_run if name is not None), _LONGEST_LIST, placeholder=" ...")
    if run is None:
        raise PsearchError(f"{file} holds several logs: choose one with {file.name}#RUN, of {names}")
    raise PsearchError(f"{file} has no run {run}" + (f"; there are {names}" if names else ""))


def _not_a_line(file: Path, number: int) -> PsearchError:
    return PsearchError(f"{file}, line {number}: not a line of this study's log")
