"""A split policy from a file: searched by processes, however they are started, and in virtual time."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import chess
import pytest
from paths import REPOSITORY
from positions import KIWIPETE

from psearch.arena.arena import Arena
from psearch.core.toolchain.kernel_sets import STANDARD
from psearch.options import SearchOptions, kernels_of_policy
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator, VirtualSample

FILE = REPOSITORY / "docs" / "examples" / "my_policy.py"
OPTIONS = SearchOptions(policy=str(FILE))
WHOLE_POLICY = """
from psearch.own_policy import *
from psearch.scheduler.policies.garms import child_type as garms_child_type
from psearch.scheduler.policies.garms import open_priority as garms_priority

@replaces(may_open)
def opens(ctx, node, ply):
    return node.moves_done >= 1

@replaces(open_priority)
def priority(ctx, node):
    return garms_priority(ctx, node)

@replaces(child_type)
def child(ctx, node, index, picked, stage):
    return garms_child_type(node.split_type, index, picked, stage)

@replaces(null_child_type)
def after_null(ctx, node):
    return CUT_NODE
"""


def simulated(workers: int, options: SearchOptions, depth: int = 7, validate: bool = False) -> VirtualSample:
    simulator = Simulator(workers, 1, Costs())
    try:
        return simulator.search("", chess.Board(KIWIPETE), depth, options, validate=validate)
    finally:
        simulator.close()


def opened(method: str, options: SearchOptions = OPTIONS) -> tuple[int, int]:
    """Nodes that one worker opens, though there is nobody to join them; and all that it searches."""
    with Supervisor(1, 1, method, kernels=options.kernels) as supervisor:
        supervisor.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), options))
        worker = supervisor.arena.worker[0]
        return int(worker["counters"]["opens"]), int(worker["nodes"])


def test_it_shares_the_work_in_another_way_than_the_default() -> None:
    mine, usual = (simulated(8, options) for options in (OPTIONS, SearchOptions()))
    assert mine.joins > 0
    assert (mine.nodes, mine.joins) != (usual.nodes, usual.joins)
    assert simulated(8, OPTIONS) == mine


def test_every_invariant_holds_under_it() -> None:
    assert simulated(3, OPTIONS, depth=4, validate=True).splits > 0


def test_one_worker_searches_the_same_tree_whatever_types_it_expects() -> None:
    """`my_policy.py` replaces `child_type`; what reduces moves is no policy's."""
    mine, usual = (simulated(1, options) for options in (OPTIONS, SearchOptions(policy="serial")))
    assert (mine.nodes, mine.score, mine.bestmove) == (usual.nodes, usual.score, usual.bestmove)


def test_every_process_runs_it_however_it_is_started() -> None:
    usual = opened("fork", SearchOptions())
    mine = opened("fork")
    assert mine[0] > usual[0]
    assert mine[1] == usual[1]
    assert opened("forkserver") == opened("inline") == mine


def test_workers_that_take_the_place_of_others_run_it_too() -> None:
    with Supervisor(1, 1, "fork", kernels=OPTIONS.kernels) as supervisor:
        supervisor.workers.pool.kill()
        supervisor.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), OPTIONS))
        assert int(supervisor.arena.worker[0]["counters"]["opens"]) == opened("inline")[0]


@pytest.mark.parametrize(("there", "asked"), [(OPTIONS, SearchOptions()), (SearchOptions(), OPTIONS)])
def test_workers_with_other_kernels_are_not_asked(there: SearchOptions, asked: SearchOptions) -> None:
    request = SearchRequest(chess.Board(KIWIPETE), Limits(depth=1), asked)
    with Supervisor(1, 1, "inline", kernels=there.kernels) as supervisor, pytest.raises(PsearchError, match="its own"):
        supervisor.search(request)


# -- memory of its own ----------------------------------------------------------------------------------------------

COUNTING = """
from psearch.own_policy import atomic_add, may_open, replaces, word

WORDS = 3

@replaces(may_open)
def opens(ctx, node, ply):
    atomic_add(word(ctx, 2), 1)
    return node.moves_done >= 1
"""


def test_workers_share_as_many_words_as_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "counting.py"
    file.write_text(COUNTING)
    kernels = kernels_of_policy(str(file))
    assert kernels.words == 3
    arena = Arena(1, 1, kernels=kernels)
    same = Arena.attach(**json.loads(json.dumps(arena.layout())), descriptors=[os.dup(d) for d in arena.descriptors()])
    try:
        arena.plug_in[:] = 1, 2, 3
        assert same.plug_in.tolist() == [1, 2, 3]
        assert same.kernels == kernels
        assert int(same.context_array[0]["plug_in_words"]) == 3
        assert int(same.context_array[0]["plug_in"]) == same.plug_in.ctypes.data
    finally:
        same.close()
        arena.close()


@pytest.mark.parametrize("words", ["-1", "1 << 40", "'3'", "True"])
def test_a_size_that_will_not_do_is_told_with_its_line(words: str, tmp_path: Path) -> None:
    file = tmp_path / "greedy.py"
    file.write_text(f"\nWORDS = {words}\n")
    with pytest.raises(PsearchError) as raised:
        kernels_of_policy(str(file))
    assert str(raised.value) == f"{file}:2: WORDS must be a whole number from 0 to 131072"


@pytest.mark.slow
def test_what_its_kernels_write_is_there_in_every_process(tmp_path: Path) -> None:
    file = tmp_path / "counting.py"
    file.write_text(COUNTING)
    options = SearchOptions(policy=str(file))
    with Supervisor(1, 1, "fork", kernels=options.kernels) as supervisor:
        counts = []
        for _ in range(2):  # the second search begins with zeros
            supervisor.forget()
            supervisor.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), options))
            counts.append(supervisor.arena.plug_in.tolist())
            assert counts[-1][2] > int(supervisor.arena.worker[0]["counters"]["opens"]) > 0
    assert counts[0] == counts[1]
    assert counts[0][:2] == [0, 0]
    assert simulated(1, options, depth=6).nodes > 0


# -- options ---------------------------------------------------------------------------------------------------------


def test_options_keep_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("# first\n")
    options = SearchOptions(policy=str(file))
    file.write_text("# second\n")
    assert replace(options, split_depth=3).kernels == options.kernels
    assert SearchOptions(policy=str(file)).kernels != options.kernels
    assert replace(options, policy="ybw").kernels == STANDARD


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("gone.py", "cannot read the policy 'gone.py': No such file or directory"),
        ("/", "cannot read the policy '/': Is a directory"),
        ("nosuch", "policy must be one of serial, "),
    ],
)
def test_what_is_no_policy_is_one_line(policy: str, wanted: str) -> None:
    with pytest.raises(PsearchError) as raised:
        kernels_of_policy(policy)
    assert str(raised.value).startswith(wanted)


def test_an_installed_package_may_declare_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "eager_policy.py").write_text("raise AssertionError('it is not run to be found')\n")
    declared = tmp_path / "eager-1.0.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: eager\nVersion: 1.0\n")
    (declared / "entry_points.txt").write_text("[psearch.policies]\neager-test = eager_policy\n")
    monkeypatch.syspath_prepend(tmp_path)
    kernels = SearchOptions(policy="eager-test").kernels
    assert (kernels.file, kernels.module) == (str(tmp_path / "eager_policy.py"), "eager_policy")


@pytest.mark.slow
def test_a_file_may_have_every_worker_search_a_root_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "alone.py"
    file.write_text(
        "from psearch.own_policy import replaces, skips_depth, splits_nothing\n"
        "from psearch.scheduler.policies.lazy import skips_depth as lazy_skips_depth\n"
        "@replaces(splits_nothing)\ndef alone(ctx):\n    return True\n"
        "@replaces(skips_depth)\ndef skips(ctx, worker, depth):\n    return lazy_skips_depth(worker, depth)\n"
    )
    mine, own = simulated(4, SearchOptions(policy=str(file))), simulated(4, SearchOptions(policy="lazy"))
    assert mine.splits == 0
    assert mine.nodes == own.nodes


@pytest.mark.slow
def test_a_policy_of_the_package_may_be_written_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "young_brothers.py"
    file.write_text(WHOLE_POLICY)
    mine, own = simulated(8, SearchOptions(policy=str(file))), simulated(8, SearchOptions(policy="ybw"))
    assert replace(mine, policy="ybw") == own
