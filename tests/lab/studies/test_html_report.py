"""Reports that can be mailed: whole, true to the table, and without anything from outside."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from psearch.lab.studies.html_report import MOST_POSITIONS, OPENING, StudyReport, check_report, page, write_report
from psearch.lab.studies.speedup_study import Sample, summarise, table_cells
from psearch.lab.studies.time_fit import fit_times
from psearch.results import PsearchError

VOID = {"meta", "br"}
WITH_ADDRESSES = {"src", "href", "xlink:href", "srcset", "action", "data", "poster", "background", "formaction"}
HOSTILE = '<script src="http://example.org/x.js"></script>&"\''


class Parsed(HTMLParser):
    """Checks that elements nest, and collects what a test asks for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.cells: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


def samples(policies: tuple[str, ...] = ("calibrated", "ybw"), positions: int = 3, name: str = "p") -> list[Sample]:
    found = []
    for number in range(positions):
        for threads in (1, 2, 4):
            for policy in policies if threads > 1 else policies[:1]:
                seconds = (2.0 + number) / threads * (1.1 if policy == "ybw" else 1.0)
                found.append(
                    Sample(
                        position=f"{name}{number}",
                        fen=f"fen {number}",
                        depth=9 + number,
                        policy=policy,
                        threads=threads,
                        repeat=0,
                        seconds=seconds * (1 + 0.05 * number * threads),
                        nodes=100_000 + 1000 * threads,
                        score="+12",
                        bestmove="e2e4",
                        splits=10,
                        joins=20,
                        aborted_nodes=5,
                        idle_share=0.01,
                        pruning="modern",
                    )
                )
    return found


def report(real: bool = True, name: str = "p", positions: int = 3) -> StudyReport:
    found = samples(name=name, positions=positions)
    rows = summarise(found)
    ceilings = {2: 1.95, 4: 3.7} if real else None
    return StudyReport("a title", found, rows, "a rule", ceilings=ceilings, fits=fit_times(rows))


def check_alone(text: str) -> Parsed:
    """Nothing in it leads outside, and nothing runs."""
    parsed = Parsed(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image"} & set(parsed.tags)
    addresses = [value for _, name, value in parsed.attributes if name in WITH_ADDRESSES]
    assert all(value.startswith("#") for value in addresses)
    assert not [one for one in parsed.attributes if one[1].startswith("on")]
    assert not re.search(r"url\((?!#)|@import|expression\(", text)
    policy = [one[2] for one in parsed.attributes if one[:2] == ("meta", "content")]
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy
    return parsed


@pytest.mark.parametrize("real", [True, False])
def test_a_report_stands_alone_and_has_every_figure(real: bool) -> None:
    made = report(real)
    text = page(made)
    parsed = check_alone(text)
    assert text.startswith(OPENING)
    head, lines = table_cells(made.rows, made.ceilings)
    assert ("ceiling" in head) == real
    assert parsed.cells[: sum(map(len, lines))] == [cell for line in lines for cell in line]
    assert parsed.tags.count("svg") == 1
    for sample in made.samples:
        assert sample.position in parsed.cells
    assert "2,000" not in text and "3 positions, 101 k nodes a tree" in text


def picture(made: StudyReport) -> ElementTree.Element:
    (markup,) = re.findall(r"<svg.*?</svg>", page(made), re.DOTALL)
    return ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", markup))


@pytest.mark.parametrize("real", [True, False])
def test_the_picture_is_named_and_says_its_figures(real: bool) -> None:
    made = report(real)
    found = picture(made)
    assert found.get("role") == "img" and found[0].tag == "title" and found[0].text == found.get("aria-label")
    description = str(found.findtext("desc"))
    hints = [str(title.text) for title in found.iter("title")][1:]
    for row in made.rows:
        text = f"{row.policy}, {row.threads} workers: speedup {row.speedup:.2f} (95%: {row.interval})"
        assert text in description and hints.count(text) == 1
    # a dot a position at each bar; of virtual time three curves a policy, which begin at one worker
    assert len(hints) == (len(made.rows) * (1 + 3) if real else 3 * (len(made.rows) + 2))
    assert not real or {f"p{n}" for n in range(3)} == {hint.split(":")[0] for hint in hints if hint[0] == "p"}


def test_bars_are_as_high_as_the_speedups() -> None:
    made = report()
    bars = [bar for bar in picture(made).iter("path") if bar.find("title") is not None]
    heights = []
    for bar in bars:
        ys = [float(y) for y in re.findall(r"[ML] \S+ (\S+)", str(bar.get("d")))]
        heights.append(max(ys) - min(ys))
    assert len(heights) == len(made.rows)
    scale = heights[0] / made.rows[0].speedup
    assert heights == pytest.approx([row.speedup * scale for row in made.rows], abs=0.2)


@pytest.mark.parametrize("real", [True, False])
def test_names_from_files_are_text(real: bool) -> None:
    made = report(real, name=HOSTILE)
    about = {
        "machine": {"cpu": HOSTILE, "cores": HOSTILE},
        "commit": HOSTILE,
        "written": HOSTILE * 1000,
        "arguments": {"suite": f"/home/somebody/{HOSTILE}.epd", "policy": HOSTILE},
        "costs": {"machine": HOSTILE},
    }
    text = page(replace(made, about=about, title=HOSTILE, rule=HOSTILE))
    parsed = check_alone(text)
    assert f"{HOSTILE}0" in parsed.cells
    assert "somebody" not in text
    assert len(text) < 200_000


@pytest.mark.parametrize(
    "about", [{"machine": 7}, {"arguments": [1]}, {"costs": "x", "written": 3}, {"arguments": {"suite": 5}}]
)
def test_logs_that_say_other_things_are_shown_all_the_same(about: dict[str, object]) -> None:
    check_alone(page(replace(report(), about=about)))


def test_ceilings_that_are_no_numbers_are_not_drawn() -> None:
    made = replace(report(), ceilings={2: float("nan"), 4: float("inf")})
    assert "NaN" not in page(made).replace("nan", "") and "ceiling: independent" not in page(made)


def test_one_position_with_one_count() -> None:
    found = [sample for sample in samples(("calibrated",), 1) if sample.threads < 4]
    rows = summarise(found)
    for ceilings in (None, {2: 2.0}):
        parsed = check_alone(page(StudyReport("one", found, rows, "", ceilings=ceilings, interrupted=True)))
        assert any(words.startswith("Interrupted") for words in parsed.words)


def test_many_positions_are_cut_and_that_is_said() -> None:
    text = page(report(positions=MOST_POSITIONS + 3))
    assert "3 positions more are in the raw log" in text
    assert f"<td>p{MOST_POSITIONS - 1}</td>" in text and f"<td>p{MOST_POSITIONS}</td>" not in text


def test_a_report_takes_the_place_of_a_report_only(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    write_report(path, report())
    write_report(path, report(real=False))
    assert "virtual workers" in path.read_text("utf-8")
    assert os.listdir(tmp_path) == ["r.html"]
    path.write_text("<!DOCTYPE html><p>mine</p>")
    with pytest.raises(PsearchError, match="is not a report of psearch"):
        write_report(path, report())
    assert path.read_text() == "<!DOCTYPE html><p>mine</p>"


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.html"
    write_report(path, report())
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(path, report(real=False))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["r.html"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("r.txt", "should end in .html"), ("no/r.html", "its folder does not exist"), ("d.html", "is a folder")],
)
def test_places_that_are_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "d.html").mkdir()
    with pytest.raises(PsearchError, match=said):
        check_report(tmp_path / name)


def test_simulate_writes_one_and_so_does_its_log(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.epd").write_text(
        "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10\n"
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1\n"
    )
    common = ["--workers", "2,4", "--suite", "two.epd", "--depth", "5"]
    status, out, err = run("simulate", *common, "--html", "a.html", "--log", "log.jsonl")
    assert status == 0 and "report: a.html" in err
    status, again, _ = run("simulate", "--from-log", "log.jsonl", "--html", "b.html")
    assert (status, again) == (0, out)
    pages = [Path(name).read_text("utf-8") for name in ("a.html", "b.html")]
    assert [check_alone(text).tags.count("svg") for text in pages] == [1, 1]
    figures = [text[text.index("<body>") : text.index("How it was measured")] for text in pages]
    assert figures[0] == figures[1]
    assert "two.epd" in pages[1] and "cores" in pages[1]
    assert run("simulate", *common, "--html", "two.epd")[0] == 2
