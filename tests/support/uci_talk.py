"""The UCI engine in this process: lines in, lines out, and parts of it may be replaced."""

from __future__ import annotations

import queue
import threading

import chess
from uci_client import TIMEOUT_S, check_lines

from psearch.faces.uci.uci_conversation import Uci


class Talk:
    """A conversation in a thread; a context manager that insists on an end. `said` gets what the engine says."""

    def __init__(self) -> None:
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.input: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.uci = Uci(self.said.put)
        self.thread = threading.Thread(target=lambda: self.uci.run(iter(self.input.get, None)))

    def __enter__(self) -> Talk:
        self.thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.input.put(None)
        self.thread.join(60)
        if exception[0] is None:
            assert not self.thread.is_alive()

    def send(self, *lines: str) -> None:
        for line in lines:
            self.input.put(line)

    def until(self, start: str, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Lines up to the first that begins so."""
        lines: list[str] = []
        while not lines or not lines[-1].startswith(start):
            lines += self.said.get(timeout=timeout_s).split("\n")
        return lines

    def ready(self) -> list[str]:
        self.send("isready")
        return self.until("readyok")

    def go(self, words: str, fen: str) -> list[str]:
        """Search, check every line that comes, and return them."""
        self.send(f"position fen {fen}", f"go {words}")
        lines = self.until("bestmove")
        check_lines(lines, chess.Board(fen))
        return lines
