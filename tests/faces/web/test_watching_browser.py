"""Workers and laboratory from end to end: `psearch serve`, real workers, a real browser.

With PSEARCH_SCREENSHOTS set, the pictures of docs/guides/web.md are written there.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paths import DATA
from test_web_browser import ARGUMENTS, CHROMIUM, NARROW, WIDE, Server, picture, playwright, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (apt-get install chromium)"),
]
TAKE_AWAY = str(DATA / "games" / "take_away.py")
ROWS = "document.querySelectorAll('[role=treeitem]').length"
PAINTED = """(() => {
    const canvas = document.querySelector("canvas.tracks");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 3; i < data.length; i += 4) count += data[i] > 200;
    return count;
})()"""


@pytest.fixture(scope="module")
def opened(kernels: None) -> Iterator[tuple[Any, Server]]:
    """A browser and a server."""
    server = Server()
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser, server
        browser.close()
    status, said = server.interrupt()
    assert status == 130 and "Traceback" not in said


@pytest.fixture
def page(opened: tuple[Any, Server]) -> Iterator[Any]:
    browser, server = opened
    context = browser.new_context(viewport=WIDE, color_scheme="light")
    found = context.new_page()
    wrong: list[str] = []
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("request", lambda request: wrong.append(request.url) if "//127.0.0.1" not in request.url else None)
    found.goto(server.address)
    found.wait_for_selector("cg-board piece")
    until(found, "document.documentElement.dataset.engine === 'ready'", 60)
    yield found
    context.close()
    assert not [text for text in wrong if not text.startswith("data:")]


def open_tab(page: Any, name: str) -> None:
    page.click(f"#tab-{name}")
    page.wait_for_selector(f"section.{name}")


def status(page: Any) -> str:
    return str(page.locator(".watch-bar .status").inner_text())


def test_workers_are_seen_moving(page: Any) -> None:
    page.click("#analyse")
    open_tab(page, "workers")
    until(page, "document.querySelector('.watch-bar .status').textContent.startsWith('searching')", 60)
    until(page, ROWS, 60)
    until(page, PAINTED + " > 5000")
    before = status(page)
    until(page, f"document.querySelector('.watch-bar .status').textContent !== {json.dumps(before)}")
    time.sleep(2)
    until(page, r"/\d/.test(document.querySelector('.curve output').innerText)")
    # pause, back, a node on the board
    page.locator(".tracks-root").focus()
    page.keyboard.press("Space")
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
        if page.evaluate(ROWS) > 1:
            break
    assert status(page).startswith("paused")
    stood = status(page)
    time.sleep(0.5)
    assert status(page) == stood
    page.get_by_role("treeitem").last.click()
    assert page.locator("#shown").is_visible()
    assert " node: " in page.locator("#shown-title").inner_text()
    picture(page, "workers")
    page.click("#hide-line")
    # what is not shown is not sent
    page.locator(".tracks-root").focus()
    page.keyboard.press("Space")
    until(page, "document.querySelector('.watch-bar .status').textContent.startsWith('searching')")
    page.click("#tab-analysis")
    page.click("#analyse")
    until(page, "document.querySelector('#analyse').textContent === 'Analyse'")


def test_a_search_that_ends_is_finished(page: Any) -> None:
    open_tab(page, "workers")
    page.click("#tab-analysis")
    page.click("#analyse")
    open_tab(page, "workers")
    until(page, "document.querySelector('.watch-bar .status').textContent.startsWith('searching')", 60)
    page.click("#tab-analysis")
    page.click("#analyse")
    open_tab(page, "workers")
    time.sleep(0.5)
    assert "error" not in page.locator("#notes").inner_text().lower()


def test_two_policies_are_compared(page: Any) -> None:
    open_tab(page, "laboratory")
    until(page, "!document.querySelector('.laboratory button[type=submit]').disabled")
    page.get_by_label("Virtual workers").select_option("16")
    page.get_by_role("button", name="Compare").click()
    until(page, "document.querySelectorAll('.laboratory canvas.tracks').length === 2", 120)
    text = page.locator(".laboratory .result").inner_text()
    assert "speedup" in text and "Were the predictions right?" in text
    assert page.locator(".reliability svg").count() == 2
    cut = "[...document.querySelectorAll('.laboratory .wide')].filter((table) => table.scrollWidth > table.clientWidth)"
    assert page.evaluate(f"{cut}.length") == 0
    assert "few positions" in text.lower()
    picture(page, "laboratory")
    page.reload()
    open_tab(page, "laboratory")
    until(page, "document.querySelectorAll('.laboratory canvas.tracks').length === 2", 60)
    page.set_viewport_size(NARROW)
    time.sleep(0.3)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def test_an_experiment_is_stopped(page: Any) -> None:
    open_tab(page, "laboratory")
    until(page, "!document.querySelector('.laboratory button[type=submit]').disabled")
    page.get_by_label("Virtual workers").select_option("64")
    page.get_by_label("Nodes of one worker").select_option("1500000")
    page.get_by_role("button", name="Compare").click()
    until(page, "document.querySelector('.laboratory progress').value > 0 || "
          "document.querySelector('.laboratory [role=status]').textContent.includes('…')", 60)  # fmt: skip
    page.get_by_role("button", name="Stop").click()
    until(page, "document.querySelector('.laboratory [role=status]').textContent === 'Stopped.'", 60)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["startpos", "--depth", "14"], "position rnbqkbnr/"),
        (["game", TAKE_AWAY, "5. 5.", "--depth", "24"], "game take away, position 5. 5., "),
    ],
    ids=["chess", "game"],
)
def test_a_trace_is_opened(page: Any, tmp_path: Path, run: Any, words: list[str], said: str) -> None:
    path = tmp_path / "trace.json"
    assert run(*words, "--threads", "2", "--trace", str(path))[0] == 0
    open_tab(page, "laboratory")
    page.locator("#laboratory-trace").set_input_files(path)
    until(page, "document.querySelector('.laboratory .result h2')?.textContent === 'Trace'", 60)
    until(page, PAINTED + " > 1000")
    assert said in page.locator(".laboratory .result .note").first.inner_text()
    path.write_text("{}")
    page.locator("#laboratory-trace").set_input_files(path)
    until(page, "document.querySelector('.laboratory .error')?.textContent.includes('no trace of psearch')", 60)


def test_a_hundred_malformed_messages_change_nothing(page: Any) -> None:
    """From a page that has got in: what it says about workers, experiments and traces is checked."""
    dice = random.Random(7)
    values = [None, True, -1, 0, 1.5, 10**30, "x", "x" * 70_000, [], {}, ["ybw"], {"a": 1}, "serial", "/etc/passwd"]
    names = ["first", "second", "workers", "nodes", "pruning", "rules", "characters", "text", "path", "fen", "position"]
    types = ["workers.watch", "workers.seen", "workers.rest", "laboratory.run", "laboratory.stop", "trace.begin",
             "trace.part", "game.hello", "game.search", "game.stop", "workers.", "laboratory.magic",
             "trace"]  # fmt: skip
    messages = [
        [dice.choice(types), {name: dice.choice(values) for name in dice.sample(names, dice.randrange(4))}]
        for _ in range(100)
    ]
    page.evaluate(
        """async (messages) => {
            const name = sessionStorage.getItem("psearch-page").split("").reverse().join("");
            const socket = new WebSocket(`ws://${location.host}/socket?page=${name}`);
            await new Promise((resolve) => { socket.onopen = resolve; });
            for (const [type, payload] of messages) socket.send(JSON.stringify({ type, payload }));
            await new Promise((resolve) => setTimeout(resolve, 1500));
            socket.close();
        }""",
        messages,
    )
    page.click("#analyse")
    until(page, "parseInt(document.querySelector('#depth').textContent) >= 6", 60)
    page.click("#analyse")
