"""The record of switches and margins: modes, texts, limits."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pruning_probes import with_only

from psearch_core.records import pruning_dtype
from psearch_core.records import pruning_record as declaration
from psearch_core.records.pruning_record import (
    AEL,
    MODERN,
    MODES,
    PARAMETERS,
    PLAIN,
    Pruning,
    parse_pruning,
    pruning_text,
)
from psearch_core.techniques import TECHNIQUE_NAMES


def test_every_parameter_has_a_meaning_and_every_default_is_allowed() -> None:
    assert list(PARAMETERS) == [field.name for field in fields(Pruning) if field.name != "sound_gates"]
    for mode, pruning in MODES.items():
        for name, (meaning, least, most) in PARAMETERS.items():
            assert meaning and least <= getattr(pruning, name) <= most, (mode, name)


def test_the_record_has_the_parameters_in_their_order() -> None:
    assert list(pruning_dtype.names or ()) == [*(field.name for field in fields(Pruning)), "reductions"]


def test_a_value_for_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AssertionError, match="moderm"):
        declaration._switch("a slip of the pen", moderm=1)


def test_plain_leaves_nothing_out() -> None:
    on = [name for name in TECHNIQUE_NAMES if getattr(PLAIN, name, False)]
    # extending checks leaves nothing out; the others go with futility and the null move
    assert on == ["quiet_shortcut", "null_verify", "check_extension"]


def test_ael_is_heinz() -> None:
    expected = with_only(
        futility=1,
        futility_margin=300,
        extended_futility=1,
        extended_futility_margin=500,
        limited_razoring=1,
        limited_razoring_margin=900,
        futility_by_material=1,
        null_move=1,
        null_adaptive=1,
        null_verify=0,
        table_in_quiescence=1,
    )
    assert expected == AEL


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "pruning must begin with one of"),
        ("none", "pruning must begin with one of"),
        ("lmr=0", "pruning must begin with one of"),
        ("Modern", "pruning must begin with one of"),
        ("modern,", "no pruning parameter is called ''"),
        ("modern,speed=1", "no pruning parameter is called 'speed'"),
        ("modern,reductions=1", "no pruning parameter is called 'reductions'"),
        ("modern,lmr", "must be a whole number from 0 to 1, not ''"),
        ("modern,lmr=", "must be a whole number from 0 to 1, not ''"),
        ("modern,lmr=1.5", "must be a whole number from 0 to 1, not '1.5'"),
        ("modern,lmr=2", "must be a whole number from 0 to 1, not '2'"),
        ("modern,lmr=1=1", "must be a whole number from 0 to 1, not '1=1'"),
        ("modern,lmr=\u0661", "must be a whole number"),
        ("modern,check_extension=3", "from 0 to 2"),
        ("modern,lmr_divisor=0", "from 1 to"),
        ("modern,null_eval_divisor=-1", "from 1 to"),
        ("modern,probcut_depth=3", "from 4 to"),
        ("modern,razoring_margin=1000000", "from -999999 to 999999"),
        ("modern,reverse_futility_margin=-1", "from 0 to 999999"),
        ("modern,singular_margin=101", "from 0 to 100"),
        ("modern," + "x" * 1000, "no pruning parameter is called"),
        ("modern\n,lmr=\x1b[31m", "must be a whole number"),
    ],
)
def test_bad_texts_get_one_line(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_pruning(text)
    line = str(caught.value)
    assert complaint in line and "\n" not in line and "\x1b" not in line and len(line) < 200


@given(
    mode=st.sampled_from(list(MODES)),
    changes=st.dictionaries(st.sampled_from(list(PARAMETERS)), st.integers(-999_999, 999_999), max_size=4),
)
@settings(max_examples=200, deadline=None)
def test_text_and_record_are_the_same(mode: str, changes: dict[str, int]) -> None:
    allowed = {name: min(max(value, PARAMETERS[name].least), PARAMETERS[name].most) for name, value in changes.items()}
    if any(allowed.get(name, getattr(MODES[mode], name)) for name in ("sound", "sound_delta")):
        allowed |= {"table_in_quiescence": 0, "network": 0}  # refused otherwise
    pruning = parse_pruning(", ".join([mode, *(f"{name}={value}" for name, value in allowed.items())]))
    assert pruning == replace(MODES[mode], **allowed)
    assert parse_pruning(pruning_text(pruning)) == pruning
    record = pruning.record()
    assert all(int(record[name]) == getattr(pruning, name) for name in PARAMETERS)
    assert (record["reductions"] >= 0).all()


def test_reductions_follow_the_formula() -> None:
    record = MODERN.record()
    for depth in (1, 2, 3, 8, 20, 63):
        for number in (1, 2, 5, 30, 63):
            plies = MODERN.lmr_base / 100 + math.log(depth) * math.log(number) / (MODERN.lmr_divisor / 100)
            assert int(record["reductions"][depth, number]) == round(256 * plies)
    extreme = parse_pruning("modern,lmr_divisor=1,lmr_base=999999").record()
    assert extreme["reductions"].max() == 64 * 256, "and does not overflow"
