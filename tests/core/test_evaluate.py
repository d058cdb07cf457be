"""Evaluation: the same for both colours, bounded, equal to its naive twin; endings: won, drawn, and known draws."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import chess
import chess.syzygy
import naive
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from inspect_node import NodeProbe, tapered
from inspect_pruning import PruningProbe
from naive_evaluation import rest_of, unscaled
from paths import DATA
from positions import absurd, sample
from pruning_probes import probe_of
from round_robin_entries import step_worker
from serial import legal_line

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import is_done, load_kernels, work
from psearch_core.chess.board.bridge import from_chess_move, to_chess_move
from psearch_core.chess.evaluation.endgames import SCALE_FULL, SCALING_PHASE
from psearch_core.chess.evaluation.evaluate import PHASE_MAX
from psearch_core.chess.tables import make_tables
from psearch_core.constants import BOUND_EXACT, INFINITE, MATE_IN_MAX_PLY
from psearch_core.records import PAWN_ENTRIES
from psearch_core.records.pruning_record import MODES
from psearch_core.terms import REST_BOUND, TEMPO, UNSTOPPABLE


@pytest.fixture(scope="module")
def probe() -> NodeProbe:
    return NodeProbe(make_tables())


@pytest.fixture(scope="module")
def boards() -> list[chess.Board]:
    return sample(1, 400) + sample(2, 100, chess960=True) + absurd(3, 600)


WHOLE_PHASE = SCALING_PHASE + 1
"""Least phase at which nothing is scaled and no bare king is driven."""


def set_whole(probe: NodeProbe, board: chess.Board) -> int:
    """Take over a board with at least WHOLE_PHASE; returns the phase."""
    probe.set(board)
    phase = max(naive.game_phase(board), WHOLE_PHASE)
    probe.record["phase"] = phase
    return phase


def test_twins_agree(probe: NodeProbe, boards: list[chess.Board]) -> None:
    clamped = 0
    for board in boards:
        phase = set_whole(probe, board)
        assert probe.evaluate() == unscaled(board, phase), board.fen()
        clamped += abs(rest_of(board, phase)) > REST_BOUND
    assert 10 < clamped < len(boards) // 2, "both sides of the clamp must be seen"


def test_the_bound_is_a_parameter(boards: list[chess.Board]) -> None:
    tables = make_tables()
    tables["rest_bound"] = 25
    narrow = NodeProbe(tables)
    reached = 0
    for board in boards:
        set_whole(narrow, board)
        rest = narrow.evaluate() - narrow.material()
        assert abs(rest) <= 25, board.fen()
        reached += abs(rest) == 25
    assert reached > len(boards) // 2


def test_pawn_hash_changes_nothing(boards: list[chess.Board]) -> None:
    """A probe that has seen everything, against one whose pawn hash is empty each time."""
    tables = make_tables()
    old, fresh = NodeProbe(tables), NodeProbe(tables)
    hits = 0
    for board in random.Random(31).choices(boards, k=3 * len(boards)):
        for probe_ in (old, fresh):
            probe_.set(board)
        fresh.worker["evaluation"]["pawns"]["key"] = 0
        hits += int(old.record["pawn_key"]) in old.worker["evaluation"]["pawns"]["key"]
        assert old.evaluate() == fresh.evaluate(), board.fen()
    assert hits > len(boards)


def test_equal_slots_do_not_mix(probe: NodeProbe) -> None:
    """Positions that share a slot of the pawn hash, in turn."""
    by_slot: dict[int, list[chess.Board]] = {}
    for board in sample(77, 4000):
        probe.set(board)
        by_slot.setdefault(int(probe.record["pawn_key"]) % PAWN_ENTRIES, []).append(board)
    shared = 0
    for found in by_slot.values():
        values = []
        for board in found:
            fresh = NodeProbe(probe.tables, board)
            values.append(fresh.evaluate())
        for board, value in list(zip(found, values, strict=True)) * 2:
            probe.set(board)
            assert probe.evaluate() == value, board.fen()
        shared += len({pawn_key(probe, board) for board in found}) > 1
    assert shared > 100


def pawn_key(probe: NodeProbe, board: chess.Board) -> int:
    probe.set(board)
    return int(probe.record["pawn_key"])


def test_pawn_key_knows_pawns_and_kings_only(probe: NodeProbe) -> None:
    key = pawn_key(probe, chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"))
    assert pawn_key(probe, chess.Board("4k3/p1pp1p2/4p1p1/3P4/1p2P3/7p/PPP2PPP/4K3 b - - 0 1")) == key
    for fen in (
        "4k3/p1pp1p2/4p1p1/3P4/1p2P3/7p/PPP2PPP/5K2 b - - 0 1",
        "4k3/p1pp1p2/4p1p1/3P4/1p2P3/7p/PPP2PP1/4K3 b - - 0 1",
    ):
        assert pawn_key(probe, chess.Board(fen)) != key


def test_material_is_the_exact_tapered_sum(probe: NodeProbe, boards: list[chess.Board]) -> None:
    for board in boards:
        probe.set(board)
        expected = naive.psq_sum(board)
        assert probe.material() == (expected if board.turn else -expected), board.fen()


def test_material_stays_exact_along_a_game(probe: NodeProbe) -> None:
    """M from sums kept up move by move, captures, promotions and castling included."""
    dice = random.Random(11)
    for start in (chess.STARTING_FEN, "4k3/PPPPPPPP/8/8/8/8/pppppppp/4K3 w - - 0 1"):
        board = chess.Board(start)
        probe.set(board)
        while not board.is_game_over() and board.ply() < 120:
            code = dice.choice(probe.legal_moves())
            probe.play(code)
            board.push(to_chess_move(code, board))
            expected = naive.psq_sum(board)
            assert probe.material() == (expected if board.turn else -expected), board.fen()


def test_rest_is_bounded_and_colours_are_alike(probe: NodeProbe, boards: list[chess.Board]) -> None:
    """Between 0 and M + R with |R| <= B: sound futility rests on it."""
    widest = 0
    for board in boards:
        probe.set(board)
        value, middle = probe.evaluate(), probe.material()
        assert min(middle - REST_BOUND, 0) <= value <= max(middle + REST_BOUND, 0), board.fen()
        probe.set(board.mirror())
        assert probe.evaluate() == value, board.fen()
        phase = set_whole(probe, board)
        whole = probe.evaluate()
        if phase == naive.game_phase(board):
            assert value == whole
        widest = max(widest, abs(whole - probe.material()))
    assert widest == REST_BOUND


@given(seed=st.integers(0, 2**32))
@example(seed=153)  # a bishop and three knights against a bare king: which knight was asked depended on the colour
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_board_is_bounded_and_mirrored(probe: NodeProbe, seed: int) -> None:
    for board in absurd(seed, 3):
        probe.set(board)
        value, middle = probe.evaluate(), probe.material()
        assert min(middle - REST_BOUND, 0) <= value <= max(middle + REST_BOUND, 0), board.fen()
        probe.set(board.mirror())
        assert probe.evaluate() == value, board.fen()


def test_left_and_right_are_alike_without_tables() -> None:
    """No term but the piece-square tables tells the a-file from the h-file."""
    tables = make_tables()
    tables["psq_mg"] = 0
    tables["psq_eg"] = 0
    probe = NodeProbe(tables)
    for board in sample(5, 300) + absurd(6, 300):
        board = board.copy(stack=False)
        board.castling_rights = 0
        board.ep_square = None
        set_whole(probe, board)
        value = probe.evaluate()
        set_whole(probe, board.transform(chess.flip_horizontal))
        assert probe.evaluate() == value, board.fen()


def test_passing_the_move_turns_the_sign_but_for_tempo(boards: list[chess.Board]) -> None:
    """Nothing but TEMPO, and the race of an unstoppable pawn, asks who is to move."""
    tables = make_tables()
    tables["terms"][0, TEMPO] = 0
    tables["terms"][0, UNSTOPPABLE] = 0
    probe = NodeProbe(tables)
    turned = 0
    for board in boards:
        if board.is_check():
            continue
        set_whole(probe, board)
        value = probe.evaluate()
        probe.play_null()
        assert probe.evaluate() == -value, board.fen()
        turned += 1
    assert turned > 300


def test_value_fits_below_mates(probe: NodeProbe) -> None:
    """The most that a legal number of pieces can be worth is no mate score."""
    probe.set(chess.Board("QQQQ1Q2/2Q2Q2/QQ6/8/R6R/1N1B1N1B/8/K6k b - - 0 1"))
    assert 9_000 < -probe.evaluate() < MATE_IN_MAX_PLY - 1 < INFINITE
    probe.set(chess.Board("QQQQQQQQ/QQQQQQQQ/QQQQ4/8/8/8/8/K6k b - - 0 1"))
    assert -probe.evaluate() < MATE_IN_MAX_PLY - 1


def test_taper_rounds_towards_zero(probe: NodeProbe) -> None:
    dice = random.Random(5)
    assert int(tapered(1, 0, 12)) == 0
    assert int(tapered(-1, 0, 12)) == 0
    assert int(tapered(-25, -25, 7)) == -25
    for _ in range(2000):
        middle_game, end_game = dice.randint(-9000, 9000), dice.randint(-9000, 9000)
        phase = dice.randint(0, PHASE_MAX)
        value = int(tapered(middle_game, end_game, phase))
        assert value == naive.taper(middle_game, end_game, phase)
        assert int(tapered(-middle_game, -end_game, phase)) == -value
        assert min(middle_game, end_game) <= value <= max(middle_game, end_game)


def test_promoted_queens_do_not_leave_the_phase(probe: NodeProbe) -> None:
    """Surplus pieces count with the middle game values, and no more than those."""
    board = chess.Board("QQQQQQQQ/8/8/k7/8/7K/8/8 b - - 0 1")
    probe.set(board)
    assert int(probe.record["phase"]) == 32
    middle_game = int(probe.record["psq_mg"])
    assert probe.material() == -middle_game


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    made = Arena(workers=1, hash_mb=8)
    yield made
    made.close()


def value(probe: NodeProbe, fen: str) -> int:
    board = chess.Board(fen)
    assert board.is_valid(), fen
    probe.set(board)
    return probe.evaluate() if board.turn else -probe.evaluate()


def scattered(pieces: str, dice: random.Random, turn: chess.Color = chess.WHITE) -> chess.Board:
    """A valid position, not over, with pieces (`KQk`) on random squares; bishops of a pair on both colours."""
    while True:
        board = chess.Board(None)
        for square, letter in zip(dice.sample(range(64), len(pieces)), pieces, strict=True):
            board.set_piece_at(square, chess.Piece.from_symbol(letter))
        board.turn = turn
        bishops = board.pieces_mask(chess.BISHOP, chess.WHITE)
        one_colour = bishops.bit_count() == 2 and not (
            bishops & chess.BB_LIGHT_SQUARES and bishops & chess.BB_DARK_SQUARES
        )
        if board.is_valid() and not board.is_game_over() and not one_colour:
            return board


def test_king_and_pawn_against_king(probe: NodeProbe) -> None:
    """Every position that is a draw by table is worth 0, every won one three pawns or more."""
    dice = random.Random(3)
    drawn = 0
    with chess.syzygy.open_tablebase(str(DATA / "syzygy")) as tables:
        for _ in range(4_000):
            board = scattered("KPk", dice, dice.choice(chess.COLORS))
            won = tables.probe_wdl(board) != 0
            if dice.random() < 0.5:
                board = board.mirror()
            probe.set(board)
            worth = probe.evaluate() if board.turn == bool(board.pieces_mask(chess.PAWN, True)) else -probe.evaluate()
            assert worth >= 300 if won else worth == 0, board.fen()
            drawn += not won
    assert 700 < drawn < 3300


@pytest.mark.parametrize(
    ("pieces", "games", "nodes"), [("KQk", 6, 10_000), ("KRk", 6, 10_000), ("KBBk", 5, 10_000), ("KBNk", 3, 100_000)]
)
def test_won_endings_are_won(arena: Arena, pieces: str, games: int, nodes: int) -> None:
    """They are won from anywhere, with this many nodes a move, before the fifty-move rule, and without losing the
    piece."""
    dice = random.Random(pieces)
    options = SearchOptions(policy="serial")
    for _ in range(games):
        board = scattered(pieces, dice)
        start = board.fen()
        arena.forget()
        while not (board.is_game_over() or board.is_fifty_moves() or board.is_repetition(3)):
            write_search(arena, board, Limits(nodes=nodes if board.turn else 2_000), options)
            while not work(arena.context, 0, 1 << 20):
                continue
            board.push(to_chess_move(int(arena.header[0]["best_move"]), board))
        assert board.is_checkmate(), f"{start}: {board.fen()} after {board.ply()} plies"
        assert not board.turn


@pytest.mark.parametrize(
    ("fen", "most"),
    [
        ("8/8/4k3/8/8/3NNK2/8/8 w - - 0 1", 0),  # two knights cannot force mate
        ("8/8/4k3/8/8/3BK3/7p/8 w - - 0 1", 0),  # a minor piece alone can only draw
        ("8/8/4k3/6b1/8/5KR1/8/8 w - - 0 1", 60),  # rook against bishop
        ("8/8/4k3/3n4/8/5KR1/8/8 w - - 0 1", 60),
        ("8/8/4k3/3r4/8/5KR1/5B2/8 w - - 0 1", 130),  # rook and bishop against rook
        ("7k/8/6K1/7P/8/8/4B3/8 w - - 0 1", 0),  # the bishop misses the corner
        ("7k/8/6K1/7P/7P/8/8/8 w - - 0 1", 0),  # rook pawns alone
        ("k7/8/1K6/P7/8/8/5B2/8 w - - 0 1", 0),
        ("8/8/3k1b2/8/3PB3/4K3/8/8 w - - 0 1", 60),  # bishops of different colours
    ],
)
def test_drawish_endings_are_near_nothing(probe: NodeProbe, fen: str, most: int) -> None:
    board = chess.Board(fen)
    assert 0 <= value(probe, fen) <= most
    assert -most <= value(probe, board.mirror().fen()) <= 0


@pytest.mark.parametrize(
    ("won", "drawn"),
    [
        ("k7/8/1K6/P7/8/8/4B3/8 w - - 0 1", "7k/8/6K1/7P/8/8/4B3/8 w - - 0 1"),  # the right bishop
        ("8/8/4k3/6b1/8/5KQ1/8/8 w - - 0 1", "8/8/4k3/6b1/8/5KR1/8/8 w - - 0 1"),  # a queen is enough
        ("8/5k2/4b3/8/3PB3/3PK3/8/8 w - - 0 1", "8/5k2/5b2/8/3PB3/3PK3/8/8 w - - 0 1"),  # same colour or not
    ],
)
def test_only_the_drawn_one_is_scaled(probe: NodeProbe, won: str, drawn: str) -> None:
    assert value(probe, won) > 2 * value(probe, drawn) + 50


def test_bare_kings_are_driven(probe: NodeProbe) -> None:
    """Nearer to the edge, nearer to each other, and to the right corner."""
    assert value(probe, "7k/8/8/8/8/8/3R4/3K4 w - - 0 1") > value(probe, "8/8/8/4k3/8/8/3R4/3K4 w - - 0 1")
    assert value(probe, "7k/8/6K1/8/8/8/3R4/8 w - - 0 1") > value(probe, "7k/8/8/8/8/8/3R4/3K4 w - - 0 1")
    right, wrong = (
        "7k/8/6K1/8/8/2N5/3B4/8 w - - 0 1",
        "k7/8/1K6/8/8/5N2/3B4/8 w - - 0 1",
    )  # the bishop is on dark squares
    assert value(probe, right) > value(probe, wrong) + 100


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


def quiet_ending(men: str, dice: random.Random) -> chess.Board:
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


def reports(
    draws_arena: Arena, board: chess.Board, nodes: int, options: SearchOptions, dice: random.Random
) -> list[Report]:
    """All that is reported of a search, finished iterations and failed windows alike."""
    write_search(draws_arena, board, Limits(nodes=nodes), options)
    infos = draws_arena.header[0]["infos"]
    found: list[Report] = []
    while not is_done(draws_arena.context):
        step_worker(draws_arena.context, dice.randrange(draws_arena.workers), 500)
        count = int(draws_arena.header[0]["info_count"])
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


def worth(draws_arena: Arena, board: chess.Board, nodes: int, options: SearchOptions, dice: random.Random) -> set[int]:
    return {report.score for report in reports(draws_arena, board, nodes, options, dice)} | {
        int(draws_arena.header[0]["score"])
    }


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def draws_arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    load_kernels()
    with contextlib.closing(Arena(request.param, 1)) as made:
        yield made


def options(dice: random.Random, **pruning: int) -> SearchOptions:
    mode = dice.choice(("modern", "modern", "modern", "ael", "plain", "sound"))
    network = 0 if mode == "sound" else dice.randrange(2)
    return SearchOptions(driver=dice.choice(("pvs", "null")), pruning=replace(MODES[mode], network=network, **pruning))


def drawn_positions(men: str, draws_arena: Arena, tables: np.ndarray, dice: random.Random) -> Iterator[Asked]:
    """A dozen positions in which neither side can win, and how to search them: with a fresh table, or one that others
    have filled, and with what they have learnt."""
    probe = NodeProbe(tables)
    given = 0
    while given < 12:
        board = quiet_ending(men, dice)
        probe.set(board)
        if probe.cannot_win(chess.WHITE) and probe.cannot_win(chess.BLACK):
            how = options(dice)
            if dice.random() < 0.5 or how.pruning.network != int(
                draws_arena.header[0]["options"]["pruning"]["network"]
            ):
                draws_arena.forget()
            yield board, dice.choice((500, 5_000, 30_000)), how
            given += 1


@pytest.mark.parametrize("men", DRAWN)
def test_a_known_draw_is_worth_nothing_at_any_depth(men: str, draws_arena: Arena, tables: np.ndarray) -> None:
    dice = random.Random(men)
    for board, nodes, how in drawn_positions(men, draws_arena, tables, dice):
        assert worth(draws_arena, board, nodes, how, dice) == {0}, (board.fen(), nodes, how)


@pytest.mark.parametrize("men", GUARDED)
def test_it_is_worth_nothing_as_long_as_material_stays(men: str, draws_arena: Arena, tables: np.ndarray) -> None:
    dice = random.Random(men)
    for board, nodes, how in drawn_positions(men, draws_arena, tables, dice):
        for report in reports(draws_arena, board, nodes, how, dice):
            assert report.score == 0 or report.takes or not report.is_exact, (board.fen(), nodes, how)


@pytest.mark.parametrize("fen", TEXTBOOK)
@pytest.mark.parametrize("correction", [0, 1])
def test_textbook_draws_stay_draws(fen: str, correction: int, draws_arena: Arena) -> None:
    """Deep, and after a search of a position with the same pawns that is won for now has taught what it can."""
    dice = random.Random(fen)
    how = SearchOptions(pruning=replace(MODES["modern"], correction=correction))
    draws_arena.forget()
    assert worth(draws_arena, chess.Board(fen), 150_000, how, dice) == {0}
    far = chess.Board(fen)
    king = far.king(not far.turn)
    assert king is not None
    far.remove_piece_at(king)
    far.set_piece_at(chess.D5 if far.turn else chess.D4, chess.Piece(chess.KING, not far.turn))
    if far.is_valid():
        worth(draws_arena, far, 20_000, how, dice)
    assert worth(draws_arena, chess.Board(fen), 20_000, how, dice) == {0}


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
        board = quiet_ending(men, dice)
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
        board = quiet_ending(dice.choice(DRAWN + GUARDED + ONE_SIDED + ("KBNPk", "KBPPPkb", "KRPkn", "KQPkr")), dice)
        probe.set(board)
        for move in board.generate_legal_captures():
            then = board.copy(stack=False)
            then.push(move)
            after.set(then)
            expected = after.cannot_win(then.turn) and int(probe.record["phase"]) <= SCALING_PHASE
            assert probe.leaves_no_win(from_chess_move(move, board)) == expected, (board.fen(), move)
            draws += expected
    assert draws > 500
