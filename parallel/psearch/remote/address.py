"""What `--on` may be, whether Ray can be used there, and why a cluster cannot be had."""

from __future__ import annotations

import re
import socket
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
    """Return the address in full. name: what the caller calls it. Raises PsearchError for what is no address, and where
    Ray is missing or too old."""
    word = text.strip()
    if word not in (AUTO, LOCAL):
        host, port = _host_and_port(word, name)
        host = f"[{host}]" if ":" in host else host
        word = f"{CLIENT * word.startswith(CLIENT)}{host}:{port}"
    _check_ray()
    return word


def check_reachable(address: str) -> None:
    """Raise PsearchError when nothing listens at a `cluster_address`. Waits 5 s, or as long as the resolver does."""
    if address in (AUTO, LOCAL):
        return
    try:
        socket.create_connection(_host_and_port(address), _REACH_S).close()
    except OSError as error:
        obstacle = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise PsearchError(f"no Ray cluster can be reached at {address}: {obstacle}") from None


def explain(text: str, address: str) -> str:
    """Return one line for what Ray says when it cannot connect."""
    if "AuthToken" in text or "uthentication" in text:
        return f"the Ray cluster at {address} wants another token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as there"
    if "Could not find any running Ray instance" in text:
        return "no Ray cluster runs on this machine: `ray start --head` begins one"
    return f"no Ray cluster can be had at {address}: {' '.join(text.split())[:300]}"


def _host_and_port(address: str, name: str = "") -> tuple[str, int]:
    is_client = address.startswith(CLIENT)
    form = re.fullmatch(r"(\[[0-9A-Fa-f:.%a-z]+\]|[^\s\[\]:/@]+)(?::([0-9]{1,5}))?", address.removeprefix(CLIENT))
    port = int(form[2] or _CLIENT_PORT * is_client) if form is not None else 0
    if form is None or not 0 < port < 2**16:
        raise PsearchError(f"{name}{address}: neither auto nor local, nor HOST:PORT or ray://HOST[:PORT]")
    return form[1].strip("[]"), port


def _check_ray() -> None:
    """Look at what is installed, without importing any of it."""
    try:
        version = metadata.version("ray")
    except metadata.PackageNotFoundError:
        raise PsearchError(f"several machines need Ray, which is not installed: {_INSTALL}") from None
    numbers = tuple(map(int, re.findall(r"[0-9]+", version)[:2]))
    if numbers < _OLDEST_RAY:
        oldest = ".".join(map(str, _OLDEST_RAY))
        raise PsearchError(f"Ray {version} is too old, {oldest} or later is needed: {_INSTALL}")
