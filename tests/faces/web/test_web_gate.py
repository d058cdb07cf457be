"""Who may talk to the server."""

from __future__ import annotations

import pytest

from psearch.faces.web.gate import Gate

PORT = 8960


@pytest.fixture
def gate() -> Gate:
    return Gate(PORT)


def token_of(address: str) -> str:
    return address.partition("?token=")[2]


def test_the_token_is_long_and_another_each_time(gate: Gate) -> None:
    assert len(token_of(gate.address)) >= 32
    assert token_of(gate.address) != token_of(Gate(PORT).address)


def test_only_the_token_is_taken(gate: Gate) -> None:
    token = token_of(gate.address)
    assert gate.takes(token)
    assert gate.takes(token)  # as often as the user likes
    for other in ("", token[:-1], token + "a", token.swapcase(), "é"):
        assert not gate.takes(other)


def test_the_address_for_a_browser_is_good_once(gate: Gate) -> None:
    once = token_of(gate.address_for_once())
    assert not gate.takes("something else")
    assert gate.takes(once)
    assert not gate.takes(once)


def test_that_address_does_not_last(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    once = token_of(gate.address_for_once())
    monkeypatch.setattr("psearch.faces.web.gate._FIRST_LOOK_S", 0.0)
    late = token_of(gate.address_for_once())
    assert not gate.takes(once)
    assert not gate.takes(late)


@pytest.mark.parametrize("host", [b"127.0.0.1:8960", b"localhost:8960"])
def test_its_own_names(gate: Gate, host: bytes) -> None:
    assert gate.is_host([(b"host", host)])
    assert gate.is_origin([(b"origin", b"http://" + host)])


@pytest.mark.parametrize(
    "host",
    [b"", b"127.0.0.1", b"127.0.0.1:8961", b"evil.example", b"evil.example:8960", b"127.0.0.1:8960.evil.com"],
)
def test_other_names(gate: Gate, host: bytes) -> None:
    assert not gate.is_host([(b"host", host)])
    assert not gate.is_origin([(b"origin", b"http://" + host)])


def test_names_must_be_there_once(gate: Gate) -> None:
    good = (b"host", b"127.0.0.1:8960")
    assert not gate.is_host([])
    assert not gate.is_host([good, (b"host", b"evil.example")])
    assert not gate.is_origin([(b"origin", b"null")])
    assert not gate.is_origin([(b"origin", b"https://127.0.0.1:8960")])


def test_the_cookie(gate: Gate) -> None:
    pair, _, rest = gate.cookie.partition("; ")
    assert "HttpOnly" in rest and "SameSite=Strict" in rest
    assert gate.knows([(b"cookie", pair.encode())])
    assert gate.knows([(b"cookie", b"other=1; " + pair.encode())])
    assert not gate.knows([])
    assert not gate.knows([(b"cookie", pair.encode()[:-1])])
    assert not gate.knows([(b"cookie", b"psearch-1=" + pair.encode().partition(b"=")[2])])
    assert not Gate(PORT).knows([(b"cookie", pair.encode())])  # that of a server that ran here before


@pytest.mark.parametrize(
    "others",
    [
        'prefs={"theme": "dark"}',
        "version=1",
        "flag",
        'a="x y"; b=1 2',
        "",
        "=",
        "psearch-8960=stale",
        "a=\xff",
        "$Path=/",
    ],
)
def test_cookies_of_other_programs_do_no_harm(gate: Gate, others: str) -> None:
    """A browser sends those of every port of 127.0.0.1."""
    pair = gate.cookie.partition("; ")[0]
    for cookie in (f"{others}; {pair}", f"{pair}; {others}", f"{others}; {pair}; {others}"):
        assert gate.knows([(b"cookie", cookie.encode("latin-1"))]), cookie
    assert gate.knows([(b"cookie", others.encode("latin-1")), (b"cookie", pair.encode())])
    assert not gate.knows([(b"cookie", others.encode("latin-1"))])


def test_port_80_has_no_number() -> None:
    assert Gate(80).is_host([(b"host", b"127.0.0.1")])
