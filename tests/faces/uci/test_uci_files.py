"""The files that options name: opened, asked, switched off when they fail."""

from __future__ import annotations

from psearch.faces.uci.resources import FileOption
from psearch.results import PsearchError
from psearch.searcher.notices import Notices


class Files:
    """Remembers what was opened and closed."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.missing = {"missing"}
        self.option = FileOption("BookFile", self.open, Notices(self.events.append), close=self.close)

    def open(self, path: str) -> str:
        if path in self.missing:
            raise PsearchError(f"cannot read {path}")
        self.events.append(f"open {path}")
        return path

    def close(self, path: str) -> None:
        self.events.append(f"close {path}")

    def settle(self, path: str) -> list[str]:
        self.events.clear()
        self.option.settle(path)
        return list(self.events)

    def ask(self) -> str | None:
        self.events.clear()
        return self.option.ask(self.answer)

    def answer(self, path: str) -> str:
        if "damaged" in path:
            raise PsearchError(f"{path} cannot be read")
        return f"read {path}"


def test_a_path_is_opened_once_and_closed_before_the_next() -> None:
    files = Files()
    assert files.settle("") == []
    assert files.settle("a") == ["open a"]
    assert files.settle("a") == []
    assert files.ask() == "read a"
    assert files.settle("b") == ["close a", "open b"]
    assert files.settle("") == ["close b"]
    assert files.ask() is None


def test_a_path_that_cannot_be_opened_is_reported_once() -> None:
    files = Files()
    files.settle("a")
    assert files.settle("missing") == ["close a", "BookFile: cannot read missing; going on without"]
    assert files.ask() is None
    assert files.settle("missing") == []
    assert files.settle("a") == ["open a"]


def test_what_fails_when_it_is_asked_is_told_once_and_switched_off() -> None:
    files = Files()
    files.settle("damaged")
    assert files.ask() is None
    assert files.events == ["BookFile: damaged cannot be read; going on without", "close damaged"]
    assert files.ask() is None and files.events == []
    assert files.settle("damaged") == []


def test_what_failed_is_tried_again() -> None:
    files = Files()
    files.settle("missing")
    files.events.clear()
    files.option.retry()
    assert files.events == []  # told already
    files.missing.clear()
    files.option.retry()
    files.option.retry()
    assert files.events == ["open missing"]
    assert files.ask() == "read missing"
    files.settle("damaged")
    files.ask()
    files.events.clear()
    files.option.retry()
    assert files.ask() is None  # damaged as before: closed again, and not told again
    assert files.events == ["close damaged"]
