"""Which network evaluates, and whether one does: from Python, the command line and UCI, for one and many workers."""

from __future__ import annotations

from pathlib import Path

import chess
import chess.engine
import pytest

import psearch
from psearch.core.chess.evaluation.network_file import decoded, default_network, encoded
from psearch.options import SearchOptions, network_named, pruning_named

FEN = "r1bqkb1r/pp2pppp/2np1n2/8/3NP3/2N5/PPP2PPP/R1BQKB1R w KQkq - 2 6"
LIMIT = chess.engine.Limit(depth=9)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of the same shape that says other things."""
    record = default_network().record.copy()
    record["out"] = record["out"] // 2
    path = tmp_path_factory.mktemp("nets") / "other.net"
    path.write_bytes(encoded(record, {"made by": "a test"}))
    return path


def nodes(threads: int = 1, **options: object) -> int:
    with psearch.Engine(threads=threads, hash_mb=4, **options) as engine:  # type: ignore[arg-type]
        return int(engine.analyse(chess.Board(FEN), LIMIT)["nodes"])


def test_modes_have_an_evaluation_of_their_own() -> None:
    assert pruning_named("modern").network == 1
    assert [pruning_named(mode).network for mode in ("plain", "sound", "ael")] == [0, 0, 0]
    assert pruning_named("modern", "classic").network == 0
    assert pruning_named("plain", "net").network == 1
    with pytest.raises(psearch.PsearchError, match="sound futility needs network=0"):
        pruning_named("sound", "net")
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
        third = count(EvalFile="", Evaluation="classic")
        assert len({first, second, third}) == 3
        assert count(Evaluation="auto") == first
        assert count(EvalFile=str(other)) == second


@pytest.mark.parametrize("threads", [2, 3])
def test_all_workers_evaluate_by_the_file(other: Path, threads: int) -> None:
    """With a network that says nothing at all, nobody finds more than nothing."""
    record = default_network().record.copy()
    record["out"], record["out_bias"] = 0, 0
    silent = other.with_name("silent.net")
    silent.write_bytes(encoded(record, {}))
    with psearch.Engine(threads=threads, hash_mb=4, net=silent, pruning="modern,correction=0") as engine:
        info = engine.analyse(chess.Board(FEN), chess.engine.Limit(depth=7))
        assert info["score"].relative == chess.engine.Cp(0)


def test_a_file_is_read_again_when_it_changes_and_may_vanish(other: Path) -> None:
    path = other.with_name("changing.net")
    data = other.read_bytes()
    path.write_bytes(data)
    first = network_named(str(path))
    assert network_named(str(path)) is first
    network = decoded(Path(default_network().path).read_bytes(), "")
    path.write_bytes(encoded(network.record, {"another": "one"}))
    second = network_named(str(path))
    assert second.name != first.name
    path.unlink()
    assert network_named(str(path)) is second


def test_bad_files_are_one_line(tmp_path: Path, run) -> None:
    bad = tmp_path / "bad.net"
    bad.write_bytes(b"psearch network\n" + bytes(100))
    suite = tmp_path / "suite.epd"
    suite.write_text(f"{chess.Board().epd()} bm e4;\n")
    for words in (["search", "startpos"], ["bench"], ["stats", "startpos"], ["analyse", str(suite)]):
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
