"""Time: budgets never exceed the clock, and the decision to stop follows the search."""

from __future__ import annotations

import math

import chess
from hypothesis import example, given
from hypothesis import strategies as st

from psearch.processes.time_manager import Budget, GameClock, TimeManager, allot, fixed_time

E4 = chess.Move.from_uci("e2e4")
D4 = chess.Move.from_uci("d2d4")

times = st.floats(0.0, 20_000.0)
overheads = st.floats(0.0, 5.0)
clocks = st.builds(
    GameClock, time_s=times, increment_s=st.floats(0.0, 300.0), moves_to_go=st.none() | st.integers(-1, 100)
)


@given(clocks, overheads)
def test_a_budget_fits_on_the_clock(clock: GameClock, overhead_s: float) -> None:
    budget = allot(clock, overhead_s)
    assert 0 < budget.soft_s <= budget.hard_s < math.inf
    if clock.time_s > overhead_s + 0.002:
        assert budget.hard_s + overhead_s <= clock.time_s + 1e-9
    else:
        assert budget.hard_s <= 0.0011  # nothing is left: the first iteration is all


@given(st.floats(0.05, 5000.0), st.floats(0.0, 60.0), st.integers(1, 60), st.floats(0.0, 0.03))
def test_a_whole_control_is_played_without_losing_on_time(
    time_s: float, increment_s: float, moves: int, overhead_s: float
) -> None:
    """Even if every move takes its hard limit and all of the overhead."""
    clock_s = time_s
    for left in range(moves, 0, -1):
        budget = allot(GameClock(clock_s, increment_s, left), overhead_s)
        used_s = budget.hard_s + overhead_s
        if clock_s > overhead_s + 0.002:
            assert used_s <= clock_s + 1e-9
            clock_s -= used_s
        clock_s += increment_s


@given(st.floats(0.002, 20_000.0), st.floats(0.0, 300.0), st.floats(0.0, 5.0))
def test_in_sudden_death_no_move_takes_more_than_half(time_s: float, increment_s: float, overhead_s: float) -> None:
    """So the clock never runs dry, whatever comes."""
    assert allot(GameClock(time_s, increment_s), overhead_s).hard_s <= max(0.001, (time_s - overhead_s) / 2) + 1e-9


@given(clocks, st.floats(0.01, 100.0), overheads)
def test_more_time_means_no_smaller_budget(clock: GameClock, more_s: float, overhead_s: float) -> None:
    richer = GameClock(clock.time_s + more_s, clock.increment_s, clock.moves_to_go)
    less, more = allot(clock, overhead_s), allot(richer, overhead_s)
    assert more.soft_s >= less.soft_s - 1e-9
    assert more.hard_s >= less.hard_s - 1e-9


def test_how_the_clock_is_shared_out() -> None:
    assert 1.5 < allot(GameClock(60.0), 0.0).soft_s < 3.0
    assert allot(GameClock(60.0, 1.0), 0.0).soft_s > allot(GameClock(60.0), 0.0).soft_s + 0.5
    assert allot(GameClock(60.0, moves_to_go=10), 0.0).soft_s == 6.0
    assert allot(GameClock(60.0, moves_to_go=1), 0.0).soft_s == 54.0
    assert allot(GameClock(60.0, moves_to_go=1000), 0.0) == allot(GameClock(60.0), 0.0)


@given(st.floats(0.0, 1000.0), overheads)
@example(1e-5, 2e-9)  # less than the least time there is
def test_a_fixed_time_is_kept_and_used(movetime_s: float, overhead_s: float) -> None:
    budget = fixed_time(movetime_s, overhead_s)
    assert budget.soft_s == math.inf
    assert movetime_s / 2 <= budget.hard_s <= max(movetime_s, 0.001)
    if movetime_s > 2 * overhead_s:
        assert budget.hard_s + overhead_s <= max(movetime_s, 0.001) + 1e-9


def manager(scores: list[int], moves: list[chess.Move] | None = None, root_moves: int = 20) -> TimeManager:
    made = TimeManager(Budget(1.0, 5.0), root_moves)
    for number, score in enumerate(scores):
        made.iteration(moves[number] if moves else E4, score)
    return made


def test_a_falling_score_gets_more_time() -> None:
    steady, falling = manager([30, 32, 28, 31]), manager([30, 32, 28, -40])
    assert falling.scale > steady.scale
    assert not falling.is_due(1.5)
    assert steady.is_due(1.5)
    assert manager([30, 32, 28, 20]).scale < falling.scale


def test_an_unstable_move_gets_more_time_and_the_unrest_dies_away() -> None:
    unstable = manager([30, 30, 30, 30], [E4, D4, E4, D4])
    assert unstable.scale > manager([30, 30, 30, 30]).scale
    before = unstable.scale
    for _ in range(8):
        unstable.iteration(D4, 30)
    assert unstable.scale < 1.0 < before


def test_a_settled_move_and_a_found_mate_get_less() -> None:
    settled = manager([30] * 8)
    assert settled.scale < 0.7
    assert settled.is_due(0.7)
    assert manager([30, 31_990]).scale < settled.scale


def test_with_one_move_there_is_nothing_to_think_about() -> None:
    forced = manager([30], root_moves=1)
    assert forced.is_due(0.0)
    assert not TimeManager(Budget(1.0, 5.0), 1).is_due(0.5)  # before the first iteration has ended


def test_trouble_holds_the_soft_limit_but_not_the_hard_one() -> None:
    made = manager([30, 30, 30])
    assert made.is_due(2.0)
    made.trouble()
    assert not made.is_due(4.9)
    assert made.is_due(5.0)
    made.iteration(E4, 25)
    assert made.is_due(2.0)


@given(st.lists(st.tuples(st.sampled_from([E4, D4]), st.integers(-32_000, 32_000)), max_size=30))
def test_the_scale_is_bounded_and_the_hard_limit_kept(reports: list[tuple[chess.Move, int]]) -> None:
    made = TimeManager(Budget(1.0, 5.0), 20)
    for best, score in reports:
        made.iteration(best, score)
        assert 0.1 < made.scale <= 3.2
        assert made.is_due(5.0)
        assert not made.is_due(0.05)


def test_pondering_is_never_due_and_the_clock_runs_from_the_hit() -> None:
    made = TimeManager(Budget(1.0, 5.0), 20, pondering=True)
    made.iteration(E4, 30)
    assert not made.is_due(1000.0)
    assert made.deadline_s() == math.inf
    made.trouble()
    made.ponderhit(1000.0)
    assert made.deadline_s() == 1005.0
    assert not made.is_due(1004.0)
    assert made.is_due(1005.0)
    made.iteration(E4, 30)
    assert made.is_due(1000.1)  # what was thought before counts


def test_without_limits_nothing_is_due() -> None:
    made = TimeManager(Budget(), 1)
    made.iteration(E4, 30)
    assert not made.is_due(1e9)
