"""The network that evaluates, or none: from Python, the command line and UCI, for one and many workers."""

from __future__ import annotations

import pickle
import queue
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import chess
import chess.engine
import pytest
from netdata.playing import options_of
from netfit.network import encoded
from paths import DATA, REPOSITORY

import psearch
from psearch import options
from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.batch.positions.position_pool import PositionWorker, WorkerSettings, make_pool
from psearch.bench import BENCH_POSITIONS
from psearch.faces.uci.player import Player
from psearch.faces.uci.resources import Resources
from psearch.faces.uci.uci_options import OptionValues
from psearch.options import SearchOptions, Settings, pruning_named
from psearch.results import Limits
from psearch.searcher.notices import Notices
from psearch_core.chess.evaluation.network_file import default_network

FEN = "r1bqkb1r/pp2pppp/2np1n2/8/3NP3/2N5/PPP2PPP/R1BQKB1R w KQkq - 2 6"
LIMIT = chess.engine.Limit(depth=9)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of the same shape that says other things."""
    path = tmp_path_factory.mktemp("nets") / "other.net"
    path.write_bytes(halved())
    return path


def halved() -> bytes:
    record = default_network().record.copy()
    record["out"] = record["out"] // 2
    return encoded(record, {"made by": "a test"})


def nodes(threads: int = 1, **options: object) -> int:
    with psearch.Engine(threads=threads, hash_mb=4, **options) as engine:  # type: ignore[arg-type]
        return int(engine.analyse(chess.Board(FEN), LIMIT)["nodes"])


@pytest.mark.parametrize(
    ("options", "early"),
    [
        (SearchOptions(), True),
        (SearchOptions(evaluation="classic"), False),
        (SearchOptions(with_=str(DATA / "plug_ins" / "every_hook.py")), False),
        (SearchOptions(with_=str(REPOSITORY / "docs" / "examples" / "my_rule.py")), True),
    ],
    ids=["network", "handcrafted", "a file's evaluation", "a file's rule"],
)
def test_only_the_network_evaluates_before_the_table_is_asked(options: SearchOptions, early: bool) -> None:
    """The evaluation of a file is promised positions that the table does not know."""
    arena = Arena(1, 1, kernels=options.kernels)
    try:
        write_search(arena, chess.Board(), Limits(depth=1), options)
        assert bool(arena.header[0]["options"]["early_evaluation"]) == early
    finally:
        arena.close()


def test_modes_have_an_evaluation_of_their_own() -> None:
    assert pruning_named("modern").network == 1
    assert [pruning_named(mode).network for mode in ("plain", "sound", "ael")] == [0, 0, 0]
    assert SearchOptions(pruning=pruning_named("modern"), evaluation="classic").rules.network == 0
    assert SearchOptions(pruning=pruning_named("plain"), evaluation="net").rules.network == 1
    with pytest.raises(psearch.PsearchError, match="sound futility needs network=0"):
        Settings.of(pruning="sound", evaluation="net")
    with pytest.raises(psearch.PsearchError, match="sound futility needs network=0"):
        SearchOptions(pruning=pruning_named("sound"), evaluation="net")
    with pytest.raises(psearch.PsearchError, match="evaluation must be one of auto, net, classic"):
        SearchOptions(evaluation="both")


def test_each_evaluation_is_another_search(other: Path) -> None:
    by_network = nodes()
    assert nodes(evaluation="net") == by_network == nodes(net=default_network().path)
    assert nodes(evaluation="classic") == nodes(pruning="modern,network=0") != by_network
    assert nodes(net=other) != by_network


def test_an_engine_goes_from_one_network_to_another_and_back(other: Path) -> None:
    """Nothing of the one is found in the table, in sums or in histories when the other searches."""
    with psearch.Engine(hash_mb=4) as engine:
        board = chess.Board(FEN)

        def count(**options: str) -> int:
            engine.configure(options)
            return int(engine.analyse(board, LIMIT)["nodes"])

        first = count()
        second = count(EvalFile=str(other))
        assert len({first, second, count(EvalFile="", Evaluation="classic")}) == 3
        assert count(Evaluation="auto") == first
        assert count(EvalFile=str(other)) == second


@pytest.mark.parametrize("threads", [2, 3])
def test_all_workers_evaluate_by_the_file(other: Path, threads: int) -> None:
    """The network evaluates everything as 0, so every worker's score is 0."""
    record = default_network().record.copy()
    record["out"], record["out_bias"] = 0, 0
    silent = other.with_name("silent.net")
    silent.write_bytes(encoded(record, {}))
    with psearch.Engine(threads=threads, hash_mb=4, net=silent, pruning="modern,correction=0") as engine:
        assert engine.analyse(chess.Board(FEN), chess.engine.Limit(depth=7))["score"].relative == chess.engine.Cp(0)


@pytest.fixture
def file(other: Path, tmp_path: Path) -> Path:
    """A file that holds the network of `other`, until `replaced` has another put in its place."""
    path = tmp_path / "used.net"
    path.write_bytes(other.read_bytes())
    return path


def replaced(path: Path) -> None:
    path.write_bytes(encoded(default_network().record, {"another": "one"}))


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forget what this process has read: so finds the file who reads it in another process, or on another machine."""
    return options._networks.clear


def test_a_process_goes_on_with_what_it_has_read(file: Path) -> None:
    chosen = SearchOptions(net=str(file))
    first = chosen.read_network()
    replaced(file)
    assert chosen.read_network() is first is replace(chosen, aspiration=0).read_network()
    file.unlink()
    assert chosen.read_network() is first is pickle.loads(pickle.dumps(chosen)).read_network()


def test_who_names_a_file_again_gets_what_it_holds_now(file: Path) -> None:
    with psearch.Engine(hash_mb=4, net=file) as engine:

        def count(game: int) -> int:
            return int(engine.analyse(chess.Board(FEN), LIMIT, game=game)["nodes"])

        before = count(1)
        replaced(file)
        assert count(2) == before
        engine.configure({"EvalFile": str(file)})
        assert count(3) == nodes() != before


def test_another_process_refuses_another_network(file: Path, elsewhere: Callable[[], None]) -> None:
    """Whoever reads it: a search, a worker of `analyse` here or on a node, what plays games for training."""
    chosen = SearchOptions(net=str(file))
    name = chosen.read_network().name
    replaced(file)
    elsewhere()
    there = pickle.loads(pickle.dumps(chosen))
    arena = Arena(workers=1, hash_mb=1)
    settings = WorkerSettings(hash_mb=1, options=there)
    for read in (
        there.read_network,
        lambda: write_search(arena, chess.Board(), Limits(depth=1), there),
        lambda: PositionWorker(settings),
        lambda: read_by_a_process(settings),
        options_of("modern", str(file), name).read_network,
    ):
        with pytest.raises(
            psearch.PsearchError, match=rf"used\.net.* was replaced: it is \w+ now, and was {name} when"
        ):
            read()


def read_by_a_process(settings: WorkerSettings) -> None:
    with make_pool(1, settings) as pool:
        while not pool.wait(60.0):
            pass


def test_a_relative_path_is_one_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    chosen = SearchOptions(net=file.name)
    monkeypatch.chdir("/")
    assert chosen.net == str(file)


def test_positions_are_all_evaluated_by_one_network(file: Path) -> None:
    """The file is replaced as soon as the first result is there: the others are by the same network."""

    def results(change: Callable[[], None]) -> list[object]:
        found: list[object] = []
        limit = chess.engine.Limit(nodes=3_000)
        with psearch.analyse_many(
            BENCH_POSITIONS[:12], limit, workers=1, reproducible=True, net=file, hash_mb=1
        ) as many:
            for result in many:
                found.append((result.error, result.bestmove, result.score, result.nodes))
                if len(found) == 1:
                    change()
        return found

    assert results(lambda: None) == results(lambda: replaced(file))


def test_uci_keeps_a_network_until_it_is_named_again(file: Path) -> None:
    notes: list[str] = []
    values, resources = OptionValues(), Resources(Notices(notes.append))

    def name() -> str:
        resources.settle(values)
        return resources.search_options(values).read_network().name

    values.set("EvalFile", str(file))
    before = name()
    replaced(file)
    assert name() == before
    values.set("EvalFile", str(file))
    assert name() != before
    file.unlink()
    assert name() != default_network().name
    values.set("EvalFile", str(file))
    assert name() == default_network().name
    assert len(notes) == 1 and "cannot read the network" in notes[0]


def test_bad_files_are_one_line(tmp_path: Path, run) -> None:
    bad = tmp_path / "bad.net"
    bad.write_bytes(b"psearch network\n" + bytes(100))
    suite = tmp_path / "suite.epd"
    suite.write_text(f"{chess.Board().epd()} bm e4;\n")
    for words in (["search", "startpos"], ["bench"], ["--stats", "startpos"], ["analyse", str(suite)]):
        for path in (bad, tmp_path / "missing"):
            status, out, err = run(*words, "--net", str(path))
            assert status == 2 and not out, (words, status, out)
            assert err.count("\n") == 1 and "network" in err, err
    with pytest.raises(psearch.PsearchError, match="cannot use the network"):
        psearch.Engine(net=bad)
    with pytest.raises(psearch.PsearchError, match="cannot read the network"):
        psearch.Engine(net=tmp_path / "missing")
    status, _, err = run("search", "--pruning", "sound", "--evaluation", "net", "startpos")
    assert status == 2 and "network=0" in err


def test_the_network_is_named(run) -> None:
    _, out, _ = run("version")
    assert default_network().name in out


def test_uci_evaluates_by_the_network_that_was_named_last(tmp_path: Path) -> None:
    """`eval` does not wait for `isready`, and tells of a file that cannot be read."""
    record = default_network().record.copy()
    record["unit"] *= 3
    file = tmp_path / "three.net"
    file.write_bytes(encoded(record, {}))
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    values = OptionValues()
    player = Player(said.put, values)
    board = chess.Board()
    board.push_san("e4")

    def value() -> str:
        player.evaluate(board)
        while "evaluation" not in (line := said.get(timeout=120)):
            notes.append(line)
        return line

    notes: list[str] = []
    try:
        own = value()
        values.set("EvalFile", str(file))
        assert value() != own
        values.set("EvalFile", "")
        assert value() == own
        values.set("EvalFile", str(tmp_path / "none.net"))
        assert value() == own and "cannot read the network" in notes[-1]
    finally:
        player.close()
