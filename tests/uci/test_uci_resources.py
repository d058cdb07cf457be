"""What the options open: tablebases, a book, a trace."""

from __future__ import annotations

from psearch.results import PsearchError
from psearch.uci.resources import _FileOption


class Files:
    """Remembers what was opened and closed."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.option = _FileOption("BookFile", self.open, self.events.append, close=self.close)

    def open(self, path: str) -> str:
        if "missing" in path:
            raise PsearchError(f"cannot read {path}")
        self.events.append(f"open {path}")
        return path

    def close(self, path: str) -> None:
        self.events.append(f"close {path}")

    def settle(self, path: str) -> list[str]:
        self.events.clear()
        self.option.settle(path)
        return list(self.events)


def test_a_path_is_opened_once_and_closed_before_the_next() -> None:
    files = Files()
    assert files.settle("") == []
    assert files.settle("a") == ["open a"]
    assert files.settle("a") == []
    assert files.option.value == "a"
    assert files.settle("b") == ["close a", "open b"]
    assert files.settle("") == ["close b"]
    assert files.option.value is None


def test_a_path_that_cannot_be_opened_is_reported_once() -> None:
    files = Files()
    files.settle("a")
    assert files.settle("missing") == ["close a", "info string BookFile: cannot read missing"]
    assert files.option.value is None
    assert files.settle("missing") == []
    assert files.settle("a") == ["open a"]
