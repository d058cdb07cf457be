"""Reads the transposition table from Python, also while workers write to it: the twin of `probe` in
`psearch_core/chess/search/tt.py`."""

from __future__ import annotations

from typing import NamedTuple

import chess
import numpy as np

from psearch.arena.arena import Arena
from psearch_core.chess.board.bridge import set_position
from psearch_core.constants import CLUSTER_BYTES
from psearch_core.records import position_dtype

_WORDS = CLUSTER_BYTES // 8


class StoredResult(NamedTuple):
    """What the table says of a position."""

    move: int
    """code of the best move, NO_MOVE if none is known"""
    score: int
    """for the side to move; mates are distances from this position"""
    depth: int
    bound: int
    """BOUND_UPPER, BOUND_LOWER or BOUND_EXACT"""


class TableReader:
    """The table of an arena, position by position. The arena must stay open."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._scratch = np.zeros(1, position_dtype)
        self._clusters = len(arena.tt) // _WORDS

    def key(self, board: chess.Board) -> int:
        """Return the key of a position, 0 to 2**64 - 1."""
        set_position(self._arena.tables, self._scratch, board)
        return int(self._scratch[0]["key"])

    def entry(self, key: int) -> StoredResult | None:
        """What is stored under a key. An entry that two workers wrote at once is none."""
        begin = (key * self._clusters >> 64) * _WORDS
        words = self._arena.tt[begin : begin + _WORDS].tolist()
        for check, data in zip(words[::2], words[1::2], strict=True):
            if check ^ data == key and data:
                return _unpacked(data)
        return None


def _unpacked(data: int) -> StoredResult:
    """The fields of a data word."""
    score = data >> 16 & 0xFFFF
    return StoredResult(data & 0xFFFF, (score ^ 0x8000) - 0x8000, data >> 48 & 0xFF, data >> 56 & 3)
