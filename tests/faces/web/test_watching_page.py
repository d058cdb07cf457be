"""The tabs Workers and Laboratory in a real browser, fed with what real searches in virtual time give.

Here the page has no server behind it: what it draws is known beforehand, and what it says is kept.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chess
import pytest

from psearch.lab.watching.laboratory import Experiment, run, timeline
from psearch.lab.watching.watcher import WatchedSearch
from psearch.options import SearchOptions
from psearch.simulation.costs import Costs
from psearch.simulation.simulation_entries import VIRTUAL
from psearch.simulation.simulator import Simulator
from psearch_core.toolchain import groups

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, expect, sync_playwright

pytestmark = pytest.mark.slow

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip
STATIC = Path(__file__).parents[3] / "parallel" / "psearch" / "faces" / "web" / "static"
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
TICKS_PER_MS = 10**9
LOOKS = 60
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>test</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="colours.css">
<style>body { background: var(--background); color: var(--text); }</style></head>
<body><main id="root"></main><script type="module">
import { mountWorkers } from "./workers.js";
import { mountLaboratory } from "./laboratory.js";
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
  const part = (name === "workers" ? mountWorkers : mountLaboratory)(document.getElementById("root"), window.channel);
  part.show();
};
window.ready = true;
</script></body></html>"""


class Server(http.server.SimpleHTTPRequestHandler):
    """The page's own files, and the page."""

    def do_GET(self) -> None:
        if self.path == "/":
            body = PAGE.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        elif self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, format: str, *words: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(STATIC)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield started
        started.close()


@contextlib.contextmanager
def opened(browser: Browser, address: str, width: int = 1280, scheme: Any = "light") -> Iterator[Page]:
    """The page; what goes wrong in it fails the test."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(address)
    page.wait_for_function("window.ready")
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


def feed(page: Page, snapshots: list[dict[str, Any]]) -> None:
    page.evaluate("all => { for (const one of all) channel.announce('workers.look', one); }", snapshots)
    page.wait_for_timeout(300)
    page.evaluate("one => channel.announce('workers.look', one)", snapshots[-1])
    page.wait_for_timeout(100)


def painted(page: Page, variable: str) -> int:
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


def test_many_short_pieces_do_not_look_like_much(
    browser: Browser, address: str, snapshots: list[dict[str, Any]]
) -> None:
    """A twentieth of the time was thrown away, a millisecond each time; so much of the picture is red."""
    track = [[0, 0, 20_000_000], *([3, at, at + 1_000] for at in range(0, 20_000_000, 20_000))]
    one = {**snapshots[-1], "begin": 0, "now": 20_000_000, "tracks": [track], "workers": 1, "load": "f", "search": 7}
    with opened(browser, address) as page:
        page.evaluate("mount('workers')")
        page.get_by_label("Time shown", exact=True).select_option("20 s")
        feed(page, [one])
        assert painted(page, "--searching") > 2000
        assert painted(page, "--wasted") < 0.1 * painted(page, "--searching")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tracks_tree_and_curves_show_the_search(
    browser: Browser, address: str, snapshots: list[dict[str, Any]], scheme: str
) -> None:
    with opened(browser, address, scheme=scheme) as page:
        page.evaluate("mount('workers')")
        feed(page, snapshots)
        assert painted(page, "--searching") > 2000
        last = snapshots[-1]
        rows = page.get_by_role("treeitem")
        assert rows.count() == len(last["nodes"])
        names = [rows.nth(number).get_attribute("aria-label") or "" for number in range(rows.count())]
        assert all(" node, " in name and "P needed" in name and "to come" in name for name in names)
        assert sorted(name.split()[0] for name in names) == sorted(node["type"] for node in last["nodes"])
        heights = [row.bounding_box()["height"] for row in rows.all()]  # type: ignore[index]
        assert max(heights) < 45  # a line each, and a second one where many workers are at a node: it is not cut
        values = page.locator(".curve output").all_inner_texts()
        assert len(values) == 5 and all(any(letter.isdigit() for letter in value) for value in values)
        said = [message for message in page.evaluate("channel.sent")]
        assert said[0] == ["workers.watch", {"first": 0}]
        assert [type for type, _ in said].count("workers.seen") == len(snapshots) + 1
        assert "searching" in (page.locator("canvas.tracks").get_attribute("aria-label") or "")


def test_pause_and_step_back_by_keyboard(browser: Browser, address: str, snapshots: list[dict[str, Any]]) -> None:
    with opened(browser, address) as page:
        page.evaluate("mount('workers')")
        feed(page, snapshots[:-1])
        page.locator(".tracks-root").focus()
        page.keyboard.press("Space")
        status = page.locator(".watch-bar .status")
        expect(status).to_contain_text("paused")
        assert page.get_by_role("button", name="Go on").is_visible()
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


def test_a_node_shows_its_line_on_the_board(browser: Browser, address: str, snapshots: list[dict[str, Any]]) -> None:
    with opened(browser, address) as page:
        page.evaluate("mount('workers')")
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


@pytest.mark.parametrize("width", [375, 1600])
def test_nothing_is_wider_than_the_page(
    browser: Browser, address: str, snapshots: list[dict[str, Any]], width: int, tmp_path: Path
) -> None:
    with opened(browser, address, width) as page:
        page.evaluate("mount('workers')")
        feed(page, snapshots)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width


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
def test_two_policies_side_by_side(
    browser: Browser, address: str, experiment: dict[str, Any], width: int, scheme: str
) -> None:
    with opened(browser, address, width, scheme) as page:
        page.evaluate("mount('laboratory')")
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
        assert "driver pvs" in text and "Where they differ" in text and "null move" in text
        assert "few positions" in text.lower() and "small trees" in text.lower()
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width


def test_a_refusal_and_a_stop_are_told(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        page.evaluate("mount('laboratory')")
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


def test_a_trace_is_sent_as_text_and_drawn(browser: Browser, address: str, tmp_path: Path) -> None:
    simulator = Simulator(4, 16, Costs(), 1 << 14)
    try:
        simulator.search("", chess.Board(KIWIPETE), 7, SearchOptions())
        assert simulator.recorder is not None
        simulator.recorder.write(tmp_path / "trace.json", {})
        drawn = {**timeline(simulator.recorder), "facts": {"policy": "calibrated"}, "workers": 4}
    finally:
        simulator.close()
    with opened(browser, address) as page:
        page.evaluate("mount('laboratory')")
        page.get_by_label("Open a trace").set_input_files(tmp_path / "trace.json")
        page.wait_for_function("channel.sent.some(([type]) => type === 'trace.part')")
        page.wait_for_timeout(500)
        sent = page.evaluate("channel.sent")
        assert (
            "".join(payload["text"] for type, payload in sent if type == "trace.part")
            == (tmp_path / "trace.json").read_text()
        )
        assert max(len(payload["text"]) for type, payload in sent if type == "trace.part") <= 1 << 15
        page.evaluate("result => channel.announce('trace.result', result)", drawn)
        page.wait_for_timeout(200)
        assert painted(page, "--searching") > 500
        assert "policy calibrated" in page.locator(".result").inner_text()
