"""The tabs Workers and Laboratory in a real browser, fed with what real searches in virtual time give.

Here the page has no server behind it: what it draws is known beforehand, and what it says is kept.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chess
import pytest
from browsing import NARROW, WIDTHS, picture, until
from positions import KIWIPETE
from reading_recordings import read_recordings

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
    """Return snapshots of a search by eight workers, one every 50 ms of its time, replayed at 20 a second."""
    groups.load(VIRTUAL)
    simulator = Simulator(8, 16, Costs(), 1 << 14)
    try:
        recorder = simulator.recorder
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
        assert max(heights) < 65  # two lines each, and a third one where many workers are at a node: it is not cut
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
        status = page.locator("[role=toolbar] .status")
        expect(status).to_contain_text("paused")
        assert page.get_by_role("button", name="Resume").is_visible()
        for back in (1, 2, 3):
            page.keyboard.press("ArrowLeft")
            wanted = snapshots[-2 - back]  # the last one came twice, but is one moment
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
        # the workers' moves are arrows in their colours
        chosen = {node["fen"]: node for node in snapshots[-1]["nodes"]}[shown[0]["fen"]]
        moves = [
            (one["move"], f"worker{one['workers'][0] % 8}") for one in chosen["under_way"] if one["move"] != "0000"
        ]
        assert [(arrow["move"], arrow["brush"]) for arrow in shown[0]["arrows"]] == moves
        assert {payload["fen"] for payload in shown} <= {node["fen"] for node in snapshots[-1]["nodes"]}
        for payload in shown:
            board = chess.Board(snapshots[-1]["fen"])
            line = payload["title"].partition(": ")[2]
            for move in line.split() if line != "the root" else ():
                board.push_san(move)
            assert board.fen() == payload["fen"]
        assert rows.nth(1).get_attribute("aria-selected") == "true"


def board_lines(page: Any) -> list[str]:
    return [payload["title"] for type, payload in page.evaluate("channel.announced") if type == "board.show"]


def test_a_row_has_window_best_value_and_probabilities(browser: Any, snapshots: list[dict[str, Any]]) -> None:
    with mounted(browser, "workers") as page:
        feed(page, snapshots)
        text = page.locator(".split-tree").inner_text()
        for node in snapshots[-1]["nodes"]:
            assert node["beta"] is None or f"{abs(node['beta']) / 100:.2f}" in text
            share = math.floor(100 * node["p_next"] + 0.5)  # as JavaScript rounds
            assert f"next move {share}%" in text and f"{node['joined']} joined" in text
        page.locator(".events [tabindex='0']").focus()  # one tab stop for all
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.querySelectorAll('.events button')[1] === document.activeElement")
        happened = page.locator(".events").inner_text()
        assert "helper" in happened
        assert any(
            f"{one['lost']:,} nodes lost" in happened for look in snapshots for one in look["events"] if one.get("lost")
        )


def test_tree_tracks_and_title_are_of_one_moment(browser: Any, snapshots: list[dict[str, Any]]) -> None:
    with mounted(browser, "workers") as page:
        feed(page, snapshots[:-1])
        page.locator(".tracks-root").focus()
        for back in range(1, 12):
            page.keyboard.press("ArrowLeft")
            wanted = snapshots[-2 - back]
            ms = wanted["now"] // 1000
            assert page.locator(".stage h2").nth(1).inner_text() == f"Open split nodes at {ms} ms"
            assert f"paused (the search goes on), {ms}" in page.locator("[role=toolbar] .status").inner_text()
            assert page.get_by_role("treeitem").count() == len(wanted["nodes"])


def test_a_bar_leads_to_its_node_and_a_node_to_its_bars(browser: Any, snapshots: list[dict[str, Any]]) -> None:
    with mounted(browser, "workers") as page:
        feed(page, snapshots)
        page.get_by_label("Time shown", exact=True).select_option("0.2 s")
        green = painted(page, "--searching")
        # a long bar at a node that a snapshot shows
        names = {node["id"] for look in snapshots[-20:] for node in look["nodes"]}
        bars = [
            (part, worker)
            for look in snapshots[-20:]
            for worker, track in enumerate(look["tracks"])
            for part in track
            if part[0] == 0 and len(part) > 3 and part[3] in names
        ]
        (_, begin, end, name), worker = max(bars, key=lambda bar: bar[0][2] - bar[0][1])
        canvas = page.locator("canvas.tracks")
        box = canvas.bounding_box()
        last = snapshots[-1]["now"]
        x = 34 + ((begin + end) / 2 - (last - 200_000)) / 200_000 * (box["width"] - 38)
        row = (box["height"] - 33) / 8
        canvas.click(position={"x": x, "y": 13 + row * (worker + 0.5)})
        chosen = page.locator(".split-node.chosen")
        assert chosen.get_attribute("data-id") == name
        assert len(board_lines(page)) == 1
        assert 0 < painted(page, "--searching") < 0.9 * green, "the other bars are pale"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_workers_fit(browser: Any, snapshots: list[dict[str, Any]], width: int) -> None:
    with mounted(browser, "workers", width) as page:
        feed(page, snapshots)
        assert page.get_by_role("treeitem").count() > 1
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        wide = "(one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline'"
        cut = f"[...document.querySelectorAll('.split-node *, .events *')].filter({wide}).length"
        assert page.evaluate(cut) == 0


@pytest.fixture(scope="module")
def recorded_runs() -> dict[str, Any]:
    return run(Experiment(KIWIPETE, False, 8, ("calibrated", "ybw"), 20_000, looks=True), lambda text, share: None)


def test_two_policies_one_above_the_other(browser: Any, recorded_runs: dict[str, Any], tmp_path: Path) -> None:
    """From one click; then played, zoomed, saved and opened again."""
    with mounted(browser, "workers") as page:
        page.evaluate("channel.announce('analysis.state', { on: false, policy: 'calibrated', driver: 'auto' })")
        page.get_by_role("button", name="Compare with").click()
        said = page.evaluate("channel.sent.at(-1)")
        assert said == ["virtual.run", {"workers": 8, "nodes": 100_000, "policies": ["calibrated", "ybw"]}]
        page.evaluate("result => channel.announce('virtual.result', result)", recorded_runs)
        page.wait_for_timeout(300)

        def heads() -> list[str]:
            return page.locator(".stage-head").all_inner_texts()

        for head, one in zip(heads(), recorded_runs["runs"], strict=True):
            assert head.startswith(one["policy"]) and f"speedup {one['speedup']:.2f}" in head
            assert f"idle {100 * one['idle']:.1f}%" in head and f"thrown away {100 * one['aborted']:.1f}%" in head
        tops = [canvas.bounding_box()["y"] for canvas in page.locator("canvas.tracks").all()]
        assert len(tops) == 2 and tops[0] < tops[1]
        # both at one moment
        page.get_by_label("Moment").fill(str(recorded_runs["runs"][0]["end"] // 2))
        longest = max(one["end"] for one in recorded_runs["runs"])
        for number, one in enumerate(recorded_runs["runs"]):
            look = [look for look in one["looks"] if look["now"] <= recorded_runs["runs"][0]["end"] // 2][-1]
            stage = page.locator(".stage").nth(number)
            assert stage.get_by_role("treeitem").count() == len(look["nodes"])
            said, unit = stage.locator("h2", has_text="Open split nodes at").inner_text().split()[-2:]
            moment = float(said) * {"\u00b5s": 1, "ms": 1e3, "s": 1e6}[unit]
            assert moment == pytest.approx(look["now"], abs=longest / 1000)
        # played in slow motion
        page.get_by_label("Speed of play").select_option("1/10000")
        before = page.get_by_label("Moment").input_value()
        page.get_by_role("button", name="Play", exact=True).click()
        page.wait_for_timeout(500)
        page.get_by_role("button", name="Stop playing").click()
        assert int(page.get_by_label("Moment").input_value()) > int(before)
        # zoomed by the wheel
        page.locator("canvas.tracks").first.hover()
        shown = page.locator("canvas.tracks").first.get_attribute("aria-label")
        page.mouse.wheel(0, -100)
        until(page, f"document.querySelector('canvas.tracks').getAttribute('aria-label') !== {json.dumps(shown)}")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save").click()
        path = tmp_path / "search.jsonl"
        download.value.save_as(path)
        found = read_recordings(path.read_text())
        assert [len(looks) for _, looks in found] == [len(one["looks"]) for one in recorded_runs["runs"]]
        wanted = heads()
        page.get_by_role("button", name="Back to the engine").click()
        assert page.locator("canvas.tracks").count() == 1 and heads() == [""]
        assert page.locator("canvas.tracks").evaluate("one => one.clientHeight") == 0, "no search: none is shown"
        page.get_by_label("Recording").set_input_files(path)
        until(page, "document.querySelectorAll('.stage-head').length === 2")
        assert heads() == wanted
        path.write_text('{"psearch_recording": 1}\nnonsense')
        page.get_by_label("Recording").set_input_files(path)
        expect(page.locator(".workers .note[role=status]")).to_contain_text("line 2 is not one of a recording")


@pytest.mark.parametrize("name", ["all-node", "cut-node", "idle"])
def test_a_guided_tour_goes_step_by_step(browser: Any, name: str) -> None:
    with mounted(browser, "workers") as page:
        page.get_by_label("Guided tours").select_option(name)
        tour = page.get_by_label("Guided tour", exact=True)
        expect(tour).to_contain_text("1 of 10. ")
        chosen = 0
        for step in range(2, 11):
            page.get_by_role("button", name="Next step").click()
            expect(tour).to_contain_text(f"{step} of 10. ")
            chosen += page.locator(".split-node.chosen").count()
            box = tour.bounding_box()
            assert box and box["y"] >= 0, "the text stays in view while its node is"
        assert chosen >= 1 and len(board_lines(page)) >= chosen
        page.get_by_role("button", name="Previous step").click()
        expect(tour).to_contain_text("9 of 10. ")
        page.get_by_role("button", name="Back to the engine").click()
        assert tour.is_hidden()


def test_where_nothing_is_shared_the_tab_says_what_is_to_be_seen(browser: Any) -> None:
    looks = run(Experiment(KIWIPETE, False, 8, ("lazy",), 5_000, looks=True), lambda text, share: None)["runs"][0][
        "looks"
    ]
    with mounted(browser, "workers") as page:
        page.evaluate("channel.announce('analysis.state', { on: true, policy: 'lazy', driver: 'auto' })")
        feed(page, looks[:100])
        text = page.locator(".stage .note").inner_text()
        assert (
            "With lazy no node is shared" in text
            and "At the root: " in text
            and "search a root move that another one" in text
        )
        assert looks[-1]["done"]
        feed(page, looks[-1:])
        assert "With lazy no node is shared" in page.locator(".stage .note").inner_text()


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
        assert payload == {"workers": 8, "nodes": 100_000, "rules": "my_rule.py", "positions": 1, **chosen}
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


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (768, "dark"), (1366, "light"), (1920, "light")])
def test_several_positions_have_a_mean_an_interval_files_and_a_command(
    browser: Any, width: int, scheme: str, tmp_path: Path
) -> None:
    others = ("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",)
    found = run(Experiment(KIWIPETE, False, 4, ("calibrated", "ybw"), 5_000, others=others), lambda text, share: None)
    with mounted(browser, "laboratory", width, scheme) as page:
        page.evaluate("choices => channel.announce('laboratory.choices', choices)", CHOICES)
        page.get_by_label("Positions").select_option("12 of the game")
        page.get_by_role("button", name="Compare").click()
        assert page.evaluate("channel.sent.at(-1)[1].positions") == 12
        page.evaluate("result => channel.announce('laboratory.result', result)", found)
        figures = page.locator("table").inner_text()
        for row in found["rows"]:
            assert f"{row['speedup']:.2f}" in figures and f"{row['low']:.2f} \u2013 {row['high']:.2f}" in figures
        assert page.locator("pre.command").inner_text().strip() == found["command"]
        saved = {}
        for name in ("CSV", "PNG"):
            with page.expect_download() as waiting:
                page.get_by_role("button", name=f"Save {name}").click()
            saved[name] = tmp_path / waiting.value.suggested_filename
            waiting.value.save_as(saved[name])
        rows = list(csv.DictReader(saved["CSV"].read_text().splitlines()))
        assert [float(row["speedup"]) for row in rows] == [row["speedup"] for row in found["rows"]]
        assert saved["PNG"].read_bytes().startswith(b"\x89PNG")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        if folder := os.environ.get("PICTURES_TO"):
            page.screenshot(path=f"{folder}/study-{width}.png", full_page=True)


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
    return str(page.locator("[role=toolbar] .status").inner_text())


def test_workers_are_seen_moving(page: Any) -> None:
    page.click("#analyse")
    open_tab(page, "workers")
    until(page, "document.querySelector('[role=toolbar] .status').textContent.startsWith('searching')", 60)
    until(page, ROWS, 60)
    until(page, PAINTED + " > 5000")
    before = status(page)
    until(page, f"document.querySelector('[role=toolbar] .status').textContent !== {json.dumps(before)}")
    time.sleep(2)
    until(page, r"/\d/.test(document.querySelector('.curve output').innerText)")
    # pause, back, a node on the board
    page.locator(".tracks-root").focus()
    page.keyboard.press("Space")
    for _ in range(40):
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
    until(page, "document.querySelector('[role=toolbar] .status').textContent.startsWith('searching')")
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
