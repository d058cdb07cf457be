"""`psearch.analyse_many` and its asynchronous twin, as a caller sees them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import resource
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import chess
import chess.engine
import farm_hands
import pytest
from timing import least, wait_until

import psearch
from psearch.farm import many
from psearch.farm.local import LocalCrew
from psearch.results import Limits, PsearchError

LIMIT = chess.engine.Limit(nodes=2_000)
MIDDLEGAME = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3"
MATED = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"


def children() -> set[int]:
    """Processes below this one, but for the fork server, which stays."""

    def below(pid: int) -> Iterator[int]:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for child in map(int, words):
                if pid != os.getpid() or b"fork_server" not in Path(f"/proc/{child}/cmdline").read_bytes():
                    yield child
                yield from below(child)

    return set(below(os.getpid()))


def check_no_more_than(before: set[int]) -> None:
    """Soon there are no more processes: those that are killed may need a moment to end, and to be waited for."""
    wait_until(lambda: children() <= before)


def openings() -> list[chess.Board]:
    boards = []
    for move in list(chess.Board().legal_moves):
        board = chess.Board()
        board.push(move)
        boards.append(board)
    return boards


def with_hands(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(
        many,
        "make_crew",
        lambda hands, settings, cores, nice, cluster: LocalCrew(hands, settings, target=f"farm_hands:{target}"),
    )


def test_fens_boards_and_pairs_in_the_order_of_the_input() -> None:
    before = children()
    board = chess.Board()
    board.push_san("e4")
    entries = ["startpos", board, ("a name", MIDDLEGAME), (("any", "thing"), MATED)]
    with psearch.analyse_many(iter(entries), LIMIT, workers=2, ordered=True) as results:
        found = list(results)
    assert [one.id for one in found] == [0, 1, "a name", ("any", "thing")]
    assert [one.index for one in found] == [0, 1, 2, 3]
    assert found[1].board.fen() == board.fen()
    assert found[2].bestmove in found[2].board.legal_moves
    assert found[2].info["pv"][0] == found[2].bestmove
    assert found[2].info["nodes"] == 2_000
    assert found[2].info["wdl"].turn == chess.BLACK
    assert found[3].bestmove is None
    assert found[3].score.relative == chess.engine.Mate(0)
    check_no_more_than(before)


def test_as_one_search_finds_it_and_the_same_each_time() -> None:
    boards = openings()
    alone = [psearch.search(board, nodes=2_000, hash_mb=1) for board in boards]
    for _ in range(2):
        found = list(psearch.analyse_many(boards, LIMIT, workers=2, ordered=True, hash_mb=1, reproducible=True))
        assert [(one.bestmove, one.score, one.info["pv"]) for one in found] == [
            (one.bestmove, one.info.score, one.info.pv) for one in alone
        ]


def test_bad_positions_have_an_error_and_end_nothing() -> None:
    impossible = chess.Board("8/8/8/8/8/8/8/K7 w - - 0 1")
    entries = ["startpos", "no position", impossible, None, ("x", 7), MATED, "startpos"]
    found = list(psearch.analyse_many(entries, LIMIT, workers=2, ordered=True))
    assert [one.error is None for one in found] == [True, False, False, False, False, True, True]
    assert "bad FEN" in found[1].error
    assert "Black has no king" in found[2].error
    assert "not None" in found[3].error
    assert found[4].id == "x"
    with pytest.raises(PsearchError, match="was not searched"):
        _ = found[1].info
    assert found[1].as_json() == {"id": 1, "fen": "no position", "error": found[1].error}


def test_results_as_json() -> None:
    (one,) = psearch.analyse_many([("name", MIDDLEGAME)], LIMIT, multipv=2, workers=1)
    values = one.as_json()
    assert values["id"] == "name"
    assert values["fen"] == MIDDLEGAME
    assert values["bestmove"] == one.bestmove.uci()
    assert values["score"] == {"cp": one.score.relative.score()}
    assert values["nodes"] == 2_000
    assert values["tbhits"] == 0
    assert values["version"] == psearch.__version__
    assert len(values["lines"]) == len(one.infos) == 2


def test_chess960_and_history() -> None:
    board = chess.Board("nrkbbrqn/pppppppp/8/8/8/8/PPPPPPPP/NRKBBRQN w KQkq - 0 1", chess960=True)
    for _ in range(6):
        board.push(next(iter(board.legal_moves)))
    (one,) = psearch.analyse_many([board], LIMIT, workers=1)
    assert one.error is None
    assert one.board.fen() == board.fen()
    assert one.board.chess960
    repeated = chess.Board()
    for word in ("g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6"):
        repeated.push_uci(word)
    (one,) = psearch.analyse_many([repeated], LIMIT, workers=1)
    assert one.board.move_stack == repeated.move_stack


def test_leaving_early_ends_everything() -> None:
    before = children()

    def seconds() -> float:
        nonlocal results
        with psearch.analyse_many(itertools.repeat("startpos"), LIMIT, workers=2) as results:
            for _ in itertools.islice(results, 5):
                pass
            began = time.monotonic()
        return time.monotonic() - began

    results: Iterable[psearch.PositionResult] = []
    assert least(seconds, 1.0) < 1.0
    check_no_more_than(before)
    assert list(results) == []
    dropped = psearch.analyse_many(itertools.repeat("startpos"), LIMIT, workers=1)
    next(dropped)
    del dropped
    check_no_more_than(before)


def test_what_the_iterable_raises_ends_everything() -> None:
    before = children()

    def broken() -> Iterator[str]:
        yield from ["startpos"] * 3
        raise KeyError("row 4")

    with pytest.raises(KeyError, match="row 4"):
        list(psearch.analyse_many(broken(), LIMIT, workers=1))
    check_no_more_than(before)


def test_a_position_that_kills_is_bad_after_three_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    with_hands(monkeypatch, "poisoned")
    entries = ["startpos"] * 30 + [("poison", farm_hands.POISON)] + ["startpos"] * 30
    found = list(psearch.analyse_many(entries, LIMIT, workers=2))
    assert len(found) == 61
    (bad,) = (one for one in found if one.error is not None)
    assert bad.id == "poison"
    assert bad.error == "its process was lost 3 times, the last time because it was killed by signal 9"


def test_ten_thousand_positions_a_few_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with_hands(monkeypatch, "empty")
    read = 0

    def lazily() -> Iterator[str]:
        nonlocal read
        for _ in range(10_000):
            read += 1
            yield "startpos"

    most = 0
    for number, _ in enumerate(psearch.analyse_many(lazily(), LIMIT, workers=2), start=1):
        most = max(most, read - number)
    assert read == 10_000
    assert most < 4_000


@pytest.mark.slow
def test_a_million_positions_in_flat_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with_hands(monkeypatch, "empty")
    used = []
    for number, _ in enumerate(psearch.analyse_many(itertools.repeat("startpos", 1_000_000), LIMIT, workers=2)):
        if number % 100_000 == 50_000:
            used.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert number == 999_999
    assert used[-1] < used[0] + 4_096  # KiB


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": chess.engine.Limit()}, "a limit must be given"),
        ({"limit": chess.engine.Limit(white_clock=1.0)}, "no clock"),
        ({"workers": 0}, "workers must be"),
        ({"threads_per_position": 0}, "threads_per_position must be"),
        ({"hash_mb": 0}, "hash_mb must be"),
        ({"multipv": 0}, "multipv must be"),
        ({"cores": []}, "cores is empty"),
        ({"nice": 99}, "nice must be"),
        ({"policy": "nonsense"}, "policy must be"),
        ({"positions": "startpos"}, "positions must be an iterable"),
    ],
)
def test_bad_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(PsearchError, match=message):
        psearch.analyse_many(**{"positions": ["startpos"], "limit": LIMIT, **arguments})


def test_tables_of_a_useful_size() -> None:
    assert many.useful_hash_mb(Limits(nodes=1_000)) == 1
    assert many.useful_hash_mb(Limits(nodes=100_000)) == 4
    assert many.useful_hash_mb(Limits(movetime_ms=1_000)) == 32
    assert many.useful_hash_mb(Limits(movetime_ms=1_000, nodes=1_000)) == 1
    assert many.useful_hash_mb(Limits(nodes=10**12)) == 64
    assert many.useful_hash_mb(Limits(depth=20)) == 16


def test_on_asyncio() -> None:
    before = children()

    async def main() -> list[psearch.PositionResult]:
        async with psearch.analyse_many_async(openings(), LIMIT, workers=2, ordered=True) as results:
            return [one async for one in results]

    found = asyncio.run(main())
    assert [one.index for one in found] == list(range(20))
    check_no_more_than(before)


def test_an_await_that_is_cancelled_ends_the_analysis() -> None:
    async def main() -> float:
        results = psearch.analyse_many_async(itertools.repeat("startpos"), chess.engine.Limit(time=60), workers=1)
        async with results:
            began = time.monotonic()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(results), 0.5)
            took = time.monotonic() - began
            assert [one async for one in results] == []
            return took

    assert asyncio.run(main()) < 20.0
