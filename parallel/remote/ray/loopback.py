"""Where Ray looks for the nodes of this machine, and where they listen: decided before Ray is imported.

Ray replaces 127.0.0.1 by the address by which this machine is seen from others, if there is one, both where a node
listens and where a program looks for it. A cluster for one command must not be seen, and one that listens on loopback
only would not be found. The switch, an environment variable, is Ray's for systems on which it has no clusters.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import MutableMapping
from pathlib import Path

from psearch.remote.ray.address import AUTO, CLIENT, LOCAL

_SWITCH = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_CURRENT = Path("/tmp/ray/ray_current_cluster")
"""where `ray start` notes the address"""
_REACH_S = 1.0


def stay_on_loopback(address: str, environment: MutableMapping[str, str] = os.environ) -> None:
    """Have Ray use loopback as it is, where that is right for this `cluster_address`. Not if the user has chosen."""
    if _SWITCH not in environment and (address == LOCAL or _is_on_loopback_only(address, environment)):
        environment[_SWITCH] = "0"


def _is_on_loopback_only(address: str, environment: MutableMapping[str, str]) -> bool:
    """Whether a head is named by loopback, and does not listen at this machine's other address."""
    if address == AUTO:
        address = environment.get("RAY_ADDRESS") or _noted()
    host, _, port = address.rpartition(":")
    if address.startswith(CLIENT) or not port.isdecimal() or not _is_loopback(host):
        return False
    outward = _outward_address()
    return _is_loopback(outward) or not _listens(outward, int(port))


def _noted() -> str:
    try:
        return _CURRENT.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _outward_address() -> str:
    """By which others see this machine; nothing is sent for that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("203.0.113.1", 9))  # an address of nobody (RFC 5737)
            return str(asking.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), _REACH_S).close()
    except OSError:
        return False
    return True
