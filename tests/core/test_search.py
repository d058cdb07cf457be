"""The serial search: mates, draws, switches, lines, limits and stops; one worker, no clock."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from dataclasses import replace

import chess
import numpy as np
import pytest
from inspect_node import NodeProbe
from naive import NaiveSearch
from paths import DATA
from positions import KIWIPETE, MIDDLE_GAME, sample
from pruning_probes import MARGINS_BY_HAND
from round_robin_entries import step_worker
from serial import AEL, DEFAULT, PLAIN, found, legal_line, search, without

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.bench import BENCH_POSITIONS
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import work
from psearch_core.chess.board.bridge import from_chess_move, to_chess_move
from psearch_core.constants import (
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_UPPER,
    DRAW,
    INFINITE,
    MATE,
    MATE_IN_MAX_PLY,
    STACK_FREE,
    STATE_IDLE,
    STATE_UNWIND,
)
from psearch_core.records import MAX_PLY
from psearch_core.records.pruning_record import MODES
from psearch_core.techniques import TECHNIQUE_NAMES

QUIET_ENDING = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
NAIVE_BUDGET = 500_000


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    made = Arena(workers=1, hash_mb=4)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def fresh(arena: Arena) -> None:
    arena.forget()


# -- mates ---------------------------------------------------------------------------------------------------


def mates(name: str) -> list[tuple[chess.Board, dict[str, object]]]:
    found_mates = []
    for line in (DATA / "tactical" / name).read_text().splitlines():
        board = chess.Board()
        operations = board.set_epd(line)
        found_mates.append((board, dict(operations)))
    return found_mates


MATES_IN_1 = "terjekir_mate_in_1.epd"
MATES_IN_2 = "terjekir_mate_in_2_sample150.epd"
MATES_IN_3 = "terjekir_mate_in_3_sample80.epd"
QUIET_MATES = "quiet_mates_in_2.epd"
MODERN_MATE_DEPTH = 18
"""Depth at which `modern` sees every mate in 3 or less of these files."""


@pytest.mark.parametrize(
    ("name", "moves", "depth", "options"),
    [
        (MATES_IN_1, 1, 2, PLAIN),
        (MATES_IN_1, 1, 2, AEL),
        (MATES_IN_1, 1, 2, DEFAULT),
        (MATES_IN_1, 1, MODERN_MATE_DEPTH, DEFAULT),
        (MATES_IN_2, 2, 4, PLAIN),
        (MATES_IN_2, 2, 4, without("null_move", options=AEL)),
        # after a null move a few plies above the horizon the quiet threat is not seen
        (MATES_IN_2, 2, 6, AEL),
        (MATES_IN_2, 2, MODERN_MATE_DEPTH, DEFAULT),
        (MATES_IN_3, 3, 6, without("null_move", options=AEL)),
        (MATES_IN_3, 3, MODERN_MATE_DEPTH, DEFAULT),
    ],
)
def test_mates_at_their_exact_distance(arena: Arena, name: str, moves: int, depth: int, options: SearchOptions) -> None:
    cases = mates(name)
    assert len(cases) == {1: 64, 2: 150, 3: 80}[moves]
    missed = []
    for board, operations in cases:
        arena.forget()
        outcome = search(arena, board, depth, options)
        after = board.copy(stack=False)
        after.push(outcome.best)
        if outcome.score != MATE - (2 * moves - 1) or (moves == 1 and not after.is_checkmate()):
            missed.append((operations["id"], outcome.score))
    assert missed == []


def test_quiet_mates_in_2_need_few_nodes(arena: Arena) -> None:
    """The defender's node is cut neither by reverse futility nor by the null move (docs/decisions/trials.md)."""
    cases = mates(QUIET_MATES) + mates(MATES_IN_2)
    assert len(cases) == 176
    for board, operations in cases:
        arena.forget()
        assert search(arena, board, Limits(nodes=30_000, mate=2)).score == MATE - 3, operations["id"]
    blind = without("mate_in_one", "reply_iterations")
    blind = replace(blind, evaluation="classic", pruning=replace(blind.pruning, **MARGINS_BY_HAND))
    seen = []
    for board, _ in mates(QUIET_MATES):
        arena.forget()
        seen.append(search(arena, board, Limits(nodes=30_000, mate=2), blind).score == MATE - 3)
    assert seen.count(True) <= 2


def test_a_mate_by_a_waiting_move_threatens_nothing(arena: Arena) -> None:
    """The replies of the first iterations must be searched for this reason."""
    blind = without("reply_iterations")
    blind = replace(blind, evaluation="classic", pruning=replace(blind.pruning, **MARGINS_BY_HAND))
    for options, is_seen in ((DEFAULT, True), (blind, False)):
        arena.forget()
        outcome = search(arena, "krN5/1n6/2Q5/qN6/PpK5/1P6/8/R7 w - - 0 1", Limits(nodes=50_000, mate=2), options)
        assert (outcome.score == MATE - 3) == is_seen


def test_lines_of_mates_end_in_mate(arena: Arena) -> None:
    for board, _ in mates(MATES_IN_2)[:20]:
        for depth, options in ((6, AEL), (MODERN_MATE_DEPTH, DEFAULT)):
            arena.forget()
            end = board.copy(stack=False)
            for move in search(arena, board, depth, options).pv:
                end.push(move)
            assert end.is_checkmate(), board.fen()


def test_being_mated(arena: Arena) -> None:
    """All moves lose; the distance is counted in plies."""
    for extra, options in ((0, PLAIN), (0, AEL), (MODERN_MATE_DEPTH - 4, DEFAULT)):
        arena.forget()
        assert search(arena, "7k/8/5K2/8/8/8/8/Q7 b - - 0 1", 4 + extra, options).score == -(MATE - 4)
        arena.forget()
        assert search(arena, "6R1/5Q1k/8/8/8/8/8/K7 b - - 0 1", 3 + extra, options).score == -(MATE - 2)


# -- draws ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [PLAIN, AEL, DEFAULT], ids=["plain", "ael", "default"])
@pytest.mark.parametrize(
    ("fen", "depth", "score"),
    [
        # traps of FUTILITY.md: the opponent is stalemated, or the clock runs out
        ("8/5p2/5p1p/5p1p/2K2p1p/5P1P/p7/kbR5 w - - 0 1", 4, DRAW),
        ("8/6p1/k7/6bK/8/8/6q1/8 w - - 97 1", 3, DRAW),
        # the pawn cannot be kept without stalemate
        ("8/8/8/8/8/2k5/p7/K7 b - - 0 1", 4, DRAW),
        # perpetual check is the only rescue
        ("k7/1p2QP2/4PP2/8/1P5q/8/6P1/1RRN2K1 b - - 0 1", 5, DRAW),
        # mate on the hundredth ply is mate; a mate that needs one ply more comes too late
        ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 99 80", 3, MATE - 1),
        ("7k/8/5K2/8/8/8/8/Q7 w - - 97 80", 4, MATE - 3),
        ("7k/8/5K2/8/8/8/8/Q7 w - - 98 80", 4, DRAW),
        ("7k/8/5K2/8/8/8/8/Q7 w - - 99 80", 2, DRAW),
        # nobody can be mated any more, or not after the only capture
        ("8/8/4k3/8/8/3KB3/8/8 w - - 0 1", 4, DRAW),
        ("8/8/4k3/8/8/3KN3/8/8 b - - 0 1", 4, DRAW),
        ("8/8/4kb2/8/8/3KB3/8/8 w - - 0 1", 4, DRAW),
        ("8/8/4k3/8/8/3Kp3/8/8 w - - 0 1", 3, DRAW),
    ],
)
def test_draws(arena: Arena, fen: str, depth: int, score: int, options: SearchOptions) -> None:
    assert search(arena, fen, depth, options).score == score


def test_en_passant_wins_the_pawn(arena: Arena) -> None:
    """The last trap of FUTILITY.md: a capture whose target square is empty."""
    for options in (PLAIN, AEL, replace(DEFAULT, evaluation="classic")):
        assert search(arena, "3k4/8/6N1/3Pp3/8/8/3K4/n7 w - e6 0 1", 2, options).best.uci() == "d5e6"


def value_of(arena: Arena, board: chess.Board, move: chess.Move, depth: int) -> int:
    write_search(arena, board, Limits(depth=depth), PLAIN, only=[move])
    while not work(arena.context, 0, 1 << 20):
        continue
    return found(arena, board).score


def repetition_cases() -> list[chess.Board]:
    """Boards with a history: cycles of knights, kings and rooks, lost castling and en passant rights."""
    with (DATA / "special" / "repetition.tsv").open(newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t"))[1:]
    boards = []
    for row in rows:
        board = chess.Board() if row[0] == "startpos" else chess.Board(row[0])
        for uci in row[1].split():
            board.push_uci(uci)
        boards.append(board)
    return boards


def test_game_history_counts(arena: Arena) -> None:
    """A move that makes a position happen for the third time is worth 0, any other what it is without history."""
    drawn = 0
    for board in repetition_cases():
        forgetful = board.copy(stack=False)
        for move in board.legal_moves:
            after = board.copy()
            after.push(move)
            if after.is_repetition(3):
                drawn += 1
                assert value_of(arena, board, move, 1) == DRAW, (board.fen(), move)
            elif not after.is_check():  # else the answers are looked at, and may repeat
                assert value_of(arena, board, move, 1) == value_of(arena, forgetful, move, 1), (board.fen(), move)
    assert drawn >= 8


def test_repetition_by_the_answer(arena: Arena) -> None:
    """Stockfish's case: after d7d8+ the only good answer, f7f8, happens for the third time with White to move."""
    board = next(board for board in repetition_cases() if board.root().fen().startswith("q4kb1/3Q2nq"))
    assert value_of(arena, board, chess.Move.from_uci("d8d7"), 1) == DRAW
    assert value_of(arena, board.copy(stack=False), chess.Move.from_uci("d8d7"), 1) < -1000
    outcome = search(arena, board, 3, PLAIN)
    assert (outcome.best.uci(), outcome.score) == ("d8d7", DRAW)


def test_the_better_side_does_not_repeat(arena: Arena) -> None:
    board = chess.Board("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/1NBQKBNR w Kkq - 0 1")
    for uci in ("g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1"):
        board.push_uci(uci)
    assert value_of(arena, board, chess.Move.from_uci("f6g8"), 1) == DRAW
    outcome = search(arena, board, 4)
    assert outcome.best.uci() != "f6g8" and outcome.score > 300


# -- against the twin ----------------------------------------------------------------------------------------


def test_plain_value_equals_naive_negamax(arena: Arena) -> None:
    twin = NaiveSearch(arena.tables, max_nodes=NAIVE_BUDGET)
    compared = 0
    for board in sample(51, 50) + sample(52, 15, chess960=True):
        for depth in (1, 2, 3):
            expected = twin.value(board, depth)
            if expected is None:
                break
            assert search(arena, board, depth, PLAIN).score == expected, (board.fen(), depth)
            compared += 1
    assert compared > 120


# -- switches ------------------------------------------------------------------------------------------------

MODE_OPTIONS = {"ael": AEL, "modern": DEFAULT}
TECHNIQUE_SWITCHES = [
    (mode, name)
    for mode, options in MODE_OPTIONS.items()
    for name in TECHNIQUE_NAMES
    if getattr(options.pruning, name, 0) and (name != "quiet_shortcut" or options.pruning.futility)
]
MODE_DEPTHS = {"ael": 7, "modern": 11}
BUSY_POSITIONS = (KIWIPETE, MIDDLE_GAME, QUIET_ENDING)


def counted(arena: Arena) -> dict[str, tuple[int, int]]:
    """Return how often each technique was tried and how often it pruned in the last search."""
    pruned = arena.worker[0]["pruned"]
    return {name: (int(pruned[i, 0]), int(pruned[i, 1])) for i, name in enumerate(TECHNIQUE_NAMES)}


@pytest.mark.parametrize("switch", ["tt", "see_pruning", "aspiration"])
def test_switch_changes_the_tree(arena: Arena, switch: str) -> None:
    for fen in (KIWIPETE, MIDDLE_GAME):
        arena.forget()
        on = search(arena, fen, 7).nodes
        arena.forget()
        assert search(arena, fen, 7, without(switch)).nodes != on


@pytest.mark.parametrize(("mode", "switch"), TECHNIQUE_SWITCHES)
def test_technique_is_counted_and_can_be_switched_off(arena: Arena, mode: str, switch: str) -> None:
    tried = pruned = 0
    for fen in BUSY_POSITIONS:
        arena.forget()
        search(arena, fen, MODE_DEPTHS[mode], MODE_OPTIONS[mode])
        counts = counted(arena)
        assert all(most >= times >= 0 for most, times in counts.values())
        tried += counts[switch][0]
        pruned += counts[switch][1]
        arena.forget()
        search(arena, fen, MODE_DEPTHS[mode], without(switch, options=MODE_OPTIONS[mode]))
        assert counted(arena)[switch] == (0, 0)
    assert tried > 0
    if switch != "history_pruning":  # late move pruning comes first, and leaves it next to nothing
        assert pruned > 0


def test_what_is_off_is_not_counted(arena: Arena) -> None:
    for fen in BUSY_POSITIONS:
        arena.forget()
        search(arena, fen, 5, PLAIN)
        assert {name for name, count in counted(arena).items() if count != (0, 0)} <= {"check_extension"}


def test_every_technique_is_counted_somewhere(arena: Arena) -> None:
    """All switches on at once, and thresholds near the leaves; then without those that come before others."""
    everything = replace(
        DEFAULT.pruning,
        **{name: 1 for name in TECHNIQUE_NAMES if hasattr(DEFAULT.pruning, name) and not name.startswith("sound")},
        **MARGINS_BY_HAND
        | {
            "singular_depth": 4,
            "null_verify_depth": 4,
            "iir_depth": 2,
            "history_pruning_margin": 100,
            "history_pruning_depth": 9,
        },
    )
    total = dict.fromkeys(TECHNIQUE_NAMES, 0)
    runs = ((everything, 10), (replace(everything, razoring=0, lmp=0, move_futility=0, iid=0), 9), (MODES["sound"], 5))
    for pruning, depth in runs:
        for fen in BUSY_POSITIONS:
            arena.forget()
            search(arena, fen, depth, replace(DEFAULT, pruning=pruning))
            for name, (tried, pruned) in counted(arena).items():
                assert tried >= pruned
                total[name] += pruned
    assert [name for name, times in total.items() if times == 0] == []


def test_verification_sees_zugzwang(arena: Arena) -> None:
    """Positions in which passing would be best: some are solved only if null moves are verified."""
    solved = {0: 0, 1: 0}
    for line in (DATA / "special" / "zugzwang_zpts_30.epd").read_text().splitlines():
        board = chess.Board()
        best = board.set_epd(line)["bm"]
        for verify in solved:
            arena.forget()
            reduced = {"null_base": 3, "lmr_base": 78, "lmr_divisor": 247, "lmr_cutoffs": 0, "lmr_tt_capture": 0}
            reduced = {**MARGINS_BY_HAND, **reduced}
            pruning = replace(PLAIN.pruning, null_move=1, lmr=1, null_verify=verify, **reduced)
            outcome = search(arena, board, Limits(depth=10, nodes=200_000), replace(DEFAULT, pruning=pruning))
            solved[verify] += outcome.best in best
    assert solved[1] > solved[0] > 0


@pytest.mark.parametrize(
    ("switch", "options"),
    [
        # without a table every node lacks a table move, and is reduced: that is cheap, and says nothing of the table
        ("tt", without("iir", "singular")),
        ("null_move", DEFAULT),
        ("reverse_futility", DEFAULT),
        ("lmr", DEFAULT),
        ("lmp", DEFAULT),
        # late move pruning leaves out most of the moves that are futile
        ("move_futility", without("lmp")),
        ("see_pruning", DEFAULT),
        ("null_move", AEL),
        ("futility", AEL),
        ("extended_futility", AEL),
        ("limited_razoring", AEL),
        ("tt", AEL),
    ],
)
def test_what_saves_nodes_saves_nodes(arena: Arena, switch: str, options: SearchOptions) -> None:
    """The default search is so chaotic that four positions cannot tell a technique that saves a twentieth."""
    nodes = {True: 0, False: 0}
    four = KIWIPETE, MIDDLE_GAME, chess.STARTING_FEN, QUIET_ENDING
    fens, depth = (four, 7) if options is AEL else (BENCH_POSITIONS, 11)
    for fen in fens:
        for on in nodes:
            arena.forget()
            nodes[on] += search(arena, fen, depth, options if on else without(switch, options=options)).nodes
    assert nodes[True] < nodes[False]


@pytest.mark.parametrize("shortcut", [0, 1])
def test_the_quiet_shortcut_changes_no_value(arena: Arena, shortcut: int) -> None:
    """Nor the moves searched, but for the order that is learnt: at depth 2 the frontier is all there is."""
    options = replace(PLAIN, pruning=replace(AEL.pruning, null_move=0))
    asked = 0
    for board in sample(56, 60):
        scores = []
        for on in (0, 1):
            arena.forget()
            scores.append(
                search(arena, board, 2, replace(options, pruning=replace(options.pruning, quiet_shortcut=on))).score
            )
            asked += counted(arena)["futility"][0] if on == shortcut else 0
        assert scores[0] == scores[1], board.fen()
    assert asked > (1000 if shortcut == 0 else 0)


def test_mate_distance_saves_nodes_and_no_value(arena: Arena) -> None:
    nodes = {True: 0, False: 0}
    for board, _ in mates(MATES_IN_2)[:15]:
        for on in nodes:
            arena.forget()
            outcome = search(arena, board, 6, AEL if on else without("mate_distance", options=AEL))
            assert outcome.score == MATE - 3
            nodes[on] += outcome.nodes
    assert nodes[True] < nodes[False]


def test_table_off_leaves_the_table_alone(arena: Arena) -> None:
    # a node without a table move is reduced, which is cheap
    with_table, no_table = without("iir", "singular"), without("tt", "iir", "singular")
    search(arena, KIWIPETE, 7, no_table)
    assert not arena.tt.any()
    alone = search(arena, KIWIPETE, 7, with_table).nodes
    assert arena.tt.any()
    arena.clear_learning()
    before = arena.tt.copy()
    without_table = search(arena, KIWIPETE, 7, no_table).nodes
    assert np.array_equal(arena.tt, before), "not written"
    arena.forget()
    assert search(arena, KIWIPETE, 7, no_table).nodes == without_table > alone, "nor read; it saves nodes"


def test_aspiration_finds_the_same_value(arena: Arena) -> None:
    """Narrow, wide and no window: without table and history-dependent pruning the value is one."""
    for fen in (KIWIPETE, MIDDLE_GAME, QUIET_ENDING):
        assert len({search(arena, fen, 5, replace(PLAIN, aspiration=width)).score for width in (0, 1, 25, 500)}) == 1


# -- lines ---------------------------------------------------------------------------------------------------


def reports(arena: Arena) -> list[np.void]:
    header = arena.header[0]
    return list(header["infos"][: int(header["info_count"])])


def repeats(board: chess.Board, line: list[chess.Move]) -> bool:
    """Whether the line ends in a position that it, or the game, has seen before."""
    after = board.copy()
    for move in line:
        after.push(move)
    return after.is_repetition(2)


@pytest.mark.parametrize("options", [PLAIN, DEFAULT], ids=["plain", "default"])
def test_reports_are_legal_and_in_order(arena: Arena, options: SearchOptions) -> None:
    for board in (chess.Board(KIWIPETE), chess.Board(QUIET_ENDING), *sample(53, 30)):
        depth = 4 if options is PLAIN else 7
        search(arena, board, depth, options)
        depths, nodes = [], []
        for info in reports(arena):
            line = legal_line(board, info["pv"][: int(info["pv_length"])].tolist())
            assert line
            depths.append(int(info["depth"]))
            nodes.append(int(info["nodes"]))
            # a search may end before its depth where the game does: by mate, or by repetition
            ended = abs(int(info["score"])) >= MATE_IN_MAX_PLY or repeats(board, line)
            assert int(info["seldepth"]) >= depths[-1] or ended
            assert int(info["bound"]) in (BOUND_EXACT, BOUND_LOWER, BOUND_UPPER)
        assert depths == sorted(depths) and set(depths) == set(range(1, depth + 1))
        assert nodes == sorted(nodes)
        last = reports(arena)[-1]
        assert int(last["bound"]) == BOUND_EXACT
        assert int(last["pv"][0]) == int(arena.header[0]["best_move"])
        assert int(last["score"]) == int(arena.header[0]["score"])


def test_the_line_leads_to_its_value(arena: Arena) -> None:
    """In plain mode the position at the end of the line is worth the score: by evaluation, as mate or as draw."""
    probe = NodeProbe(arena.tables)
    long_lines = 0
    for board in sample(54, 120):
        outcome = search(arena, board, 3, PLAIN)
        end = board.copy(stack=False)
        for move in outcome.pv:
            end.push(move)
        sign = 1 if end.turn == board.turn else -1
        if end.is_checkmate():
            assert outcome.score == sign * (len(outcome.pv) - MATE)
        elif outcome.score != DRAW:
            probe.set(end)
            assert outcome.score == sign * probe.evaluate(), (board.fen(), outcome)
            assert len(outcome.pv) >= 3
            long_lines += len(outcome.pv) > 3
    assert long_lines > 20, "quiescence adds its captures"


# -- limits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 99, 1000, 12_345, 200_000])
def test_node_limit_is_exact(arena: Arena, limit: int) -> None:
    board = chess.Board(KIWIPETE)
    outcome = search(arena, board, Limits(nodes=limit))
    assert outcome.nodes == limit
    assert outcome.best in board.legal_moves


def test_node_limit_beyond_the_depth_changes_nothing(arena: Arena) -> None:
    free = search(arena, KIWIPETE, 5)
    arena.forget()
    assert search(arena, KIWIPETE, Limits(depth=5, nodes=10 * free.nodes)) == free
    arena.forget()
    assert search(arena, KIWIPETE, Limits(depth=5, nodes=free.nodes)) == free


def test_same_search_same_nodes(arena: Arena) -> None:
    other = Arena(workers=1, hash_mb=4)
    for fen in (KIWIPETE, MIDDLE_GAME, QUIET_ENDING):
        outcomes = []
        for place in (arena, arena, other):
            place.forget()
            outcomes.append(search(place, fen, 7))
        assert outcomes[0] == outcomes[1] == outcomes[2]
        # not in modern: where there is a table move nothing is reduced for want of one, and it may be extended
        arena.forget()
        first = search(arena, fen, 7, AEL).nodes
        assert search(arena, fen, 7, AEL).nodes < first, "a full table helps"
    other.close()


def test_bursts_do_not_matter(arena: Arena) -> None:
    """The search is the same whether it runs at one go or one transition at a time."""
    expected = search(arena, KIWIPETE, 4)
    for burst in (1, 7, 1000):
        arena.forget()
        board = chess.Board(KIWIPETE)
        write_search(arena, board, Limits(depth=4), DEFAULT)
        while not arena.header["done"][0]:
            step_worker(arena.context, 0, burst)
        assert found(arena, board) == expected


# internal iterative reduction takes a ply off at each node of the line
@pytest.mark.parametrize("options", [without("iir"), AEL, PLAIN], ids=["default", "ael", "plain"])
def test_the_longest_line_ends_at_the_last_frame(options: SearchOptions) -> None:
    """Deeper than any search is allowed to be: what lies behind the last frame is not touched."""
    arena = Arena(workers=1, hash_mb=1, stacks=2)
    behind = arena.frames[MAX_PLY:].view(np.uint8), arena.stack[1:].view(np.uint8)
    for memory in behind:
        memory[:] = 0xAB
    board = chess.Board()
    write_search(arena, board, Limits(nodes=300_000), options)
    step_worker(arena.context, 0, 1)  # the worker has the root
    for record in (arena.header[0], arena.frames[0]["node"]):
        record["depth"] = MAX_PLY - 1
    while not work(arena.context, 0, 1 << 20):
        continue
    assert int(arena.worker[0]["counters"]["seldepth"]) == MAX_PLY - 1
    assert found(arena, board).nodes == 300_000
    assert all((memory == 0xAB).all() for memory in behind)
    arena.close()


# -- stopping ------------------------------------------------------------------------------------------------


def order_stop(arena: Arena) -> None:
    arena.header["stop"] = 1
    arena.header["abort_epoch"] += 1 << 32


def assert_at_rest(arena: Arena, board: chess.Board) -> None:
    assert arena.header["done"][0] == 1
    assert (arena.stack["state"] == STACK_FREE).all()
    assert not arena.stack["open_mask"].any()
    assert arena.worker[0]["state"] == STATE_IDLE and arena.worker[0]["stack"] == -1
    assert to_chess_move(int(arena.header[0]["best_move"]), board) in board.legal_moves
    assert abs(int(arena.header[0]["score"])) < INFINITE


def test_stop_before_the_first_step(arena: Arena) -> None:
    board = chess.Board(KIWIPETE)
    write_search(arena, board, Limits(), DEFAULT)
    order_stop(arena)
    assert work(arena.context, 0, 10) == 1
    assert_at_rest(arena, board)
    assert int(arena.worker[0]["nodes"]) == 0
    assert not arena.tt.any()


@pytest.mark.parametrize("options", [DEFAULT, PLAIN], ids=["default", "plain"])
def test_stop_anywhere_unwinds_and_stores_nothing(arena: Arena, options: SearchOptions) -> None:
    """A node that is done when the stop comes may still be stored; from the first unwinding on nothing is."""
    dice = random.Random(55)
    board = chess.Board(KIWIPETE)
    legal = {from_chess_move(move, board) for move in board.legal_moves}
    unwound = 0
    for transitions in (*range(1, 120), *(dice.randrange(120, 30_000) for _ in range(150))):
        arena.forget()
        write_search(arena, board, Limits(), options)
        step_worker(arena.context, 0, transitions)
        best = int(arena.header[0]["best_move"])
        order_stop(arena)
        table = None
        for _ in range(3000):
            if arena.header["done"][0]:
                break
            step_worker(arena.context, 0, 1)
            if arena.worker[0]["state"] == STATE_UNWIND and table is None:
                table = arena.tt.copy()
                nodes = int(arena.worker[0]["nodes"])
        assert_at_rest(arena, board)
        if table is not None:
            unwound += 1
            assert np.array_equal(table, arena.tt)
            assert nodes == int(arena.worker[0]["nodes"])
        assert best in legal and int(arena.header[0]["best_move"]) in legal
    assert unwound > 200


def test_search_after_a_stop_is_as_good_as_new(arena: Arena) -> None:
    expected = search(arena, MIDDLE_GAME, 5)
    write_search(arena, chess.Board(KIWIPETE), Limits(), DEFAULT)
    step_worker(arena.context, 0, 5000)
    order_stop(arena)
    assert work(arena.context, 0, 100) == 1
    arena.forget()
    assert search(arena, MIDDLE_GAME, 5) == expected


def test_a_stopped_iteration_may_improve_the_move_but_never_invents_one(arena: Arena) -> None:
    """The best move at a stop is that of the last iteration, or one that has raised alpha in this one."""
    board = chess.Board(KIWIPETE)
    for limit in range(1000, 60_000, 1777):
        arena.forget()
        outcome = search(arena, board, Limits(nodes=limit))
        assert int(reports(arena)[-1]["pv"][0]) == from_chess_move(outcome.best, board)
        assert abs(outcome.score) < 2000
