"""A terminal that becomes narrower while something is redrawn on it."""

from __future__ import annotations

import sys

import pytest
from rich.console import Console
from rich.text import Text
from terminals import CONTROL, Screen, Terminal

from psearch.terminal.live_display import AnalysisProgress, ShrinkableLive


def frame(number: int) -> Text:
    return Text(f"frame {number}: {'x' * 60}\nshort\n\n{'y' * 75}", no_wrap=True, overflow="ellipsis")


def shown(widths: list[int], screen: Screen) -> list[str]:
    """What stands on the screen in the end, of frames for these widths between two lines."""
    output = Terminal()
    console = Console(file=output, force_terminal=True, width=widths[0], height=24)
    console.print("before")
    with ShrinkableLive(console=console, auto_refresh=False, transient=True) as live:
        for number, width in enumerate(widths):
            console.size = (width, 24)  # type: ignore[assignment]  # rich's setter takes any pair
            screen.feed(output.take())
            screen.resize(width)
            live.update(frame(number), refresh=True)
            assert all(len(line) <= width for line in screen.lines)
        screen.feed(output.take())
        assert sum("frame" in line for line in screen.lines) == 1
    console.print("after")
    screen.feed(output.take())
    return [line for line in screen.lines if line]


@pytest.mark.parametrize("widths", [[80], [80, 40], [80, 79, 30, 7], [80, 20, 80], [20, 80, 20], [76, 75, 74]])
def test_nothing_stays_of_earlier_frames(widths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    assert shown(widths, Screen(widths[0])) == ["before", "after"]


class CuttingScreen(Screen):
    """Cuts off what has no room."""

    def resize(self, width: int) -> None:
        for row in self._rows:
            row.text = row.text[:width]
        self._column = min(self._column, width)
        self.width = width


@pytest.mark.parametrize("name", ["XTERM_VERSION", "TERM"])
def test_terminals_that_cut_lose_nothing_else(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, "linux")
    assert shown([80, 30, 20], CuttingScreen(80)) == ["before", "after"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_table_of_players_cuts_names_only(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal()
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setenv("COLUMNS", str(width))
    head = ("player", "accuracy", "loss, cp", "?!", "?", "??")
    with AnalysisProgress(None) as progress:
        output.take()
        progress.show_table(
            "game 1", head, [["White, a name that is longer than any row", "98.7%", "12", "3", "2", "1"]]
        )
    text = CONTROL.sub("", output.take())
    rows = text[text.index("game 1") :].splitlines()[1:3]
    assert all(len(row) <= width for row in rows)
    assert rows[0].split()[-6:] == ["accuracy", "loss,", "cp", "?!", "?", "??"]
    assert rows[1].split()[-5:] == ["98.7%", "12", "3", "2", "1"]


def test_the_bar_of_an_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal()
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    screen = Screen(80)
    with AnalysisProgress(10) as progress:
        for width in (80, 30, 12, 60):
            screen.feed(output.take())
            screen.resize(width)
            monkeypatch.setenv("COLUMNS", str(width))
            progress._bar.console.size = (width, 24)  # type: ignore[assignment]  # rich's setter takes any pair
            progress.say(f"game of {width}")
            progress._draw()
        screen.feed(output.take())
        assert sum("game" in line for line in screen.lines) == 1
    screen.feed(output.take())
    assert not any(screen.lines)
    with AnalysisProgress(None) as progress:
        progress.advance(searched=True)
        progress._draw()
        screen.feed(output.take())
        shown = " ".join(screen.lines)
        assert "1 positions" in shown and "left" not in shown
    screen.feed(output.take())
    assert not any(screen.lines)
