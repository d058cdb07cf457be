"""Who may talk to the server."""

from __future__ import annotations

import pytest

from psearch.faces.web.access import Access

PORT = 8960


@pytest.fixture
def access() -> Access:
    return Access(PORT)


def token_of(address: str) -> str:
    return address.partition("?token=")[2]


def test_the_token_is_long_and_another_each_time(access: Access) -> None:
    assert len(token_of(access.address)) >= 32
    assert token_of(access.address) != token_of(Access(PORT).address)


def test_only_the_token_is_taken(access: Access) -> None:
    token = token_of(access.address)
    assert access.takes(token)
    assert access.takes(token)  # as often as the user likes
    for other in ("", token[:-1], token + "a", token.swapcase(), "é"):
        assert not access.takes(other)


def test_the_address_for_a_browser_is_good_once(access: Access) -> None:
    once = token_of(access.address_for_once())
    assert not access.takes("something else")
    assert access.takes(once)
    assert not access.takes(once)


def test_that_address_does_not_last(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    once = token_of(access.address_for_once())
    monkeypatch.setattr("psearch.faces.web.access._FIRST_LOOK_S", 0.0)
    late = token_of(access.address_for_once())
    assert not access.takes(once)
    assert not access.takes(late)


@pytest.mark.parametrize("host", [b"127.0.0.1:8960", b"localhost:8960"])
def test_its_own_names(access: Access, host: bytes) -> None:
    assert access.is_host([(b"host", host)])
    assert access.is_origin([(b"origin", b"http://" + host)])


@pytest.mark.parametrize(
    "host",
    [b"", b"127.0.0.1", b"127.0.0.1:8961", b"evil.example", b"evil.example:8960", b"127.0.0.1:8960.evil.com"],
)
def test_other_names(access: Access, host: bytes) -> None:
    assert not access.is_host([(b"host", host)])
    assert not access.is_origin([(b"origin", b"http://" + host)])


def test_names_must_be_there_once(access: Access) -> None:
    good = (b"host", b"127.0.0.1:8960")
    assert not access.is_host([])
    assert not access.is_host([good, (b"host", b"evil.example")])
    assert not access.is_origin([(b"origin", b"null")])
    assert not access.is_origin([(b"origin", b"https://127.0.0.1:8960")])


def test_the_cookie(access: Access) -> None:
    pair, _, rest = access.cookie.partition("; ")
    assert "HttpOnly" in rest and "SameSite=Strict" in rest
    assert access.knows([(b"cookie", pair.encode())])
    assert access.knows([(b"cookie", b"other=1; " + pair.encode())])
    assert not access.knows([])
    assert not access.knows([(b"cookie", pair.encode()[:-1])])
    assert not access.knows([(b"cookie", b"psearch-1=" + pair.encode().partition(b"=")[2])])
    assert not Access(PORT).knows([(b"cookie", pair.encode())])  # that of a server that ran here before


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
def test_cookies_of_other_programs_do_no_harm(access: Access, others: str) -> None:
    """A browser sends those of every port of 127.0.0.1."""
    pair = access.cookie.partition("; ")[0]
    for cookie in (f"{others}; {pair}", f"{pair}; {others}", f"{others}; {pair}; {others}"):
        assert access.knows([(b"cookie", cookie.encode("latin-1"))]), cookie
    assert access.knows([(b"cookie", others.encode("latin-1")), (b"cookie", pair.encode())])
    assert not access.knows([(b"cookie", others.encode("latin-1"))])


def test_port_80_has_no_number() -> None:
    assert Access(80).is_host([(b"host", b"127.0.0.1")])
