"""Who may talk to the server: this machine's user, by the address that was printed, from the page that it opened.

A browser lets every page of the web send requests to 127.0.0.1. So each request must name this server as its host
(names that others have made point here do not pass), must show the token, which only the printed address has, and a
WebSocket must come from a page of this server. What is answered may load nothing from elsewhere, and run nothing that
is not a file of the package.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable

Headers = Iterable[tuple[bytes, bytes]]
"""Headers of a request as ASGI has them: names in lower case."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # the pieces are in chessground's style sheets
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SAFE_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every answer."""
_TOKEN_BYTES = 24
_FIRST_LOOK_S = 60.0
"""How long the address that a browser is started with is good for, once."""


class Access:
    """Knows the port and the token. port: where the server listens on 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._once: str | None = None
        self._once_until = 0.0
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        if port == 80:  # which browsers leave out
            self._hosts |= {"127.0.0.1", "localhost"}

    @property
    def address(self) -> str:
        """What the user opens. Good as long as the server runs."""
        return f"http://127.0.0.1:{self.port}/?token={self._token}"

    def address_for_once(self) -> str:
        """Return the address for the command line of a browser, which everybody on the machine can read: good for one
        request."""
        self._once = secrets.token_urlsafe(_TOKEN_BYTES)
        self._once_until = time.monotonic() + _FIRST_LOOK_S
        return f"http://127.0.0.1:{self.port}/?token={self._once}"

    @property
    def cookie(self) -> str:
        """What a page that came with the token is given. Ports share their cookies, so the name has the port."""
        return f"{self._cookie_name}={self._token}; Path=/; HttpOnly; SameSite=Strict"

    @property
    def _cookie_name(self) -> str:
        return f"psearch-{self.port}"

    def is_host(self, headers: Headers) -> bool:
        """Tell whether the request is for this server, by the one name or the other."""
        return _only(headers, b"host") in self._hosts

    def is_origin(self, headers: Headers) -> bool:
        """Tell whether a page of this server asks."""
        return _only(headers, b"origin").removeprefix("http://") in self._hosts

    def takes(self, token: str) -> bool:
        """Tell whether the address had the token."""
        if secrets.compare_digest(token.encode(), self._token.encode()):
            return True
        once, self._once = self._once, None
        if once is None or time.monotonic() > self._once_until:
            return False
        if secrets.compare_digest(token.encode(), once.encode()):
            return True
        self._once = once
        return False

    def knows(self, headers: Headers) -> bool:
        """Tell whether the request has the cookie of a page that came with the token."""
        wanted = f"{self._cookie_name}={self._token}".encode()
        cookies = b"; ".join(value for key, value in headers if key == b"cookie").split(b"; ")
        # compared as they are: other programs on 127.0.0.1 have theirs, which need not be well-formed
        return any([secrets.compare_digest(cookie, wanted) for cookie in cookies])


def _only(headers: Headers, name: bytes) -> str:
    """The header that a request must have once; else nothing."""
    values = [value.decode("latin-1") for key, value in headers if key == name]
    return values[0] if len(values) == 1 else ""
