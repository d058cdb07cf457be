"""The summary of a game's players as people read it: a title and rows of words."""

from __future__ import annotations

import chess

from psearch.analysis.judgement import MARK_NAMES, JudgedGame

PLAYER_COLUMNS = ("player", "accuracy", "loss, cp", *MARK_NAMES)
"""the head of the rows"""


def game_title(judged: JudgedGame, file: str | None) -> str:
    """`game 3: London, 1851.06.21, 1-0`; with the name of the file if it is given. What the tags do not say is left
    out."""
    headers = judged.work.game.headers
    facts = (headers.get(name, "").replace(".??", "") for name in ("Event", "Date", "Result"))
    known = ", ".join(fact for fact in facts if fact.strip("?.* "))
    title = f"game {judged.work.number}"
    if file is not None:
        title = f"{file}, {title}"
    return f"{title}: {known}" if known else title


def player_rows(judged: JudgedGame) -> list[list[str]]:
    """White's row and Black's, under `PLAYER_COLUMNS`; `-` where there was no move to judge."""
    rows = []
    for color in chess.COLORS:
        side = chess.COLOR_NAMES[color].capitalize()
        name = judged.work.game.headers.get(side, "?")
        player = judged.players[color]
        accuracy = "-" if player.accuracy is None else f"{player.accuracy:.1f}%"
        loss = "-" if player.average_loss is None else f"{player.average_loss:.0f}"
        marks = [str(player.marks.get(mark, 0)) for mark in MARK_NAMES]
        rows.append([side if name.strip("? ") == "" else f"{side}, {name}", accuracy, loss, *marks])
    return rows
