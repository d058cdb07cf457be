"""The pictures of the studies: every line can be seen, and a picture says what its legend says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from psearch.lab.studies.comparisons import Row
from psearch.lab.studies.plots import plot_prediction, plot_simulation, plot_speedup
from psearch.lab.studies.prediction_study import ReliabilityBin, RuleReport

BINS = [ReliabilityBin(100, share / 10, share / 10) for share in range(1, 10)]
REPORT = RuleReport("", 1e5, 2e5, {}, {}, {}, 0.9, 0.2, 0.1, 0.1, BINS, BINS, BINS, 0.1, 0.9, {})
ROW = Row("", 4, 20, 3.0, 2.5, 3.5, 3.8, 1.2, 0.1, 10.0, 20.0, 0.05)


def seen(path: Path, lines: int) -> list[int]:
    """Pixels of each line's colour."""
    from matplotlib.colors import to_rgb
    from matplotlib.image import imread

    picture = imread(path)[:, :, :3]
    return [int((abs(picture - to_rgb(f"C{number}")).max(axis=2) < 0.02).sum()) for number in range(lines)]


def description(path: Path) -> str:
    from matplotlib import image

    with image.PIL.Image.open(path) as picture:  # type: ignore[attr-defined]
        return str(picture.text["Description"])


def test_rules_that_agree_are_all_seen(tmp_path: Path) -> None:
    path = tmp_path / "predict.png"
    rules = ["knuth", "garms", "kannan", "felten", "calibrated"]
    plot_prediction(path, [replace(REPORT, rule=rule) for rule in rules], "all the same")
    pixels = seen(path, len(rules))
    assert min(pixels) > max(pixels) / 3
    assert description(path) == "; ".join(rules)


def test_policies_that_agree_are_all_seen(tmp_path: Path) -> None:
    path = tmp_path / "simulate.png"
    rows = [replace(ROW, policy=policy, threads=count) for policy in ("calibrated", "ybw") for count in (4, 8)]
    plot_simulation(path, rows, "the same")
    pixels = seen(path, 2)
    assert min(pixels) > max(pixels) / 3
    assert description(path) == "calibrated; ybw"


def test_what_keeps_a_picture_from_meaning_much_stands_in_it(tmp_path: Path) -> None:
    from matplotlib import image

    drawn = {
        "simulate": lambda path, notes: plot_simulation(path, [ROW], "a", notes),
        "speedup": lambda path, notes: plot_speedup(path, [], [ROW], {4: 3.9}, "a", notes),
        "predict": lambda path, notes: plot_prediction(path, [replace(REPORT, rule="garms")], "a", notes),
    }
    for name, draw in drawn.items():
        path = tmp_path / f"{name}.png"
        draw(path, [])
        without = path.read_bytes()
        draw(path, ["few positions: two", "small trees"])
        with image.PIL.Image.open(path) as picture:  # type: ignore[attr-defined]
            assert picture.text["Warning"] == "few positions: two; small trees"
        assert path.read_bytes() != without


def test_one_position_is_drawn_without_an_interval(tmp_path: Path) -> None:
    one = replace(ROW, positions=1, low=None, high=None)
    plot_simulation(tmp_path / "simulate.png", [one], "one")
    with_interval, without = tmp_path / "a.png", tmp_path / "b.png"
    for path, row in ((with_interval, ROW), (without, one)):
        plot_speedup(path, [], [row], {4: 3.9}, "one", [])
    assert with_interval.read_bytes() != without.read_bytes()
