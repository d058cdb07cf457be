"""Games: which positions of a PGN are analysed, what a search thinks of the moves, and how that is written into the
game, for programs, and as a table.

`psearch.text.pgn_text` reads, `chess.pgn` writes. Evaluations are `[%eval ...]` comments seen from White, as GUIs
and web sites read them; a move that cost much gets the mark ?!, ? or ?? and the better line as a variation.

Accuracy, average centipawn loss and counts of marks are those of lichess.org. From scores of the positions a chance to
win is made, from what a move took from it the accuracy of the move, from those the accuracy of the player. The formulas
and their constants are those that lichess.org explains on https://lichess.org/page/accuracy and uses in
`WinPercent.scala`, `AccuracyPercent.scala` and `AccuracyCP.scala` of https://github.com/lichess-org/lila; the code is
our own.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import chess
import chess.engine
import chess.pgn
import numpy as np

from psearch.batch.positions.comparing import LEAST_LOSS, MOST_BEHIND, compared_loss, loss_of, sure_loss
from psearch.batch.positions.task import Answer, Comparison
from psearch.text.pgn_text import PgnGame
from psearch.text.report import relative_text, terminal_kind
from psearch.text.values import counted
from psearch_core.records import MAX_HISTORY

MARKS = (
    (0.15, chess.pgn.NAG_BLUNDER, "??"),
    (0.10, chess.pgn.NAG_MISTAKE, "?"),
    (LEAST_LOSS, chess.pgn.NAG_DUBIOUS_MOVE, "?!"),
)
"""Least loss of expected points (0 to 1), NAG, and how people write it; the worst first. The thresholds are those of
lichess.org (0.3, 0.2 and 0.1 on its scale from -1 to 1), the expected points those of `psearch.text.wdl`."""
MARK_NAMES = {"?!": "inaccuracies", "?": "mistakes", "??": "blunders"}
"""What lichess.org calls the moves that have them."""
_CHANCE_PER_CP = 0.00368208
"""Slope of the logistic curve that lichess fitted to games of players of 2300."""
_CAP_CP = 1_000
"""Scores beyond that, and mates, count as that much."""
_CURVE = (103.1668100711649, -0.04354415386753951, -3.166924740191411)
"""The accuracy is a * exp(b * loss) + c, with the loss in percent of the chance to win."""
_UNCERTAINTY_BONUS = 1.0
"""Percent for each move that lost something: analysis errs, too."""
_WINDOW_SHARE = 10
"""A window is the number of moves over this, within `_WINDOW_PLIES`."""
_WINDOW_PLIES = (2, 8)
_WEIGHTS = (0.5, 12.0)
"""Least and largest weight of a move: the standard deviation, in percent, of the chances around it."""
_LEAST_IN_HARMONIC_MEAN = 1.0
"""Least accuracy in percent that counts: one move must not decide everything."""
_NAGS = {mark: nag for _, nag, mark in MARKS}
_LINE_PLIES = 10
"""Length of a variation that shows what was better."""
_ASSESSMENTS = frozenset(range(chess.pgn.NAG_GOOD_MOVE, chess.pgn.NAG_DUBIOUS_MOVE + 1))
"""!, ?, !!, ??, !? and ?!: a move that has one keeps it."""
_COLUMNS = 80
"""Longest line of a PGN."""
MOST_PV_PLIES = 20
"""Length of the lines that programs are given, at most."""
PLAYER_COLUMNS = ("player", "accuracy", "loss, cp", *MARK_NAMES)
"""Head of the rows."""
TOTAL_COLUMNS = ("player", "games", *PLAYER_COLUMNS[1:])
"""Head of the rows of many games."""
_MOST_PLAYERS = 30
_EVAL = re.compile(r"\[%eval [^\]]*\]")
_BOUND_WORDS = re.compile(rf"({_EVAL.pattern}) at (?:least|most) [-+#][-\d.]+")


@dataclass(frozen=True)
class Place:
    """A position of a game that has to be searched."""

    ply: int
    """moves played before it"""
    board: chess.Board
    """with the last moves of the game on its stack, as many as a search looks at"""
    line: list[chess.Move]
    """the first moves that follow in the game, up to a null move"""


def positions(work: PgnGame) -> Iterator[Place]:
    """Yield the positions of a game from the last to the first, so that the table knows what the moves led to.

    A position is left out when it has no legal move, or is none (after a null move). One board with the history of the
    whole game is in memory, beside what the caller keeps.
    """
    moves = list(work.game.mainline_moves())
    for board in _positions(work):
        ply = len(board.move_stack)
        line = list(itertools.takewhile(bool, moves[ply : ply + MOST_BEHIND]))
        yield Place(ply, board.copy(stack=MAX_HISTORY), line)


def count_positions(work: PgnGame) -> int:
    """Return how many there are."""
    return sum(1 for _ in _positions(work))


def _positions(work: PgnGame) -> Iterator[chess.Board]:
    """Yield the positions of a game that can be searched, all on one board that goes back move by move."""
    if not work.readable or work.game.next() is None:
        return
    board = work.game.board()
    for move in work.game.mainline_moves():
        board.push(move)
    while True:
        if board.is_valid() and any(board.legal_moves):
            yield board
        if not board.move_stack:
            return
        board.pop()


# -- what the moves are worth ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgedMove:
    """A move of the main line."""

    mover: chess.Color
    before: chess.engine.PovScore | None
    """of the position before it; None where that was not searched"""
    score: chess.engine.PovScore | None
    """of the position after it; None where that was not searched"""
    is_best: bool = False
    """the search would have played it, and it has no mark: it loses nothing, whatever the two searches say"""
    loss: float | None = None
    """expected points that it gave away, 0 to 1; None where that cannot be said"""
    compared: Comparison | None = None
    """with the best move, where it may be a mistake: by these scores it is judged"""
    mark: str | None = None
    """?!, ? or ??"""

    @property
    def _best_and_played_cp(self) -> tuple[int, int]:
        """Scores for the mover."""
        if self.compared is not None:
            return capped_cp(self.compared.best_score), capped_cp(self.compared.played_score)
        assert self.before is not None and self.score is not None
        return capped_cp(self.before.pov(self.mover)), capped_cp(self.score.pov(self.mover))

    @property
    def loss_cp(self) -> int:
        """Centipawns that the mover lost, at least 0."""
        best, played = self._best_and_played_cp
        return 0 if self.is_best else max(0, best - played)

    @property
    def accuracy(self) -> float:
        """0 to 100."""
        return 100.0 if self.is_best else move_accuracy(*map(win_percent, self._best_and_played_cp))


@dataclass(frozen=True)
class PlayerSummary:
    """How one side played one game."""

    moves: int
    """those that were judged"""
    accuracy: float | None
    """percent; None without a move"""
    average_loss: float | None
    """centipawns; None without a move"""
    marks: Mapping[str, int]
    """how many moves got ?!, ?, ??; a mark that none got is not there"""


@dataclass(frozen=True)
class JudgedGame:
    """A game with what was found in it."""

    work: PgnGame
    answers: Mapping[int, Answer]
    """of its positions, by the number of plies played before them"""
    moves: list[JudgedMove]
    """one for each move of the main line"""
    players: Mapping[chess.Color, PlayerSummary]


def judge_game(work: PgnGame, answers: Mapping[int, Answer]) -> JudgedGame:
    """Judge each move of the main line by the answers for the positions before and after it."""
    moves = list(_judge_moves(work, answers)) if work.readable else []
    return JudgedGame(work, answers, moves, summarise(moves))


def _judge_moves(work: PgnGame, answers: Mapping[int, Answer]) -> Iterator[JudgedMove]:
    board = work.game.board()
    score = _score_of(board, answers.get(0))
    for ply, move in enumerate(work.game.mainline_moves()):
        after = board.copy(stack=False)
        after.push(move)
        best, reached = answers.get(ply), answers.get(ply + 1)
        before, score = score, _score_of(after, reached)
        is_best = best is not None and bool(move) and best.move(board) == move
        loss, compared, mark = 0.0 if is_best else None, None, None
        if best is not None and move:
            compared = best.compared
            if not is_best and (reached is not None or not any(after.legal_moves)):
                loss = loss_of(board, after, best.estimate[0], None if reached is None else reached.estimate[0])
        if compared is not None:
            sure = sure_loss(board, compared)
            mark = next((mark for least, _, mark in MARKS if sure >= least), None)
            is_best = is_best and mark is None  # two comparisons know better
            loss = 0.0 if is_best else compared_loss(board, compared)
        yield JudgedMove(board.turn, before, score, is_best, loss, compared, mark)
        board = after


def _score_of(board: chess.Board, answer: Answer | None) -> chess.engine.PovScore | None:
    """Return the score of a position; the rules know that of one where the game is over."""
    if answer is not None:
        return chess.engine.PovScore(answer.estimate[0], board.turn)
    if board.is_checkmate():
        return chess.engine.PovScore(chess.engine.Mate(0), board.turn)
    return chess.engine.PovScore(chess.engine.Cp(0), board.turn) if board.is_stalemate() else None


def capped_cp(score: chess.engine.Score) -> int:
    """Return centipawns from -1000 to 1000; a mate counts as the end of that range."""
    return max(-_CAP_CP, min(_CAP_CP, score.score(mate_score=1_000_000)))


def win_percent(cp: float) -> float:
    """Return the chance to win, 0 to 100, of the side that has a score in centipawns.

    >>> win_percent(0), round(win_percent(100), 1), round(win_percent(-1000), 1)
    (50.0, 59.1, 2.5)
    """
    return 50 + 50 * (2 / (1 + math.exp(-_CHANCE_PER_CP * cp)) - 1)


def move_accuracy(before: float, after: float) -> float:
    """Return the accuracy of a move, 0 to 100, from the mover's chances before and after it in percent.

    >>> move_accuracy(50, 55), round(move_accuracy(50, 40), 1)
    (100.0, 64.6)
    """
    if after >= before:
        return 100.0
    factor, rate, offset = _CURVE
    return max(0.0, min(100.0, factor * math.exp(rate * (before - after)) + offset + _UNCERTAINTY_BONUS))


def summarise(moves: Sequence[JudgedMove]) -> dict[chess.Color, PlayerSummary]:
    """Return both sides of a game, from its moves in order; those without scores do not count."""
    scored = [move for move in moves if None not in (move.before, move.score, move.loss)]
    return {color: _summary_of(color, scored, _volatilities(scored)) for color in chess.COLORS}


def _summary_of(color: chess.Color, moves: Sequence[JudgedMove], weights: Sequence[float]) -> PlayerSummary:
    own = [(move, weight) for move, weight in zip(moves, weights, strict=True) if move.mover == color]
    marks = Counter(move.mark for move, _ in own if move.mark is not None)
    if not own:
        return PlayerSummary(0, None, None, marks)
    accuracies = [move.accuracy for move, _ in own]
    weighted = min(max(accuracies), statistics.fmean(accuracies, [weight for _, weight in own]))  # but for rounding
    harmonic = statistics.harmonic_mean([max(_LEAST_IN_HARMONIC_MEAN, value) for value in accuracies])
    average_loss = statistics.fmean(move.loss_cp for move, _ in own)
    return PlayerSummary(len(own), (weighted + harmonic) / 2, average_loss, marks)


def _volatilities(moves: Sequence[JudgedMove]) -> list[float]:
    """The weight of each move: how much the chances move in the window that ends with the position after it.

    The first moves, whose windows would begin before the game, have the weight of the first window.
    """
    if not moves:
        return []
    scores = [moves[0].before, *(move.score for move in moves)]
    chances = [win_percent(capped_cp(score.white())) for score in scores if score is not None]
    least, most = _WINDOW_PLIES
    size = max(least, min(most, len(moves) // _WINDOW_SHARE))
    deviations = np.lib.stride_tricks.sliding_window_view(chances, size).std(axis=1)
    weights: list[float] = np.clip(deviations, *_WEIGHTS).tolist()
    return [weights[0]] * (size - 2) + weights


@dataclass
class Tally:
    """What was found in the games so far."""

    games: int = 0
    positions: int = 0
    marks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MARK_NAMES, 0))
    kept: int | None = None
    """answers that were there already; None: there were none to be counted"""

    def add(self, judged: JudgedGame, kept: int = 0) -> None:
        """Add a finished game. kept: of its answers."""
        self.games += 1
        if self.kept is not None:
            self.kept += kept
        self.positions += len(judged.answers)
        for move in judged.moves:
            if move.mark is not None:
                self.marks[move.mark] += 1

    def text(self) -> str:
        """Return one line."""
        found = ", ".join(f"{count} {mark}" for mark, count in self.marks.items())
        kept = "" if self.kept is None else f", {self.kept:,} kept from older results"
        return f"{counted(self.games, 'game')}, {counted(self.positions, 'position')}, {found}{kept}"


# -- in the game ---------------------------------------------------------------------------------------------------


def annotate(judged: JudgedGame, annotator: str) -> str:
    """Write what was found into the game; the game as PGN, with an empty line after it.

    annotator: begins with `psearch `; other annotators stay.
    """
    work = judged.work
    if not work.readable:
        return work.original() + "\n\n"
    _set_tags(work.game.headers, judged.players, annotator)
    node: chess.pgn.GameNode = work.game
    board = work.game.board()
    for ply, found in enumerate(judged.moves):
        child = node.next()
        assert child is not None
        if found.mark is not None and found.compared is not None:
            if not child.nags & _ASSESSMENTS:
                child.nags.add(_NAGS[found.mark])
            _add_line(node, board, found.compared)
        board.push(child.move)
        if found.score is not None:
            _set_eval(child, found.score, judged.answers.get(ply + 1))
        node = child
    exporter = chess.pgn.StringExporter(columns=_COLUMNS, headers=True, variations=True, comments=True)
    return work.game.accept(exporter) + "\n\n"


def _set_tags(headers: chess.pgn.Headers, players: Mapping[chess.Color, PlayerSummary], annotator: str) -> None:
    """Set tags that say who analysed and what came out, in place of what an earlier analysis has left."""
    # several names are separated by colons (PGN standard, 9.9.1 and 8.1.1.4)
    others = [name for name in headers.get("Annotator", "").split(":") if name and not name.startswith("psearch ")]
    headers["Annotator"] = ":".join([*others, annotator])
    for color, player in players.items():
        side = _side(color)
        for tag, value in (
            ("Accuracy", None if player.accuracy is None else f"{player.accuracy:.1f}"),
            ("ACPL", None if player.average_loss is None else f"{player.average_loss:.0f}"),
        ):
            headers.pop(side + tag, None)
            if value is not None:
                headers[side + tag] = value


def _set_eval(node: chess.pgn.GameNode, score: chess.engine.PovScore, answer: Answer | None) -> None:
    """Note the evaluation of a position, by a search or the rules. The format has no bounds: words name one."""
    node.comment = _BOUND_WORDS.sub(r"\1", node.comment)  # from another analysis
    node.set_eval(score, answer.line.depth if answer is not None else None)
    bound = answer.estimate[1] if answer is not None else "exact"
    if bound != "exact":
        words = "at least" if (bound == "lower") == (score.turn == chess.WHITE) else "at most"
        node.comment = _EVAL.sub(rf"\g<0> {words} {relative_text(score.white())}", node.comment, count=1)


def _add_line(parent: chess.pgn.GameNode, board: chess.Board, compared: Comparison) -> None:
    """Add the better line as a variation, unless there is one that begins so."""
    walk = board.copy(stack=False)
    node = parent
    for number, word in enumerate(compared.pv[:_LINE_PLIES]):
        move = walk.parse_uci(word)
        if number == 0 and parent.has_variation(move):
            return
        node = node.add_variation(move)
        if number == 0:
            node.set_eval(chess.engine.PovScore(compared.best_score, board.turn), compared.depth)
        walk.push(move)


# -- for programs ----------------------------------------------------------------------------------------------------


def game_object(judged: JudgedGame, file: str) -> dict[str, Any]:
    """Return a game. file: as the user named it."""
    work = judged.work
    players = {
        chess.COLOR_NAMES[color]: {
            "moves": player.moves,
            "accuracy": None if player.accuracy is None else round(player.accuracy, 2),
            "average_loss": None if player.average_loss is None else round(player.average_loss, 2),
            **_mark_counts(player.marks),
        }
        for color, player in judged.players.items()
    }
    return {
        "file": file,
        "game": work.number,
        "headers": dict(work.game.headers),
        "problem": work.problem.text if work.problem is not None else None,
        "players": players,
        "positions": list(_position_objects(judged)) if work.readable else [],
    }


def games_summary(tally: Tally, total: int) -> dict[str, Any]:
    """Return all games. total: how many there are, finished or not."""
    kept = {} if tally.kept is None else {"kept": tally.kept}
    return {
        "games": total,
        "finished": tally.games,
        "positions": tally.positions,
        **_mark_counts(tally.marks),
        **kept,
    }


def _mark_counts(marks: Mapping[str, int]) -> dict[str, int]:
    return {name: marks.get(mark, 0) for mark, name in MARK_NAMES.items()}


def _position_objects(judged: JudgedGame) -> Iterator[dict[str, Any]]:
    """The positions of the main line, each with the move that was played in it."""
    board = judged.work.game.board()
    played = list(judged.work.game.mainline_moves())
    for ply in range(len(played) + 1):
        values: dict[str, Any] = {"ply": ply, "fen": board.fen()}
        if ply in judged.answers:
            values |= judged.answers[ply].as_json(MOST_PV_PLIES)
        elif not any(board.legal_moves):
            values["result"] = terminal_kind(board)
        if ply < len(played):
            move, found = played[ply], judged.moves[ply]
            values |= {"move": board.uci(move), "san": board.san(move), "mark": found.mark}
            values["loss"] = None if found.loss is None else round(found.loss, 4)
            values["compared"] = None if found.compared is None else found.compared.as_json()
            board.push(move)
        yield values


# -- for people ------------------------------------------------------------------------------------------------------


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
        for color, player in judged.players.items():
            name = _name_of(judged, color)
            if name and player.moves:
                self._games.setdefault(name, []).append(player)

    def rows(self) -> list[list[str]]:
        """Return those with the most games under `TOTAL_COLUMNS`, the most accurate first; none, if all have one
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
            marks = sum((Counter(game.marks) for game in games), Counter())
            totals.append((accuracy, [name, f"{len(games):,}", *_cells(accuracy, loss, marks)]))
        return [row for _, row in sorted(totals, key=lambda total: -total[0])]


def player_rows(judged: JudgedGame) -> list[list[str]]:
    """Return White's row and Black's, under `PLAYER_COLUMNS`; `-` where there was no move to judge."""
    rows = []
    for color, player in judged.players.items():
        side, name = _side(color), judged.work.game.headers.get(_side(color), "?")
        cells = _cells(player.accuracy, player.average_loss, player.marks)
        rows.append([f"{side}, {name}" if _name_of(judged, color) else side, *cells])
    return rows


def _side(color: chess.Color) -> str:
    return chess.COLOR_NAMES[color].capitalize()


def _name_of(judged: JudgedGame, color: chess.Color) -> str:
    """Return the name of a player; empty where it is not known."""
    return judged.work.game.headers.get(_side(color), "").strip("? ")


def _cells(accuracy: float | None, loss: float | None, marks: Mapping[str, int]) -> list[str]:
    figures = ["-" if accuracy is None else f"{accuracy:.1f}%", "-" if loss is None else f"{loss:.0f}"]
    return [*figures, *(str(marks.get(mark, 0)) for mark in MARK_NAMES)]
