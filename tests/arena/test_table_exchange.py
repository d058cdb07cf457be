"""Entries of the table on their way between arenas, and the floor of a search."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import numpy as np
import pytest
from inspect_node import TableEntry, TableProbe
from positions import KIWIPETE, MIDDLE_GAME

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.table_entries import TableReader
from psearch.arena.table_exchange import TableExchange
from psearch.core.chess.chess_entries import EXCHANGE
from psearch.core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, NO_SCORE
from psearch.core.records import STORE_LOG_ENTRIES
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import load_kernels, work

MATE_IN_2 = "1B1Q1R2/8/qNrn3p/2p1rp2/Rn3k1K/8/5P2/bbN4B w - - 0 1"
SOME = TableEntry(move=796, score=31, eval=-17, depth=7, bound=BOUND_EXACT, age=0)


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    load_kernels(EXCHANGE)


@pytest.fixture
def arenas() -> Iterator[list[Arena]]:
    """Two, with tables of one MiB; the second is at another age."""
    made = [Arena(1, 1), Arena(1, 1)]
    made[0].header["age"], made[1].header["age"] = 0, 40
    yield made
    for arena in made:
        arena.close()


def searched(arena: Arena, fen: str, depth: int) -> None:
    write_search(arena, chess.Board(fen), Limits(depth=depth), SearchOptions())
    while not work(arena.context, 0, 1 << 20):
        continue


def logging(arena: Arena, depth: int, remembered: int = 1 << 17) -> TableExchange:
    """The side of an arena whose workers log what is so deep from now on."""
    exchange = TableExchange(arena, remembered)
    exchange.log(depth)
    return exchange


def everything(arena: Arena, least_depth: int) -> dict[int, int]:
    """What is in the table, without the age, by key."""
    words = arena.tt.reshape(-1, 2)
    data = words[:, 1]
    age = np.uint64(int(arena.header[0]["age"]))
    kept = words[((data >> np.uint64(48)) & np.uint64(0xFF) >= least_depth) & (data >> np.uint64(58) == age)]
    kept = kept[kept[:, 1] != 0]
    return dict(zip((kept[:, 0] ^ kept[:, 1]).tolist(), (kept[:, 1] & np.uint64((1 << 58) - 1)).tolist(), strict=True))


@pytest.mark.parametrize("fen", [MIDDLE_GAME, KIWIPETE, MATE_IN_2])
def test_what_one_has_found_the_other_knows(arenas: list[Arena], fen: str) -> None:
    one, two = arenas
    exchange = logging(one, 3)
    searched(one, fen, 7)
    wanted = everything(one, 3)
    assert len(wanted) > 20
    batch, found = exchange.collect(10_000)
    assert found == len(batch) >= len(wanted)
    last = {key: data & ((1 << 58) - 1) for key, data in batch.tolist()}
    assert last.items() >= wanted.items(), "and what has been stored and written over since"
    write_search(two, chess.Board(fen), Limits(depth=1), SearchOptions())
    two.clear_table()
    taken = TableExchange(two).insert(batch)
    here, there = TableReader(one), TableReader(two)
    assert taken > 0.9 * len(batch)
    kept = [key for key in wanted if there.entry(key) is not None]
    assert len(kept) > 0.9 * len(batch), "a few have to make room for others"
    assert all(here.entry(key) == there.entry(key) for key in kept), "mates are as far away as they were"


def test_nothing_is_sent_twice(arenas: list[Arena]) -> None:
    one, two = arenas
    exchange = logging(one, 2)
    searched(one, MIDDLE_GAME, 6)
    first, found = exchange.collect(30)
    assert len(first) == 30 < found
    rest, left = exchange.collect(10_000)
    assert 30 < left == len(rest) <= found - 30, "what found no room is counted as often as it was stored"
    assert len({tuple(entry) for entry in [*first.tolist(), *rest.tolist()]}) == 30 + left
    assert exchange.collect(10_000)[1] == 0
    searched(one, MIDDLE_GAME, 8)
    assert exchange.collect(10_000)[1] > 0
    # nor what has come from elsewhere
    other = logging(two, 0)
    searched(two, KIWIPETE, 1)
    other.collect(10_000)
    assert other.insert(first) > 0 and other.collect(10_000)[1] == 0


def test_what_is_stored_again_is_sent_again_once_it_is_forgotten(arenas: list[Arena]) -> None:
    exchange = logging(arenas[0], 2)
    counts = []
    for forgets in (False, False, True):
        if forgets:
            exchange.forget()
        arenas[0].forget()
        arenas[0].header["age"] = 0
        searched(arenas[0], MIDDLE_GAME, 6)
        counts.append(exchange.collect(100_000)[1])
    assert counts[0] == counts[2] > 50 and counts[1] < counts[0] / 10


def test_nothing_is_logged_unless_somebody_wants_it(arenas: list[Arena]) -> None:
    arena = arenas[0]
    searched(arena, MIDDLE_GAME, 6)
    assert not arena.store_logs["count"].any()
    exchange = logging(arena, 3)
    searched(arena, MIDDLE_GAME, 7)
    logged = int(arena.store_logs["count"][0])
    assert logged > 0 and (arena.store_logs["entries"][0, :logged, 1] >> np.uint64(48) & np.uint64(0xFF) >= 3).all()
    exchange.log(None)
    searched(arena, MIDDLE_GAME, 8)
    assert int(arena.store_logs["count"][0]) == logged


def test_a_log_that_is_full_forgets_the_oldest(arenas: list[Arena]) -> None:
    exchange = logging(arenas[0], 0)
    searched(arenas[0], KIWIPETE, 9)
    logged = int(arenas[0].store_logs["count"][0])
    assert logged > 2 * STORE_LOG_ENTRIES
    batch, found = exchange.collect(100_000)
    assert len(batch) <= STORE_LOG_ENTRIES < found <= logged
    known = everything(arenas[0], 0)
    assert np.mean([key in known for key in batch[:, 0].tolist()]) > 0.9


def test_entries_of_an_earlier_search_are_not_sent(arenas: list[Arena]) -> None:
    exchange = logging(arenas[0], 2)
    searched(arenas[0], MIDDLE_GAME, 6)
    arenas[0].header["age"] += 1
    assert exchange.collect(10_000)[1] == 0


def test_each_worker_has_its_turn() -> None:
    arena = Arena(3, 1)
    exchange = logging(arena, 1)
    key = 1
    seen: set[int] = set()
    for _ in range(4):
        for worker in range(3):
            log = arena.store_logs[worker]
            data = 5 << 48 | 1 << 56
            for _ in range(10):
                key += 1 << 40
                slot = int(log["count"]) % STORE_LOG_ENTRIES
                log["entries"][slot] = key ^ data, data
                arena.store_logs["count"][worker] += 1
        batch, _ = exchange.collect(10)
        assert len(batch) == 10
        seen.update((batch[:, 0] >> np.uint64(40)).tolist())
    workers = {(number - 1) // 10 % 3 for number in seen}
    assert workers == {0, 1, 2}
    arena.close()


def test_it_follows_its_table_to_another_arena(arenas: list[Arena]) -> None:
    """As when workers have been replaced."""
    first = Arena(1, 1)
    exchange = logging(first, 2)
    searched(first, MIDDLE_GAME, 5)
    second = first.renew(2, first.kernels)
    first.close()
    exchange.follow(second)
    assert exchange.collect(1000)[1] == 0
    write_search(second, chess.Board(MIDDLE_GAME), Limits(depth=7), SearchOptions(policy="serial"))
    while not work(second.context, 0, 1 << 20):
        continue
    assert exchange.collect(1000)[1] > 0
    second.close()


def test_a_small_memory_sends_again_and_loses_nothing(arenas: list[Arena]) -> None:
    exchange = logging(arenas[0], 2, remembered=1)
    searched(arenas[0], MIDDLE_GAME, 7)
    wanted = set(everything(arenas[0], 2))
    assert set(exchange.collect(10_000)[0][:, 0].tolist()) >= wanted


def packed(entry: TableEntry, key: int) -> np.ndarray:
    """A batch of one, by way of a table."""
    arena = Arena(1, 1)
    TableProbe(arena.context).store(key, entry)
    words = arena.tt.reshape(-1, 2)
    check, data = words[words[:, 1] != 0][0]
    arena.close()
    return np.array([[check ^ data, data]], np.uint64)


KEY = 0x123456789ABCDEF0


@pytest.mark.parametrize(
    ("here", "there", "wins"),
    [
        (dict(depth=7), dict(depth=8), True),
        (dict(depth=7), dict(depth=6), False),
        (dict(depth=7, bound=BOUND_LOWER), dict(depth=7, bound=BOUND_EXACT), True),
        (dict(depth=7, bound=BOUND_EXACT), dict(depth=7, bound=BOUND_UPPER), False),
        (dict(depth=7, bound=BOUND_LOWER), dict(depth=7, bound=BOUND_UPPER), False),
    ],
)
def test_what_says_more_stays(arenas: list[Arena], here: dict[str, int], there: dict[str, int], wins: bool) -> None:
    from dataclasses import replace

    arena = arenas[0]
    mine = replace(SOME, score=1, **here)
    theirs = replace(SOME, score=2, **there)
    TableProbe(arena.context).store(KEY, mine)
    assert TableExchange(arena).insert(packed(theirs, KEY)) == wins
    entry = TableReader(arena).entry(KEY)
    assert entry is not None and entry.score == (2 if wins else 1)


def test_garbage_is_not_taken(arenas: list[Arena]) -> None:
    arena = arenas[0]
    good = packed(SOME, KEY)
    bad = []
    for shift, width, value in ((56, 2, 0), (16, 16, MATE + 1), (16, 16, -MATE - 1), (32, 16, NO_SCORE - 1)):
        word = int(good[0, 1]) & ~(((1 << width) - 1) << shift) | (value & (1 << width) - 1) << shift
        bad.append((KEY, word))
    exchange = TableExchange(arena)
    assert exchange.insert(np.array(bad, np.uint64)) == 0 and not arena.tt.any()
    with pytest.raises(ValueError, match="batch"):
        exchange.insert(np.zeros(4, np.uint64))
    dice = np.random.default_rng(1)
    exchange.insert(dice.integers(0, 1 << 64, (5000, 2), np.uint64))
    searched(arena, MIDDLE_GAME, 5)
