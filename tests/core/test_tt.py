"""The transposition table: layout, replacement, and that garbage in it can do no harm."""

from __future__ import annotations

import dataclasses
import mmap
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import chess
import numpy as np
import pytest
from inspect_node import NodeProbe, TableEntry, TableProbe, stored_score
from limits import NEEDS_POPULATE
from positions import KIWIPETE, MIDDLE_GAME
from round_robin_entries import run_interleaved
from serial import DEFAULT, found, search

from psearch.arena.arena import Arena
from psearch.arena.blocks import MIB
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch_core.constants import (
    AGES,
    BOUND_EXACT,
    BOUND_LOWER,
    BOUND_NONE,
    BOUND_UPPER,
    CLUSTER_BYTES,
    ENTRY_BYTES,
    INFINITE,
    MATE,
    MATE_IN_MAX_PLY,
    MOVE_MASK,
    NO_MOVE,
    NO_SCORE,
)
from psearch_core.records import CACHE_LINE, MAX_PLY
from psearch_core.records.pruning_record import MODES

EVAL_MAX = MATE_IN_MAX_PLY - 1

MATE_IN_2 = "1B1Q1R2/8/qNrn3p/2p1rp2/Rn3k1K/8/5P2/bbN4B w - - 0 1"
MATE_IN_2_KEY_MOVE = "d8f6"
MATE_IN_2_DEPTH = 6
MATE_FINDER = replace(DEFAULT, pruning=MODES["ael"])
"""Pruning that finds the mate at this depth: `modern` leaves out quiet sacrifices until much later."""
WORDS_PER_CLUSTER = CLUSTER_BYTES // 8
ENTRIES_PER_CLUSTER = CLUSTER_BYTES // ENTRY_BYTES
MAX_TURNS = 20_000_000

SOME = TableEntry(move=796, score=31, eval=-17, depth=7, bound=BOUND_EXACT, age=3)

pytestmark = pytest.mark.usefixtures("search_kernels")


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(workers=1, hash_mb=1)
    yield made
    made.close()


@pytest.fixture
def table(arena: Arena) -> TableProbe:
    return TableProbe(arena.context)


def keys_of_cluster(cluster: int, clusters: int, count: int) -> list[int]:
    first = -(-(cluster << 64) // clusters)
    assert (first + count - 1) * clusters >> 64 == cluster
    return [first + number for number in range(count)]


def fill_with_garbage(arena: Arena, seed: int) -> None:
    arena.tt[:] = np.random.default_rng(seed).integers(0, 1 << 64, len(arena.tt), np.uint64, endpoint=False)


EXTREMES = {
    "move": (NO_MOVE, 1, 0x7FFF, 0x8000, MOVE_MASK),
    "score": (-INFINITE, -MATE, -MATE_IN_MAX_PLY, -1, 0, 1, EVAL_MAX, MATE - 1, INFINITE),
    "eval": (NO_SCORE, -EVAL_MAX, -1, 0, 1, EVAL_MAX),
    "depth": (0, 1, 127, 128, 255),
    "bound": (BOUND_NONE, BOUND_UPPER, BOUND_LOWER, BOUND_EXACT),
    "age": (0, 1, 31, 32, AGES - 1),
}


def test_every_field_at_its_extremes() -> None:
    """Alone and with all the others at theirs: no field spills into another."""
    dice = random.Random(41)
    cases = [replace(SOME, **{name: value}) for name, values in EXTREMES.items() for value in values]
    cases += [TableEntry(*(dice.choice(values) for values in EXTREMES.values())) for _ in range(2000)]
    for entry in cases:
        assert TableEntry.unpack(entry.pack()) == entry or abs(entry.score) >= MATE_IN_MAX_PLY
        assert unpack_by_hand(entry.pack()) == entry


def unpack_by_hand(data: int) -> TableEntry:
    """Unpack a word by the layout in the module's docstring."""

    def signed(word: int) -> int:
        return word - 0x10000 if word >= 0x8000 else word

    return TableEntry(
        move=data & 0xFFFF,
        score=signed(data >> 16 & 0xFFFF),
        eval=signed(data >> 32 & 0xFFFF),
        depth=data >> 48 & 0xFF,
        bound=data >> 56 & 3,
        age=data >> 58,
    )


def test_all_bits_are_used() -> None:
    widths = {"move": 16, "score": 16, "eval": 16, "depth": 8, "bound": 2, "age": 6}
    assert [field.name for field in dataclasses.fields(TableEntry)] == list(widths)
    assert sum(widths.values()) == 64


def test_mates_are_stored_by_distance_from_the_node() -> None:
    """Mate in 3 plies from a node at ply 10 is mate in 13 from the root; found again at ply 4 it is mate in 7."""
    for sign in (1, -1):
        stored = int(stored_score(sign * (MATE - 13), 10))
        assert stored == sign * (MATE - 3)
        word = replace(SOME, score=stored).pack()
        assert TableEntry.unpack(word, ply=4).score == sign * (MATE - 7)
    for ply in range(MAX_PLY):
        for score in (0, EVAL_MAX, -EVAL_MAX, MATE - ply, ply - MATE, MATE - MAX_PLY, MAX_PLY - MATE):
            word = replace(SOME, score=int(stored_score(score, ply))).pack()
            assert TableEntry.unpack(word, ply).score == score


@pytest.mark.parametrize(
    ("bound", "score", "cuts"),
    [
        (BOUND_EXACT, -500, True),
        (BOUND_EXACT, 5, True),
        (BOUND_LOWER, 11, True),
        (BOUND_LOWER, 10, True),
        (BOUND_LOWER, 9, False),
        (BOUND_UPPER, 0, True),
        (BOUND_UPPER, -1, True),
        (BOUND_UPPER, 1, False),
        (BOUND_NONE, 500, False),
        (BOUND_NONE, -500, False),
    ],
)
def test_cuts_only_what_the_bound_proves(bound: int, score: int, cuts: bool) -> None:
    """Against a window of 0 .. 10."""
    entry = replace(SOME, bound=bound, score=score, depth=7)
    assert entry.cuts(depth=7, alpha=0, beta=10) is cuts
    assert entry.cuts(depth=6, alpha=0, beta=10) is cuts
    assert not entry.cuts(depth=8, alpha=0, beta=10), "not deep enough"


def test_a_cluster_is_a_cache_line(arena: Arena) -> None:
    assert CLUSTER_BYTES == CACHE_LINE
    assert arena.tt.ctypes.data % CACHE_LINE == 0
    assert int(arena.context_array[0]["tt_clusters"]) * CLUSTER_BYTES == arena.tt.nbytes == MIB


@pytest.mark.parametrize("hash_mb", [1, 3, 7, 13])
def test_every_cluster_is_reached_and_none_beyond(hash_mb: int) -> None:
    """Any size of table, no power of two needed: the high word of key * clusters."""
    arena = Arena(workers=1, hash_mb=hash_mb)
    table = TableProbe(arena.context)
    clusters = hash_mb * MIB // CLUSTER_BYTES
    assert table.cluster(0) == 0
    assert table.cluster((1 << 64) - 1) == clusters - 1
    dice = random.Random(42)
    for _ in range(3000):
        key = dice.getrandbits(64)
        assert table.cluster(key) == key * clusters >> 64
    for cluster in (*range(5), *(dice.randrange(clusters) for _ in range(500)), clusters - 1):
        first = keys_of_cluster(cluster, clusters, 1)[0]
        assert table.cluster(first) == cluster
        assert first == 0 or table.cluster(first - 1) == cluster - 1
    key = keys_of_cluster(clusters - 1, clusters, 1)[0]
    table.store(key, SOME)
    assert np.flatnonzero(arena.tt).min() >= (clusters - 1) * WORDS_PER_CLUSTER
    assert table.probe(key) == SOME
    arena.close()


@pytest.fixture
def keys(arena: Arena) -> list[int]:
    return keys_of_cluster(5000, int(arena.context_array[0]["tt_clusters"]), 8)


def present(table: TableProbe, keys: list[int]) -> list[int]:
    return [number for number, key in enumerate(keys) if table.probe(key)]


def test_a_cluster_holds_four(table: TableProbe, keys: list[int]) -> None:
    for number, key in enumerate(keys):
        table.store(key, replace(SOME, move=number + 1))
        assert len(present(table, keys)) == min(number + 1, ENTRIES_PER_CLUSTER)
        assert table.probe(key) == replace(SOME, move=number + 1)


def test_the_shallowest_goes_first(table: TableProbe, keys: list[int]) -> None:
    for key, depth in zip(keys, (9, 4, 12, 7), strict=False):
        table.store(key, replace(SOME, depth=depth))
    table.store(keys[4], replace(SOME, depth=0))
    assert present(table, keys) == [0, 2, 3, 4]
    table.store(keys[5], replace(SOME, depth=2))
    assert present(table, keys) == [0, 2, 3, 5], "always replaces: the newest entry is the one needed next"


def test_eight_plies_outweigh_one_search(table: TableProbe, keys: list[int]) -> None:
    """An entry of the last search counts as 8 plies less deep; ages wrap around."""
    for age in (3, 0, AGES - 1):
        before = (age - 1) % AGES
        for number, key in enumerate(keys[:4]):
            table.store(key, replace(SOME, depth=20, age=age, move=number + 1))
        table.store(keys[0], replace(SOME, depth=11, age=age))
        table.store(keys[1], replace(SOME, depth=18, age=before))
        table.store(keys[4], replace(SOME, age=age, depth=30))
        assert present(table, keys) == [0, 2, 3, 4]
        table.store(keys[1], replace(SOME, depth=20, age=before))
        assert present(table, keys) == [1, 2, 3, 4], "18 - 8 < 11 < 20 - 8"


def test_same_position_keeps_its_slot(arena: Arena, table: TableProbe, keys: list[int]) -> None:
    for depth in (3, 9, 5):
        table.store(keys[0], replace(SOME, depth=depth, bound=BOUND_EXACT))
        assert np.count_nonzero(arena.tt) == 2
    assert table.probe(keys[0]) == replace(SOME, depth=5)


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        (replace(SOME, depth=5, bound=BOUND_LOWER), True),
        (replace(SOME, depth=6, bound=BOUND_LOWER), True),
        (replace(SOME, depth=7, bound=BOUND_LOWER), False),
        (replace(SOME, depth=0, bound=BOUND_UPPER), True),
        (replace(SOME, depth=0, bound=BOUND_EXACT), False),
        (replace(SOME, depth=0, bound=BOUND_LOWER, age=4), False),
    ],
)
def test_a_much_deeper_result_stays(table: TableProbe, keys: list[int], new: TableEntry, kept: bool) -> None:
    """It is more than three plies deeper, of the same search, and the new one is not exact."""
    old = replace(SOME, depth=10, score=99, bound=BOUND_LOWER)
    table.store(keys[0], old)
    table.store(keys[0], new)
    assert table.probe(keys[0]) == (old if kept else new)


def test_a_result_without_move_keeps_the_old_move(table: TableProbe, keys: list[int]) -> None:
    table.store(keys[0], SOME)
    table.store(keys[0], replace(SOME, move=NO_MOVE, score=-5, bound=BOUND_UPPER))
    assert table.probe(keys[0]) == replace(SOME, score=-5, bound=BOUND_UPPER)
    table.store(keys[1], replace(SOME, move=NO_MOVE))
    assert table.probe(keys[1]) == replace(SOME, move=NO_MOVE), "of another position nothing is kept"


@pytest.mark.parametrize("hash_mb", [1, 64])
def test_clearing_empties_the_table(hash_mb: int) -> None:
    """Small or large; and it can be used again."""
    arena = Arena(1, hash_mb)
    arena.tt[:] = np.uint64(7)
    arena.clear_table()
    assert not arena.tt.any()
    arena.tt[-1] = np.uint64(9)
    assert arena.tt[-1] == 9
    arena.close()


@NEEDS_POPULATE
@pytest.mark.parametrize("clear", [False, True])
def test_no_page_of_the_table_is_missing(clear: bool) -> None:
    """Neither when it is new nor when it has been cleared: a search would have to wait for each."""
    arena = Arena(1, 64)
    if clear:
        arena.clear_table()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arena.tt[:: mmap.PAGESIZE // 8] = np.uint64(1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 100, "of 16,384"
    arena.close()


def test_ages_wrap_in_the_header(arena: Arena) -> None:
    seen = set()
    for _ in range(AGES + 2):
        write_search(arena, chess.Board(), Limits(depth=1), DEFAULT)
        seen.add(int(arena.header[0]["age"]))
    assert seen == set(range(AGES))


def test_garbage_is_never_an_entry(arena: Arena, table: TableProbe) -> None:
    """A word counts only if it fits the key: the planted entries are found, nothing else is."""
    fill_with_garbage(arena, 43)
    dice = random.Random(44)
    clusters = int(arena.context_array[0]["tt_clusters"])
    for _ in range(20_000):
        assert table.word(dice.getrandbits(64)) == 0
    for _ in range(500):
        key, data, slot = dice.getrandbits(64), dice.getrandbits(64) | 1, dice.randrange(ENTRIES_PER_CLUSTER)
        place = (key * clusters >> 64) * WORDS_PER_CLUSTER + 2 * slot
        arena.tt[place] = key ^ data
        arena.tt[place + 1] = data
        assert table.word(key) == data
        # torn: either word of the pair overwritten by another writer
        torn = place + dice.randrange(2)
        arena.tt[torn] ^= np.uint64(1 << dice.randrange(64))
        assert table.word(key) == 0


def test_serial_search_on_garbage(arena: Arena) -> None:
    for seed in range(5):
        arena.clear_learning()
        fill_with_garbage(arena, seed)
        outcome = search(arena, MATE_IN_2, MATE_IN_2_DEPTH, MATE_FINDER)
        assert outcome.score == MATE - 3
        assert outcome.best.uci() == MATE_IN_2_KEY_MOVE
        assert outcome.pv[0] == outcome.best
        fill_with_garbage(arena, seed)
        assert search(arena, KIWIPETE, 5).pv


def test_interleaved_search_on_garbage() -> None:
    arena = Arena(workers=3, hash_mb=1)
    board = chess.Board(MATE_IN_2)
    for seed in range(5):
        fill_with_garbage(arena, seed)
        write_search(arena, board, Limits(depth=MATE_IN_2_DEPTH), SearchOptions(split_depth=1, pruning=MODES["ael"]))
        assert run_interleaved(arena.context, seed, 20, MAX_TURNS) >= 0
        outcome = found(arena, board)
        assert (outcome.score, outcome.best.uci()) == (MATE - 3, MATE_IN_2_KEY_MOVE)
    arena.close()


def test_a_forged_move_is_passed_over(arena: Arena, table: TableProbe) -> None:
    """An entry with the right key whose move is illegal: the value does not change, no line contains it."""
    board = chess.Board(MIDDLE_GAME)
    arena.forget()
    expected = search(arena, board, 5)
    dice = random.Random(45)
    probe = NodeProbe(arena.tables)
    positions = [board.copy(stack=False)]
    for move in board.legal_moves:
        after = board.copy(stack=False)
        after.push(move)
        positions.append(after)
    for _ in range(10):
        arena.forget()
        for position in positions:
            probe.set(position)
            illegal = next(code for code in iter(lambda: dice.randrange(1, 1 << 16), 0) if not probe.is_legal(code))
            # BOUND_NONE: an entry that claims nothing but its move
            table.store(probe.key, TableEntry(illegal, 0, 0, 0, BOUND_NONE, 0))
            assert (table.probe(probe.key) or SOME).move == illegal
        outcome = search(arena, board, 5)
        assert (outcome.score, outcome.best) == (expected.score, expected.best)


# Writes garbage into the table of the search it is started by: random words anywhere, and halves of other entries.
HAMMER = """
import mmap, sys
import numpy as np
words = np.frombuffer(mmap.mmap(int(sys.argv[1]), int(sys.argv[2])), np.uint64)
numbers = np.random.default_rng(46)
print("ready", flush=True)
while True:
    places = numbers.integers(0, len(words), 4096)
    words[places[:2048]] = words[places[2048:]]
    words[places[:64]] = numbers.integers(0, 1 << 63, 64).astype(np.uint64)
    print(end=".", flush=True)
"""


def test_search_while_another_process_writes_garbage(arena: Arena) -> None:
    """Torn entries in their true form: somebody else writes between the two words of ours."""
    table = arena._table
    command = [sys.executable, "-c", HAMMER, str(table.fd), str(table.size)]
    with subprocess.Popen(command, pass_fds=[table.fd], stdout=subprocess.PIPE) as hammer:
        try:
            assert hammer.stdout.readline() == b"ready\n"
            end = time.monotonic() + 1.5
            searches = 0
            while time.monotonic() < end or searches < 2:
                outcome = search(arena, MATE_IN_2, MATE_IN_2_DEPTH, MATE_FINDER)
                assert (outcome.score, outcome.best.uci()) == (MATE - 3, MATE_IN_2_KEY_MOVE)
                assert search(arena, KIWIPETE, 6).pv
                searches += 1
            assert hammer.poll() is None, "the writer has died"
        finally:
            hammer.kill()
        assert len(hammer.stdout.read()) > 100, "it did write"
