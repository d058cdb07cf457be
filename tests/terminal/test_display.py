"""What stdout shows: lines, the live table, a drawn board."""

from __future__ import annotations

import chess
import chess.engine
import pytest
from reports import cp, moves, workers
from rich.console import Console, ConsoleDimensions

from psearch.results import Info
from psearch.terminal.board_drawing import board_text
from psearch.terminal.display import LineDisplay
from psearch.terminal.live_display import search_view

ROOK_ENDING = "8/8/8/8/3k4/8/8/3K3R w - - 0 1"


def test_the_board_in_colour() -> None:
    """Every square has a background, and no figure is hollow: those vanish on some backgrounds."""
    text = board_text(chess.Board(ROOK_ENDING))
    rows = text.plain.splitlines()
    assert rows[4] == "4           ♚             "
    assert rows[8].split() == list("abcdefgh")
    assert len({str(span.style) for span in text.spans}) >= 4
    assert not set("♔♕♖♗♘♙") & set(text.plain)
    assert board_text(chess.Board(ROOK_ENDING.replace("w", "b"))).plain.splitlines()[0].startswith("1 ")


def test_lines_print_what_is_new_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Reports of two lines take turns; counters alone are no news."""
    board = chess.Board()
    first = Info(5, 9, cp(30), "exact", 900, 1.0, moves("e2e4"), multipv=1)
    second = Info(5, 9, cp(25), "exact", 950, 1.1, moves("d2d4"), multipv=2)
    with LineDisplay(board) as display:
        for info in (first, second, first, second):
            display(info)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_lines_only_for_news(capsys: pytest.CaptureFixture[str]) -> None:
    display = LineDisplay(chess.Board())
    for nodes in (10, 20, 30):
        display(Info(3, 3, cp(5), "exact", nodes, 1.0, moves("e2e4")))
    display(Info(0, 0, cp(0), "exact", 0, 0.0))
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 64, 1024])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (200, 60)])
def test_live_display_fits_the_terminal(count: int, width: int, height: int) -> None:
    console = Console(width=width, height=height, force_terminal=True, color_system=None, record=True)
    info = Info(9, 17, cp(31), "exact", 1234567, 0.8, moves("e2e4", "e7e5", "g1f3"), workers(count))
    with console.capture() as capture:
        console.print(search_view(chess.Board(), info, ConsoleDimensions(width, height)))
    lines = capture.get().splitlines()
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert "pv e4 e5 Nf3" in capture.get()
    assert f"mean of {count}" in capture.get() or count <= 16
