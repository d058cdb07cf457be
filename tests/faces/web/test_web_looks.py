"""Looks of the page: dialogs against approved pictures, and every tab and dialog by the rules of axe-core.

After a change that is wanted, look at what is there, and approve it:

    PSEARCH_APPROVE=1 pytest -n 0 -m slow tests/faces/web/test_web_looks.py -k approved
"""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import MORPHY, NARROW, WIDE, Server, analyse, load, opened, press, set_up, until
from paths import REPOSITORY

pytestmark = pytest.mark.slow
APPROVED = REPOSITORY / "tests" / "data" / "web"
TALL = {"width": NARROW["width"], "height": 1100}
"""A telephone on which nothing has to be scrolled."""
SMALL = {WIDE["width"]: (200, 112), TALL["width"]: (125, 366)}
"""Size of the pictures that are kept."""
CELL = 5
"""Pictures are compared by the means of so many pixels each way: strokes of letters and of edges do not count."""
MOST_APART = 20
"""Cells that differ by more in a colour, of 255, are others."""
MOST_OTHERS = {WIDE["width"]: 0.01, TALL["width"]: 0.035}
"""The share of cells that may be others. With other fonts none were at 1600 pixels, at most 0.026 at 375; with a dialog
in another place or twice as large at least 0.019 and 0.041."""
SAME_WIDTHS = "* { font-size-adjust: ch-width 0.6 !important; line-height: 21px !important; } "
"""Lines break in the same places, whatever fonts there are."""
PAWNS = "8/P6k/8/8/8/8/6p1/K7 w - - 0 1"
DEVELOP = """async ([picture, width, height, cell]) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, width, height);
    if (!cell) return canvas.toDataURL("image/png").split(",")[1];
    const means = [];
    for (let top = 0; top + cell <= height; top += cell) {
        for (let left = 0; left + cell <= width; left += cell) {
            const { data } = context.getImageData(left, top, cell, cell);
            means.push([0, 1, 2].map((colour) => data.filter((_, at) => at % 4 === colour)
                .reduce((sum, value) => sum + value, 0) / cell ** 2));
        }
    }
    return means;
}"""
"""A picture made small; or, with the size of a cell, the mean red, green and blue of each cell."""


def promotion(page: Any) -> str:
    set_up(page, PAWNS, 4)
    press(page, "a7", 0.5, 0.5)
    press(page, "a8", 0.5, 0.5)
    page.wait_for_selector("dialog.promotion")
    return "dialog.promotion"


def engine(page: Any) -> str:
    page.click("summary")
    return "#panel-analysis details"


def editor(page: Any) -> str:
    page.click("#tab-position")
    page.click("#edit")
    return "#edit-form"


def games(page: Any) -> str:
    """The list of a file's games, the field for a PGN, and what loads and downloads."""
    load(page, MORPHY + '\n[White "Anderssen"]\n[Black "Kieseritzky"]\n\n1. e4 e5 2. f4 *\n', 33)
    page.wait_for_selector("#games:visible")
    return "#pgn-form"


DIALOGS: dict[str, Callable[[Any], str]] = {"promotion": promotion, "engine": engine, "editor": editor, "games": games}
"""Functions that open each dialog and return its selector."""


@pytest.fixture(scope="module")
def server(kernels: None) -> Iterator[Server]:
    found = Server("--game", str(REPOSITORY / "docs" / "examples" / "connect_four.py"))
    yield found
    found.interrupt()


@contextlib.contextmanager
def at_rest(browser: Any, server: Server, size: dict[str, int], scheme: str = "light") -> Iterator[Any]:
    """A page in which nothing moves by itself."""
    touches = size["width"] == NARROW["width"]
    how = {"viewport": size, "has_touch": touches, "color_scheme": scheme, "reduced_motion": "reduce"}
    with opened(browser, server, **how) as page:
        yield page


class Camera:
    """Pictures of a page as they are kept, and what they differ in."""

    def __init__(self, page: Any, width: int) -> None:
        self._page = page
        self._size = SMALL[width]
        self._shared_engine = page.context.browser.new_page()
        self._shared_engine.goto("about:blank")

    def picture(self, style: str = "") -> bytes:
        self._page.evaluate(
            """(style) => {
                const sheet = new CSSStyleSheet();
                sheet.replaceSync(style);
                document.adoptedStyleSheets = [sheet];
            }""",
            SAME_WIDTHS + style,
        )
        self._page.evaluate("document.activeElement?.closest('dialog') || document.activeElement.blur()")
        self._page.mouse.move(1, 1)
        time.sleep(0.3)  # pieces and lists arrive
        return base64.b64decode(self._develop(self._page.screenshot(), 0))

    def others(self, one: bytes, other: bytes) -> float:
        """The share of cells in which two pictures differ."""
        first, second = self._develop(one, CELL), self._develop(other, CELL)
        assert len(first) == len(second)
        apart = [max(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in zip(first, second, strict=True)]
        return sum(distance > MOST_APART for distance in apart) / len(apart)

    def _develop(self, picture: bytes, cell: int) -> Any:
        return self._shared_engine.evaluate(DEVELOP, [base64.b64encode(picture).decode(), *self._size, cell])

    def close(self) -> None:
        self._shared_engine.close()


def mutations(box: dict[str, float], size: dict[str, int], selector: str) -> dict[str, str]:
    """Styles that break a page whose dialog is there: each must be seen."""
    right = box["x"] + 2 * box["width"] < size["width"]
    across = box["width"] if right else -min(box["width"], box["x"])
    down = 0.0
    if abs(across) < 30:
        across, down = 0, box["height"] if box["y"] + 2 * box["height"] < size["height"] else -box["height"]
    return {
        "a white sheet": "html::after { content: ''; position: fixed; inset: 0; background: #fff; z-index: 99; }",
        "no board": "cg-board { visibility: hidden !important; }",
        "elsewhere": f"{selector} {{ translate: {across}px {down}px; }}",
        "twice as large": f"{selector} {{ scale: 2; transform-origin: 0 0; }}",
    }


@pytest.mark.parametrize("size", [WIDE, TALL], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", DIALOGS)
def test_a_dialog_looks_as_it_was_approved(browser: Any, server: Server, name: str, size: dict[str, int]) -> None:
    """Other fonts pass, too, and nothing broken does."""
    with at_rest(browser, server, size) as page:
        check_looks(page, name, size)


def check_looks(page: Any, name: str, size: dict[str, int]) -> None:
    selector = DIALOGS[name](page)
    page.evaluate("scrollTo(0, 0)")
    camera = Camera(page, size["width"])
    path = APPROVED / f"{name}-{size['width']}.png"
    found = camera.picture()
    if os.environ.get("PSEARCH_APPROVE"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(found)
    approved, most = path.read_bytes(), MOST_OTHERS[size["width"]]
    assert camera.others(approved, found) <= most
    for fonts in ("'DejaVu Serif', serif", "'DejaVu Sans Condensed', 'Liberation Sans', sans-serif"):
        style = f"* {{ font-family: {fonts} !important; }}"
        assert camera.others(approved, camera.picture(style)) <= most, fonts
    for broken, style in mutations(page.locator(selector).bounding_box(), size, selector).items():
        assert camera.others(approved, camera.picture(style)) > most, broken
    camera.close()


def test_approved_pictures_are_small_and_used() -> None:
    paths = list(APPROVED.glob("*.png"))
    assert {path.name for path in paths} == {f"{name}-{width}.png" for name in DIALOGS for width in SMALL}
    assert sum(path.stat().st_size for path in paths) < 300_000


# -- axe-core


def rest(page: Any) -> None:
    pass


def split_nodes(page: Any) -> None:
    """The workers' tab, paused at a moment with open nodes; one is made to look closed, which they are too briefly to
    be waited for."""
    analyse(page)
    page.click("#tab-workers")
    until(page, "document.querySelectorAll('[role=treeitem]').length")
    page.get_by_role("button", name="Pause").click()
    until(page, "document.querySelector('.watch-bar .status').textContent.startsWith('paused')")
    for _ in range(40):
        if page.locator("[role=treeitem]").count():
            break
        page.get_by_role("button", name="One step back").click()
    page.evaluate("document.querySelector('[role=treeitem]').classList.add('closed')")


def tour(page: Any) -> None:
    """Two recorded searches one above the other, with the text of a tour and a chosen node."""
    page.click("#tab-workers")
    page.get_by_label("Guided tours").select_option("all-node")
    until(page, "document.querySelectorAll('canvas.tracks').length === 2")
    for _ in range(3):
        page.get_by_role("button", name="Next step").click()
    page.wait_for_selector(".split-node.chosen")


def own_game(page: Any) -> None:
    """The workers' tab while a game of the user's is searched."""
    page.click("#tab-workers")
    page.get_by_label("connect_four.py, position").fill("44444")
    while (button := page.locator(".own-game button")).inner_text() == "Search":
        button.click()
        time.sleep(0.5)  # it is refused until the search of the page before, which is gone, has ended
    until(page, "document.querySelector('.own-game pre').textContent.includes('depth')")
    until(page, "document.querySelectorAll('[role=treeitem]').length")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def play(page: Any) -> None:
    page.click("#tab-play")
    page.select_option("#clock", "180+2")
    page.click("#start-game")
    page.wait_for_selector("#clock-bottom.ticking")


def reviewed(page: Any) -> None:
    load(page, "1. e4 e5 2. Qh5 Ke7 3. Qxe5# 1-0", 5)
    page.select_option("#review-limit", "time 0.1")
    page.click("#review")
    page.wait_for_selector("#mistakes button")
    until(page, "document.querySelector('#review').textContent !== 'Stop'")


def compared(page: Any) -> None:
    page.click("#tab-laboratory")
    until(page, "document.querySelector('.laboratory button[type=submit]')?.disabled === false")
    page.get_by_role("button", name="Compare").click()
    until(page, "document.querySelectorAll('.laboratory canvas.tracks').length === 2", 120)


def note(page: Any) -> None:
    page.click("#tab-position")
    page.fill("#fen", "nonsense")
    page.click("#fen-form button[type=submit]")
    page.wait_for_selector("#notes p")


PARTS = (rest, analyse, split_nodes, tour, own_game, play, reviewed, compared, note, *DIALOGS.values())
AXE_RUN = """async () => {
    const found = await axe.run(document, { rules: { "target-size": { enabled: true } } });
    return found.violations.flatMap(({ id, nodes }) => nodes.map((node) =>
        `${id}: ${node.target}: ${[...node.any, ...node.all, ...node.none].map((check) => check.message)}`));
}"""


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_axe_finds_nothing(browser: Any, server: Server, part: Callable[[Any], object], size: dict[str, int]) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed ('.[dev]')")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")
    for scheme in ("light", "dark"):
        with at_rest(browser, server, size, scheme) as page:
            part(page)
            page.evaluate(script + "\n;0")
            assert page.evaluate(AXE_RUN) == [], scheme
