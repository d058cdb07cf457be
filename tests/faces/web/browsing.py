"""The page in a real browser: Playwright's Python drives Chromium, which the system must have.

With PSEARCH_SCREENSHOTS set, the pictures of docs/guides/web.md are written there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paths import REPOSITORY

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
COMMAND = Path(sys.executable).with_name("psearch")
PICTURES = REPOSITORY / "docs" / "guides" / "web"
WIDTHS = (320, 375, 414, 560, 600, 700, 812, 900, 1024, 1170, 1366, 1920)
WIDE, NARROW = {"width": 1600, "height": 900}, {"width": 375, "height": 760}
MORPHY = (
    '[White "Morphy"]\n[Black "Allies"]\n[Result "1-0"]\n\n'
    "1. e4 e5 2. Nf3 d6 3. d4 Bg4 4. dxe5 Bxf3 5. Qxf3 dxe5 6. Bc4 Nf6 7. Qb3 Qe7 8. Nc3 c6 9. Bg5 b5 10. Nxb5 cxb5 "
    "11. Bxb5+ Nbd7 12. O-O-O Rd8 13. Rxd7 Rxd7 14. Rd1 Qe6 15. Bxd7+ Nxd7 16. Qb8+ Nxb8 17. Rd8# 1-0\n"
)
MOST_LATENCY_MS = 50
SPARE = 5
"""Machines of others, and those with other work, are that much slower before a test fails."""


class Server:
    def __init__(self, *more: str) -> None:
        self.began = time.monotonic()
        words = ["serve", "--no-browser", "--port", "0", "--threads", "2", "--hash", "16", *more]
        self.process = subprocess.Popen([COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.process.stdout.close()
        self.process.stdout = None
        if not self.address:
            raise AssertionError(self.process.communicate()[1])

    def interrupt(self) -> tuple[int, str]:
        """Ctrl-C: the exit status, and what stands on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said

    def kill(self) -> None:
        """May be called twice, and when it has ended."""
        self.process.kill()
        if not self.process.stderr.closed:
            self.process.communicate()


@contextlib.contextmanager
def opened(browser: Any, server: Server, **context: Any) -> Iterator[Any]:
    """A tab in which nothing may go wrong, unless its server ends."""
    made = browser.new_context(**{"viewport": WIDE, "color_scheme": "light", **context})
    found = made.new_page()
    wrong: list[str] = []
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    found.on("request", lambda request: wrong.append(request.url) if "//127.0.0.1" not in request.url else None)
    found.goto(server.address)
    found.wait_for_selector("cg-board piece")
    until(found, "document.documentElement.dataset.engine === 'ready'", 60)
    until(found, "document.querySelector('#said').textContent !== ''")  # the position is there
    yield found
    made.close()
    assert server.process.poll() is not None or not [text for text in wrong if not text.startswith("data:")]


def until(page: Any, expression: str, seconds: float = 60) -> None:
    """Wait until something is so on the page. (Playwright's own way needs `eval`, which the page's policy forbids.)"""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        time.sleep(0.02)


def centre(page: Any, square: str) -> tuple[float, float]:
    box = page.locator("cg-board").bounding_box()
    size = box["width"] / 8
    return box["x"] + (ord(square[0]) - ord("a") + 0.5) * size, box["y"] + (8 - int(square[1]) + 0.5) * size


def click_move(page: Any, origin: str, target: str) -> None:
    page.mouse.click(*centre(page, origin))
    page.mouse.click(*centre(page, target))


def moves(page: Any) -> list[str]:
    """The moves in the list, without their numbers."""
    return [re.sub(r"^\d+\.+ ", "", text).partition(" ")[0] for text in page.locator("#moves .move").all_inner_texts()]


def wait_for_moves(page: Any, count: int, seconds: float = 60) -> None:
    until(page, f"document.querySelectorAll('#moves .move').length === {count}", seconds)


def wait_for_position(page: Any, move: str) -> None:
    """Until pieces may be moved on: the position after a move comes a little later than its place in the list."""
    until(page, f"document.querySelector('#said').textContent === '{move}'")


def load(page: Any, pgn: str, count: int) -> None:
    page.click("#tab-game")
    page.fill("#pgn", pgn)
    page.click("#pgn-form button[type=submit]")
    wait_for_moves(page, count)


def set_up(page: Any, fen: str, pieces: int) -> None:
    page.click("#tab-position")
    page.fill("#fen", fen)
    page.click("#fen-form button[type=submit]")
    until(page, f"document.querySelectorAll('cg-board piece').length === {pieces}")
    page.evaluate("scrollTo(0, 0)")


def paste(page: Any, text: str) -> None:
    page.evaluate(
        """(text) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text", text);
            document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
        }""",
        text,
    )


def start_game(page: Any) -> None:
    page.click("#tab-play")
    page.select_option("#clock", "none+0.5")
    page.click("#start-game")
    until(page, says("play-state", "Your move"))


def resign(page: Any) -> None:
    page.click("#resign")
    until(page, says("play-state", "You resigned"))


def analyse(page: Any, depth: int = 6) -> None:
    page.click("#analyse")
    until(page, f"parseInt(document.querySelector('#depth').textContent) >= {depth}")


def says(name: str, text: str) -> str:
    return f"document.querySelector('#{name}').textContent === {json.dumps(text)}"


def picture(page: Any, name: str) -> None:
    """Take a picture for the guide."""
    if os.environ.get("PSEARCH_SCREENSHOTS"):
        PICTURES.mkdir(exist_ok=True)
        time.sleep(0.5)  # pieces arrive
        page.screenshot(path=PICTURES / f"{name}.png")


def press(page: Any, square: str, right: float, down: float) -> None:
    """A click, or a tap where there are touches, at these shares of the square's width and height."""
    box = page.locator("cg-board").bounding_box()
    size = box["width"] / 8
    x, y = ord(square[0]) - ord("a") + right, 8 - int(square[1]) + down
    touches = page.evaluate("navigator.maxTouchPoints") > 0
    (page.touchscreen.tap if touches else page.mouse.click)(box["x"] + x * size, box["y"] + y * size)
