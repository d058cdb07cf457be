"""A split policy from a file: searched by processes, however they are started, and in virtual time."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import chess
import pytest
from paths import DATA, REPOSITORY
from positions import KIWIPETE

from psearch.arena.arena import Arena
from psearch.lab.studies.speedup_study import measure
from psearch.options import SearchOptions, kernels_of
from psearch.processes import pool
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Limits, PsearchError
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels
from psearch.searcher.notices import Notices
from psearch.searcher.searcher import Searcher, Size, search_here
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator, VirtualSample
from psearch.text.epd_text import SuitePosition
from psearch_core.toolchain.kernel_sets import STANDARD

FILE = REPOSITORY / "docs" / "examples" / "my_policy.py"
OPTIONS = SearchOptions(policy=str(FILE))
EVERY_HOOK = SearchOptions(policy=str(DATA / "plug_ins" / "every_hook.py"))


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_processes_get_it_though_its_file_is_another_by_now(tmp_path: Path) -> None:
    """By the fork server, which has not loaded it."""
    file = tmp_path / "short_lived.py"
    file.write_text(FILE.read_text().replace("LARGE = 5", "LARGE = 6"))
    options = SearchOptions(policy=str(file))
    mine = opened("fork", options)
    for edited in (lambda: file.write_text("x = 1\n"), file.unlink):
        edited()
        assert opened("forkserver", options) == mine


def test_where_no_process_can_be_had_none_of_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It might crash this process, or keep it for ever; one worker searches the same tree without."""
    with Supervisor(1, 1, "fork", kernels=OPTIONS.kernels) as supervisor:

        def refuse(*arguments: object) -> None:
            raise OSError(11, "no process")

        monkeypatch.setattr(pool, "launch", refuse)
        supervisor.pool.workers[0].kill()
        supervisor.pool.workers[0].join(60)
        result = supervisor.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), OPTIONS))
        assert any("this process searches alone" in note for note in result.notes)
        assert supervisor.arena.kernels == STANDARD
        opens = int(supervisor.arena.worker[0]["counters"]["opens"])
        monkeypatch.undo()
        supervisor.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), OPTIONS))
        assert supervisor.arena.kernels == OPTIONS.kernels
    assert opens == opened("inline", SearchOptions())[0]


def test_the_last_resort_of_all_does_without_it(tmp_path: Path) -> None:
    file = tmp_path / "never_compiled.py"
    file.write_text("it is not run\n")
    options = SearchOptions(policy=str(file))
    assert search_here(SearchRequest(chess.Board(KIWIPETE), Limits(depth=4), options)).depth == 4


def test_what_the_system_refuses_leaves_workers_that_run_it() -> None:
    """They were those of the policy before, which search nothing for this one."""
    told: list[str] = []
    with Searcher(Notices(told.append)) as searcher:
        searcher.settle(Size(1, 1))
        searcher.settle(Size(1, 1 << 30, kernels=OPTIONS.kernels))
        assert len(told) == 1 and "continuing with Threads 1 and Hash 1" in told[0]
        result = searcher.supervisor.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=4), OPTIONS))
        assert result.depth == 4
        assert searcher.supervisor.arena.kernels == OPTIONS.kernels


def test_kernels_that_cannot_be_had_cost_no_worker(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("x = 1\n")
    wrong = Size(1, 1, kernels=kernels_of(str(file)))
    with Searcher(Notices(print)).start(Size(1, 1)) as searcher:
        before = searcher.supervisor
        with pytest.raises(PsearchError, match="it replaces nothing"):
            searcher.start(wrong)
        assert searcher.supervisor is before and before.is_usable


def test_workers_that_take_the_place_of_others_run_it_too() -> None:
    with Supervisor(1, 1, "fork", kernels=OPTIONS.kernels) as supervisor:
        supervisor.pool.workers[0].kill()
        supervisor.pool.workers[0].join(60)
        supervisor.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), OPTIONS))
        assert int(supervisor.arena.worker[0]["counters"]["opens"]) == opened("inline")[0]


@pytest.mark.parametrize(("there", "asked"), [(OPTIONS, SearchOptions()), (SearchOptions(), OPTIONS)])
def test_workers_with_other_kernels_are_not_asked(there: SearchOptions, asked: SearchOptions) -> None:
    request = SearchRequest(chess.Board(KIWIPETE), Limits(depth=1), asked)
    with Supervisor(1, 1, "fork", kernels=there.kernels) as supervisor, pytest.raises(PsearchError, match="its own"):
        supervisor.search(request)


# -- memory of its own ----------------------------------------------------------------------------------------------


def test_workers_share_as_many_words_as_the_file_says() -> None:
    kernels = EVERY_HOOK.kernels
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


def test_searches_in_virtual_time_have_as_many_words_as_their_file_says() -> None:
    """One after the other, in the same memory."""
    arena = Arena(1, 1)
    try:
        for words in (100, 3, 0):
            arena.use_kernels(replace(OPTIONS.kernels, words=words), SEARCH)
            assert len(arena.plug_in) == int(arena.context_array[0]["plug_in_words"]) == max(1, words)
    finally:
        arena.close()


@pytest.mark.parametrize("line", ["WORDS = 4", "WORDS: int = 4  # of 64 bits", "WORDS=4\r"])
def test_the_size_is_read_however_its_line_is_written(line: str, tmp_path: Path) -> None:
    """Also from a file that Python's parser gives up."""
    file = tmp_path / "large.py"
    file.write_text(f"{line}\nx = {'-' * 100_000}1\n")
    assert kernels_of(str(file)).words == 4


@pytest.mark.parametrize("words", ["-1", "1 << 40", "'3'", "True"])
def test_a_size_that_will_not_do_is_told_with_its_line(words: str, tmp_path: Path) -> None:
    file = tmp_path / "greedy.py"
    file.write_text(f"\nWORDS = {words}\n")
    with pytest.raises(PsearchError) as raised:
        kernels_of(str(file))
    assert str(raised.value) == f"{file}:2: WORDS must be a whole number from 0 to 131072"


def test_what_its_kernels_write_is_there_in_every_process() -> None:
    with Supervisor(1, 1, "fork", kernels=EVERY_HOOK.kernels) as supervisor:
        counts = []
        for _ in range(2):  # the second search begins with zeros
            supervisor.forget()
            supervisor.search(SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), EVERY_HOOK))
            counts.append(supervisor.arena.plug_in.tolist())
            assert counts[-1][2] > int(supervisor.arena.worker[0]["counters"]["opens"]) > 0
    assert counts[0] == counts[1]
    assert counts[0][:2] == [0, 0]


# -- options ---------------------------------------------------------------------------------------------------------


def test_options_keep_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("# first\n")
    options = SearchOptions(policy=str(file))
    file.write_text("# second\n")
    assert replace(options, split_depth=3).kernels == options.kernels
    assert SearchOptions(policy=str(file)).kernels != options.kernels
    assert replace(options, policy="ybw").kernels == STANDARD


@pytest.mark.slow
def test_studies_search_with_what_they_have_read(tmp_path: Path) -> None:
    file = tmp_path / "studied.py"
    file.write_text(FILE.read_text().replace("LARGE = 5", "LARGE = 8"))
    kernels = {str(file): kernels_of(str(file))}
    load_kernels(kernels[str(file)].group(SEARCH))
    file.write_text("x = 1\n")
    suite = [SuitePosition("kiwipete", chess.Board(KIWIPETE))]
    (sample,) = measure(suite, [1], [str(file)], 0, 1, 1, depth=3, kernels=kernels)
    assert sample.policy == str(file)


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("gone.py", "cannot read the policy 'gone.py': No such file or directory"),
        ("/", "cannot read the policy '/': it is no regular file"),
        ("/dev/zero", "cannot read the policy '/dev/zero': it is no regular file"),
        ("nosuch", "policy must be one of serial, "),
        ("two\nlines.py", "the path of a policy must have only printable characters, not 'two\\nlines.py'"),
    ],
)
def test_what_is_no_policy_is_one_line(policy: str, wanted: str) -> None:
    with pytest.raises(PsearchError) as raised:
        kernels_of(policy)
    assert str(raised.value).startswith(wanted)


def test_an_installed_package_may_declare_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "eager").mkdir()
    for name in ("__init__", "policy"):
        (tmp_path / "eager" / f"{name}.py").write_text("raise AssertionError('it is not run to be found')\n")
    declared = tmp_path / "eager-1.0.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: eager\nVersion: 1.0\n")
    groups = "[psearch.policies]\neager-test = eager.policy\n[psearch.rules]\neager-rules = eager.policy\n"
    (declared / "entry_points.txt").write_text(groups)
    monkeypatch.syspath_prepend(tmp_path)
    kernels = SearchOptions(policy="eager-test").kernels
    assert (kernels.file, kernels.module) == (str(tmp_path / "eager" / "policy.py"), "eager.policy")
    assert SearchOptions(with_="eager-rules").kernels == kernels
    with pytest.raises(PsearchError, match=r"file must be such as my_rule\.py, or a name .*, not 'eager-test'"):
        SearchOptions(with_="eager-test")


def test_a_file_may_have_every_worker_search_a_root_of_its_own() -> None:
    mine, own = (
        simulated(4, replace(options, split_depth=3)) for options in (EVERY_HOOK, SearchOptions(policy="lazy"))
    )
    assert mine.splits == 0
    assert mine.nodes == own.nodes


def test_a_policy_of_the_package_may_be_written_as_a_file() -> None:
    mine, own = (simulated(8, replace(options, split_depth=2)) for options in (EVERY_HOOK, SearchOptions(policy="ybw")))
    assert own.splits > 0
    assert replace(mine, policy="ybw") == own
