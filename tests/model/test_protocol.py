"""The protocol by which workers share a tree, in every order of its steps: the properties of `outcomes.py` hold, and
each of the changes of `mutations.py` breaks one of them."""

from __future__ import annotations

from dataclasses import replace

import mutations
import outcomes
import pytest
import steps
from explorer import Setting, explore
from protocol import INFINITE

ONE = Setting(workers=1, moves=2, levels=2, stacks=2)
TWO = Setting(workers=2, moves=2, levels=1, stacks=2)
TWICE = replace(TWO, iterations=2)
THREE = Setting(workers=3, moves=2, levels=1, stacks=3)
CHAIN = Setting(workers=2, moves=2, levels=2, stacks=3)
WIDE = replace(THREE, moves=3)
DEFERRED = replace(TWO, defers=True)
TWO_ROOTS = Setting(workers=2, moves=2, levels=1, stacks=3, roots=2, stops=False, betas=(INFINITE,))
ROOTS_AND_A_HELPER = replace(TWO_ROOTS, workers=3)
SMALL = (TWO, TWICE, DEFERRED, THREE, TWO_ROOTS, WIDE, CHAIN, ROOTS_AND_A_HELPER)
"""Settings in which a change is looked for, the cheapest first."""
OF_MUTATIONS = {steps.J_EARLY_TAKE, steps.J_LATE_READ, steps.J_LATE_WRITE, steps.S_ALPHA_AGAIN, steps.N_UNLOCKED_TAKE}
OF_MUTATIONS |= {steps.C_UNLOCKED_REPORT, steps.C_EARLY_EPOCH, steps.L_EARLY_FREE, steps.L_LATE_READ}
OF_MUTATIONS |= {steps.L_LATE_WRITE, steps.L_LATE_PARK, steps.X_LATE_READ, steps.X_LATE_WRITE}
HARMFUL = [number for number in mutations.NAMES if number not in mutations.HARMLESS and number != mutations.NOTHING]


def name_of(number: int) -> str:
    return mutations.NAMES[number].lower()


def check(setting: Setting, least_states: int) -> None:
    """Everything holds, and the model is not so small by mistake."""
    explored = explore(setting)
    assert explored.outcome == outcomes.DONE, str(explored)
    assert explored.states >= least_states


@pytest.mark.parametrize(
    ("setting", "least_states"),
    [
        (ONE, 2_000),
        (TWO, 5_000),
        (DEFERRED, 8_000),
        (THREE, 23_000),
        (replace(THREE, stacks=4, iterations=2), 57_000),
        (WIDE, 209_000),
        (replace(CHAIN, stops=False), 72_000),
        (replace(TWO_ROOTS, stops=True), 115_000),
        (ROOTS_AND_A_HELPER, 400_000),
    ],
)
def test_every_order_of_steps(setting: Setting, least_states: int) -> None:
    check(setting, least_states)


def test_every_step_is_made() -> None:
    """All that can be seen of the program happens in the model; mutations have steps of their own."""
    seen = explore(replace(CHAIN, stops=False)).seen | explore(DEFERRED).seen
    own = {name for number, name in steps.NAMES.items() if number < steps.LOCAL and number not in OF_MUTATIONS}
    assert own <= seen


@pytest.mark.parametrize("number", HARMFUL, ids=name_of)
def test_a_mutation_is_noticed(number: int) -> None:
    for setting in SMALL:
        if number in mutations.OF_ROOTS and setting.roots == 1:
            continue
        explored = explore(replace(setting, mutation=number))
        if explored.outcome != outcomes.DONE:
            assert explored.trace or explored.outcome in (outcomes.DEADLOCK, outcomes.LIVELOCK)
            return
    pytest.fail(f"nothing is wrong with {name_of(number)}")


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("setting", "least_states"),
    [
        pytest.param(Setting(workers=2, moves=3, levels=2, stacks=3), 4_500_000, id="2 workers, 3 moves, 2 levels"),
        pytest.param(Setting(workers=3, moves=2, levels=2, stacks=4, stops=False), 2_000_000, id="3 workers, 2 moves"),
        pytest.param(Setting(workers=2, moves=2, levels=2, stacks=3, values=3), 1_250_000, id="three values"),
        pytest.param(replace(CHAIN, defers=True, stops=False), 315_000, id="moves put off, 2 levels"),
        pytest.param(replace(TWO_ROOTS, levels=2), 650_000, id="two roots, 2 levels"),
        pytest.param(
            replace(TWO_ROOTS, iterations=2, stops=True, betas=(INFINITE, 1)), 490_000, id="two roots, two windows"
        ),
        pytest.param(replace(ROOTS_AND_A_HELPER, stacks=4), 520_000, id="two roots, a helper, a stack more"),
        pytest.param(replace(ROOTS_AND_A_HELPER, stops=True), 2_700_000, id="two roots, a helper, stopped"),
    ],
)
def test_every_order_of_steps_of_larger_trees(setting: Setting, least_states: int) -> None:
    check(setting, least_states)


@pytest.mark.slow
@pytest.mark.parametrize("number", mutations.HARMLESS, ids=name_of)
def test_a_harmless_change_is_harmless(number: int) -> None:
    """The program does this without need."""
    for setting in (*SMALL, replace(CHAIN, values=3, stops=False)):
        check(replace(setting, mutation=number), 2_000)
