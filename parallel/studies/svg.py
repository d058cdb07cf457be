"""Small pictures as SVG text, to stand inside a page: axes, lines with bands, bars with whiskers, dots.

Nothing is loaded and no script runs: colours are classes (`s0`, `s1`, ...) that the page's style sheet gives values
for, light and dark; lines differ by dashes and marks, too. Each mark says its figures when the pointer rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

SERIES = 8
"""Classes of colours there are; further series begin again."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 14, 50
"""Room around the plot, in units of the picture."""
_MARK = 4.5
_LEGEND_LINE = 18
_LETTER = 7.0
"""Width of a letter of the legend, about."""


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with ticks: values and their labels. With `log` both ends are above zero."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str = ""
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one."""
        if self.log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def ticks_for(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers within, at most so many or one more: steps of 1, 2 or 5 times a power of ten.

    >>> ticks_for(0, 4.2)
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    rough = max(high - low, 1e-9) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def number_axis(low: float, high: float, title: str, percent: bool = False) -> Axis:
    """With round ticks; percent: values are shares."""
    ticks = [(value, f"{value:.0%}" if percent else f"{value:g}") for value in ticks_for(low, high)]
    return Axis(low, high, ticks, title)


def doubling_axis(values: Sequence[float], title: str) -> Axis:
    """Logarithmic, over these values, which are its ticks."""
    low, high = min(values), max(values)
    return Axis(low, high if high > low else 2 * low, [(value, f"{value:g}") for value in values], title, log=True)


def _n(value: float) -> str:
    """A coordinate."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass
class Picture:
    """A plot between two axes, to be drawn into, and its legend.

    name, description: what it is and what it shows, for those who do not see it.
    """

    x: Axis
    y: Axis
    name: str
    description: str
    width: int = 720
    height: int = 360
    _drawn: list[str] = field(default_factory=list)
    _legend: list[tuple[str, str]] = field(default_factory=list)
    """markup of the sign, drawn at (0, 0), and words"""

    # -- places --------------------------------------------------------------------------------------------------------

    def at_x(self, value: float) -> float:
        """Where a value lies across."""
        return _LEFT + self.x.share(value) * (self.width - _LEFT - _RIGHT)

    def at_y(self, value: float) -> float:
        """Where a value lies up and down; outside of the plot is on its edge."""
        share = min(max(self.y.share(value), 0.0), 1.0)
        return self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def ideal(self, points: Sequence[tuple[float, float]], label: str) -> None:
        """A dashed grey line, for comparison."""
        self._drawn.append(f'<polyline class="ideal" points="{self._points(points)}"/>')
        if label:
            self._add_legend('<line class="ideal" x1="0" y1="0" x2="24" y2="0"/>', label)

    def line(self, points: Sequence[tuple[float, float]], series: int, label: str, says: Sequence[str] = ()) -> None:
        """A line with a mark at each point; says: what each of them is; label: for the legend, if any."""
        style = f"s{series % SERIES} d{series % SERIES}"
        self._drawn.append(f'<polyline class="line {style}" points="{self._points(points)}"/>')
        for number, (x, y) in enumerate(points):
            self._mark(self.at_x(x), self.at_y(y), series, says[number] if number < len(says) else "")
        if label:
            sign = f'<line class="line {style}" x1="0" y1="0" x2="24" y2="0"/>{_sign(12, 0, series)}'
            self._add_legend(sign, label)

    def band(self, points: Sequence[tuple[float, float, float]], series: int) -> None:
        """Between a lower and an upper line: x, low, high."""
        there = [(x, low) for x, low, _ in points]
        back = [(x, high) for x, _, high in reversed(points)]
        self._drawn.append(f'<polygon class="band s{series % SERIES}" points="{self._points([*there, *back])}"/>')

    def bar(self, x: float, width: float, value: float, series: int, says: str) -> None:
        """From zero up; x, width: on the axis, x its middle."""
        left, right = self.at_x(x - width / 2), self.at_x(x + width / 2)
        top, floor = self.at_y(value), self.at_y(self.y.low)
        shape = f'x="{_n(left)}" y="{_n(top)}" width="{_n(right - left)}" height="{_n(floor - top)}"'
        self._drawn.append(f'<rect class="bar s{series % SERIES}" {shape}>{_title(says)}</rect>')
        where = f'x="{_n((left + right) / 2)}" y="{_n(floor - 6)}"'
        self._drawn.append(f'<text class="inside" text-anchor="middle" {where}>{value:.2f}</text>')

    def whisker(self, x: float, low: float, high: float) -> None:
        """An interval."""
        across, below, above = self.at_x(x), self.at_y(low), self.at_y(high)
        ends = " ".join(f"M{_n(across - 4)} {_n(y)}h8" for y in (below, above))
        self._drawn.append(f'<path class="whisker" d="M{_n(across)} {_n(below)}V{_n(above)} {ends}"/>')

    def dot(self, x: float, y: float, says: str) -> None:
        """One of many."""
        where = f'cx="{_n(self.at_x(x))}" cy="{_n(self.at_y(y))}"'
        self._drawn.append(f'<circle class="dot" {where} r="2.2">{_title(says)}</circle>')

    def level(self, x: float, width: float, value: float, says: str, label: str) -> None:
        """A dashed grey stroke."""
        left, right, y = self.at_x(x - width / 2), self.at_x(x + width / 2), self.at_y(value)
        place = f'x1="{_n(left)}" x2="{_n(right)}" y1="{_n(y)}" y2="{_n(y)}"'
        self._drawn.append(f'<line class="ideal" {place}>{_title(says)}</line>')
        if label:
            self._add_legend('<line class="ideal" x1="0" y1="0" x2="24" y2="0"/>', label)

    def key(self, series: int, label: str) -> None:
        """A line of the legend for bars."""
        self._add_legend(f'<rect class="bar s{series % SERIES}" x="4" y="-6" width="16" height="12"/>', label)

    def _add_legend(self, sign: str, label: str) -> None:
        self._legend.append((sign, label))

    def _points(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{_n(self.at_x(x))},{_n(self.at_y(y))}" for x, y in points)

    def _mark(self, x: float, y: float, series: int, says: str) -> None:
        self._drawn.append(f"<g>{_title(says)}{_sign(x, y, series)}</g>")

    # -- the whole -----------------------------------------------------------------------------------------------------

    def markup(self) -> str:
        """The `<svg>` element, as wide as its place."""
        legend, below = self._placed_legend()
        height = self.height + below
        return (
            f'<svg role="img" viewBox="0 0 {self.width} {height}" aria-label="{escape(self.name)}">'
            f"<title>{escape(self.name)}</title><desc>{escape(self.description)}</desc>"
            f"{self._axes()}{''.join(self._drawn)}{legend}</svg>"
        )

    def _axes(self) -> str:
        left, right, floor = _LEFT, self.width - _RIGHT, self.height - _BOTTOM
        parts = []
        for value, label in self.y.ticks:
            y = _n(self.at_y(value))
            parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>')
            parts.append(f'<text text-anchor="end" x="{left - 6}" y="{y}" dy="0.35em">{escape(label)}</text>')
        for value, label in self.x.ticks:
            x = _n(self.at_x(value))
            if self.x.log:
                parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{floor}"/>')
            parts.append(f'<text text-anchor="middle" x="{x}" y="{floor + 18}">{escape(label)}</text>')
        parts.append(f'<path class="axis" d="M{left} {_TOP}V{floor}H{right}"/>')
        middle = (left + right) / 2
        parts.append(f'<text text-anchor="middle" x="{_n(middle)}" y="{floor + 40}">{escape(self.x.title)}</text>')
        turn = f'transform="translate(16 {_n((_TOP + floor) / 2)}) rotate(-90)"'
        parts.append(f'<text text-anchor="middle" {turn}>{escape(self.y.title)}</text>')
        return "".join(parts)

    def _placed_legend(self) -> tuple[str, int]:
        """Its markup below the plot, and how high it is."""
        parts = []
        x, line = float(_LEFT), 0
        for sign, label in self._legend:
            wide = 34 + _LETTER * len(label) + 18
            if x > _LEFT and x + wide > self.width - _RIGHT:
                x, line = float(_LEFT), line + 1
            y = self.height + _LEGEND_LINE * line + 8
            words = f'<text x="32" y="0" dy="0.35em">{escape(label)}</text>'
            parts.append(f'<g transform="translate({_n(x)} {y})">{sign}{words}</g>')
            x += wide
        return "".join(parts), _LEGEND_LINE * (line + 1) + 8 if self._legend else 0


def _title(says: str) -> str:
    return f"<title>{escape(says)}</title>" if says else ""


def _sign(x: float, y: float, series: int) -> str:
    """A mark of a shape of its own: circle, square, diamond, triangle, in turn."""
    r, kind, style = _MARK, series % 4, f'class="mark s{series % SERIES}"'
    if kind == 0:
        return f'<circle {style} cx="{_n(x)}" cy="{_n(y)}" r="{r}"/>'
    shapes = {
        1: ((-r, -r), (r, -r), (r, r), (-r, r)),
        2: ((0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)),
        3: ((0, -1.2 * r), (1.2 * r, r), (-1.2 * r, r)),
    }
    corners = " ".join(f"{_n(x + dx)},{_n(y + dy)}" for dx, dy in shapes[kind])
    return f'<polygon {style} points="{corners}"/>'
