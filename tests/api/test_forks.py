"""Engines made before a fork belong to the parent: children get an error that says so, and do them no harm."""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import os
import signal
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import chess
import chess.engine
import cluster_tasks
import pytest
from timing import wait_until

import psearch
from psearch.batch.positions.position_pool import WorkerSettings, make_pool
from psearch.batch.positions.task import Batch
from psearch.processes.supervisor import Supervisor
from psearch.remote.cluster_processes import ClusterProcesses


def in_fork(function: Callable[[], object]) -> str:
    """What a function returns in a fork of this program, as text; what it raises as `Type: message`.

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


Limit = chess.engine.Limit
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
        for call in (lambda: pool.wait(0.0), lambda: pool.send(0, Batch([])), lambda: pool.assist(0, 2)):
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
