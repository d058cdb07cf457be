"""Time: budgets never exceed the clock, and the decision to stop follows the search."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import chess
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from psearch.processes.time_manager import Budget, GameClock, LagMeter, TimeManager, allot, fixed_time, time_manager

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
        used_s = allot(GameClock(clock_s, increment_s, left), overhead_s).hard_s + overhead_s
        if clock_s > overhead_s + 0.002:
            assert used_s <= clock_s + 1e-9
            clock_s -= used_s
        clock_s += increment_s


@given(st.floats(0.002, 20_000.0), st.floats(0.0, 300.0), st.floats(0.0, 5.0))
def test_in_sudden_death_no_move_takes_more_than_half(time_s: float, increment_s: float, overhead_s: float) -> None:
    """The clock therefore never runs dry, whatever comes."""
    assert allot(GameClock(time_s, increment_s), overhead_s).hard_s <= max(0.001, (time_s - overhead_s) / 2) + 1e-9


def clock_after(
    time_s: float,
    overhead_s: float,
    lag_s: Callable[[], float],
    *,
    increment_s: float = 0.0,
    period: int | None = None,
    meter: LagMeter | None = None,
    takes_all: bool = True,
    moves: int = 200,
) -> list[float]:
    """Return what is left of the clock after each of so many moves, each of which takes its hard limit, or its soft
    one, and some lag. period: moves until the next time control, which adds as much time again."""
    left = []
    clock_s = time_s
    for number in range(moves):
        to_go = None if period is None else period - number % period
        clock: GameClock | None = GameClock(clock_s, increment_s, to_go)
        if meter is not None:
            clock = meter.read(clock, overhead_s)
        assert clock is not None
        budget = allot(clock, overhead_s)
        used_s = budget.hard_s if takes_all else budget.soft_s
        if meter is not None:
            meter.played(TimeManager(budget, meant_s=used_s), used_s)
        clock_s -= used_s + lag_s()
        left.append(clock_s)
        clock_s += increment_s + (time_s if to_go == 1 else 0.0)
    return left


@settings(max_examples=400)
@given(
    st.floats(1.0, 3600.0),
    st.sampled_from([0.0, 0.0, 0.001, 0.01, 0.1, 2.0, 30.0]),
    st.floats(0.0, 0.1) | st.floats(0.0, 5.0) | st.just(1000.0),
    st.floats(0.0, 1.0),
    st.none() | st.integers(1, 100),
    st.booleans(),
    st.integers(0, 1 << 30),
)
@example(4.0, 0.0, 0.015, 1.0, None, False, 0)
@example(60.0, 0.0, 0.2, 1.0, None, False, 0)
@example(60.0, 0.0, 1.0, 0.2, None, False, 0)
@example(1.0, 0.0, 0.03, 0.06, None, False, 0)
@example(1.0, 0.0, 0.0, 0.0, None, True, 0)
def test_no_game_of_200_moves_is_lost_by_lag(
    time_s: float, increment_s: float, overhead_s: float, share: float, period: int | None, takes_all: bool, seed: int
) -> None:
    """Each move has a true lag of up to the overhead; 200 moves at once would fit on the clock."""
    most_s = share * overhead_s
    moves = 200 if period is None else period
    assume(time_s >= overhead_s * share + moves * max(0.0, most_s + 0.001 - increment_s) + 0.001)
    dice = random.Random(seed)
    lag = (lambda: most_s) if seed % 2 == 0 else (lambda: dice.uniform(0.0, most_s))
    left = clock_after(time_s, overhead_s, lag, increment_s=increment_s, period=period, takes_all=takes_all)
    assert min(left) >= -1e-9


@settings(max_examples=200)
@given(st.floats(1.0, 3600.0), st.floats(0.0, 0.05), st.booleans(), st.integers(0, 1 << 30))
@example(4.0, 0.014, True, 0)
@example(10.0, 0.03, True, 1)
def test_no_game_is_lost_by_a_lag_that_is_measured(time_s: float, lag_s: float, takes_all: bool, seed: int) -> None:
    """The lag may be greater than the overhead, up to 50 ms."""
    assume(time_s >= 0.1 + 250 * (lag_s + 0.001))
    dice = random.Random(seed)
    lag = (lambda: lag_s) if seed % 2 == 0 else (lambda: dice.uniform(0.8 * lag_s, 1.2 * lag_s))
    assert min(clock_after(time_s, 0.03, lag, meter=LagMeter(), takes_all=takes_all)) >= -1e-9


@pytest.mark.parametrize(("time_s", "least"), [(3.0, 0.4), (10.0, 0.7), (60.0, 0.8), (600.0, 0.8)])
def test_time_is_used_when_moves_turn_out_to_cost_little(time_s: float, least: float) -> None:
    """A game has sixty moves, not two hundred."""
    left = clock_after(time_s, 0.03, lambda: 0.002, meter=LagMeter(), takes_all=False, moves=60)
    assert time_s - left[-1] > least * time_s


@pytest.mark.parametrize(("time_s", "increment_s"), [(5.0, 0.05), (60.0, 0.6), (180.0, 2.0), (1.0, 0.03)])
@pytest.mark.parametrize("lag_s", [None, 0.0, 0.02])
def test_increments_pay_for_the_lag(time_s: float, increment_s: float, lag_s: float | None) -> None:
    """No more than the lag of this move is therefore kept back, and what is left of the increment is spent."""
    budget = allot(GameClock(time_s, increment_s, lag_s=lag_s), 0.03)
    expected_s = 0.03 if lag_s is None else 1.25 * lag_s
    assert budget.soft_s == pytest.approx((time_s - 0.03) / 30 + 0.75 * (increment_s - expected_s))
    assert budget.hard_s == pytest.approx(min(4 * budget.soft_s, (time_s - 0.03) / 2))


@pytest.mark.parametrize(("time_s", "increment_s"), [(5.0, 0.05), (10.0, 0.1), (60.0, 0.6)])
def test_a_long_game_spends_its_increments(time_s: float, increment_s: float) -> None:
    """Where the lag is found to be less than the overhead, the difference is spent as well."""
    left = clock_after(
        time_s, 0.03, lambda: 0.002, meter=LagMeter(), increment_s=increment_s, takes_all=False, moves=120
    )
    assert left[-1] < 12 * increment_s


def test_a_time_control_keeps_back_little_more_than_before() -> None:
    for left in range(40, 0, -1):
        time_s = 60.0 * left / 40
        before_s = min((time_s - 0.03) / min(left, 30), 0.9 * (time_s - 0.03))
        assert allot(GameClock(time_s, 0.0, left), 0.03).soft_s == pytest.approx(before_s, rel=0.021)


def test_lag_is_what_the_clock_loses_beyond_what_was_meant() -> None:
    meter, clock = LagMeter(), GameClock(10.0, 0.1)
    manager = time_manager(clock, None, 20)
    read = meter.read(clock)
    assert read is not None and read.lag_s is None
    assert not manager.is_due(0.0)
    assert manager.is_due(1.6)  # woken late
    assert manager.meant_s == manager.budget.hard_s
    meter.played(manager, 1.6)
    read = meter.read(GameClock(10.1 - 1.61, 0.1))
    assert read is not None and read.lag_s == pytest.approx(0.05) and read.moves_played == 1  # no more at once
    meter.played(TimeManager(Budget()), 2.0)  # ended by itself: all was meant
    read = meter.read(GameClock(10.1 - 1.61 + 0.1 - 2.01, 0.1))
    assert read is not None and read.lag_s == pytest.approx((0.05 + 0.01) / 2) and read.moves_played == 2
    meter.played(TimeManager(Budget(), pondering=True), 2.0)  # was not played
    read = meter.read(GameClock(3.0, 0.1))
    assert read is not None and read.moves_played == 2
    meter.played(TimeManager(Budget()), 0.0)
    read = meter.read(GameClock(10.0, 0.1))  # another game
    assert read is not None and read.lag_s is None and read.moves_played == 0
    assert meter.read(None) is None


def test_news_that_ends_a_search_comes_in_time() -> None:
    made = manager([30] * 6)
    assert not made.is_due(0.6)
    made.iteration(E4, 30)
    assert made.is_due(0.7) and made.meant_s == 0.7  # settled: due at 0.55, which was not known then


def test_a_nearly_empty_clock_hardly_waits_for_the_first_iteration() -> None:
    assert allot(GameClock(0.0)).first_s == allot(GameClock(-1.0)).first_s == allot(GameClock(0.01)).first_s == 0.002
    assert allot(GameClock(0.03)).first_s == pytest.approx(0.003) and allot(GameClock(0.03)).is_tight
    assert allot(GameClock(0.1)).first_s == 0.01 and not allot(GameClock(0.1)).is_tight
    assert time_manager(GameClock(0.01), fixed_time(1.0), 20).budget.is_tight
    assert not fixed_time(0.001).is_tight


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


@pytest.mark.parametrize(
    ("overhead_s", "late_s", "kept_back_s"),
    [(0.03, 0.03, 0.03), (0.03, 0.004, 0.013), (0.03, 0.02, 0.03), (0.2, 0.004, 0.183), (0.2, 0.5, 0.2), (0.0, 0.5, 0)],
)
def test_a_fixed_time_keeps_back_what_answers_need(overhead_s: float, late_s: float, kept_back_s: float) -> None:
    assert fixed_time(1.0, overhead_s, late_s).hard_s == pytest.approx(1.0 - kept_back_s)


def test_delays_of_answers_are_remembered_for_a_while() -> None:
    meter = LagMeter()
    assert fixed_time(1.0, 0.03, meter.late_s) == fixed_time(1.0, 0.03)  # nothing is known yet
    first_s = meter.late_s
    meter.played(TimeManager(Budget()), 1.0)  # ended by itself
    assert meter.late_s == first_s
    ended = time_manager(None, fixed_time(0.1), 20)
    assert ended.is_due(0.08) and ended.meant_s == pytest.approx(0.07)
    meter.played(ended, 0.09)
    assert meter.late_s == pytest.approx(0.02)
    meter.played(ended, 0.09 + 0.5, 0.5)  # half a second went before the search began
    assert meter.late_s == pytest.approx(0.02)
    for _ in range(60):
        meter.played(ended, 0.074)
    assert meter.late_s == pytest.approx(0.004)


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


def test_a_move_with_most_of_the_nodes_gets_less_and_one_with_few_gets_more() -> None:
    scales = []
    for share in (0.99, 0.9, None, 0.7, 0.5, 0.1):
        made = manager([30, 40, 50])
        made.iteration(E4, 60, share)
        scales.append(made.scale)
    assert scales == sorted(scales) and len(set(scales)) >= 5
    assert scales[0] > 0.5 and scales[2] == 1.0 and scales[-1] < 2.0
    settled, unclear = manager([30] * 8), manager([30] * 8)
    settled.iteration(E4, 30, 0.98)
    unclear.iteration(E4, 30, 0.3)
    assert settled.is_due(0.5) and not unclear.is_due(0.7)


def test_with_one_move_there_is_nothing_to_think_about() -> None:
    assert manager([30], root_moves=1).is_due(0.0)
    assert not TimeManager(Budget(1.0, 5.0), 1).is_due(0.5)  # before the first iteration has ended


def test_trouble_holds_the_soft_limit_but_not_the_hard_one() -> None:
    made = manager([30, 30, 30])
    assert made.is_due(2.0)
    made.trouble()
    assert not made.is_due(4.9)
    assert made.is_due(5.0)
    made.iteration(E4, 25)
    assert made.is_due(2.0)


shares = st.none() | st.floats(0.0, 1.0)


@given(st.lists(st.tuples(st.sampled_from([E4, D4]), st.integers(-32_000, 32_000), shares), max_size=30))
def test_the_scale_is_bounded_and_the_hard_limit_kept(reports: list[tuple[chess.Move, int, float | None]]) -> None:
    made = TimeManager(Budget(1.0, 5.0), 20)
    for best, score, share in reports:
        made.iteration(best, score, share)
        assert 0.1 < made.scale <= 3.2 * 1.8
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


def test_a_hit_counts_from_when_it_came() -> None:
    """It may have come while the search was still in the queue."""
    made = TimeManager(Budget(1.0, 5.0), 20, pondering=True)
    made.ponderhit(-0.5)
    assert made.deadline_s() == 4.5
    assert made.is_due(4.6) and made.meant_s == 5.0


def test_without_limits_nothing_is_due() -> None:
    made = TimeManager(Budget(), 1)
    made.iteration(E4, 30)
    assert not made.is_due(1e9)
