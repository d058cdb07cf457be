"""From published games, whose comments have scores and lines, to arrays of positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from netdata.openings import board_of
from netdata.reader import Filter
from netdata.records import (
    MOST_TEXT,
    PGN,
    decoder_dtype,
    read_text,
    sample_dtype,
    text_dtype,
)
from psearch.core.chess.board.bridge import set_position
from psearch.core.chess.tables import make_tables
from psearch.core.records import position_dtype, tables_dtype
from psearch.results import PsearchError
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.text import pgn_split
from psearch.text.source import Source

MOST_LINE, ONE_OF = 20, 2
"""Plies of an expected line, and which part of its quiet positions is kept."""
_SLOPE = 1.2
"""Scores of the project's own searches over the evaluation by hand"""
_ROOM = 1 << 14


def split_games(text: str) -> Iterator[tuple[dict[str, str], str]]:
    """Yield headers and moves of each game of a PGN."""
    source = Source.of_text("a PGN", text)
    for game in pgn_split.split_games(source):
        yield game.tags, source.text_between(game.moves_begin, game.end)


def _fit(samples: np.ndarray) -> float:
    """The factor that makes scores as large as those of the own searches, where the evaluation by hand is near zero."""
    static = samples["static"].astype(float)
    near = np.abs(static) < 300
    score = np.clip(samples["score"].astype(float), -600, 600)
    ratio = (static[near] ** 2).sum() / max((static[near] * score[near]).sum(), 1.0)
    return _SLOPE * float(np.clip(ratio, 0.5, 2.0))


class PgnReader:
    """Reads games to records of `sample_dtype`. left_out: games that begin with what is no legal position."""

    def __init__(self, seed: int = 1) -> None:
        load_kernels(PGN)
        self._tables = np.zeros(1, tables_dtype)
        make_tables(self._tables)
        self._decoder = np.zeros(1, decoder_dtype)
        self._decoder["most_score"], self._decoder["seed"] = Filter().most_score, seed
        self._text = np.zeros(1, text_dtype)
        self._text["most_line"], self._text["one_of"], self._text["room"] = MOST_LINE, ONE_OF, _ROOM
        self._room = np.zeros(_ROOM, sample_dtype)
        self._roots: dict[str, np.void | None] = {}
        self.left_out = 0

    def _root(self, fen: str) -> np.void | None:
        if fen not in self._roots:
            position = np.zeros(1, position_dtype)
            try:
                set_position(self._tables, position, board_of(fen))
                self._roots[fen] = position[0]
            except (ValueError, PsearchError):
                self._roots[fen] = None
        return self._roots[fen]

    def game(self, headers: dict[str, str], moves: str) -> np.ndarray:
        """Return the positions of one game and of expected lines, with scores as they stand there, and no result."""
        words = moves.encode("latin-1", "replace")
        if len(words) > MOST_TEXT:
            return self._room[:0].copy()
        root = self._root(headers.get("FEN", ""))
        if root is None:
            self.left_out += 1
            return self._room[:0].copy()
        record = self._text[0]
        self._text["root"][0] = root
        record["length"] = len(words)
        record["bytes"][: len(words)] = np.frombuffer(words, np.uint8)
        addresses = (array.ctypes.data for array in (self._tables, self._decoder, self._text, self._room))
        return self._room[: read_text(*addresses)].copy()

    def text(self, text: str) -> np.ndarray:
        """Return the positions of a PGN, its scores on the scale of the evaluation by hand. Raises ValueError."""
        parts = [self._room[:0], *(self.game(*found) for found in split_games(text))]
        samples = np.concatenate(parts)
        samples["score"] = np.rint(samples["score"] * _fit(samples)).clip(-32000, 32000) if len(samples) else 0
        return samples
