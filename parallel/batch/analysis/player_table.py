"""The summary of a game's players as people read it: a title and rows of words."""

from __future__ import annotations

import statistics

import chess

from psearch.batch.analysis.accuracy import PlayerSummary
from psearch.batch.analysis.judgement import MARK_NAMES, JudgedGame

PLAYER_COLUMNS = ("player", "accuracy", "loss, cp", *MARK_NAMES)
"""the head of the rows"""
TOTAL_COLUMNS = ("player", "games", *PLAYER_COLUMNS[1:])
"""the head of the rows of many games"""
_MOST_PLAYERS = 30


def game_title(judged: JudgedGame, file: str | None) -> str:
    """Return `game 3: London, 1851.06.21, 1-0`; with the name of the file if it is given. What the tags do not say is
    left out."""
    headers = judged.work.game.headers
    facts = (headers.get(name, "").replace(".??", "") for name in ("Event", "Date", "Result"))
    known = ", ".join(fact for fact in facts if fact.strip("?.* "))
    title = f"game {judged.work.number}"
    if file is not None:
        title = f"{file}, {title}"
    return f"{title}: {known}" if known else title


class Players:
    """What the players of many games did, added up by their names."""

    def __init__(self) -> None:
        self._games: dict[str, list[PlayerSummary]] = {}

    def add(self, judged: JudgedGame) -> None:
        """Add a game; a side without a name, or without a judged move, does not count."""
        for color in chess.COLORS:
            name = judged.work.game.headers.get(chess.COLOR_NAMES[color].capitalize(), "").strip("? ")
            if name and judged.players[color].moves:
                self._games.setdefault(name, []).append(judged.players[color])

    def rows(self) -> list[list[str]]:
        """Return those with the most games under `TOTAL_COLUMNS`, the most accurate first; nobody, if all have one
        game.

        Accuracy is the mean of the games, loss that of the moves.
        """
        most = sorted(self._games.items(), key=lambda item: -len(item[1]))[:_MOST_PLAYERS]
        if not most or len(most[0][1]) == 1:
            return []
        totals = []
        for name, games in most:
            accuracy = statistics.fmean(game.accuracy or 0.0 for game in games)
            loss = statistics.fmean((game.average_loss or 0.0 for game in games), [game.moves for game in games])
            marks = [str(sum(game.marks.get(mark, 0) for game in games)) for mark in MARK_NAMES]
            totals.append((accuracy, [name, f"{len(games):,}", f"{accuracy:.1f}%", f"{loss:.0f}", *marks]))
        return [row for _, row in sorted(totals, key=lambda total: -total[0])]


def player_rows(judged: JudgedGame) -> list[list[str]]:
    """Return White's row and Black's, under `PLAYER_COLUMNS`; `-` where there was no move to judge."""
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
