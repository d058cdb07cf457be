"""The tabs Workers and Laboratory in a real browser, fed with what real searches in virtual time give.

Here the page has no server behind it: what it draws is known beforehand, and what it says is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chess
import pytest
from positions import KIWIPETE

import psearch
from psearch.lab.watching.laboratory import Experiment, run
from psearch.lab.watching.watcher import WatchedSearch
from psearch.options import SearchOptions
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator
from psearch_core.toolchain import groups

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.slow

STATIC = Path(psearch.__file__).parent / "faces" / "web" / "static"
TICKS_PER_MS = 10**9
LOOKS = 60
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>test</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="colours.css"><link rel="stylesheet" href="watching.css">
<style>body { background: var(--background); color: var(--text); }</style></head>
<body><main id="root"></main><script type="module">
import { WorkersTab } from "./workers.js";
import { Laboratory } from "./laboratory.js";
class Kept {
  constructor() { this.handlers = new Map(); this.sent = []; this.announced = []; }
  send(type, payload) { this.sent.push([type, payload]); }
  on(type, handler) { this.handlers.set(type, [...(this.handlers.get(type) ?? []), handler]); }
  announce(type, payload) {
    this.announced.push([type, payload]);
    for (const one of this.handlers.get(type) ?? []) one(payload);
  }
}
window.channel = new Kept();
window.mount = (name) => {
  new (name === "workers" ? WorkersTab : Laboratory)(document.getElementById("root"), window.channel).show();
};
window.ready = true;
</script></body></html>"""


@contextlib.contextmanager
def mounted(browser: Any, name: str, width: int = 1280, scheme: str = "light") -> Iterator[Any]:
    """A page with one of the tabs; what goes wrong in it fails the test."""

    def answer(route: Any) -> None:
        path = route.request.url.partition("//page.test/")[2]
        if path:
            route.fulfill(path=STATIC / path)
        else:
            route.fulfill(body=PAGE, content_type="text/html")

    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.route("**/*", answer)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto("http://page.test/")
    page.wait_for_function("window.ready")
    page.evaluate(f"mount('{name}')")
    yield page
    page.close()
    assert not wrong


@pytest.fixture(scope="module")
def snapshots() -> list[dict[str, Any]]:
    """Of a search by eight workers, a look every 50 milliseconds of its time, told as twenty a second."""
    groups.load(VIRTUAL)
    simulator = Simulator(8, 16, Costs(), 1 << 14)
    try:
        recorder = simulator.recorder
        assert recorder is not None
        recorder.begin()
        simulator.begin(chess.Board(KIWIPETE), SearchOptions(), 10.0)
        search = WatchedSearch(recorder)
        found = []
        for number in range(1, LOOKS + 1):
            simulator.advance_to(5 * number * TICKS_PER_MS)
            found.append(search.look(virtual_now=5 * number * TICKS_PER_MS))
        return found
    finally:
        simulator.close()


def feed(page: Any, snapshots: list[dict[str, Any]]) -> None:
    page.evaluate("all => { for (const one of all) channel.announce('workers.look', one); }", snapshots)
    page.wait_for_timeout(300)
    page.evaluate("one => channel.announce('workers.look', one)", snapshots[-1])
    page.wait_for_timeout(100)


def painted(page: Any, variable: str) -> int:
    """Pixels of the first canvas of tracks in a colour of the page."""
    return int(
        page.evaluate(
            """variable => {
              const probe = document.createElement("span");
              probe.style.color = `var(${variable})`;
              document.body.append(probe);
              const [r, g, b] = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
              probe.remove();
              const canvas = document.querySelector("canvas.tracks");
              const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              let count = 0;
              for (let i = 0; i < data.length; i += 4) {
                const far = Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b);
                if (data[i + 3] > 200 && far < 12) count++;
              }
              return count;
            }""",
            variable,
        )
    )


def test_many_short_pieces_do_not_look_like_much(browser: Any, snapshots: list[dict[str, Any]]) -> None:
    """A twentieth of the time was thrown away, a millisecond each time; so much of the picture is red."""
    track = [[0, 0, 20_000_000], *([3, at, at + 1_000] for at in range(0, 20_000_000, 20_000))]
    one = {**snapshots[-1], "begin": 0, "now": 20_000_000, "tracks": [track], "workers": 1, "load": "f", "search": 7}
    with mounted(browser, "workers") as page:
        page.get_by_label("Time shown", exact=True).select_option("20 s")
        feed(page, [one])
        assert painted(page, "--searching") > 2000
        assert painted(page, "--wasted") < 0.1 * painted(page, "--searching")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tracks_tree_and_curves_show_the_search(browser: Any, snapshots: list[dict[str, Any]], scheme: str) -> None:
    with mounted(browser, "workers", scheme=scheme) as page:
        feed(page, snapshots)
        assert painted(page, "--searching") > 2000
        last = snapshots[-1]
        rows = page.get_by_role("treeitem")
        assert rows.count() == len(last["nodes"])
        names = [rows.nth(number).get_attribute("aria-label") or "" for number in range(rows.count())]
        assert all(" node, " in name and "P needed" in name and "remaining" in name for name in names)
        assert sorted(name.split()[0] for name in names) == sorted(node["type"] for node in last["nodes"])
        heights = [row.bounding_box()["height"] for row in rows.all()]  # type: ignore[index]
        assert max(heights) < 45  # a line each, and a second one where many workers are at a node: it is not cut
        values = page.locator(".curve output").all_inner_texts()
        assert len(values) == 5 and all(any(letter.isdigit() for letter in value) for value in values)
        said = [message for message in page.evaluate("channel.sent")]
        assert said[0] == ["workers.watch", {"first": 0}]
        assert [type for type, _ in said].count("workers.seen") == len(snapshots) + 1
        assert "searching" in (page.locator("canvas.tracks").get_attribute("aria-label") or "")


def test_pause_and_step_back_by_keyboard(browser: Any, snapshots: list[dict[str, Any]]) -> None:
    with mounted(browser, "workers") as page:
        feed(page, snapshots[:-1])
        page.locator(".tracks-root").focus()
        page.keyboard.press("Space")
        status = page.locator(".watch-bar .status")
        expect(status).to_contain_text("paused")
        assert page.get_by_role("button", name="Resume").is_visible()
        for back in (1, 2, 3):
            page.keyboard.press("ArrowLeft")
            # the last one came twice
            wanted = snapshots[-2 - max(0, back - 1)]
            assert page.get_by_role("treeitem").count() == len(wanted["nodes"])
        page.evaluate("one => channel.announce('workers.look', one)", snapshots[-1])
        page.wait_for_timeout(300)
        expect(status).to_contain_text("paused")  # what comes meanwhile is kept for later
        for _ in range(LOOKS + 5):
            page.keyboard.press("ArrowLeft")
        assert page.get_by_role("button", name="One step back").is_disabled()
        page.keyboard.press("Space")
        page.wait_for_timeout(300)
        expect(status).to_contain_text("searching")


def test_a_node_shows_its_line_on_the_board(browser: Any, snapshots: list[dict[str, Any]]) -> None:
    with mounted(browser, "workers") as page:
        feed(page, snapshots)
        page.get_by_role("button", name="Pause").click()
        rows = page.get_by_role("treeitem")
        count = rows.count()
        assert count > 1
        rows.nth(count - 1).click()
        rows.nth(0).focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        shown = [payload for type, payload in page.evaluate("channel.announced") if type == "board.show"]
        assert len(shown) == 2
        assert {payload["fen"] for payload in shown} <= {node["fen"] for node in snapshots[-1]["nodes"]}
        for payload in shown:
            board = chess.Board(snapshots[-1]["fen"])
            line = payload["title"].partition(": ")[2]
            for move in line.split() if line != "the root" else ():
                board.push_san(move)
            assert board.fen() == payload["fen"]
        assert rows.nth(1).get_attribute("aria-selected") == "true"


@pytest.fixture(scope="module")
def experiment() -> dict[str, Any]:
    return run(Experiment(KIWIPETE, False, 8, ("calibrated", "ybw"), 20_000), lambda text, share: None)


CHOICES = {
    "policies": ["calibrated", "ybw", "lazy"],
    "most_workers": 64,
    "nodes": [20_000, 100_000],
    "pruning": ["modern"],
    "drivers": ["pvs", "null"],
    "rules": ["", "my_rule.py"],
}


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1600, "light")])
def test_two_policies_side_by_side(browser: Any, experiment: dict[str, Any], width: int, scheme: str) -> None:
    with mounted(browser, "laboratory", width, scheme) as page:
        page.evaluate("choices => channel.announce('laboratory.choices', choices)", CHOICES)
        page.get_by_label("Virtual workers").select_option("8")
        page.get_by_label("against").select_option("lazy")
        page.get_by_label("Driver").select_option("null")
        page.get_by_label("With").select_option("my_rule.py")
        page.get_by_role("button", name="Compare").click()
        type, payload = page.evaluate("channel.sent.at(-1)")
        assert type == "laboratory.run"
        chosen = {"first": "calibrated", "second": "lazy", "pruning": "modern", "driver": "null"}
        assert payload == {"workers": 8, "nodes": 100_000, "rules": "my_rule.py", **chosen}
        page.evaluate("channel.announce('laboratory.progress', { text: 'ybw', share: 0.5 })")
        assert page.locator("progress").evaluate("bar => bar.value") == 0.5
        page.evaluate("result => channel.announce('laboratory.result', result)", experiment)
        page.wait_for_timeout(300)
        figures = page.locator("table").first.inner_text()
        for one in experiment["runs"]:
            assert f"{one['speedup']:.2f}" in figures and f"{one['nodes']:,}" in figures
        assert page.locator("canvas.tracks").count() == 2
        assert painted(page, "--searching") > 1000
        assert page.locator(".reliability svg").count() == 2
        text = page.locator(".laboratory").inner_text()
        assert "driver pvs" in text and "Differences" in text and "null move" in text
        assert "few positions" in text.lower() and "small trees" in text.lower()
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width


def test_a_refusal_and_a_stop_are_told(browser: Any) -> None:
    with mounted(browser, "laboratory") as page:
        page.evaluate("choices => channel.announce('laboratory.choices', choices)", CHOICES)
        page.get_by_role("button", name="Compare").click()
        page.get_by_role("button", name="Stop").click()
        assert page.evaluate("channel.sent.at(-1)[0]") == "laboratory.stop"
        page.evaluate("channel.announce('laboratory.stopped', {})")
        expect(page.get_by_role("status")).to_have_text("Stopped.")
        page.get_by_role("button", name="Compare").click()
        page.evaluate("channel.announce('laboratory.error', { text: '<b>no</b>' })")
        expect(page.get_by_role("status")).to_have_text("<b>no</b>")
        assert page.get_by_role("button", name="Compare").is_enabled()
