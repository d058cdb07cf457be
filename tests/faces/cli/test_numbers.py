"""Numbers as arguments."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from psearch.faces.cli.arguments import decimal_number, duration, seconds, whole_number, worker_counts


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("+7", 7), ("-3", -3), ("007", 7)])
def test_whole_numbers(text: str, number: int) -> None:
    assert whole_number(-5, 10)(text) == number


@pytest.mark.parametrize("text", ["", "1_0", "٣", "1.0", "11", "-6", " 1", "1e1", "9" * 31])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="must be a whole number from -5 to 10, not "):
        whole_number(-5, 10)(text)


@pytest.mark.parametrize(("text", "number"), [("1", 1.0), (".5", 0.5), ("2.", 2.0), ("0.25", 0.25)])
def test_decimal_numbers(text: str, number: float) -> None:
    assert decimal_number(0, 2)(text) == number


@pytest.mark.parametrize("text", ["", ".", "nan", "inf", "1e0", "-0.5", "2.1", "1_0", "٣"])
def test_what_is_no_decimal_number(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="must be a number from 0 to 2, not "):
        decimal_number(0, 2)(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1500", 1500), ("5s", 5000), (".5s", 500), ("1.5s", 1500), ("500ms", 500), ("2m", 120_000), ("2min", 120_000)],
)
def test_times(text: str, milliseconds: int) -> None:
    """A number alone is milliseconds, or seconds where seconds are asked for."""
    assert duration(1, 10**6)(text) == (milliseconds, not text.isdigit())
    if not text.isdigit():
        assert seconds(0.01, 1000)(text) == milliseconds / 1000
    assert seconds(0.01, 10)("0.25") == 0.25
    assert duration(1, 10**7)("1h") == (3_600_000, True)


@pytest.mark.parametrize("text", ["", "s", "5 s", "5S", "1.5", "-5s", "1e3s", "5sec", "٣s", "nan", "0", "0.1ms", "2h"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"must be (a time like|from 1 to 1000000 milliseconds)"):
        duration(1, 10**6)(text)


@pytest.mark.parametrize("text", ["", "5x", "1ms", "1h", "11", "-1"])
def test_what_is_no_number_of_seconds(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"must be (a number )?from 0.01 to 10"):
        seconds(0.01, 10)(text)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("1", [1]),
        ("1,2,4", [1, 2, 4]),
        ("1,2,4,...,1024", [2**n for n in range(11)]),
        ("1,2,4,…,16", [1, 2, 4, 8, 16]),
        ("1, 2, ..., 8", [1, 2, 4, 8]),
        ("3,...,24,100", [3, 6, 12, 24, 100]),
        ("4,...,4", [4]),
        ("8,2,2", [2, 8]),
    ],
)
def test_worker_counts(text: str, counts: list[int]) -> None:
    assert worker_counts(text) == counts


@pytest.mark.parametrize(
    "text", ["", "0", "1025", "1,", "...", "1,...", "...,4", "1,...,...,8", "3,...,8", "8,...,2", "x", "1..8", "1-4"]
)
def test_bad_worker_counts(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        worker_counts(text)
