"""`psearch.analyse_many` and its asynchronous twin, as a caller sees them."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import os
import pickle
import resource
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import chess
import chess.engine
import chess.pgn
import fake_workers
import pytest
from paths import DATA
from timing import least, wait_until

import psearch
from psearch.batch.positions import many
from psearch.batch.positions.position_pool import PositionWorker, make_pool
from psearch.batch.positions.task import Batch, Outcome
from psearch.batch.positions.task_queue import Done, Event
from psearch.processes.tasks import ProcessJoined
from psearch.results import Limits, PsearchError

LIMIT = chess.engine.Limit(nodes=2_000)
MIDDLEGAME = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3"
MATED = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"


def children() -> set[int]:
    """Processes below this one, but for the fork server, which stays."""

    def below(pid: int) -> Iterator[int]:
        with contextlib.suppress(OSError):
            for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
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


def with_workers(monkeypatch: pytest.MonkeyPatch, worker: type[PositionWorker]) -> None:
    monkeypatch.setattr(
        many, "make_pool", lambda workers, settings, cluster: make_pool(workers, settings, worker=worker)
    )


def test_fens_boards_and_pairs_in_the_order_of_the_input() -> None:
    before = children()
    board = chess.Board()
    board.push_san("e4")
    entries = ["startpos", board, ("a name", MIDDLEGAME), (("any", "thing"), MATED)]
    with psearch.analyse_many(iter(entries), LIMIT, workers=2, ordered=True) as results:
        assert results.total is None
        found = list(results)
    assert [one.id for one in found] == [0, 1, "a name", ("any", "thing")]
    assert [one.index for one in found] == [0, 1, 2, 3]
    assert found[1].board.fen() == board.fen()
    assert found[2].bestmove in found[2].board.legal_moves
    assert found[2].pv[0] == found[2].bestmove
    assert found[2].nodes == 2_000
    assert found[2].wdl.turn == chess.BLACK
    assert found[3].bestmove is None
    assert found[3].score.relative == chess.engine.Mate(0)
    check_no_more_than(before)


def test_as_one_search_finds_it_and_the_same_each_time() -> None:
    boards = openings()
    alone = [psearch.search(board, nodes=2_000, hash_mb=1) for board in boards]
    for _ in range(2):
        results = psearch.analyse_many(boards, LIMIT, workers=2, ordered=True, hash_mb=1, reproducible=True)
        assert results.total == len(boards)
        found = list(results)
        assert [(one.bestmove, one.score, one.pv) for one in found] == [
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
    for one in found[1:5]:  # what is known can be looked at
        assert (one.bestmove, one.ponder, one.lines, one.pv, one.depth, one.wdl) == (None, None, [], [], 0, None)
        assert isinstance(one.score, chess.engine.PovScore) and one.as_dict()["nodes"] == 0
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
    assert len(values["lines"]) == len(one.lines) == 2


def test_one_shape_of_results() -> None:
    """`psearch.search` returns the same, and the dictionary of `Engine.analyse` has the same figures."""
    alone = psearch.search(MIDDLEGAME, nodes=2_000, hash_mb=1, multipv=2)
    (one,) = psearch.analyse_many([("x", MIDDLEGAME)], LIMIT, workers=1, hash_mb=1, multipv=2)
    for name in ("bestmove", "ponder", "score", "depth", "nodes", "pv", "wdl", "notes", "board"):
        assert getattr(one, name) == getattr(alone, name), name
    assert [(line.score, line.multipv, line.pv) for line in one.lines] == [
        (line.score, line.multipv, line.pv) for line in alone.lines
    ]
    assert one.time_s > 0 and alone.time_s > 0
    with psearch.Engine(hash_mb=1) as engine:
        info = engine.analyse(MIDDLEGAME, LIMIT, multipv=2)[0]
    timed = {"time": 0, "nps": 0, "hashfull": 0}
    of_search, of_many, of_engine = ({**some, **timed} for some in (alone.as_dict(), one.as_dict(), info))
    assert of_search == of_engine
    assert of_many == {key: of_engine[key] for key in of_many}
    assert {**alone.as_row(), "time_s": 0} == {
        "fen": MIDDLEGAME,
        "bestmove": one.bestmove.uci(),
        "cp": one.score.relative.score(),
        "mate": None,
        "cp_white": one.score.white().score(),
        "mate_white": None,
        "win": one.wdl.relative.wins,
        "draw": one.wdl.relative.draws,
        "loss": one.wdl.relative.losses,
        "bound": one.info.bound,
        "depth": one.depth,
        "seldepth": one.info.seldepth,
        "nodes": 2_000,
        "time_s": 0,
        "pv": " ".join(move.uci() for move in one.pv),
        "cp_2": one.lines[1].score.relative.score(),
        "mate_2": None,
        "pv_2": " ".join(move.uci() for move in one.lines[1].pv),
    }
    assert {**one.as_row(), "time_s": 0} == {"id": "x", **alone.as_row(), "time_s": 0, "error": None}
    assert "<svg" in str(one._repr_html_())


def test_results_after_pickling() -> None:
    good, bad = psearch.analyse_many([MIDDLEGAME, "no position"], LIMIT, workers=1, ordered=True)
    for one in (good, bad):
        assert one.board is not None if one is good else one.error
        again = pickle.loads(pickle.dumps(one))
        assert again == one and hash(again) == hash(one)
        assert repr(again) == repr(one)
    assert good != bad
    assert bad.as_row() == {"id": 1, "fen": "no position", "error": bad.error}
    assert bad._repr_html_() is None
    assert bad.bestmove is None and bad.fen == "no position"


def test_each_position_may_have_wishes_of_its_own() -> None:
    board = chess.Board()
    board.push_san("e4")
    entries = [
        psearch.Position("startpos", root_moves=["a4", "h2h4"]),
        psearch.Position(board, id="b", limit=chess.engine.Limit(depth=3), multipv=3),
        psearch.Position(MIDDLEGAME, limit=chess.engine.Limit(nodes=500)),
        MIDDLEGAME,
        psearch.Position("startpos", root_moves=["e5"]),
        psearch.Position("startpos", limit=chess.engine.Limit(depth=0)),
        psearch.Position("startpos", multipv=0),
        psearch.Position("startpos", limit=chess.engine.Limit(white_clock=1.0)),
    ]
    found = list(psearch.analyse_many(entries, LIMIT, workers=2, ordered=True))
    assert [one.id for one in found] == [0, "b", *range(2, 8)]
    assert found[0].bestmove.uci() in ("a2a4", "h2h4") and found[0].nodes == 2_000
    assert found[1].depth == 3 and len(found[1].lines) == 3 and found[1].board == board
    assert [one.nodes for one in found[2:4]] == [500, 2_000]
    for one, message in zip(
        found[4:], ("'e5' is not a legal move", "depth must be", "multipv must be", "no clock"), strict=True
    ):
        assert message in str(one.error) and one.fen == chess.STARTING_FEN


def test_without_a_limit_each_takes_five_seconds() -> None:
    assert many.limits_of(None) == many.limits_of(chess.engine.Limit()) == Limits(movetime_ms=5_000)
    assert many.limits_of(chess.engine.Limit(depth=3)) == Limits(depth=3)
    with psearch.analyse_many(["startpos"], workers=1) as results:
        assert results._search.wanted.limits == Limits(movetime_ms=5_000)


def test_nodes_of_a_game() -> None:
    game = chess.pgn.read_game(io.StringIO("1. e4 e5 2. Nf3 (2. f4 exf4) 2... Nc6 *"))
    found = list(psearch.analyse_many(game.mainline(), LIMIT, workers=1, ordered=True))
    assert [one.board for one in found] == [node.board() for node in game.mainline()]
    assert found[3].board.move_stack == list(game.mainline_moves())[2:]  # what may be repeated
    last = game.end()
    with psearch.Engine(hash_mb=1) as engine:
        info = engine.analyse(last, chess.engine.Limit(depth=2))
    assert info["pv"][0] in last.board().legal_moves
    assert psearch.search(game, depth=2, hash_mb=1).board == chess.Board()
    game.headers["FEN"] = "nonsense"
    (bad,) = psearch.analyse_many([game], LIMIT, workers=1)
    assert bad.error


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


@pytest.mark.parametrize("ordered", [False, True])
def test_what_the_iterable_raises_comes_behind_the_results_of_what_was_before(ordered: bool) -> None:
    before = children()

    def broken() -> Iterator[str]:
        yield from ["startpos"] * 50
        raise KeyError("row 51")

    found = []
    results = psearch.analyse_many(broken(), LIMIT, workers=2, ordered=ordered)
    with pytest.raises(KeyError, match="row 51"):
        for one in results:
            found.append(one.index)
    assert sorted(found) == list(range(50))
    assert list(results) == []
    check_no_more_than(before)

    async def main() -> list[int]:
        async with psearch.analyse_many_async(broken(), LIMIT, workers=2, ordered=ordered) as later:
            some = []
            with pytest.raises(KeyError, match="row 51"):
                async for one in later:
                    some.append(one.index)
            return some

    assert sorted(asyncio.run(main())) == list(range(50))


class Reader(threading.Thread):
    """Takes results in a thread, and keeps what ends that."""

    def __init__(self, results: psearch.ManyResults) -> None:
        super().__init__()
        self.results = results
        self.answer: list[psearch.PositionResult] = []
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer.extend(self.results)
        except BaseException as error:
            self.error = error


def check_told(reader: Reader) -> None:
    """A reader whose results somebody else has closed has been told."""
    reader.join(60)
    assert not reader.is_alive()
    assert isinstance(reader.error, PsearchError)
    assert str(reader.error) == "these results were closed before all were there"


def test_another_thread_may_close_while_one_waits_for_a_result() -> None:
    before = children()
    results = psearch.analyse_many(["startpos"] * 3, chess.engine.Limit(time=60), workers=2)
    reader = Reader(results)
    wait_until(lambda: results._search.inside == reader.ident)
    results.close()
    check_no_more_than(before)
    check_told(reader)
    results.close()
    assert list(results) == []
    check_told(Reader(results))  # which has not waited then


def test_another_thread_may_close_while_one_reads_positions() -> None:
    before = children()
    go_on, reads = threading.Event(), threading.Event()

    def slowly() -> Iterator[str]:
        yield "startpos"
        reads.set()
        go_on.wait()
        yield "startpos"

    results = psearch.analyse_many(slowly(), LIMIT, workers=1)
    reader = Reader(results)
    reads.wait()
    results.close()
    check_no_more_than(before)
    assert reader.is_alive()
    go_on.set()
    check_told(reader)


def test_results_that_are_complete_may_be_closed_by_anybody() -> None:
    results = psearch.analyse_many(["startpos"] * 3, LIMIT, workers=1)
    reader = Reader(results)
    reader.join()
    results.close()
    assert reader.error is None and len(reader.answer) == 3
    assert list(results) == []
    reader = Reader(results)
    reader.join()
    assert reader.error is None


def test_a_handler_of_a_signal_may_close() -> None:
    before = children()
    results = psearch.analyse_many(["startpos"] * 3, chess.engine.Limit(time=60), workers=2)
    former = signal.signal(signal.SIGUSR1, lambda *_: results.close())
    this = threading.get_ident()

    def tell() -> None:
        wait_until(lambda: results._search.inside == this)
        signal.pthread_kill(this, signal.SIGUSR1)

    thread = threading.Thread(target=tell)
    try:
        thread.start()
        assert list(results) == []
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, former)
    check_no_more_than(before)


def test_a_position_that_kills_is_bad_after_three_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    with_workers(monkeypatch, fake_workers.Poisoned)
    entries = ["startpos"] * 30 + [("poison", fake_workers.POISON)] + ["startpos"] * 30
    found = list(psearch.analyse_many(entries, LIMIT, workers=2))
    assert len(found) == 61
    (bad,) = (one for one in found if one.error is not None)
    assert bad.id == "poison"
    assert bad.error == "its process was lost 3 times, the last time because it was killed by signal 9"


def test_ten_thousand_positions_a_few_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with_workers(monkeypatch, fake_workers.Empty)
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


class SlowPool:
    """Two workers: the first keeps its tasks until nobody reads on, the second answers at once."""

    threads = 1

    def __init__(self) -> None:
        self.events: list[Event] = [ProcessJoined(0, "", "a"), ProcessJoined(1, "", "b")]
        self.kept: list[Outcome] = []

    def send(self, worker: int, batch: Batch) -> None:
        numbers = [number for part in batch for number, _ in part.tasks]
        outcomes = [Outcome(number, number, fake_workers.FOUND) for number in numbers]
        if worker == 0:
            self.kept += outcomes
        else:
            self.events.append(Done(1, outcomes))

    def assist(self, worker: int, threads: int) -> None:
        pass

    def wait(self, timeout_s: float, awaited: int | None = None) -> list[Event]:
        if not self.events:
            self.events, self.kept = [Done(0, self.kept)], []
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        pass


def test_a_slow_first_position_holds_back_those_behind_it_and_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(many, "make_pool", lambda workers, settings, cluster: SlowPool())
    monkeypatch.setattr(many, "_MOST_HELD", 50)
    read = given = most = 0

    def lazily() -> Iterator[str]:
        nonlocal read, most
        for _ in range(5_000):
            read += 1
            most = max(most, read - given)
            yield "startpos"

    for one in psearch.analyse_many(lazily(), LIMIT, workers=2, ordered=True):
        assert one.index == given
        given += 1
    assert given == read == 5_000
    assert 50 <= most < 50 + 4 * 2 * 256


@pytest.mark.slow
def test_a_million_positions_in_flat_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with_workers(monkeypatch, fake_workers.Empty)
    used = []
    for number, _ in enumerate(psearch.analyse_many(itertools.repeat("startpos", 1_000_000), LIMIT, workers=2)):
        if number % 100_000 == 50_000:
            used.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert number == 999_999
    assert used[-1] < used[0] + 4_096  # KiB


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 5}, "limit must be a chess.engine.Limit"),
        ({"limit": chess.engine.Limit(white_clock=1.0)}, "no clock"),
        ({"workers": 0}, "workers must be"),
        ({"threads_per_position": 0}, "threads_per_position must be"),
        ({"hash_mb": 0}, "hash_mb must be"),
        ({"multipv": 0}, "multipv must be"),
        ({"policy": "nonsense"}, "policy must be"),
        ({"positions": "startpos"}, "positions must be an iterable"),
        ({"positions": {"a": "startpos"}}, "give its items\\(\\), which are pairs of an id and a position"),
        ({"cluster": "auto9"}, "^cluster auto9: neither auto nor local"),
        ({"cluster": 3}, "cluster must be an address"),
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

    assert [one.index for one in asyncio.run(main())] == list(range(20))
    check_no_more_than(before)


def test_an_asynchronous_iterable() -> None:
    before = children()
    closed = []

    async def source(most: int) -> AsyncIterator[str]:
        try:
            for _ in range(most):
                await asyncio.sleep(0)
                yield "startpos"
            if most == 7:
                raise KeyError("row 8")
            if most == 3:
                await asyncio.Event().wait()
        finally:
            closed.append(most)

    async def main() -> None:
        results = psearch.analyse_many_async(source(20), LIMIT, workers=2, ordered=True)
        async with results:
            assert [one.index async for one in results] == list(range(20))
        some = []
        with pytest.raises(KeyError, match="row 8"):
            async for one in psearch.analyse_many_async(source(7), LIMIT, workers=2, ordered=True):
                some.append(one.index)
        assert some == list(range(7))
        results = psearch.analyse_many_async(source(3), LIMIT, workers=1)
        async with results:
            await anext(results)
            with pytest.raises(asyncio.TimeoutError):
                while True:
                    await asyncio.wait_for(anext(results), 3.0)
            assert [one async for one in results] == []

    asyncio.run(main())
    assert closed == [20, 7, 3]
    check_no_more_than(before)


def test_another_task_may_close() -> None:
    before = children()

    async def main() -> None:
        results = psearch.analyse_many_async(["startpos"], chess.engine.Limit(time=60), workers=1)
        waiting = asyncio.ensure_future(anext(results))
        while results._results is None or results._results._search.inside is None:
            await asyncio.sleep(0.01)
        await results.close()
        with pytest.raises(PsearchError, match="closed before all were there"):
            await waiting
        assert [one async for one in results] == []
        complete = psearch.analyse_many_async(["startpos"], LIMIT, workers=1)
        assert len([one async for one in complete]) == 1
        await asyncio.ensure_future(complete.close())
        assert [one async for one in complete] == []

    asyncio.run(main())
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


def test_what_is_wrong_with_a_part_of_the_tables_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"{tmp_path}:{DATA / 'syzygy'}"
    fens = ["8/8/8/8/3k4/8/8/3K3R w - - 0 1"] * 3
    found = list(psearch.analyse_many(fens, chess.engine.Limit(nodes=200), workers=2, syzygy=path))
    assert all(result.score.relative == chess.engine.Cp(20_000) for result in found)
    assert [record.message for record in caplog.records] == [f"no Syzygy tables (.rtbw, .rtbz) in '{tmp_path}'"]
