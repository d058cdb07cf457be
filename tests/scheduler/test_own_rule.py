"""Pruning rules, reductions and evaluations from a file: what becomes of the tree, the counters and the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import chess
import pytest
from paths import DATA, REPOSITORY
from positions import KIWIPETE, MIDDLE_GAME

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.bench import BENCH_NODES, run_bench
from psearch.lab.studies.pruning_counts import collect, stats_table
from psearch.options import RULE_HOOKS, SearchOptions
from psearch.processes import pool
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.processes.worker_main import work_alone
from psearch.results import Limits, PsearchError
from psearch.scheduler.scheduler_entries import SEARCH, load_kernels
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator
from psearch_core.chess.search import decisions
from psearch_core.constants import MATE_IN_MAX_PLY
from psearch_core.records.pruning_record import MODES
from psearch_core.toolchain.jit import Kernel
from psearch_core.toolchain.kernel_sets import STANDARD, hooks_of

FILE = str(REPOSITORY / "docs" / "examples" / "my_rule.py")
POLICY_FILE = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
EVERY_HOOK = str(DATA / "plug_ins" / "every_hook.py")
NO_MOVE_IS_GOOD, WORTH, WORTH_MORE = 1, 2, 3


def serial(with_: str, **others: object) -> SearchOptions:
    return replace(SearchOptions(policy="serial", with_=with_), **others)  # type: ignore[arg-type]


def arena_after(options: SearchOptions, depth: int = 7, fen: str = KIWIPETE, rule: int = 0, number: int = 0) -> Arena:
    """The arena in which one worker has searched; rule, number: the words of `every_hook.py`."""
    load_kernels(options.kernels.group(SEARCH))
    arena = Arena(1, 4, kernels=options.kernels)
    write_search(arena, chess.Board(fen), Limits(depth=depth), options)
    if rule:
        arena.plug_in[:2] = rule, number
    work_alone(arena)
    return arena


def nodes(options: SearchOptions, depth: int = 7, fen: str = KIWIPETE) -> int:
    arena = arena_after(options, depth, fen)
    try:
        return int(arena.worker[0]["nodes"])
    finally:
        arena.close()


def test_stand_ins_that_only_forward_change_nothing() -> None:
    options = serial(EVERY_HOOK)
    assert set(options.kernels.hooks.split()) > RULE_HOOKS
    load_kernels(options.kernels.group(SEARCH))
    assert run_bench(options=options)[0] == BENCH_NODES


def test_the_hooks_are_those_of_the_decisions() -> None:
    assert {name for name, one in vars(decisions).items() if isinstance(one, Kernel) and one.is_hook} == RULE_HOOKS


def test_a_rule_changes_the_tree_the_same_way_every_time() -> None:
    mine = nodes(serial(FILE), depth=10)
    assert mine != nodes(SearchOptions(policy="serial"), depth=10)
    assert mine == nodes(serial(FILE), depth=10)


def test_a_policy_by_name_goes_with_it() -> None:
    def sample(policy: str) -> tuple[int, int]:
        simulator = Simulator(4, 1, Costs())
        try:
            found = simulator.search("", chess.Board(KIWIPETE), 7, SearchOptions(policy=policy, with_=FILE))
            assert found.pruning == "modern with my_rule.py"
            return found.nodes, found.splits
        finally:
            simulator.close()

    assert sample("ybw") != sample("calibrated")


def test_two_workers_have_it_and_count_together() -> None:
    options = SearchOptions(with_=FILE)
    with Supervisor(2, 4, kernels=options.kernels) as supervisor:
        result = supervisor.search(SearchRequest(chess.Board(MIDDLE_GAME), Limits(depth=10), options))
        counted = collect(supervisor.arena)
    assert result.depth == 10
    mine = counted["techniques"][-1]
    assert mine["name"] == "my_rule.py" and mine["tried"] > mine["pruned"] > 0


def test_what_a_file_counts_is_the_last_row() -> None:
    arena = arena_after(serial(EVERY_HOOK), depth=4, rule=NO_MOVE_IS_GOOD)
    counted = collect(arena)
    arena.close()
    name, tried, pruned = (counted["techniques"][-1][field] for field in ("name", "tried", "pruned"))
    assert (name, pruned) == ("every_hook.py", 0) and tried > 0
    assert [line.split()[:3] for line in stats_table(counted).split("\n") if line.startswith(name)] == [
        [name, f"{tried:,}", "0"]
    ]
    usual = arena_after(SearchOptions(policy="serial"), depth=4)
    assert collect(usual)["techniques"][-1]["name"] == "see_quiescence"
    usual.close()


@pytest.mark.parametrize("network", [0, 1])
def test_an_evaluation_may_be_another(network: int) -> None:
    """All positions have one value here: a root is worth it, and a term is added to what the package says."""
    options = serial(EVERY_HOOK, pruning=replace(MODES["plain"], network=network))

    def score(rule: int, number: int) -> int:
        arena = arena_after(options, 1, "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", rule, number)
        try:
            return int(arena.header[0]["score"])
        finally:
            arena.close()

    assert score(WORTH, -123) == 123
    assert score(WORTH_MORE, -40) == score(0, 0) + 40


@pytest.mark.parametrize("value", [1 << 40, -(1 << 40), 31_990, -31_990])
def test_an_evaluation_beyond_all_scores_is_no_mate(value: int) -> None:
    arena = arena_after(serial(EVERY_HOOK, pruning=MODES["plain"]), depth=2, rule=WORTH, number=value)
    assert abs(int(arena.header[0]["score"])) < MATE_IN_MAX_PLY
    assert int(arena.header[0]["best_move"])
    arena.close()


def test_a_rule_that_leaves_out_everything_still_finds_a_mate_and_a_move() -> None:
    arena = arena_after(serial(EVERY_HOOK), depth=5, rule=NO_MOVE_IS_GOOD)
    assert int(arena.header[0]["best_move"]) and abs(int(arena.header[0]["score"])) < 5_000
    arena.close()
    mate_in_1 = "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"
    mate = arena_after(serial(EVERY_HOOK), 3, mate_in_1, rule=NO_MOVE_IS_GOOD)
    usual = arena_after(SearchOptions(policy="serial"), 3, mate_in_1)
    assert mate.header[0]["score"] == usual.header[0]["score"], "no move of the root is left out"
    mate.close()
    usual.close()


def test_sound_pruning_is_refused_with_rules(tmp_path: Path) -> None:
    other = tmp_path / "mine.py"
    other.write_text("from psearch.own_rule import evaluation_of as e, replaces as r\n@r(e)\ndef f(ctx, wk, pos): ...")
    for file in (EVERY_HOOK, str(other)):
        with pytest.raises(PsearchError, match="it cannot be used with a file's evaluation_of"):
            SearchOptions(with_=file, pruning=MODES["sound"])
        with pytest.raises(PsearchError, match="it cannot be used with a file's evaluation_of"):
            SearchOptions(policy=file, pruning=MODES["sound"])
    assert SearchOptions(policy=POLICY_FILE, pruning=MODES["sound"]).kernels.file == POLICY_FILE


@pytest.mark.parametrize("text", [b"", b"def f(:", b"\xff\xfe", b"(" * 100_000, b"@replaces\ndef f(): ...", b"\0"])
def test_a_text_that_replaces_nothing(text: bytes) -> None:
    assert hooks_of(text) == ""


def test_kernels_are_of_one_file() -> None:
    with pytest.raises(PsearchError, match=r"cannot be used together: put both into one file$"):
        SearchOptions(policy=POLICY_FILE, with_=FILE)
    assert SearchOptions(policy=POLICY_FILE, with_=POLICY_FILE).kernels == SearchOptions(policy=POLICY_FILE).kernels
    assert SearchOptions(policy="ybw", with_=FILE).standard() == SearchOptions(policy="ybw")
    with pytest.raises(PsearchError, match=r"cannot read the file 'gone\.py': No such file"):
        SearchOptions(with_="gone.py")


def test_one_file_may_have_rules_and_a_policy() -> None:
    options = SearchOptions(with_=EVERY_HOOK)
    with Supervisor(2, 4, kernels=options.kernels) as supervisor:
        assert supervisor.search(SearchRequest(chess.Board(), Limits(depth=8), options)).depth == 8
        assert supervisor.arena.plug_in[2] > 0


def test_what_other_kernels_left_in_the_table_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's kernels, used when no process can be had, read nothing of others, and others nothing of theirs."""
    options = SearchOptions(with_=FILE)
    request = SearchRequest(chess.Board(KIWIPETE), Limits(depth=6), options)

    def refuse(*arguments: object) -> None:
        raise OSError(11, "no process")

    with Supervisor(1, 1, "fork", kernels=options.kernels) as supervisor:
        first = supervisor.search(request)
        monkeypatch.setattr(pool, "launch", refuse)
        supervisor.pool.workers[0].kill()
        supervisor.pool.workers[0].join(60)
        alone = supervisor.search(request)
        assert supervisor.arena.kernels == STANDARD
        assert any("this process searches alone" in note for note in alone.notes)
        monkeypatch.undo()
        assert supervisor.search(request).depth == 6
        assert supervisor.arena.kernels == options.kernels
    assert alone.nodes > first.nodes // 2, "as many as from an empty table, about"


def test_an_arena_that_changes_its_kernels_forgets_its_table() -> None:
    arena = arena_after(SearchOptions(policy="serial"))
    assert arena.tt.any()
    arena.use_kernels(STANDARD, SEARCH)
    assert arena.tt.any()
    arena.use_kernels(SearchOptions(with_=FILE).kernels, SEARCH)
    assert not arena.tt.any()
    arena.close()


def test_a_table_goes_over_to_workers_with_the_same_kernels_only() -> None:
    for kernels, is_kept in ((STANDARD, True), (SearchOptions(with_=FILE).kernels, False)):
        arena = arena_after(SearchOptions(policy="serial"))
        renewed = arena.renew(1, kernels)
        assert bool(renewed.tt.any()) == is_kept
        renewed.close()
        arena.close()
