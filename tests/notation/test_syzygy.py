"""Endgame tables at the root: against published values, played out, and where tables must keep silent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import chess
import pytest
from paths import DATA

from psearch.notation.syzygy import RootProber
from psearch.results import PsearchError

TABLES = DATA / "syzygy"
"""all of three pieces, KQvKQ and KRvKR"""


@pytest.fixture(scope="module")
def prober() -> Iterator[RootProber]:
    with RootProber(str(TABLES)) as opened:
        yield opened


def best(prober: RootProber, fen: str) -> tuple[int, int, set[str]]:
    found = prober.probe(chess.Board(fen))
    assert found is not None
    return found.wdl, found.dtz, {move.uci() for move in found.best}


def test_published_values(prober: RootProber) -> None:
    """The clock is 0 in all of them; DTZ may be one ply out, and a mate at once is 1 whatever the table says."""
    checked = 0
    for line in (DATA / "special" / "endgame_wdl_dtz.epd").read_text().splitlines():
        board, operations = chess.Board.from_epd(line)
        found = prober.probe(board)
        if found is not None:
            checked += 1
            assert found.wdl == operations["wdl"], line
            assert abs(abs(found.dtz) - abs(operations["dtz"])) <= 1, line
    assert checked == 18


def test_a_mating_move_beats_all(prober: RootProber) -> None:
    assert best(prober, "7k/8/6K1/8/8/8/8/5R2 w - - 0 1") == (2, 1, {"f1f8"})
    assert best(prober, "7k/8/6K1/8/8/8/8/5R2 w - - 99 90") == (2, 1, {"f1f8"})
    assert best(prober, "k7/2P5/1K6/8/8/8/8/8 w - - 0 1")[2] == {"c7c8q", "c7c8r"}


def test_draws_keep_the_draw(prober: RootProber) -> None:
    assert best(prober, "8/8/8/8/8/4k3/4P3/4K3 w - - 0 1") == (0, 0, {"e1f1", "e1d1"})
    # the opposition, and only it, holds
    assert best(prober, "8/8/4k3/8/4PK2/8/8/8 b - - 0 1") == (0, 0, {"e6f6"})
    assert best(prober, "8/8/4k3/8/8/4K3/4P3/8 b - - 0 1") == (0, 0, {"e6e5"})


def test_losing_side_resists_longest(prober: RootProber) -> None:
    fen = "8/8/8/8/8/3k4/8/3K3R b - - 0 1"
    board = chess.Board(fen)
    found = prober.probe(board)
    assert found is not None
    assert found.wdl == -2
    lengths = {}
    for move in board.legal_moves:
        board.push(move)
        after = prober.probe(board)
        board.pop()
        assert after is not None
        lengths[move] = after.dtz
    assert set(found.best) == {move for move, length in lengths.items() if length == max(lengths.values())}
    assert len(found.best) < len(lengths)


@pytest.mark.parametrize(("clock", "wdl"), [(0, 2), (74, 2), (75, 1), (98, 1)])
def test_the_clock_takes_a_win_away(prober: RootProber, clock: int, wdl: int) -> None:
    """25 plies to mate: in time when the sum stays below 100."""
    fen = f"8/8/8/8/3k4/8/8/3K3R w - - {clock} 80"
    found = prober.probe(chess.Board(fen))
    assert found is not None
    assert found.dtz == 25
    assert found.wdl == wdl


def test_the_clock_saves_the_loser(prober: RootProber) -> None:
    fen = "8/8/8/8/8/3k4/8/3K3R b - - {} 80"
    assert best(prober, fen.format(0))[0] == -2
    assert best(prober, fen.format(72))[0] == -1
    assert best(prober, fen.format(99))[:2] == (0, 0)  # whatever is played now is the hundredth ply


def test_a_repeated_position_is_no_progress(prober: RootProber) -> None:
    """A win is not repeated while another move wins; what would be the third time is a draw."""
    board = chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1")
    quickest = chess.Move.from_uci("h1h5")
    for repetitions in range(3):
        found = prober.probe(board)
        assert found is not None
        assert found.wdl == 2
        assert (quickest in found.best) == (repetitions == 0)
        for word in ("h1h5", "d4c4", "h5h1", "c4d4"):
            board.push_uci(word)


@pytest.mark.parametrize(
    "fen",
    [
        "8/8/8/8/3k4/8/8/3K3R w - - 0 1",
        "4k3/8/4K3/4P3/8/8/8/8 w - - 0 1",
        "8/8/8/8/3k4/8/8/3K3Q w - - 40 60",
    ],
)
def test_played_out_it_wins(prober: RootProber, fen: str) -> None:
    """Following the tables on both sides ends in mate, never in a draw."""
    board = chess.Board(fen)
    while not board.is_game_over(claim_draw=True):
        found = prober.probe(board)
        assert found is not None
        board.push(found.best[0])
    assert board.result() == "1-0"


@pytest.mark.parametrize(
    "fen",
    [
        chess.STARTING_FEN,
        "4k3/8/8/8/8/8/8/4K2R w K - 0 1",  # castling rights
        "4k3/8/8/8/8/8/8/2B1K2R w - - 0 1",  # no such table here
        "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",  # stalemate: no move to choose
    ],
)
def test_silent_where_nothing_is_known(prober: RootProber, fen: str) -> None:
    assert prober.probe(chess.Board(fen)) is None


def test_a_missing_table_of_a_promotion_is_missed(tmp_path: Path) -> None:
    """KPvK alone cannot judge a promotion."""
    for suffix in ("rtbw", "rtbz"):
        shutil.copy(TABLES / f"KPvK.{suffix}", tmp_path)
    with RootProber(str(tmp_path)) as alone:
        assert alone.probe(chess.Board("8/4P3/8/8/3k4/8/8/3K4 w - - 0 1")) is None


def test_several_folders(tmp_path: Path) -> None:
    for suffix in ("rtbw", "rtbz"):
        shutil.copy(TABLES / f"KRvK.{suffix}", tmp_path)
    with RootProber(f"{tmp_path}:{TABLES}") as both:
        assert both.files == 16
        assert both.most_pieces == 4
    both.close()


def test_paths_without_tables(tmp_path: Path) -> None:
    with pytest.raises(PsearchError, match="no Syzygy tables"):
        RootProber(str(tmp_path))
    with pytest.raises(PsearchError, match="no Syzygy tables"):
        RootProber("")
    with pytest.raises(PsearchError, match="No such file"):
        RootProber(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("content", [b"", b"x" * 80, b"\x71\xe8\x23\x5d" + bytes(12)])
def test_a_damaged_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "KRvK.rtbw").write_bytes(content)
    (tmp_path / "KRvK.rtbz").write_bytes(content)
    with RootProber(str(tmp_path)) as damaged, pytest.raises(PsearchError, match="damaged endgame table"):
        damaged.probe(chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1"))
