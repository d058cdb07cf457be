"""What the theory of endings knows to be drawn stays drawn: whatever was learnt, however deep the search, however it is
pruned. Where one side alone cannot win, nothing learnt puts it ahead."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import chess
import numpy as np
import pytest
from inspect_node import NodeProbe
from inspect_pruning import PruningProbe
from pruning_probes import probe_of
from round_robin_entries import step_worker
from serial import legal_line

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import is_done, load_kernels
from psearch_core.chess.board.bridge import from_chess_move
from psearch_core.chess.evaluation.endgames import SCALE_FULL, SCALING_PHASE
from psearch_core.constants import BOUND_EXACT
from psearch_core.records.pruning_record import MODES

DRAWN = (
    *("KPk", "KPPk", "KPPPk", "KBPk", "KBPPk", "KBBPk", "KBBPPk"),
    *("KNNk", "KNNkn", "KNNkb", "KBkn", "KNknn", "KBBkn", "KBBkb", "KBknn"),
)
"""White's and Black's men; pawns stand on one rook file, bishops beside them miss the corner where the king sits. No
capture changes what is known."""
GUARDED = ("KBPkn", "KBPkb", "KBPknn", "KPkn", "KPkb", "KBPPkn")
"""The pawn may take a piece, and is no rook pawn then."""
ONE_SIDED = ("KNkp", "KNkpp", "KBkp", "KBkpp", "KBPkp", "KNNkp", "KPkp", "KBPkr", "KNkr", "KRkb", "KRkn", "KNkq")
TEXTBOOK = (
    "8/8/8/8/8/p1k5/2b5/K7 b - - 0 1",
    "7k/8/8/7P/8/8/4B3/K7 w - - 0 1",
    "7k/8/8/7P/7P/8/4B3/K7 w - - 0 1",
    "4k3/8/p3b3/8/8/8/8/K7 b - - 0 1",
    "k7/P7/7B/8/8/8/4K2B/8 w - - 0 1",  # two bishops, and either may be taken
)
Asked = tuple[chess.Board, int, SearchOptions]
"""A position, nodes, and how it is searched."""
GREATEST = 1024
"""An entry that has learnt all it can."""


def scattered(men: str, dice: random.Random) -> chess.Board:
    """A valid position with these men, quiet and not over; pawns where they can be stopped, bishops on one colour."""
    while True:
        board = chess.Board(None)
        file = dice.choice((0, 7))
        corner = chess.square(file, 7)
        light = bool(chess.BB_SQUARES[corner] & chess.BB_LIGHT_SQUARES)
        for letter in men:
            if letter == "P":
                squares = [chess.square(file, rank) for rank in range(1, 7)]
            elif letter == "B":
                squares = [
                    square
                    for square in chess.SQUARES
                    if light != bool(chess.BB_SQUARES[square] & chess.BB_LIGHT_SQUARES)
                ]
            elif letter == "k" and "P" in men:
                squares = [square for square in chess.SQUARES if chess.square_distance(square, corner) < 2]
            elif letter == "p":
                squares = list(range(8, 56))
            else:
                squares = list(chess.SQUARES)
            free = [square for square in squares if board.piece_at(square) is None]
            if free:
                board.set_piece_at(dice.choice(free), chess.Piece.from_symbol(letter))
        board.turn = dice.choice(chess.COLORS)
        if dice.random() < 0.5:
            board = board.mirror()
        if (
            len(board.piece_map()) == len(men)
            and board.is_valid()
            and not board.is_game_over()
            and not board.is_check()
        ):
            return board


@dataclass(frozen=True)
class Report:
    score: int
    is_exact: bool
    takes: bool
    """Its line contains a capture or a promotion."""


def reports(arena: Arena, board: chess.Board, nodes: int, options: SearchOptions, dice: random.Random) -> list[Report]:
    """All that is reported of a search, finished iterations and failed windows alike."""
    write_search(arena, board, Limits(nodes=nodes), options)
    infos = arena.header[0]["infos"]
    found: list[Report] = []
    while not is_done(arena.context):
        step_worker(arena.context, dice.randrange(arena.workers), 500)
        count = int(arena.header[0]["info_count"])
        assert count - len(found) <= len(infos)
        for number in range(len(found), count):
            info = infos[number % len(infos)]
            walk = board.copy(stack=False)
            takes = False
            for move in legal_line(board, [int(code) for code in info["pv"][: int(info["pv_length"])]]):
                takes |= walk.is_capture(move) or move.promotion is not None
                walk.push(move)
            found.append(Report(int(info["score"]), int(info["bound"]) == BOUND_EXACT, takes))
    return found


def worth(arena: Arena, board: chess.Board, nodes: int, options: SearchOptions, dice: random.Random) -> set[int]:
    """All scores that are reported."""
    return {report.score for report in reports(arena, board, nodes, options, dice)} | {int(arena.header[0]["score"])}


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    load_kernels()
    with contextlib.closing(Arena(request.param, 1)) as made:
        yield made


def options(dice: random.Random, **pruning: int) -> SearchOptions:
    mode = dice.choice(("modern", "modern", "modern", "ael", "plain", "sound"))
    network = 0 if mode == "sound" else dice.randrange(2)
    return SearchOptions(driver=dice.choice(("pvs", "null")), pruning=replace(MODES[mode], network=network, **pruning))


def drawn_positions(men: str, arena: Arena, tables: np.ndarray, dice: random.Random) -> Iterator[Asked]:
    """A dozen positions in which neither side can win, and how to search them: with a fresh table, or one that others
    have filled, and with what they have learnt."""
    probe = NodeProbe(tables)
    given = 0
    while given < 12:
        board = scattered(men, dice)
        probe.set(board)
        if probe.cannot_win(chess.WHITE) and probe.cannot_win(chess.BLACK):
            how = options(dice)
            if dice.random() < 0.5 or how.pruning.network != int(arena.header[0]["options"]["pruning"]["network"]):
                arena.forget()
            yield board, dice.choice((500, 5_000, 30_000)), how
            given += 1


@pytest.mark.parametrize("men", DRAWN)
def test_a_known_draw_is_worth_nothing_at_any_depth(men: str, arena: Arena, tables: np.ndarray) -> None:
    dice = random.Random(men)
    for board, nodes, how in drawn_positions(men, arena, tables, dice):
        assert worth(arena, board, nodes, how, dice) == {0}, (board.fen(), nodes, how)


@pytest.mark.parametrize("men", GUARDED)
def test_it_is_worth_nothing_as_long_as_material_stays(men: str, arena: Arena, tables: np.ndarray) -> None:
    dice = random.Random(men)
    for board, nodes, how in drawn_positions(men, arena, tables, dice):
        for report in reports(arena, board, nodes, how, dice):
            assert report.score == 0 or report.takes or not report.is_exact, (board.fen(), nodes, how)


@pytest.mark.parametrize("fen", TEXTBOOK)
@pytest.mark.parametrize("correction", [0, 1])
def test_textbook_draws_stay_draws(fen: str, correction: int, arena: Arena) -> None:
    """Deep, and after a search of a position with the same pawns that is won for now has taught what it can."""
    dice = random.Random(fen)
    how = SearchOptions(pruning=replace(MODES["modern"], correction=correction))
    arena.forget()
    assert worth(arena, chess.Board(fen), 150_000, how, dice) == {0}
    far = chess.Board(fen)
    king = far.king(not far.turn)
    assert king is not None
    far.remove_piece_at(king)
    far.set_piece_at(chess.D5 if far.turn else chess.D4, chess.Piece(chess.KING, not far.turn))
    if far.is_valid():
        worth(arena, far, 20_000, how, dice)
    assert worth(arena, chess.Board(fen), 20_000, how, dice) == {0}


def taught(tables: np.ndarray, board: chess.Board, entry: int) -> PruningProbe:
    """A node of the position where every correction is as great as it gets."""
    probe = probe_of(tables, board.fen(), correction=1)
    for name in ("pawn_correction", "piece_correction", "move_correction"):
        probe.learning[0][name][...] = entry
    return probe


@pytest.mark.parametrize("men", DRAWN + GUARDED + ONE_SIDED)
def test_nothing_learnt_puts_a_side_ahead_that_cannot_win(men: str, tables: np.ndarray) -> None:
    dice = random.Random(men)
    node = NodeProbe(tables)
    most = sum(
        getattr(MODES["modern"], f"correction_{part}") * times
        for part, times in (("pawns", 1), ("pieces", 2), ("moves", 1))
    )
    moved = 0
    for _ in range(300):
        board = scattered(men, dice)
        node.set(board)
        value = dice.choice((node.evaluate(), node.evaluate_by_network()))
        corrected = taught(tables, board, dice.choice((-GREATEST, GREATEST))).corrected(value)
        moved += corrected != value
        for side, sign in ((board.turn, 1), (not board.turn, -1)):
            if node.cannot_win(side):
                assert sign * corrected <= max(sign * value, 0), (board.fen(), value, corrected)
                if sign * value >= 0 and (value or node.cannot_win(not side)):
                    assert corrected == value == 0, board.fen()
        if value:
            scale = node.known_scale(board.turn == (value > 0))
            assert abs(corrected - value) <= most * scale // SCALE_FULL + 1, board.fen()
    assert moved or men not in ONE_SIDED


def test_where_nothing_is_known_all_of_a_correction_counts(tables: np.ndarray) -> None:
    for fen in (chess.STARTING_FEN, "8/5pk1/6p1/8/8/2N3P1/5PK1/8 w - - 0 1", "8/8/4kp2/8/8/3RKP2/8/3r4 b - - 0 1"):
        probe = taught(tables, chess.Board(fen), GREATEST)
        for value in (-300, -1, 0, 1, 300):
            assert probe.corrected(value) == value + 180


def test_captures_that_draw_are_those_after_which_it_is_known(tables: np.ndarray) -> None:
    dice = random.Random(38)
    probe, after = NodeProbe(tables), NodeProbe(tables)
    draws = 0
    for _ in range(4_000):
        board = scattered(dice.choice(DRAWN + GUARDED + ONE_SIDED + ("KBNPk", "KBPPPkb", "KRPkn", "KQPkr")), dice)
        probe.set(board)
        for move in board.generate_legal_captures():
            then = board.copy(stack=False)
            then.push(move)
            after.set(then)
            expected = after.cannot_win(then.turn) and int(probe.record["phase"]) <= SCALING_PHASE
            assert probe.leaves_no_win(from_chess_move(move, board)) == expected, (board.fen(), move)
            draws += expected
    assert draws > 500
