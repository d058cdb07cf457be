"""What `psearch analyse --json` prints of answers and games. Moves are UCI, scores for the side to move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import chess

from psearch.batch.analysis.accuracy import PlayerSummary
from psearch.batch.analysis.analyser import PositionAnswer
from psearch.batch.analysis.judgement import MARK_NAMES, JudgedGame, Tally
from psearch.batch.positions.comparing import scores_of
from psearch.batch.positions.jobs import Comparison
from psearch.files.json_text import json_value
from psearch.results import PsearchError
from psearch.text.report import score_object, terminal_kind


def json_object_of(text: str) -> dict[str, Any]:
    """Return what a line of JSON has. Raises PsearchError when that is no object."""
    try:
        values = json_value(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise PsearchError("not a JSON object")
    return values


def answer_fields(answer: PositionAnswer) -> dict[str, Any]:
    """Return what was found in a position."""
    return {
        "bestmove": answer.best,
        "score": score_object(answer.score, answer.bound),
        "depth": answer.depth,
        "seldepth": answer.seldepth,
        "nodes": answer.nodes,
        "time": answer.time_s,
        "tbhits": answer.tbhits,
        "pv": answer.pv,
    }


def game_object(judged: JudgedGame, file: str) -> dict[str, Any]:
    """Return a game. file: as the user named it."""
    work = judged.work
    return {
        "file": file,
        "game": work.number,
        "headers": dict(work.game.headers),
        "problem": work.problem.text if work.problem is not None else None,
        "players": {chess.COLOR_NAMES[color]: _player_object(judged.players[color]) for color in chess.COLORS},
        "positions": list(_positions(judged)) if work.readable else [],
    }


def games_summary(tally: Tally, total: int) -> dict[str, Any]:
    """Return all games. total: how many there are, finished or not."""
    return {
        "games": total,
        "finished": tally.games,
        "positions": tally.positions,
        **_mark_counts(tally.marks),
        **({} if tally.kept is None else {"kept": tally.kept}),
    }


def _player_object(player: PlayerSummary) -> dict[str, Any]:
    return {
        "moves": player.moves,
        "accuracy": None if player.accuracy is None else round(player.accuracy, 2),
        "average_loss": None if player.average_loss is None else round(player.average_loss, 2),
        **_mark_counts(player.marks),
    }


def _mark_counts(marks: Mapping[str, int]) -> dict[str, int]:
    return {name: marks.get(mark, 0) for mark, name in MARK_NAMES.items()}


def _compared_object(compared: Comparison | None) -> dict[str, Any] | None:
    """The two moves; of a position as it was searched, so that a later run can go on with it."""
    if compared is None:
        return None
    best, played = scores_of(compared)
    return {
        "depth": compared.depth,
        "depths": compared.depths,
        "bestmove": compared.best,
        "score": score_object(best, "exact"),
        "played": score_object(played, "exact"),
        "pv": compared.pv,
    }


def _positions(judged: JudgedGame) -> Iterator[dict[str, Any]]:
    """The positions of the main line, each with the move that was played in it."""
    board = judged.work.game.board()
    played = list(judged.work.game.mainline_moves())
    for ply in range(len(played) + 1):
        values: dict[str, Any] = {"ply": ply, "fen": board.fen()}
        if ply in judged.answers:
            values |= answer_fields(judged.answers[ply])
        elif not any(board.legal_moves):
            values["result"] = terminal_kind(board)
        if ply < len(played):
            move, found = played[ply], judged.moves[ply]
            values |= {"move": board.uci(move), "san": board.san(move), "mark": found.mark}
            values["loss"] = None if found.loss is None else round(found.loss, 4)
            values["compared"] = None if ply not in judged.answers else _compared_object(judged.answers[ply].compared)
            board.push(move)
        yield values
