"""Entries of the table on their way between arenas, and the floor of a search."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import numpy as np
import pytest
from positions import KIWIPETE, MIDDLE_GAME

from psearch.arena.arena import Arena
from psearch.arena.setup import set_floor, write_search
from psearch.arena.table_entries import TableReader
from psearch.arena.table_exchange import TableExchange
from psearch.core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, INFINITE, MATE, NO_SCORE
from psearch.core.entries import EXCHANGE
from psearch.core.inspect.node import TableEntry, TableProbe
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.entries import load_kernels, work

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
    searched(one, fen, 7)
    wanted = everything(one, 3)
    assert len(wanted) > 20
    batch, found = TableExchange(one).collect(3, 10_000)
    assert found == len(batch) == len(wanted)
    assert {key: data & ((1 << 58) - 1) for key, data in batch.tolist()} == wanted
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
    searched(one, MIDDLE_GAME, 6)
    exchange = TableExchange(one)
    first, found = exchange.collect(2, 30)
    assert len(first) == 30 < found
    rest, left = exchange.collect(2, 10_000)
    assert left == len(rest) == found - 30
    assert not set(first[:, 0].tolist()) & set(rest[:, 0].tolist())
    assert exchange.collect(2, 10_000)[1] == 0
    searched(one, MIDDLE_GAME, 8)
    assert exchange.collect(2, 10_000)[1] > 0
    # nor what has come from elsewhere
    other = TableExchange(two)
    searched(two, KIWIPETE, 1)
    other.collect(0, 10_000)
    assert other.insert(first) > 0 and other.collect(2, 10_000)[1] == 0
    exchange.forget()
    assert exchange.collect(2, 10_000)[1] > found / 2


def test_a_small_memory_sends_again_and_loses_nothing(arenas: list[Arena]) -> None:
    searched(arenas[0], MIDDLE_GAME, 7)
    wanted = set(everything(arenas[0], 2))
    exchange = TableExchange(arenas[0], remembered=1)
    sent = [set(exchange.collect(2, 10_000)[0][:, 0].tolist()) for _ in range(2)]
    assert sent[0] == wanted and sent[1] >= wanted - {0} - sent[0] and len(sent[1]) >= len(wanted) - 1


def packed(entry: TableEntry, key: int) -> np.ndarray:
    """A batch of one, by way of a table."""
    arena = Arena(1, 1)
    TableProbe(arena.context).store(key, entry)
    arena.header["age"] = entry.age
    batch = TableExchange(arena).collect(0, 1)[0]
    arena.close()
    return batch


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


def test_a_floor(arenas: list[Arena]) -> None:
    """No move is worth more: every iteration is done with an upper bound. Some are: the best of them is found."""
    arena = arenas[0]
    board = chess.Board("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1")
    quiet = [move for move in board.legal_moves if move.uci() != "a1a8"]
    for floor, only, bounds in ((900, quiet, {BOUND_UPPER}), (900, None, {BOUND_EXACT})):
        arena.forget()
        write_search(arena, board, Limits(depth=4), SearchOptions(), only, floor=floor)
        while not work(arena.context, 0, 1 << 20):
            continue
        header = arena.header[0]
        infos = header["infos"][: int(header["info_count"])]
        assert set(infos[infos["depth"] == 4]["bound"].tolist()) == bounds
        assert (infos["score"][-1] > floor) == (only is None)
    set_floor(arena, None)
    assert int(arena.header[0]["floor"]) == -INFINITE
