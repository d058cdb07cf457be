"""The engine on asyncio, and in programs that fork: cancelled, interrupted, dropped; children are told."""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import chess
import chess.engine
import cluster_tasks
import pytest
from programs import PIPES
from timing import least, wait_until

import psearch
from psearch.api.asynchronous import Started
from psearch.batch.positions.position_pool import WorkerSettings, make_pool
from psearch.processes.supervisor import Supervisor
from psearch.remote.cluster_processes import ClusterProcesses

Limit = chess.engine.Limit
LONG = Limit(time=60)
MATE_IN_1 = "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"
BACK_RANK = chess.Move.from_uci("e1e8")


def join_threads(but: frozenset[threading.Thread] = frozenset()) -> None:
    """No thread of ours is left, or only these."""
    left = [thread for thread in threading.enumerate() if thread not in but and thread.name.startswith("psearch")]
    for thread in left:
        thread.join(60)
    assert not any(thread.is_alive() for thread in left)


def run(main: Coroutine[Any, Any, None]) -> None:
    """In a loop that tells what is wrong in it; no thread of ours is left afterwards."""
    before = frozenset(threading.enumerate())
    asyncio.run(main, debug=True)
    join_threads(before)


def pids(engine: psearch.AsyncEngine) -> list[int]:
    return [worker.pid for worker in engine._engine._searcher._supervisor.pool.workers]


async def begun(engine: psearch.AsyncEngine) -> None:
    """Until it searches."""
    deadline = time.monotonic() + 60
    while engine._engine is None or not engine._engine._lock.locked():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)


def are_gone(numbers: list[int]) -> bool:
    wait_until(lambda: not any(Path(f"/proc/{number}").exists() for number in numbers))
    return True


def test_all_methods() -> None:
    async def main() -> None:
        async with psearch.AsyncEngine(threads=2, hash_mb=4) as engine:
            await engine.initialize()
            await engine.ping()
            assert engine.id["name"].startswith("psearch")
            info = await engine.analyse("startpos", Limit(depth=5), root_moves=["Nf3"])
            assert info["pv"][0].uci() == "g1f3"
            assert info["wdl"] == psearch.wdl(info["score"], chess.Board())
            assert len(await engine.analyse(chess.Board(), Limit(depth=2), multipv=2)) == 2
            await engine.configure({"Hash": 1, "Threads": 1})
            assert repr(engine) == "<psearch.AsyncEngine (threads=1, hash_mb=1)>"
            await engine.new_game()
            await engine.send_opponent_information(opponent=chess.engine.Opponent("x", None, 2000, True))
            played = await engine.play(MATE_IN_1, Limit(depth=3), game=1)
            assert played.move == BACK_RANK
            await engine.play(chess.Board(), Limit(depth=3), ponder=True)
            await engine.send_game_result(chess.Board())
            workers = pids(engine)
        assert are_gone(workers)
        for call in (engine.ping, engine.initialize, lambda: engine.play(MATE_IN_1, Limit(depth=1))):
            with pytest.raises(psearch.PsearchError, match="closed"):
                await call()
        await engine.quit()

    run(main())


def test_an_analysis() -> None:
    async def main() -> None:
        async with psearch.AsyncEngine(hash_mb=1) as engine:
            with await engine.analysis(chess.Board(), multipv=2) as analysis:
                assert isinstance(analysis, chess.engine.AnalysisResult)
                async for info in analysis:
                    if info["depth"] >= 5:
                        break
            # the block has stopped it, and the next call waits until it has ended
            assert (await engine.analyse(MATE_IN_1, Limit(depth=3)))["pv"][0] == BACK_RANK
            assert (await analysis.wait()).move in chess.Board().legal_moves
            assert [line["multipv"] for line in analysis.multipv] == [1, 2]
            assert analysis.info["depth"] >= 5
            while await analysis.next() is not None:
                pass
            assert analysis.empty() and not analysis.would_block()
            with pytest.raises(chess.engine.AnalysisComplete):
                await analysis.get()

            ended = await engine.analysis(chess.Board(), Limit(depth=6))
            assert [info["depth"] async for info in ended][-1] == 6
            ended.post({"depth": 7, "lowerbound": True})  # type: ignore[typeddict-unknown-key]
            ended.post({"depth": 8})
            assert ended.info == {"depth": 8}  # python-chess's own would say that 8 is a lower bound, too
            with pytest.raises(psearch.PsearchError, match="illegal position"):
                await engine.analysis("8/8/8/8/8/8/8/8 w - - 0 1")

    run(main())


def test_the_board_may_change_meanwhile() -> None:
    async def main() -> None:
        board = chess.Board()
        async with psearch.AsyncEngine(hash_mb=1) as engine:
            task = asyncio.create_task(engine.play(board, Limit(time=0.1)))
            await asyncio.sleep(0.02)
            board.push_san("e4")
            assert (await task).move in chess.Board().legal_moves

    run(main())


def test_the_loop_goes_on_while_it_searches() -> None:
    longest = 0.0

    async def main() -> None:
        nonlocal longest
        engine = psearch.AsyncEngine(hash_mb=1)
        longest, last = 0.0, time.perf_counter()
        task = asyncio.create_task(engine.play(chess.Board(), Limit(time=0.5)))
        while not task.done():
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
        await engine.close()

    def longest_pause() -> float:
        run(main())
        return longest

    assert least(longest_pause, 0.4) < 0.4  # a start takes longer, and the search as well


def test_a_cancelled_await_stops_the_search() -> None:
    async def main() -> None:
        async with psearch.AsyncEngine(threads=2, hash_mb=1) as engine:
            for call in (engine.play, engine.analyse):
                began = time.perf_counter()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(call(chess.Board(), LONG), 0.2)
                assert time.perf_counter() - began < 2
                assert (await engine.play(MATE_IN_1, Limit(depth=3))).move == BACK_RANK
            analysis = await engine.analysis(chess.Board())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(analysis.wait(), 0.05)  # waiting is not searching: it goes on
            with pytest.raises(psearch.PsearchError, match="searching already"):
                await engine.analyse(MATE_IN_1, Limit(depth=1))
            analysis.stop()
            task = asyncio.create_task(engine.play(chess.Board(), LONG))
            await asyncio.sleep(0)
            task.cancel()  # before it has begun
            with pytest.raises(asyncio.CancelledError):
                await task
            task = asyncio.create_task(engine.play(chess.Board(), LONG))
            await begun(engine)
            engine.stop()
            assert (await task).move in chess.Board().legal_moves

    run(main())


def test_a_cancelled_change_is_whole(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with psearch.AsyncEngine(hash_mb=1) as engine:
            for megabytes in (2, 3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(engine.configure({"Hash": megabytes}), 0.0001)
                assert repr(engine) == f"<psearch.AsyncEngine (threads=1, hash_mb={megabytes})>"
            with await engine.analysis(chess.Board()):
                for call in (engine.new_game(), engine.ping(), engine.configure({"Clear Hash": None})):
                    with pytest.raises((TimeoutError, psearch.PsearchError)):
                        await asyncio.wait_for(call, 0.0001)
            assert (await engine.play(MATE_IN_1, Limit(depth=3))).move == BACK_RANK

    run(main())
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_cancelled_while_it_starts() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001), psearch.AsyncEngine(hash_mb=1):
                pytest.fail("it cannot have started")
        engine = psearch.AsyncEngine(hash_mb=1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.play(chess.Board(), LONG), 0.001)
        assert (await engine.play(MATE_IN_1, Limit(depth=3))).move == BACK_RANK  # the start went on
        await engine.close()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(main())
        gc.collect()


def test_what_is_made_after_a_cancellation_is_closed() -> None:
    class Results:
        is_closed = False

        def close(self) -> None:
            time.sleep(0.05)  # which the loop does not wait for
            self.is_closed = True

    made = Results()

    async def main() -> None:
        started = Started(lambda: (time.sleep(0.1), made)[1])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), started:
                pytest.fail("it cannot have started")
        assert made.is_closed

    run(main())


def test_many_at_once() -> None:
    async def one(number: int) -> None:
        async with psearch.AsyncEngine(hash_mb=1) as engine:
            results = await asyncio.gather(
                engine.analyse(MATE_IN_1, Limit(depth=4 + number % 3)), asyncio.sleep(0.01 * number)
            )
            assert results[0]["pv"][0] == BACK_RANK

    async def main() -> None:
        await asyncio.gather(*map(one, range(12)))

    run(main())


def test_two_calls_at_once_on_one_engine() -> None:
    async def main() -> None:
        async with psearch.AsyncEngine(hash_mb=1) as engine:
            first = asyncio.create_task(engine.analyse(chess.Board(), LONG))
            await begun(engine)
            with pytest.raises(psearch.PsearchError, match="searching already"):
                await engine.analyse(MATE_IN_1, Limit(depth=1))
            engine.stop()
            assert (await first)["depth"] >= 1

    run(main())


def test_another_loop_may_go_on() -> None:
    engine = psearch.AsyncEngine(hash_mb=1)

    async def main() -> None:
        assert (await engine.play(MATE_IN_1, Limit(depth=3))).move == BACK_RANK

    run(main())
    run(main())
    run(engine.close())


def wait_until_idle(engine: psearch.Engine) -> None:
    wait_until(lambda: not engine._lock.locked())


@pytest.mark.filterwarnings("ignore:.*was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_that_is_closed_ends_its_search() -> None:
    engine = psearch.AsyncEngine(hash_mb=1)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(engine.initialize())
    analysis = loop.run_until_complete(engine.analysis(chess.Board()))
    loop.close()
    inner = engine._engine
    assert inner is not None
    wait_until_idle(inner)
    loop = asyncio.new_event_loop()
    told: list[str] = []
    loop.set_exception_handler(lambda loop, context: told.append(context["message"]))
    task = loop.create_task(engine.play(chess.Board(), LONG))
    loop.run_until_complete(begun(engine))
    loop.close()
    del task
    wait_until_idle(inner)
    join_threads()  # the one that has searched has the task until it ends
    gc.collect()
    assert told == ["Task was destroyed but it is pending!"]  # here, and not in a later test
    assert inner.analyse(MATE_IN_1, Limit(depth=3))["pv"][0] == BACK_RANK
    workers = pids(engine)
    inner.close()
    assert are_gone(workers)
    del analysis


def test_an_interrupt_ends_all() -> None:
    program = f"""
import asyncio, chess, chess.engine, psearch
async def main():
    async with psearch.AsyncEngine(threads=2, hash_mb=1) as engine:
        print(*(worker.pid for worker in engine._engine._searcher._supervisor.pool.workers), flush=True)
        await engine.analyse(chess.Board(), chess.engine.Limit(time=60))
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", psearch.search({MATE_IN_1!r}, depth=2, hash_mb=1).bestmove)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, start_new_session=True, **PIPES) as running:
        assert running.stdout is not None and running.stderr is not None
        workers = [int(word) for word in running.stdout.readline().split()]
        assert len(workers) == 2
        time.sleep(0.3)
        os.killpg(running.pid, signal.SIGINT)  # to all of the group, as a terminal does
        assert running.stdout.readline() == "interrupted e1e8\n"
        assert running.wait(60) == 0
        assert running.stderr.read() == ""
    assert are_gone(workers)


def in_fork(function: Callable[[], object]) -> str:
    """Return what a function returns in a fork of this program, as text; what it raises as `Type: message`.

    The fork ends as programs do that are not careful: everything it has is collected.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads
        pid = os.fork()
    if pid == 0:
        try:
            said = str(function())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    ended: list[int] = []

    def has_ended() -> bool:
        ended[:] = os.waitpid(pid, os.WNOHANG)
        return ended[0] == pid

    try:
        wait_until(has_ended)
    except AssertionError:  # it hangs
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    with open(reader, "rb") as pipe:
        return pipe.read().decode()


LIMIT = Limit(nodes=2_000)
REFUSED = "PsearchError: this {} belongs to another process: make one in each"
FENS = [
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
    "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    chess.STARTING_FEN,
]

_own: psearch.Engine


def _make_own() -> None:
    global _own
    _own = psearch.Engine(hash_mb=4)


def _figures(engine: psearch.Engine, fen: str) -> tuple[str, int, str]:
    engine.new_game()
    info = engine.analyse(fen, Limit(depth=6))
    return fen, info["nodes"], str(info["pv"][0])


def _figures_of_own(fen: str) -> tuple[str, int, str]:
    return _figures(_own, fen)


def test_each_method_of_an_engine_says_so_and_the_parent_goes_on() -> None:
    calls: list[Callable[[psearch.Engine], object]] = [
        lambda engine: engine.analyse("startpos", LIMIT),
        lambda engine: engine.play("startpos", LIMIT),
        lambda engine: engine.analysis("startpos", LIMIT),
        lambda engine: engine.new_game(),
        lambda engine: engine.ping(),
        lambda engine: engine.configure({"Hash": 2}),
        lambda engine: engine.configure({}),
    ]
    with psearch.Engine(threads=1, hash_mb=4) as engine:
        before = [_figures(engine, fen) for fen in FENS]
        pids = [worker.pid for worker in engine._searcher._supervisor.pool.workers]
        for call in calls:
            assert in_fork(lambda call=call: call(engine)) == REFUSED.format("engine")
        assert [_figures(engine, fen) for fen in FENS] == before
        assert [worker.pid for worker in engine._searcher._supervisor.pool.workers] == pids


def test_to_leave_and_to_collect_it_does_the_parent_no_harm() -> None:
    with psearch.Engine(hash_mb=4) as engine:
        before = [_figures(engine, fen) for fen in FENS]

        def leave() -> str:
            nonlocal engine
            engine.stop()
            engine.close()
            engine.quit()
            with engine:
                pass
            del engine
            gc.collect()
            return "left"

        analysis = engine.analysis("startpos")
        assert in_fork(leave) == "left"
        assert not analysis._has_ended
        analysis.stop()
        analysis.wait()
        assert [_figures(engine, fen) for fen in FENS] == before


def test_a_search_in_the_background_is_the_parents() -> None:
    with psearch.Engine(hash_mb=4) as engine, engine.analysis("startpos") as analysis:
        analysis.get()
        for call in (analysis.wait, lambda: list(analysis), lambda: engine.analyse("startpos", LIMIT)):
            assert in_fork(call) == REFUSED.format("engine")
        assert in_fork(analysis.stop) == "None"
        assert not analysis._has_ended
        nodes = analysis.info["nodes"]
        while analysis.get()["nodes"] <= nodes:
            continue
        analysis.stop()
        best = analysis.wait()
        assert in_fork(lambda: analysis.wait().move) == str(best.move)


def test_an_engine_that_ponders() -> None:
    with psearch.Engine(hash_mb=4) as engine:
        engine.play(FENS[0], Limit(depth=4), ponder=True)
        assert in_fork(lambda: engine.play(FENS[0], LIMIT)) == REFUSED.format("engine")
        assert in_fork(engine.close) == "None"
        assert engine._pondering is not None and not engine._pondering._has_ended


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_one_engine_in_each_child(start: str) -> None:
    with psearch.Engine(hash_mb=4) as engine:
        expected = [_figures(engine, fen) for fen in FENS]
        with multiprocessing.get_context(start).Pool(2, initializer=_make_own) as pool:
            assert pool.map(_figures_of_own, FENS * 2, chunksize=1) == expected * 2
        assert [_figures(engine, fen) for fen in FENS] == expected


def test_asynchronous_engines() -> None:
    async def main() -> None:
        async with psearch.AsyncEngine(hash_mb=4) as engine:
            unused = psearch.AsyncEngine(hash_mb=1)

            async def alone(used: psearch.AsyncEngine) -> object:
                info = await used.analyse("startpos", Limit(depth=2))
                await used.close()
                return info["depth"]

            async def close() -> str:
                await engine.close()
                return "closed"

            nodes = (await engine.analyse(FENS[0], Limit(depth=6), game=1))["nodes"]
            assert in_fork(lambda: asyncio.run(alone(engine))) == REFUSED.format("engine")
            assert in_fork(lambda: asyncio.run(close())) == "closed"
            assert in_fork(lambda: asyncio.run(alone(unused))) == "2"
            assert (await engine.analyse(FENS[0], Limit(depth=6), game=2))["nodes"] == nodes

    asyncio.run(main())


def test_results_of_many() -> None:
    with psearch.analyse_many(itertools.repeat("startpos", 400), LIMIT, workers=2) as results:
        found = [next(results)]
        assert in_fork(lambda: next(results)) == REFUSED.format("analysis")

        def leave() -> str:
            nonlocal results
            results.close()
            del results
            gc.collect()
            return "left"

        pool = results._search.pool
        assert in_fork(leave) == "left"
        found += results
        assert pool.lost == 0
    assert sorted(one.index for one in found) == list(range(400))


def test_results_of_many_that_another_thread_waits_for() -> None:
    async def main() -> None:
        async with psearch.analyse_many_async(["startpos"], Limit(time=60), workers=1) as results:
            waiting = asyncio.ensure_future(anext(results))
            while results._results is None:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)

            async def take() -> object:
                return await anext(results)

            async def close() -> str:
                await results.close()
                return "closed"

            assert in_fork(lambda: asyncio.run(take())) == REFUSED.format("analysis")
            assert in_fork(lambda: asyncio.run(close())) == "closed"
            assert not waiting.done()
            await results.close()
            with pytest.raises(psearch.PsearchError, match="closed before all were there"):
                await waiting

    asyncio.run(main())


def test_what_is_below_the_api(fake_ray: Path, kernels: None) -> None:
    with Supervisor(1, 1) as supervisor:
        assert in_fork(supervisor.restore) == REFUSED.format("engine")
        assert in_fork(supervisor.forget) == REFUSED.format("engine")
        assert in_fork(supervisor.close) == "None"
        assert supervisor.restore() == []
    with make_pool(1, WorkerSettings(hash_mb=1)) as pool:
        for call in (lambda: pool.wait(0.0), lambda: pool.send(0, []), lambda: pool.assist(0, 2)):
            assert in_fork(call) == REFUSED.format("analysis")
        assert in_fork(pool.close) == "None"
        (pid,) = pool.processes.pids()
        pool.wait(0.5)
        assert pool.processes.pids() == [pid]
    with ClusterProcesses("auto", cluster_tasks.make) as link:
        for call in (lambda: link.messages(0.0), lambda: link.give(0, 0, 0)):
            assert in_fork(call) == REFUSED.format("connection to a cluster")
        assert in_fork(link.close) == "None"
        assert link.messages(30.0)
