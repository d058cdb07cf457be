"""Workers and laboratory from end to end: `psearch serve`, real workers, a real browser.

With PSEARCH_SCREENSHOTS set, the pictures of docs/guides/web.md are written there.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from browsing import NARROW, picture, until
from paths import DATA

pytestmark = pytest.mark.slow
TAKE_AWAY = str(DATA / "games" / "take_away.py")
ROWS = "document.querySelectorAll('[role=treeitem]').length"
PAINTED = """(() => {
    const canvas = document.querySelector("canvas.tracks");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 3; i < data.length; i += 4) count += data[i] > 200;
    return count;
})()"""


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
    until(page, "document.querySelector('.laboratory .error')?.textContent.includes('not a trace of psearch')", 60)
