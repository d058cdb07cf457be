"""Endgame tables at the root: against published values, played out, and where tables must keep silent."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import chess
import pytest
from paths import DATA

from psearch.results import PsearchError
from psearch.text.chess_files import RootProber

TABLES = DATA / "syzygy"
"""All tables of three pieces, KQvKQ and KRvKR."""
BOTH = ("KRvK.rtbw", "KRvK.rtbz")


def copied(folder: Path, *files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for file in files:
        shutil.copy(TABLES / file, folder)
    return folder


@pytest.fixture(scope="module")
def prober() -> Iterator[RootProber]:
    with RootProber(str(TABLES)) as opened:
        yield opened


def best(prober: RootProber, fen: str) -> tuple[int, int, set[str]]:
    found = prober.probe(chess.Board(fen))
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


def test_a_mating_move_is_the_first(prober: RootProber) -> None:
    for fen, mating in (
        ("7k/8/6K1/8/8/8/8/5R2 w - - 0 1", {"f1f8"}),
        ("k7/2P5/1K6/8/8/8/8/8 w - - 0 1", {"c7c8q", "c7c8r"}),
    ):
        found = prober.probe(chess.Board(fen))
        assert found is not None and (found.wdl, found.dtz) == (2, 1)
        assert {move.uci() for move in found.best[: len(mating)]} == mating
    assert best(prober, "7k/8/6K1/8/8/8/8/5R2 w - - 99 90") == (2, 1, {"f1f8"})


def lengths_after(prober: RootProber, board: chess.Board) -> dict[chess.Move, int]:
    """The DTZ that the tables have after each move."""
    lengths = {}
    for move in board.legal_moves:
        board.push(move)
        after = prober.probe(board)
        board.pop()
        lengths[move] = after.dtz
    return lengths


@pytest.mark.parametrize("clock", [0, 30, 60, 74, 80])
def test_all_moves_that_win_in_time_are_kept(prober: RootProber, clock: int) -> None:
    """In a won position these are the moves after which the mate comes within fifty moves, or else the quickest."""
    board = chess.Board(f"8/8/8/8/3k4/8/8/3K3R w - - {clock} 80")
    lengths = {move: 1 - dtz for move, dtz in lengths_after(prober, board).items()}
    found = prober.probe(board)
    in_time = {move for move, length in lengths.items() if length + clock < 100}
    assert set(found.best) == in_time or {move for move, length in lengths.items() if length == min(lengths.values())}
    assert len(found.best) == {0: 15, 30: 15, 60: 15, 74: 1, 80: 1}[clock]
    assert lengths[found.best[0]] == min(lengths.values())


def test_any_of_the_moves_that_are_kept_wins(prober: RootProber) -> None:
    """Drawn by lot, against the longest defence: the fifty-move rule and repetitions narrow the choice in time.

    Only the loser claims a draw: the winner has other moves than the one that would allow it.
    """
    dice = random.Random(1)
    for _ in range(5):
        board = chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 40 21")
        while not board.is_game_over(claim_draw=board.turn == chess.BLACK):
            found = prober.probe(board)
            assert found is not None
            board.push(dice.choice(found.best) if board.turn else found.best[0])
        assert board.result(claim_draw=True) == "1-0", board.move_stack
        assert len(board.move_stack) > 27, "the lot did not choose the shortest way"


def test_draws_keep_the_draw(prober: RootProber) -> None:
    assert best(prober, "8/8/8/8/8/4k3/4P3/4K3 w - - 0 1") == (0, 0, {"e1f1", "e1d1"})
    # the opposition, and only it, holds
    assert best(prober, "8/8/4k3/8/4PK2/8/8/8 b - - 0 1") == (0, 0, {"e6f6"})
    assert best(prober, "8/8/4k3/8/8/4K3/4P3/8 b - - 0 1") == (0, 0, {"e6e5"})


@pytest.mark.parametrize("clock", [0, 60])
def test_losing_side_resists_longest(prober: RootProber, clock: int) -> None:
    """First in order, and near the fifty-move rule nothing else will do."""
    board = chess.Board(f"8/8/8/8/8/3k4/8/3K3R b - - {clock} 80")
    found = prober.probe(board)
    assert found.wdl == -2
    lengths = lengths_after(prober, board)
    longest = {move for move, length in lengths.items() if length == max(lengths.values())}
    assert set(found.best[: len(longest)]) == longest != set(lengths)
    assert set(found.best) == (longest if clock else set(lengths))


@pytest.mark.parametrize(("clock", "wdl"), [(0, 2), (74, 2), (75, 1), (98, 1)])
def test_the_clock_takes_a_win_away(prober: RootProber, clock: int, wdl: int) -> None:
    """25 plies to mate: in time when the sum stays below 100."""
    found = prober.probe(chess.Board(f"8/8/8/8/3k4/8/8/3K3R w - - {clock} 80"))
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
        assert found.wdl == 2
        assert (quickest in found.best) == (repetitions == 0)
        for word in ("h1h5", "d4c4", "h5h1", "c4d4"):
            board.push_uci(word)


@pytest.mark.parametrize(
    "fen", ["8/8/8/8/3k4/8/8/3K3R w - - 0 1", "4k3/8/4K3/4P3/8/8/8/8 w - - 0 1", "8/8/8/8/3k4/8/8/3K3Q w - - 40 60"]
)
def test_played_out_it_wins(prober: RootProber, fen: str) -> None:
    """Following the tables on both sides ends in mate, never in a draw."""
    board = chess.Board(fen)
    while not board.is_game_over(claim_draw=True):
        found = prober.probe(board)
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
    with RootProber(str(copied(tmp_path, "KPvK.rtbw", "KPvK.rtbz"))) as alone:
        assert alone.probe(chess.Board("8/4P3/8/8/3k4/8/8/3K4 w - - 0 1")) is None


def test_several_folders(tmp_path: Path) -> None:
    with RootProber(f"{copied(tmp_path, *BOTH)}:{TABLES}") as both:
        assert both.files == 16
        assert both.most_pieces == 4
    both.close()


def test_paths_without_tables(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path, "no Syzygy tables"),
        ("", "no Syzygy tables"),
        (tmp_path / "nowhere", "No such file"),
    ):
        with pytest.raises(PsearchError, match=words):
            RootProber(str(path))


def damage(data: bytes, dice: random.Random) -> bytes:
    """Some bits flipped, most of them in the header, and now and then the end cut off."""
    damaged = bytearray(data)
    for _ in range(dice.choice((1, 2, 8, 64))):
        damaged[dice.randrange(min(len(damaged), dice.choice((16, 64, 256, len(damaged)))))] ^= 1 << dice.randrange(8)
    if dice.random() < 0.2:
        del damaged[dice.randrange(len(damaged) // 64 + 1) * 64 + 16 :]
    return bytes(damaged)


def test_flipped_bits_are_one_error_or_none(tmp_path: Path) -> None:
    """python-chess does not check what it reads: any exception, and loops without end (seed 2 has two of them)."""
    boards = [
        chess.Board(fen)
        for fen in (
            "8/8/8/8/3k4/8/8/3K3R w - - 0 1",
            "8/4P3/8/8/3k4/8/8/3K4 w - - 0 1",
            "8/8/8/8/3k4/8/3q4/Q5K1 w - - 0 1",
            "8/8/8/r7/3k4/8/8/R5K1 b - - 0 1",
            "8/8/4k3/8/8/4K3/4P3/8 b - - 0 1",
        )
    ]
    dice = random.Random(2)
    errors = 0
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        for table in TABLES.iterdir():
            (folder / table.name).write_bytes(damage(table.read_bytes(), dice))
        with RootProber(str(folder)) as damaged:
            for board in boards:
                try:
                    found = damaged.probe(board)
                except PsearchError as error:
                    errors += 1
                    assert "damaged endgame table" in str(error) and "\n" not in str(error)
                else:
                    assert found is None or (set(found.best) <= set(board.legal_moves) and -2 <= found.wdl <= 2)
    assert errors > 100


def test_pieces_of_another_table_are_refused(tmp_path: Path) -> None:
    """python-chess would look for the squares of a piece that is not there, for ever; also at the second probe."""
    for suffix in ("rtbw", "rtbz"):
        shutil.copy(TABLES / f"KQvK.{suffix}", tmp_path / f"KRvK.{suffix}")
    with RootProber(str(tmp_path)) as other:
        for _ in range(2):
            with pytest.raises(PsearchError, match="its pieces are not those of its name"):
                other.probe(chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1"))


def test_a_file_that_is_cut_short_while_it_is_open(tmp_path: Path) -> None:
    """A mapped one would end the whole program with SIGBUS."""
    copied(tmp_path, *BOTH, "KRvKR.rtbw", "KRvKR.rtbz")
    with RootProber(str(tmp_path)) as cut, RootProber(str(TABLES)) as whole:
        for fen in ("8/8/8/r7/3k4/8/8/R5K1 b - - 0 1", "8/8/8/8/r2k4/8/1R6/6K1 w - - 0 1"):
            assert cut.probe(chess.Board(fen)) == whole.probe(chess.Board(fen)) is not None
            for path in tmp_path.iterdir():
                os.truncate(path, 16)
        with pytest.raises(PsearchError, match="damaged endgame table"):  # KRvK, which is opened only now
            cut.probe(chess.Board("7r/8/8/8/8/5k2/R7/6K1 w - - 0 1"))


@pytest.mark.parametrize(
    ("files", "more", "problem"),
    [
        ((*BOTH, "KQvK.rtbw"), "", "1 endgame table has no .rtbz (DTZ) and is not used: KQvK"),
        ((*BOTH, "KQvK.rtbz", "KPvK.rtbz"), "", "2 endgame tables have no .rtbw (WDL) and are not used: KPvK, KQvK"),
        (BOTH, "{folder}/nowhere", "cannot read endgame tables in {folder}/nowhere: No such file or directory"),
        (BOTH, "{folder}/KRvK.rtbw", "cannot read endgame tables in {folder}/KRvK.rtbw: Not a directory"),
        (BOTH, "{folder}/empty", "no Syzygy tables (.rtbw, .rtbz) in '{folder}/empty'"),
        (BOTH, "{folder}/torn", "damaged endgame table {folder}/torn/KQvK.rtbw is left out"),
        (BOTH, "{folder}/text", "damaged endgame table {folder}/text/KQvK.rtbz is left out"),
    ],
)
def test_what_is_wrong_with_a_part_is_one_line_and_the_rest_is_used(
    tmp_path: Path, files: tuple[str, ...], more: str, problem: str
) -> None:
    folder = copied(tmp_path / "tables", *files)
    (folder / "empty").mkdir()
    torn = copied(folder / "torn", "KQvK.rtbw", "KQvK.rtbz")
    os.truncate(torn / "KQvK.rtbw", 100)
    (copied(folder / "text", "KQvK.rtbw") / "KQvK.rtbz").write_bytes(b"<html>" + bytes(10))
    for path in (f"{folder}:{more}", f"{more}:{folder}"):
        with RootProber(path.format(folder=folder)) as partly:
            assert partly.problems[0] == problem.format(folder=folder)
            assert partly.probe(chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1")) is not None


def test_tables_without_the_other_half_alone(tmp_path: Path) -> None:
    """Most people first download these: WDL only."""
    with RootProber(str(copied(tmp_path / "wdl", *(path.name for path in TABLES.glob("*.rtbw"))))) as half:
        assert half.problems == ["7 endgame tables have no .rtbz (DTZ) and are not used: KBvK, KNvK, KPvK, KQvK, ..."]
        assert half.probe(chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1")) is None


@pytest.mark.parametrize("content", [b"", b"x" * 80, b"\x71\xe8\x23\x5d" + bytes(12)])
def test_a_damaged_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "KRvK.rtbw").write_bytes(content)
    (tmp_path / "KRvK.rtbz").write_bytes(content)
    with pytest.raises(PsearchError, match="damaged endgame table"), RootProber(str(tmp_path)) as damaged:
        damaged.probe(chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1"))


def test_a_pipe_in_the_place_of_a_table_holds_nothing_up(tmp_path: Path) -> None:
    with RootProber(str(copied(tmp_path, *BOTH))) as prober:
        (tmp_path / "KRvK.rtbw").unlink()
        os.mkfifo(tmp_path / "KRvK.rtbw")
        with pytest.raises(PsearchError, match="not a regular file"):
            prober.probe(chess.Board("8/8/8/8/3k4/8/8/3K3R w - - 0 1"))
    with pytest.raises(PsearchError, match="Not a directory"):
        RootProber(str(tmp_path / "KRvK.rtbw"))
