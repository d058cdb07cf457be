"""What `--on` may be, and whether it can be had at all: Ray installed, new enough, something there that listens."""

from __future__ import annotations

import importlib.util
import queue
import re
import socket
import threading
from importlib import metadata

from psearch.results import PsearchError

AUTO = "auto"
"""the cluster that this machine is a node of"""
LOCAL = "local"
"""a cluster of this machine alone, for one command"""
CLIENT = "ray://"
_CLIENT_PORT = 10001
_OLDEST_RAY = (2, 60)
"""the first with which this was tried; with 2.50.1 a test with a stopped process did not end"""
_REACH_S = 5.0
_INSTALL = "pip install 'ray[client]>=2.60'"


def cluster_address(text: str, name: str = "--on ") -> str:
    """Return the address in full. name: how whoever gave it calls it. Raises PsearchError for what is none, and where
    Ray is missing or too old."""
    word = text.strip()
    if word not in (AUTO, LOCAL):
        host, port = _host_and_port(word, name)
        host = f"[{host}]" if ":" in host else host
        word = f"{CLIENT * word.startswith(CLIENT)}{host}:{port}"
    _check_ray(word)
    return word


def check_reachable(address: str) -> None:
    """Raise PsearchError when nothing listens there; waits 5 s at most. For `cluster_address`es."""
    if address in (AUTO, LOCAL):
        return
    found: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    # in a thread of its own, for the resolver of names knows no time limit
    threading.Thread(target=lambda: found.put(_obstacle(*_host_and_port(address))), daemon=True).start()
    try:
        obstacle = found.get(timeout=_REACH_S)
    except queue.Empty:
        obstacle = "no answer"
    if obstacle is not None:
        raise PsearchError(f"no Ray cluster can be reached at {address}: {obstacle}")


def _obstacle(host: str, port: int) -> str | None:
    """Why nobody can be connected to there; None: there is somebody."""
    try:
        socket.create_connection((host, port), _REACH_S).close()
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return error.strerror or str(error)
    return None


def _host_and_port(address: str, name: str = "") -> tuple[str, int]:
    is_client = address.startswith(CLIENT)
    form = re.fullmatch(r"(\[[0-9A-Fa-f:.%a-z]+\]|[^\s\[\]:/@]+)(?::([0-9]{1,5}))?", address.removeprefix(CLIENT))
    port = int(form[2] or _CLIENT_PORT * is_client) if form is not None else 0
    if form is None or not 0 < port < 2**16:
        raise PsearchError(f"{name}{address}: neither auto nor local, nor HOST:PORT or ray://HOST[:PORT]")
    return form[1].strip("[]"), port


def _check_ray(address: str) -> None:
    """From what is installed, without importing any of it."""
    try:
        version = metadata.version("ray")
    except metadata.PackageNotFoundError:
        raise PsearchError(f"several machines need Ray, which is not installed: {_INSTALL}") from None
    numbers = tuple(map(int, re.findall(r"[0-9]+", version)[:2]))
    if numbers < _OLDEST_RAY:
        oldest = ".".join(map(str, _OLDEST_RAY))
        raise PsearchError(f"Ray {version} is too old, {oldest} or later is needed: {_INSTALL}")
    if address.startswith(CLIENT) and importlib.util.find_spec("grpc") is None:
        raise PsearchError(f"{CLIENT} needs Ray's client, which is not installed: {_INSTALL}")
