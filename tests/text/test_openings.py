"""Names of openings by position, whatever the order of the moves."""

from __future__ import annotations

import io

import chess.pgn
import pytest

from psearch.text.openings import name_opening


@pytest.mark.parametrize(
    ("text", "eco", "opening"),
    [
        ("1. e4 c5 2. Nf3 d6 3. d4 cxd4 4. Nxd4 Nf6 5. Nc3 a6 6. a3", "B90", "Sicilian Defense: Najdorf Variation"),
        ("1. Nf3 c5 2. e4 d6", "B50", "Sicilian Defense: Modern Variations"),
        ("1. e4 e5 2. Nf3 Nc6 3. Bb5", "C60", "Ruy Lopez"),
        ('[ECO "X"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5', "X", "Ruy Lopez"),
        ('[FEN "4k3/8/8/8/8/8/8/4K2R w K - 0 1"]\n\n1. O-O', None, None),
        ("*", None, None),
    ],
)
def test_names(text: str, eco: str | None, opening: str | None) -> None:
    game = chess.pgn.read_game(io.StringIO(text))
    name_opening(game)
    assert (game.headers.get("ECO"), game.headers.get("Opening")) == (eco, opening)
