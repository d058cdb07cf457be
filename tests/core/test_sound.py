"""Sound futility: exact bounds, shadow mode, equality with plain mode, and a mutant for each gate."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import chess
import numpy as np
import pytest
from inspect_node import NodeProbe, TableEntry, TableProbe
from naive import NaiveSearch
from paths import DATA
from positions import absurd, games
from round_robin_entries import run_interleaved
from serial import Found, found, search

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.validate import describe, leftovers
from psearch.defaults import POLICY_NAMES
from psearch.lab.studies.soundness import SHADOWED, ModeComparison, Shadow, Verifier, work_in_shadow
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import work
from psearch.text.epd_text import SuitePosition, read_suite
from psearch.text.fen import parse_position
from psearch_core import records
from psearch_core.chess.board.bridge import from_chess_move, set_position, to_chess_move
from psearch_core.constants import BOUND_LOWER, BOUND_UPPER, MATE
from psearch_core.records import SOUND_GATES, SOUND_RAW
from psearch_core.records.pruning_record import MODES, PLAIN, SOUND, Pruning, parse_pruning, pruning_text
from psearch_core.techniques import TECHNIQUE_NAMES
from psearch_core.terms import REST_BOUND
from psearch_core.toolchain.groups import Group

POSITIONS = DATA / "search" / "sound_positions.epd"
GATES = {name.removeprefix("SOUND_"): value for name, value in vars(records).items() if name.startswith("SOUND_")}
ALL = GATES.pop("GATES")
SPLITTING = [name for name in POLICY_NAMES if name != "serial"]
MAX_TURNS = 20_000_000
SHADOW_IN_TURNS = Group("shadow_in_turns", "round_robin", replaced=SHADOWED)
run_interleaved_in_shadow = SHADOW_IN_TURNS.entry("run_interleaved")
NARROW = 100
"""B for most tests, centipawns: the narrower, the more is skipped, and the sooner a mistake is seen."""
CASTLING_AND_PROMOTION = (
    "r3k2r/1P4P1/8/8/8/8/1p4p1/R3K2R w KQkq - 0 1",
    "r3k2r/1P4P1/8/8/8/8/1p4p1/R3K2R b KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "4k3/8/8/2pPp3/1P5P/8/8/4K3 w - e6 0 1",
    "4k3/8/8/2pPp3/1P5P/8/8/4K3 w - c6 0 1",
)

pytestmark = pytest.mark.usefixtures("search_kernels")


@pytest.fixture(scope="module")
def arenas() -> Iterator[dict[int, Arena]]:
    made = {workers: Arena(workers, 8) for workers in (1, 2, 8)}
    for arena in made.values():
        arena.tables["rest_bound"] = NARROW
    yield made
    for arena in made.values():
        arena.close()


def suite() -> list[SuitePosition]:
    """Few positions of many kinds; see SOURCES.md."""
    return read_suite(str(POSITIONS))


def sound_options(policy: str = "serial", **changes: object) -> SearchOptions:
    return replace(SearchOptions.plain(policy, 1), **{"pruning": SOUND, **changes})  # type: ignore[arg-type]  # fields by name


def search_in_shadow(arena: Arena, shadow: Shadow, board: chess.Board, depth: int, options: SearchOptions) -> Found:
    """Search with worker 0; nothing is skipped, and what would be is checked."""
    write_search(arena, board, Limits(depth=depth), options)
    shadow.begin()
    while not work_in_shadow(arena.context, 0, 1 << 20):
        continue
    return found(arena, board)


@pytest.mark.parametrize("chess960", [False, True], ids=["standard", "chess960"])
def test_material_after_a_move_is_that_of_the_position_made(tables: np.ndarray, chess960: bool) -> None:
    """Gate 2, against `make_move`: captures, en passant, promotions, castling, and the phase that changes with them."""
    boards = [board.copy(stack=False) for board in games(11, 5, chess960)]
    boards += [chess.Board(fen) for fen in CASTLING_AND_PROMOTION]
    boards += [] if chess960 else absurd(4, 40)
    kinds = dict.fromkeys(("capture", "en passant", "promotion", "castling"), 0)
    before, after = NodeProbe(tables), NodeProbe(tables)
    for board in boards:
        before.set(board)
        for move in board.legal_moves:
            code = from_chess_move(move, board)
            after.set(board)
            after.play(code)
            assert before.material_after(code) == -after.material(), (board.fen(), move)
            kinds["capture"] += board.is_capture(move)
            kinds["en passant"] += board.is_en_passant(move)
            kinds["promotion"] += move.promotion is not None
            kinds["castling"] += board.is_castling(move)
    assert min(kinds.values()) >= 2, kinds


@pytest.mark.parametrize("bound", [REST_BOUND, NARROW, 0])
def test_shadow_mode_finds_no_violation_and_the_roots_agree(bound: int) -> None:
    checked = plain = sound = 0
    with Verifier(bound=bound) as verifier:
        for position in suite():
            for depth in (1, 2, 3):
                compared = verifier.compare(position, depth)
                assert compared.violations == 0, (compared.name, depth, str(compared.examples[0]))
                assert compared.agrees, (compared.name, depth, compared)
                checked += compared.checked
                plain += compared.plain.nodes
                sound += compared.sound.nodes
    assert checked > 30_000
    assert sound < 0.95 * plain


def test_shadow_mode_searches_the_plain_tree(arenas: dict[int, Arena]) -> None:
    arena = arenas[1]
    shadow = Shadow(arena)
    plain = SearchOptions.plain(policy="serial")
    checked = 0
    for position in suite()[::4]:
        arena.clear_learning()
        expected = search(arena, position.board, 3, plain)
        arena.clear_learning()
        assert search_in_shadow(arena, shadow, position.board, 3, sound_options()) == expected
        checked += int(shadow.workers[0]["checked"])
        assert int(shadow.workers[0]["violations"]) == 0
    assert checked > 1000


def test_every_root_move_keeps_its_value(arenas: dict[int, Arena]) -> None:
    """Each move keeps its value under an open window, not only the best."""
    arena = arenas[1]
    skipped = 0
    for position in suite()[::5]:
        for move in position.board.legal_moves:
            values = []
            for options in (SearchOptions.plain(policy="serial"), sound_options()):
                arena.clear_learning()
                write_search(arena, position.board, Limits(depth=3), options, only=[move])
                while not work(arena.context, 0, 1 << 20):
                    continue
                values.append(int(arena.header[0]["score"]))
            assert values[0] == values[1], (position.board.fen(), move)
            skipped += pruned(arena, "sound") + pruned(arena, "sound_delta")
    assert skipped > 10_000


def pruned(arena: Arena, technique: str) -> int:
    return int(arena.worker["pruned"][:, TECHNIQUE_NAMES.index(technique), 1].sum())


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_many_workers_find_the_plain_value(workers: int, arenas: dict[int, Arena]) -> None:
    """Any number of workers, any interleaving; a helper skips moves at a node on another worker's stack."""
    arena = arenas[workers]
    rng = random.Random(workers)
    joins = skipped = 0
    for position in suite()[::2]:
        expected = search(arenas[1], position.board, 3, SearchOptions.plain(policy="serial")).score
        for _ in range(3):
            policy, seed, burst = rng.choice(SPLITTING), rng.getrandbits(62), rng.choice((1, 7, 50))
            write_search(arena, position.board, Limits(depth=3), sound_options(policy))
            assert run_interleaved(arena.context, seed, burst, MAX_TURNS) >= 0, describe(arena)
            assert leftovers(arena) == []
            assert int(arena.header[0]["score"]) == expected, (position.board.fen(), policy, seed, burst)
            joins += int(arena.worker["counters"]["joins"].sum())
            skipped += pruned(arena, "sound")
    assert skipped > 1000
    assert workers == 1 or joins > 100


def test_shadow_mode_with_many_workers(arenas: dict[int, Arena]) -> None:
    """Helpers check the moves they take, with the path of the stack that the node lies in."""
    arena = arenas[8]
    shadow = Shadow(arena)
    by_helpers = 0
    for seed, position in enumerate(suite()[::3]):
        write_search(arena, position.board, Limits(depth=3), sound_options("knuth"))
        shadow.begin()
        assert run_interleaved_in_shadow(arena.context, seed, 7, MAX_TURNS) >= 0, describe(arena)
        assert int(shadow.workers["violations"].sum()) == 0, position.board.fen()
        by_helpers += int(shadow.workers["checked"][1:].sum())
    assert by_helpers > 1000


def wrong_bounds(arena: Arena, pruning: Pruning) -> tuple[int, int]:
    """Entries of depth 1 checked against naive negamax, and those that claim too much.

    The table is on, and the frontier nodes of a search of 3 plies are looked up in it.
    """
    twin = NaiveSearch(arena.tables)
    table = TableProbe(arena.context)
    checked = wrong = 0
    for position in suite()[::5]:
        board = position.board.copy(stack=False)
        arena.forget()
        search(arena, board, 3, replace(SearchOptions.plain(policy="serial"), tt=True, pruning=pruning))
        set_position(arena.tables, twin.frames["position"][:1], board)
        for first in board.legal_moves:
            board.push(first)
            set_position(arena.tables, twin.frames["position"][1:2], board)
            for second in board.legal_moves:
                board.push(second)
                set_position(arena.tables, twin.frames["position"][2:3], board)
                word = table.word(int(twin.frames[2]["position"]["key"]))
                entry = TableEntry.unpack(word, 2) if word else None
                if entry is not None and entry.depth == 1:
                    checked += 1
                    wrong += not allows(entry, twin.value_at(2, 1, 3))
                board.pop()
            board.pop()
    return checked, wrong


def allows(entry: TableEntry, value: int) -> bool:
    if entry.bound == BOUND_UPPER:
        return value <= entry.score
    return value >= entry.score if entry.bound == BOUND_LOWER else value == entry.score


def test_bounds_in_the_table_hold(arenas: dict[int, Arena]) -> None:
    """Gate 7: a node's value counts what was skipped, and is an upper bound unless a searched move raised alpha."""
    checked, wrong = wrong_bounds(arenas[1], SOUND)
    assert checked > 300
    assert wrong == 0


def test_without_bookkeeping_they_do_not(arenas: dict[int, Arena]) -> None:
    _, wrong = wrong_bounds(arenas[1], replace(SOUND, sound_gates=ALL & ~GATES["BOOKKEEPING"]))
    assert wrong > 0


MUTANTS: dict[str, list[tuple[str, str, int]]] = {
    "CHECKS": [("8/3P2P1/3N4/3k4/4N3/4K3/8/8 w - - 0 1", "", 2)],
    "FRONTIER": [("r1b1k2r/p1pp1ppp/1np1q3/4P3/1bP5/1P6/PB1NQPPP/R3KB1R b KQkq - 0 1", "", 2)],
    "EN_PASSANT": [("2r3k1/pppR1pp1/4p3/4P1P1/5P2/1P4K1/P1P5/8 w - - 0 1", "", 2)],
    "PROMOTION": [("k2N2K1/8/8/8/5R2/3n4/3p4/8 w - - 0 1", "", 2)],
    "CASTLING": [
        ("r3k2r/8/8/8/8/8/8/1R2K2R b Kkq - 0 1", "", 2),
        ("2rkr3/p1pppp1p/1n4p1/8/2P1bPP1/3P4/PR2P1Q1/N2KR1Nq w Ee - 1 11", "", 2),
    ],
    "PHASE": [("8/p4r1k/1p2R3/5Q2/2P5/3P1p2/2P5/3K4 b - - 0 47", "", 2)],
    # knights that went out and home: a queen down, Black draws by doing so for the third time
    "REPETITION": [
        ("rnb1kbn1/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQq - 0 1", "f2f3 b8c6 b1c3 g8f6 c3b1 f6g8 b1c3", 3)
    ],
    "FIFTY_MOVES": [("rnb1kbn1/8/8/p1p1p3/P1P1P3/8/8/RNBQKBNR w KQq - 98 60", "", 2)],
    # the only pawn falls, and bishops on squares of one colour are left: so many, that nothing is scaled
    "MATERIAL": [("7b/4b1b1/3b3b/b1b2Kb1/1b1bpb1b/k1b5/7b/b3b1b1 b - - 0 1", "", 2)],
    "SCALING": [],
    "BOOKKEEPING": [("r6k/pp3p1p/2p1bp1q/b3p3/4Pnr1/2PP2NP/PP1Q1PPN/R2B2RK b - - 0 1", "", 3)],
    "BOUND": [("r5k1/pQp2qpp/8/4pbN1/3P4/6P1/PPr4P/1K1R3R b - - 0 1", "", 2)],
    # every move of a node is skipped: mate or stalemate, for all it knows
    "LEGALITY": [
        ("3q1k2/3r2p1/4Q1Pp/5P1P/3p1P2/8/7K/4R3 w - - 35 78", "", 2),
        ("6k1/3p4/P2P4/8/5Kp1/1p4Q1/p5p1/b7 w - - 0 1", "", 2),
    ],
}
"""Positions for each gate, moves played from there, and depth; without the gate something is wrong at one of them."""


def compare(gates: int, board: chess.Board, depth: int) -> ModeComparison:
    with Verifier(replace(SOUND, sound_gates=gates), NARROW) as verifier:
        return verifier.compare(SuitePosition("mutant", board), depth)


def test_every_gate_has_a_mutant() -> None:
    assert set(MUTANTS) | {"RAW"} == set(GATES)
    assert sum(GATES.values()) == ALL == SOUND_GATES == Pruning().sound_gates


@pytest.mark.parametrize("gate", MUTANTS)
def test_without_the_gate_it_is_unsound(gate: str) -> None:
    """The gate left out is seen in shadow mode or at the root; with it, at the same position, nothing is wrong.

    First the positions made for the gate, then those of the suite: weights change, and with them what is seen where.
    """
    cases = []
    for fen, moves, depth in MUTANTS[gate]:
        board = parse_position(fen.split(), strict=False)
        for move in moves.split():
            board.push_uci(move)
        cases.append((board, depth))
    cases += [(position.board, 2) for position in suite()]
    for board, depth in cases:
        missing = compare(ALL & ~GATES[gate], board, depth)
        if missing.violations or not missing.agrees:
            whole = compare(ALL, board, depth)
            assert (whole.violations, whole.agrees) == (0, True)
            return
    pytest.fail(f"sound without {gate}, as far as {len(cases)} positions show")


def test_quiescence_with_a_table_is_unsound(arenas: dict[int, Arena]) -> None:
    """Gate 5: where the table cuts or stands pat in quiescence, the child's value is not bounded by its evaluation."""
    arena = arenas[1]
    with_table = replace(SOUND, table_in_quiescence=1, sound_gates=ALL & ~SOUND_RAW)
    shadow = Shadow(arena)
    violations = {}
    for pruning in (with_table, SOUND):
        violations[pruning] = checked = 0
        for fen in (
            "2r5/2rk2pp/1pn1pb2/pN1p4/P2P4/1N2B3/nPR1KPPP/3R4 b - - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K1R1 b Qkq - 0 1",
            "8/P7/8/8/8/6K1/7N/6k1 w - - 0 1",
        ):
            arena.forget()
            search_in_shadow(arena, shadow, chess.Board(fen), 4, sound_options(tt=True, pruning=pruning))
            violations[pruning] += int(shadow.workers[0]["violations"])
            checked += int(shadow.workers[0]["checked"])
        assert checked > 1000
    assert violations[with_table] > 0
    assert violations[SOUND] == 0


def test_quiescence_does_not_look_for_stalemate(arenas: dict[int, Arena]) -> None:
    """Else the draw gate would have to know stalemates: c4c3 stalemates, and is worth what Black's evaluation says."""
    board = chess.Board("8/5p2/5p1p/5p1p/2K2p1p/5P1P/p7/kbR5 w - - 0 1")
    after = board.copy()
    after.push_uci("c4c3")
    assert after.is_stalemate()
    arena = arenas[1]
    write_search(arena, board, Limits(depth=1), sound_options(), only=[chess.Move.from_uci("c4c3")])
    while not work(arena.context, 0, 1 << 20):
        continue
    assert int(arena.header[0]["score"]) == -NodeProbe(arena.tables, after).evaluate() < -100


def test_the_mode(arenas: dict[int, Arena]) -> None:
    assert parse_pruning("sound") == SOUND == MODES["sound"]
    assert pruning_text(SOUND) == "sound"
    assert replace(SOUND, sound=0, sound_delta=0) == PLAIN
    assert parse_pruning("plain,sound=1").sound_delta == 0
    assert parse_pruning("modern,sound=1,table_in_quiescence=0,network=0").lmr == 1
    for text in ("modern,sound=1", "ael,sound_delta=1", "sound,table_in_quiescence=1"):
        with pytest.raises(ValueError, match="needs table_in_quiescence=0"):
            parse_pruning(text)
    for text in ("modern,sound=1,table_in_quiescence=0", "sound,network=1"):
        with pytest.raises(ValueError, match="needs network=0"):
            parse_pruning(text)
    with pytest.raises(ValueError, match="no pruning parameter is called 'sound_gates'"):
        parse_pruning("sound,sound_gates=0")
    # each switch alone skips moves, and only of its own kind
    for text, own, other in (
        ("plain,sound=1", "sound", "sound_delta"),
        ("plain,sound_delta=1", "sound_delta", "sound"),
    ):
        arenas[1].clear_learning()
        options = replace(SearchOptions.plain(policy="serial"), pruning=parse_pruning(text))
        search(arenas[1], suite()[0].board, 3, options)
        assert pruned(arenas[1], own) > 0 == pruned(arenas[1], other)


def test_sound_mode_with_the_table_finds_mates(arenas: dict[int, Arena]) -> None:
    """Users run it so: with the table, aspiration and mate distance pruning."""
    arena = arenas[1]
    for fen, depth, mate in (
        ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", 2, 1),
        ("7k/8/5K2/8/8/8/8/Q7 w - - 0 1", 4, 3),
        ("8/1B6/8/5p2/8/8/5Qrq/1K1R2bk w - - 0 1", 5, 5),
    ):
        arena.clear_table()
        found = search(arena, fen, depth, SearchOptions(policy="serial", pruning=SOUND))
        assert found.score == MATE - mate, fen
        assert found.best in chess.Board(fen).legal_moves


def test_moves_of_a_violation_can_be_replayed() -> None:
    """A violation is shown with the position it is about, so that it can be looked at."""
    found = compare(ALL & ~GATES["BOUND"], chess.Board("r5k1/pQp2qpp/8/4pbN1/3P4/6P1/PPr4P/1K1R3R b - - 0 1"), 2)
    assert found.violations > len(found.examples) >= 1
    for example in found.examples:
        board = chess.Board(found.fen)
        for move in example.line:
            board.push_uci(move)
        assert board.fen() == example.fen
        assert chess.Move.from_uci(example.move) in board.legal_moves
        assert example.value > example.bound or example.exact > example.bound
        assert to_chess_move(from_chess_move(chess.Move.from_uci(example.move), board), board).uci() in str(example)
