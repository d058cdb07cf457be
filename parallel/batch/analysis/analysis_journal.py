"""The journal of a long analysis: every finished position, so that nothing is searched twice.

The first line says what is analysed and how; each further line is one finished position under its key.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import chess

from psearch.files.append_only import DamagedLine, Journal
from psearch.results import PsearchError
from psearch.text.values import shown

_FORMAT = "psearch analysis 4"
_OPENING = json.dumps({"journal": _FORMAT})[:-1].encode()
_SYNC_INTERVAL_S = 1.0
"""least time between two waits for the disk: searches can be shorter than those"""


class AnalysisJournal:
    """An open journal; a context manager.

    about: what the answers depend on, JSON values by name; check: raises ValueError for what is no answer. A journal
    that is already there goes on if it is about the same; raises PsearchError, and leaves the file as it is, if it
    holds positions of something else, is no journal, or in use by another process. A link is not followed: nobody
    names a journal, so none was meant. A journal without a position is worth nothing: it is begun anew, and deleted
    when it is closed. An OSError names the file.
    """

    def __init__(self, path: Path, about: dict[str, Any], check: Callable[[Any], None] = lambda answer: None) -> None:
        self.path = path
        self._check = check
        self._offsets: dict[str, int] = {}
        try:
            self._lines = Journal(path, _OPENING, sync_interval_s=_SYNC_INTERVAL_S, flags=os.O_NOFOLLOW)
        except BlockingIOError:
            raise PsearchError(f"another psearch is writing {path}") from None
        except OSError as error:
            raise PsearchError(f"cannot write the journal {path}: {error.strerror}") from None
        try:
            if not self._lines.is_regular:
                raise PsearchError(f"cannot write the journal {path}: not a regular file")
            if not self._goes_on(about):
                self._lines.cut(0)
                self._lines.append({"journal": _FORMAT, "about": about})
        except BaseException:
            self._lines.close()
            raise

    def __enter__(self) -> AnalysisJournal:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._offsets:
            self.path.unlink(missing_ok=True)
        self._lines.close()

    def __len__(self) -> int:
        """Finished positions."""
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return key in self._offsets

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was noted under a key. Read from the file: a long game collection must not fill the memory."""
        if key not in self._offsets:
            return None
        try:
            answer: dict[str, Any] = self._lines.value_at(self._offsets[key])["answer"]
            self._check(answer)
            return answer
        except (ValueError, TypeError, KeyError):
            raise PsearchError(f"{self.path} was changed by another program while it was in use") from None

    def add(self, key: str, answer: dict[str, Any]) -> None:
        """Note a finished position."""
        self._offsets[key] = self._lines.append({"key": key, "answer": answer})

    def remove(self) -> None:
        """Delete the file: the analysis is complete, and its result safe."""
        self.path.unlink()

    def _goes_on(self, about: dict[str, Any]) -> bool:
        """Index what is there and cut off what is incomplete; False: there is nothing to go on with."""
        number = 1
        different: list[str] | None = None
        try:
            for line in self._lines.lines():
                number = line.number
                if different is None:
                    different = _differences(line.value, about)
                else:
                    self._check(line.value["answer"])
                    self._offsets[str(line.value["key"])] = line.offset
                    self._refuse(different)
        except DamagedLine as error:
            raise self._no_journal(error.number) from None
        except (ValueError, TypeError, KeyError):
            raise self._no_journal(number) from None
        self._lines.cut()
        return different == []

    def _no_journal(self, number: int) -> PsearchError:
        return PsearchError(f"{self.path}, line {number}: not a journal of psearch analyse")

    def _refuse(self, different: list[str]) -> None:
        if different:
            raise PsearchError(
                f"{self.path} is the journal of another analysis (different: {', '.join(different)}); "
                "finish that one, delete the journal, or choose another --out"
            )


def _differences(head: Any, about: dict[str, Any]) -> list[str]:
    """In what the analysis of a journal's first line differs. Raises what a line that is none of ours leads to."""
    if head["journal"] != _FORMAT:
        raise ValueError
    found = dict(head["about"])
    names = [name for name in {**about, **found} if found.get(name) != about.get(name)]
    return [name if name.isprintable() else shown(name) for name in names]


def check_moves(board: chess.Board, best: str, line: Sequence[str], others: Sequence[str]) -> None:
    """Raise ValueError unless these moves, in UCI, can be played: `best` and `others` here, `line` one by one."""
    for move in (best, *others):
        board.parse_uci(move)
    walk = board.copy(stack=False)
    for move in line:
        walk.push_uci(move)


def _is_count(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**63


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_score(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_bound(value: Any) -> bool:
    return value in ("exact", "lower", "upper")


def _is_line(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_choices(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(_has_fields(choice, _CHOICE) for choice in value)


def _has_fields(value: Any, fields: Mapping[str, Callable[[Any], bool]]) -> bool:
    return (
        isinstance(value, dict) and value.keys() == fields.keys() and all(fields[name](value[name]) for name in fields)
    )


def _is_depths(value: Any) -> bool:
    return value in (1, 2, 3)


def _is_compared(value: Any) -> bool:
    return value is None or _has_fields(value, _COMPARISON)


_CHOICE = {"move": _is_text, "time_s": _is_time, "depth": _is_count, "nodes": _is_count}
_COMPARISON = {
    "depth": _is_count,
    "depths": _is_depths,
    "best": _is_text,
    "cp": _is_score,
    "mate": _is_score,
    "played_cp": _is_score,
    "played_mate": _is_score,
    "pv": _is_line,
}
_ANSWER = {
    "best": _is_text,
    "cp": _is_score,
    "mate": _is_score,
    "depth": _is_count,
    "seldepth": _is_count,
    "nodes": _is_count,
    "time_s": _is_time,
    "pv": _is_line,
    "bound": _is_bound,
    "exact_cp": _is_score,
    "exact_mate": _is_score,
    "choices": _are_choices,
    "tbhits": _is_count,
    "compared": _is_compared,
}


def check_answer(value: Any) -> None:
    """Raise ValueError unless these are the fields of an `Answer`, as JSON has them."""
    if not _has_fields(value, _ANSWER):
        raise ValueError
