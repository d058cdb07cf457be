"""Positions from files that are no legal ones: no tool hands them to kernels, which look at nothing and crash."""

from __future__ import annotations

import lzma
from pathlib import Path

import fit_wdl
import pytest
from fitting.positions import quiet_positions
from netdata.blocks import read_blocks
from netdata.reader import Reader
from paths import REPOSITORY

from psearch.results import PsearchError
from psearch_core.chess.tables import make_tables

GAMES = REPOSITORY / "bench" / "training" / "games"
BAD = [
    "8/8/8/8/8/8/8/8 w - - 0 1",
    "8/8/8/8/8/8/8/K7 w - - 0 1",
    "8/8/8/8/8/8/8/k7 b - - 0 1",
    "k7/8/8/8/8/8/8/KK6 w - - 0 1",
    "kk6/8/8/8/8/8/8/K7 w - - 0 1",
    "k6R/8/8/8/8/8/8/K7 w - - 0 1",
    "k7/8/8/8/8/8/8/K6P w - - 0 1",
    "kP6/8/8/8/8/8/8/K7 w - - 0 1",
    "k7/QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/QQQQQQQQ/K7 b - - 0 1",
    "k7/8/8/8/8/8/8/K7/8/8 w - - 0 1",
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkk w - - 0 1",
    "hello",
]


boards = pytest.mark.parametrize("fen", BAD)


@boards
def test_games_of_a_block_are_refused(fen: str) -> None:
    found = next(iter(read_blocks(next(GAMES.glob("*.games")))))
    reader = Reader()
    assert len(reader.game(found.games[0]))
    with pytest.raises((ValueError, PsearchError)):
        reader.game(found.games[0]._replace(fen=fen))


@boards
def test_positions_to_be_fitted_are_refused(fen: str, tmp_path: Path) -> None:
    good = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1;20;0.5\n"
    text, packed = tmp_path / "some.txt", tmp_path / "some.xz"
    text.write_text(good)
    assert len(quiet_positions(text, make_tables())[0]) == 1
    text.write_text(f"{good}{fen};20;0.5\n{good}")
    with pytest.raises(ValueError, match=r"some\.txt: position 2 is not legal"):
        quiet_positions(text, make_tables())
    packed.write_bytes(lzma.compress(text.read_bytes()))
    with pytest.raises((ValueError, PsearchError)):
        fit_wdl.read_sample(packed, 3, 1)
