"""Ray takes loopback as it is where a cluster is this machine's alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from psearch.remote.ray import loopback
from psearch.remote.ray.loopback import stay_on_loopback

SWITCH = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@pytest.fixture
def head() -> Iterator[socket.socket]:
    """Something that listens on 127.0.0.1, and nowhere else."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def switched(address: str, **environment: str) -> bool:
    stay_on_loopback(address, environment)
    return environment.get(SWITCH) == "0"


def test_a_cluster_for_one_command_is_seen_by_nobody() -> None:
    assert switched("local")
    assert not switched("local", **{SWITCH: "1"}), "the user has chosen"


def test_a_head_on_loopback_only_is_looked_for_there(head: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    port = head.getsockname()[1]
    for outward in ("127.0.0.2", "203.0.113.9"):
        monkeypatch.setattr(loopback, "_outward_address", lambda outward=outward: outward)
        assert switched(f"127.0.0.1:{port}")
        assert switched("auto", RAY_ADDRESS=f"127.0.0.1:{port}")


def test_a_head_that_others_see_is_looked_for_where_they_do(
    head: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = head.getsockname()[1]
    monkeypatch.setattr(loopback, "_outward_address", lambda: "localhost.localdomain")
    monkeypatch.setattr(loopback, "_listens", lambda host, at: at == port)
    assert not switched(f"127.0.0.1:{port}")
    assert switched(f"127.0.0.1:{port + 1}")
    for address in (f"203.0.113.9:{port}", "ray://127.0.0.1:10001", f"head:{port}"):
        assert not switched(address)
