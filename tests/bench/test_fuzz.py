"""Fuzzing: thousands of mutated inputs, properties of made-up ones, and that the fuzzer sees what goes wrong.

The 100,000 cases of a long run: `python bench/study/fuzz.py`, docs/measurements/README.md.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from random import Random

import pytest
from fuzz import Fuzzer
from fuzz_targets import WORDS, Target, kernel_targets, mutated, targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paths import BENCH

from psearch.results import PsearchError

TARGETS = targets()
PATIENCE = 20
"""Tests run beside others."""


@pytest.mark.slow
def test_thousands_of_mutated_inputs() -> None:
    fuzzer = Fuzzer(seed=13, chosen=TARGETS, patience=PATIENCE)
    for number in range(2_000):
        fuzzer.run(number)
    assert fuzzer.failures == []
    assert set(fuzzer.done) == {target.name for target in TARGETS}
    assert sum(fuzzer.accepted.values()) > 500, "some must be good, or only refusals are tested"


@pytest.mark.parametrize("name", [target.name for target in TARGETS if target.is_text])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pieces_in_any_order(name: str, data: st.DataObject) -> None:
    """Read or refused: of pieces of good inputs, words of the formats, and anything."""
    target = next(target for target in TARGETS if target.name == name)
    pieces = [piece for seed in target.seeds[:20] for piece in seed.decode("utf-8", "replace").split(" ")]
    piece = st.one_of(st.sampled_from(pieces), st.sampled_from(WORDS), st.text(max_size=3))
    text = data.draw(st.sampled_from(("", " ", "\n"))).join(data.draw(st.lists(piece, max_size=30)))
    try:
        target.run(text.encode("utf-8", "surrogatepass"))
    except PsearchError as error:
        assert "\n" not in str(error)


@pytest.mark.slow
def test_mutated_kernels_are_compiled_or_refused() -> None:
    fuzzer = Fuzzer(seed=3, chosen=kernel_targets(), patience=PATIENCE)
    for number in range(12):
        fuzzer.run(number)
    assert fuzzer.failures == []


def fail(data: bytes) -> None:
    raise IndexError("list index out of range")


def leave(data: bytes) -> None:
    sys.exit(1)


def hang(data: bytes) -> None:
    time.sleep(60)


def talk(data: bytes) -> None:
    raise PsearchError("a\nb")


def fill(data: bytes) -> None:
    bytearray(b"x" * 400_000_000)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (fail, "IndexError: 'list index out of range' test_fuzz.py:"),
        (leave, "SystemExit"),
        (hang, "bytes took too long"),
        (talk, "several lines"),
        (fill, "MiB"),
    ],
)
def test_what_goes_wrong_is_seen(run: Callable[[bytes], None], reason: str) -> None:
    fuzzer = Fuzzer(seed=1, chosen=[Target("bad", run, [b"seed"])], patience=0.01 if run is hang else PATIENCE)
    failure = fuzzer.run(0)
    assert reason in failure.reason
    assert fuzzer.failures == [failure]


def test_what_is_refused_is_no_failure() -> None:
    def refuse(data: bytes) -> None:
        raise PsearchError("no")

    assert Fuzzer(seed=1, chosen=[Target("good", refuse, [b"seed"])]).run(0) is None


def test_a_case_depends_on_seed_and_number_alone() -> None:
    first, second = (Fuzzer(seed=5, chosen=TARGETS) for _ in range(2))
    second.run(0)
    assert [first.case(number) for number in range(50)] == [second.case(number) for number in range(50)]
    assert first.case(1) != Fuzzer(seed=6, chosen=TARGETS).case(1)


def test_mutations_change_the_text() -> None:
    dice = Random(1)
    changed = [mutated("rnbqkbnr/8/8/8 w - -", ["other text"], dice) for _ in range(200)]
    assert len(set(changed)) > 150
    assert max(map(len, changed)) <= 1 << 16


def test_the_program() -> None:
    command = [sys.executable, str(BENCH / "study" / "fuzz.py"), "--cases", "20", "--targets", "fen,limit"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert "seed 1: 20 cases in " in done.stdout
    assert ", 0 failed; " in done.stdout
