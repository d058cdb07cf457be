"""Reader of files of games, which makes arrays of positions for a trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from netfit.network import UNIT_CP

from netdata.blocks import Block, Game, Torn, read_blocks, read_packed
from netdata.playing import board_of
from netdata.records import GAMES, MOST_PLIES, decode_game, decoder_dtype, game_dtype, sample_dtype
from psearch.scheduler.scheduler_entries import load_kernels
from psearch_core.chess.board.bridge import set_position
from psearch_core.chess.tables import make_tables
from psearch_core.records import position_dtype, tables_dtype

TEST_EVERY = 10
"""The last of so many games of a file is for testing."""


class Filter(NamedTuple):
    """Choice of the positions that are read."""

    skipped: int = 0
    """Searched plies at the beginning of a game that are left out."""
    most_score: int = 2500
    """Centipawns; positions with a greater score are left out."""
    noisy: bool = False
    """Keeps positions in check, and those whose move takes or promotes."""


class Reader:
    """Decodes games to records of `sample_dtype`."""

    def __init__(self, chosen: Filter | None = None) -> None:
        load_kernels(GAMES)
        self._tables = np.zeros(1, tables_dtype)
        make_tables(self._tables)
        self.decoder = np.zeros(1, decoder_dtype)
        for name, value in (chosen or Filter())._asdict().items():
            self.decoder[name] = value
        self.record = np.zeros(1, game_dtype)
        """The game that is being decoded."""
        # looked up once: a game is decoded in a tenth of a millisecond
        self._fields = {name: self.record[name][:1] for name in ("root", "opening", "count", "result")}
        self._ranks, self._scores = self.record["ranks"][0], self.record["scores"][0]
        self._addresses = tuple(array.ctypes.data for array in (self._tables, self.decoder, self.record))
        self._roots: dict[str, np.void] = {}
        self._room = np.zeros(MOST_PLIES, sample_dtype)

    def _root(self, fen: str) -> np.void:
        root = self._roots.get(fen)
        if root is None:
            if len(self._roots) > 1 << 16:
                self._roots.clear()
            position = np.zeros(1, position_dtype)
            set_position(self._tables, position, board_of(fen))
            root = self._roots[fen] = position[0]
        return root

    def _write(self, game: Game, target: int) -> int:
        """Decode a game to an address with room for MOST_PLIES records; returns how many positions there are."""
        return self.run(game, lambda: decode_game(*self._addresses, target))

    def run(self, game: Game, decode: Callable[[], int]) -> int:
        """Write a game to the record and return what a kernel makes of it. Raises Torn where its moves are none."""
        fields = self._fields
        count = len(game.ranks)
        if count > MOST_PLIES or len(game.scores) != count - game.opening:
            raise Torn("a game's counts do not add up")
        fields["root"][0] = self._root(game.fen)
        fields["opening"][0], fields["count"][0], fields["result"][0] = game.opening, count, game.result
        self._ranks[:count] = game.ranks
        self._scores[game.opening : count] = game.scores
        found = decode()
        if found < 0:
            raise Torn(f"there is no move of rank {game.ranks[-1 - found]} at ply {-1 - found}")
        return found

    def game(self, game: Game) -> np.ndarray:
        """Return the positions of one game. Raises Torn where its moves are none."""
        return self._room[: self._write(game, self._room.ctypes.data)].copy()

    def block(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of a block, and how many each of its games has. Raises Torn."""
        counts = np.zeros(len(block.games), np.int64)
        room = np.zeros(sum(len(game.ranks) for game in block.games) + MOST_PLIES, sample_dtype)
        begin = room.ctypes.data
        end = 0
        for i, game in enumerate(block.games):
            counts[i] = found = self._write(game, begin + end * sample_dtype.itemsize)
            end += found
        return room[:end], counts


class Followed(NamedTuple):
    """How positions of games that others have played are learnt (`generate.py --follow`)."""

    later: float = 0.0
    """Share of the game's later scores in the target: what is known behind the best play there is."""
    weight: int = 1
    """How often each position is trained on in a pass."""
    decay: float = 0.9
    """Factor of a later score's weight with each ply."""


_MOST_CERTAIN = 1e-4


def with_later(scores: np.ndarray, share: float, decay: float) -> np.ndarray:
    """Return scores of a game's positions, White's view, each blended with the mean of the later ones.

    share: of the later ones; decay: factor of their weights with each ply. Means are of expected scores; scores beyond
    25 pawns stay.
    """
    now = 1 / (1 + np.exp(-scores.astype(float).clip(-3000, 3000) / UNIT_CP))
    blended = now.copy()
    total = weight = 0.0
    for ply in range(len(now) - 2, -1, -1):
        total, weight = decay * total + now[ply + 1], decay * weight + 1
        blended[ply] += share * (total / weight - now[ply])
    blended = blended.clip(_MOST_CERTAIN, 1 - _MOST_CERTAIN)
    found = np.rint(UNIT_CP * np.log(blended / (1 - blended)))
    return np.where(np.abs(scores.astype(int)) > Filter().most_score, scores, found).astype(np.int16)


class Positions(NamedTuple):
    """Positions for training and for testing: games are in one of them whole."""

    training: np.ndarray
    test: np.ndarray
    games: int


def read(
    paths: Sequence[Path],
    chosen: Filter | None = None,
    most: int = 0,
    every: int = TEST_EVERY,
    followed: Followed | None = None,
    on_block: Callable[[int], None] = lambda positions: None,
) -> Positions:
    """Read files of games; every tenth game of a file is for testing.

    most: no block is read behind so many positions, 0 all; followed: how games that others have played are taken (None:
    as they are); on_block: called with the positions read so far. Takes 32 bytes a position. Raises OSError and Torn.
    """
    reader = Reader(chosen)
    followed = followed or Followed()

    def repeats(header: dict[str, Any]) -> int:
        return followed.weight if header.get("followed") else 1

    # a torn file is refused here, not minutes later
    headers = [block.header for path in paths for block in read_packed(path)]
    scores = sum(header["searched"] * repeats(header) for header in headers)
    # pages that are never written take no memory
    training, test = np.empty(scores, sample_dtype), np.empty(scores, sample_dtype)
    trained = tested = games = 0
    for path in paths:
        for place, block in enumerate(read_blocks(path)):
            if followed.later and block.header.get("followed"):
                later = partial(with_later, share=followed.later, decay=followed.decay)
                block = block._replace(games=[game._replace(scores=later(game.scores)) for game in block.games])
            samples, counts = reader.block(block)
            # by the game's number, since blocks stand in the order in which they were finished
            number = block.header.get("block", place) * block.header.get("games", len(counts))
            is_test = np.repeat((number + np.arange(len(counts))) % every == every - 1, counts)
            games += len(counts)
            learnt, held_out = np.tile(samples[~is_test], repeats(block.header)), samples[is_test]
            ends = trained + len(learnt), tested + len(held_out)
            training[trained : ends[0]], test[tested : ends[1]] = learnt, held_out
            trained, tested = ends
            on_block(trained + tested)
            if most and trained + tested >= most:
                return Positions(training[:trained], test[:tested], games)
    return Positions(training[:trained], test[:tested], games)


def shuffled(samples: np.ndarray, seed: int) -> np.ndarray:
    """Return the positions in a random order, over the whole set."""
    return samples[np.random.default_rng(seed).permutation(len(samples))]


def board_codes(samples: np.ndarray) -> np.ndarray:
    """Return the boards as `position_dtype` has them, uint8 of shape (n, 64); the mover's pieces are White's."""
    occupied = np.unpackbits(samples["occupied"].astype("<u8").view("u1").reshape(-1, 8), axis=1, bitorder="little")
    nibbles = np.stack([samples["pieces"] & 15, samples["pieces"] >> 4], axis=2).reshape(-1, 32)
    codes = np.zeros((len(samples), 64), np.uint8)
    codes[occupied > 0] = 1 + nibbles[np.arange(32) < occupied.sum(axis=1, keepdims=True)]
    return codes
