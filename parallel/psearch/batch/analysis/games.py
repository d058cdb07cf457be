"""The analysis of games: which positions of a PGN are searched, how the moves are judged, and how the verdicts are
written as PGN, as JSON and as a table.

`psearch.text.pgn_text` reads games, `chess.pgn` writes them. Evaluations are `[%eval ...]` comments from White's point
of view, as GUIs and web sites read them. A bad move gets the mark ?!, ? or ?? and the better line as a variation.

Accuracy and average centipawn loss are those of lichess.org. The scores of positions give chances to win; the loss of
a move's chances gives its accuracy; the accuracies of the moves give that of the player. The formulas and their
constants are those that lichess.org explains on https://lichess.org/page/accuracy and uses in `AccuracyPercent.scala`
and `AccuracyCP.scala` of https://github.com/lichess-org/lila; the code is our own. Marks are in `psearch.text.marks`.
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

from psearch.batch.positions.comparing import MOST_BEHIND, scores_around, sure_scores
from psearch.batch.positions.task import Answer, Comparison, answer_object, uci_words
from psearch.text.marks import MARK_NAMES, Scores, capped_cp, win_percent
from psearch.text.moves import MARK_NAGS
from psearch.text.pgn_text import PgnGame
from psearch.text.report import finished_result, side_name, terminal_kind
from psearch.text.values import counted
from psearch.text.wdl import pov_wdl
from psearch.version import __version__
from psearch_core.records import MAX_HISTORY

_CURVE = (103.1668100711649, -0.04354415386753951, -3.166924740191411)
"""Coefficients a, b, c of a move's accuracy, a * exp(b * loss) + c, with the loss of winning chances in percent."""
_UNCERTAINTY_BONUS = 1.0
"""Percent that each losing move gets back, since the analysis errs, too."""
_WINDOW_SHARE = 10
"""Divisor of the number of moves that gives the length of a window, which is also within `_WINDOW_PLIES`."""
_WINDOW_PLIES = (2, 8)
_WEIGHTS = (0.5, 12.0)
"""Least and largest weight of a move: the standard deviation, in percent, of the chances around it."""
_LEAST_IN_HARMONIC_MEAN = 1.0
"""Least accuracy, in percent, that counts in the harmonic mean, so that a single move does not decide everything."""
_LINE_PLIES = 10
"""Most plies of a variation that shows a better line."""
_ASSESSMENTS = frozenset(range(chess.pgn.NAG_GOOD_MOVE, chess.pgn.NAG_DUBIOUS_MOVE + 1))
"""Marks !, ?, !!, ??, !? and ?!: a move that already has one keeps it."""
_COLUMNS = 80
"""Longest line of a PGN."""
MOST_PV_PLIES = 20
"""Most plies of a line in JSON."""
PLAYER_COLUMNS = ("player", "accuracy", "loss, cp", *MARK_NAMES)
"""Headings of the table of one game."""
TOTAL_COLUMNS = ("player", "games", *PLAYER_COLUMNS[1:])
"""Headings of the table of many games."""
_MOST_PLAYERS = 30
_VERDICT = (
    r"(?:Inaccuracy|Mistake|Blunder|Checkmate is now unavoidable|(?:Lost forced|Not the best) checkmate sequence)"
    r"(?:: [a-z0-9 ]+)?\."
)
_BEST = r" \S+ was best\."
_WORDS = re.compile(rf"\s*(?:\([^()→]* → [^()]*\) {_VERDICT}(?:{_BEST})?|{_VERDICT}{_BEST})")
"""Pattern of the words of an earlier analysis, by psearch or by lichess: a person writes neither scores nor the best
move in their way."""
_WDL = re.compile(r"\s*\[%wdl [^\]]*\]")


@dataclass(frozen=True)
class Place:
    """A position of a game that must be searched."""

    ply: int
    """Number of plies played before it."""
    board: chess.Board
    """Position, with as many of the game's last moves on its stack as a search uses."""
    line: list[chess.Move]
    """Next few moves of the game, up to a null move."""


def positions(work: PgnGame) -> Iterator[Place]:
    """Yield the positions of a game from the last to the first, so that the table knows how the game continued.

    Positions without a legal move, and illegal ones after a null move, are left out. Only one board has the history of
    the whole game.
    """
    moves = list(work.game.mainline_moves())
    for board in _positions(work):
        ply = len(board.move_stack)
        line = list(itertools.takewhile(bool, moves[ply : ply + MOST_BEHIND]))
        yield Place(ply, board.copy(stack=MAX_HISTORY), line)


def count_positions(work: PgnGame) -> int:
    """Return the number of positions of a game that must be searched."""
    return sum(1 for _ in _positions(work))


def _positions(work: PgnGame) -> Iterator[chess.Board]:
    """Yield the positions of a game that can be searched, from the last to the first, on one board."""
    if not work.readable or work.game.next() is None:
        return
    board = work.game.end().board()
    while True:
        if board.is_valid() and any(board.legal_moves):
            yield board
        if not board.move_stack:
            return
        board.pop()


# -- verdicts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReviewedMove:
    """A move of the main line, with its verdict.

    - move, mover: the move, and who made it.
    - before, score: scores of the positions before and after it; None where that was not searched.
    - wdl: chances to win, draw and lose after the move, or None.
    - best_line: best line instead of the move: the comparison's, or the search's; it may begin with the move.
    - is_best: True if the search would have played the move and it has no mark; its loss is 0, whatever the scores are.
    - loss: loss by the rule, 0 to 1: by the comparison, less noise, if there is one; None where it is not known.
    - compared: comparison with the best move, if the move may be a mistake; its scores decide about the mark.
    - mark: ?!, ?, ?? or None.
    - words: reason for the mark: both scores, what the move does, and the best move.
    - rule: rule of marks and accuracy: lichess or psearch.

    `accuracy` and `loss_cp` are for moves with both scores.
    """

    move: chess.Move
    mover: chess.Color
    before: chess.engine.PovScore | None
    score: chess.engine.PovScore | None
    wdl: chess.engine.PovWdl | None = None
    best_line: tuple[chess.Move, ...] = ()
    is_best: bool = False
    loss: float | None = None
    compared: Comparison | None = None
    mark: str | None = None
    words: str = ""
    rule: str = "lichess"

    @property
    def _best_and_played_cp(self) -> tuple[int, int]:
        """Scores in centipawns, for the mover: by lichess's rule those of the positions before and after the move, else
        those of the comparison, if there is one; a best move loses nothing."""
        assert self.before is not None and self.score is not None
        scores = Scores(self.before.pov(self.mover), self.score.pov(self.mover))
        if self.rule == "psearch":
            scores = scores if self.compared is None else self.compared.scores
            scores = Scores(scores.best, scores.best) if self.is_best else scores
        return capped_cp(scores.best), capped_cp(scores.played)

    @property
    def loss_cp(self) -> int:
        """Loss of the mover in centipawns, at least 0."""
        best, played = self._best_and_played_cp
        return max(0, best - played)

    @property
    def accuracy(self) -> float:
        """Accuracy in percent."""
        return move_accuracy(*map(win_percent, self._best_and_played_cp))


@dataclass(frozen=True)
class PlayerSummary:
    """Figures of one side in one game.

    - moves: number of judged moves; without one, both figures are None.
    - accuracy: of the game, in percent: its worst moves weigh more than in the mean of its moves' accuracies.
    - average_loss: in centipawns.
    - marks: number of moves with each mark that occurs.
    """

    moves: int
    accuracy: float | None
    average_loss: float | None
    marks: Mapping[str, int]


@dataclass(frozen=True)
class GameReview:
    """A game with its verdicts.

    - work: the game as it was read: `game` (a `chess.pgn.Game`), `number` (from 1 in its file), `problem` or None.
    - answers: answers of its positions, by the number of plies played before them.
    - moves: a `ReviewedMove` for each move of the main line.
    - players: a `PlayerSummary` for each color.
    - problems: reasons why positions have no answer, by ply.
    - annotator: the tag Annotator of the PGN.
    """

    work: PgnGame
    answers: Mapping[int, Answer] = field(repr=False)
    moves: list[ReviewedMove]
    players: Mapping[chess.Color, PlayerSummary]
    problems: Mapping[int, str] = field(default_factory=dict)
    annotator: str = f"psearch {__version__}"

    def to_pgn(self, fresh_marks: bool = False, shows_wdl: bool = False) -> str:
        """Return the game as PGN with evaluations, marks, their reasons and better lines, as `psearch analyse` writes
        it, with an empty line after it.

        fresh_marks: remove the marks that moves of the main line have already, and the words of lichess or psearch
        about them, which otherwise stay. shows_wdl: with the chances of White to win, draw and lose, per mille.
        """
        work = self.work
        if not work.readable:
            return work.original() + "\n\n"
        _set_tags(work.game.headers, self.players, self.annotator)
        node: chess.pgn.GameNode = work.game
        for ply, found in enumerate(self.moves):
            child = node.next()
            assert child is not None
            if fresh_marks:
                child.nags -= _ASSESSMENTS
                child.comment = _WORDS.sub("", child.comment)
            if found.mark is not None and found.compared is not None:
                if not child.nags & _ASSESSMENTS:
                    child.nags.add(MARK_NAGS[found.mark])
                    child.comment = f"{_WORDS.sub('', child.comment)} {found.words}".strip()
                _add_line(node, found)
            if found.score is not None:
                child.set_eval(found.score, self.depth_at(ply + 1))
                if shows_wdl and found.wdl is not None:
                    chances = ",".join(map(str, found.wdl.white()))
                    child.comment = f"{_WDL.sub('', child.comment)} [%wdl {chances}]".strip()
            node = child
        exporter = chess.pgn.StringExporter(columns=_COLUMNS, headers=True, variations=True, comments=True)
        return work.game.accept(exporter) + "\n\n"

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each move of the main line, for tables: numbers and text by name.

        Scores (`cp_white`, `mate_white`; after the move) are from White's view. `accuracy` is that of the move, in
        percent, `loss` is 0 to 1, `win`, `draw` and `lose` are White's chances per mille, `clock_s` is the time left by
        the game's `[%clk]`. The second of several lines before the move is in `cp_2`, `mate_2` (for the mover) and
        `pv_2`, and so on.
        """
        rows: list[dict[str, Any]] = []
        if not self.work.readable:
            return rows
        headers = self.work.game.headers
        board = self.work.game.board()
        tags = {name.lower(): headers.get(name) for name in ("White", "Black", "Result", "Date", "ECO", "Opening")}
        for ply, (node, found) in enumerate(zip(self.work.game.mainline(), self.moves, strict=True)):
            best = found.best_line
            words = list(uci_words(board, best))
            row: dict[str, Any] = {
                "game": self.work.number,
                **tags,
                "ply": ply + 1,
                "move_number": board.fullmove_number,
                "side": chess.COLOR_NAMES[board.turn],
                "fen": board.fen(),
                "uci": board.uci(node.move),
                "san": board.san(node.move),
                "best": None if not best else board.san(best[0]),
                "pv": " ".join(words) or None,
            }
            lines = self.answers[ply].lines if ply in self.answers else ()
            # a comparison may have preferred another move than the first line
            others = [line for line in lines if list(line.pv[:1]) != words[:1]]
            for number, line in enumerate(others[: len(lines) - 1], 2):
                row |= {f"cp_{number}": line.score.score(), f"mate_{number}": line.score.mate()}
                row[f"pv_{number}"] = " ".join(line.pv)
            board.push(node.move)
            white = None if found.score is None else found.score.white()
            chances = None if found.wdl is None else found.wdl.white()
            row |= {
                "cp_white": None if white is None else white.score(),
                "mate_white": None if white is None else white.mate(),
                "win": None if chances is None else chances.wins,
                "draw": None if chances is None else chances.draws,
                "lose": None if chances is None else chances.losses,
                "depth": self.depth_at(ply + 1),
                "mark": found.mark,
                "words": found.words,
                "loss": found.loss,
                "accuracy": found.accuracy if None not in (found.before, found.score) else None,
                "clock_s": node.clock(),
            }
            rows.append(row)
        return rows

    def depth_at(self, ply: int) -> int | None:
        """Return the depth of a position's search; None if it was not searched."""
        return self.answers[ply].line.depth if ply in self.answers else None


def judge_game(
    work: PgnGame,
    answers: Mapping[int, Answer],
    rule: str = "lichess",
    problems: Mapping[int, str] | None = None,
    annotator: str = f"psearch {__version__}",
) -> GameReview:
    """Judge each move of the main line by the answers for the positions before and after it. rule: one of
    `psearch.settings.MARK_RULES`."""
    moves = list(_judge_moves(work, answers, rule)) if work.readable else []
    return GameReview(work, answers, moves, summarise(moves), problems or {}, annotator)


def _judge_moves(work: PgnGame, answers: Mapping[int, Answer], rule: str) -> Iterator[ReviewedMove]:
    board = work.game.board()
    score = _score_of(board, answers.get(0))
    for ply, move in enumerate(work.game.mainline_moves()):
        after = board.copy(stack=False)
        after.push(move)
        best, reached = answers.get(ply), answers.get(ply + 1)
        before, score = score, _score_of(after, reached)
        is_best = best is not None and bool(move) and best.move(board) == move
        loss, compared, mark, words = 0.0 if is_best else None, None, None, ""
        if best is not None and move:
            compared = best.compared
            if not is_best and (reached is not None or not any(after.legal_moves)):
                scores = scores_around(after, best.estimate[0], None if reached is None else reached.estimate[0])
                loss = scores.loss(board, rule)
        if compared is not None:
            sure = sure_scores(board, compared)
            mark = sure.mark(board, rule)
            is_best = is_best and mark is None  # a comparison outweighs the first search
            loss = 0.0 if is_best else sure.loss(board, rule)
            if mark is not None:
                words = compared.scores.words(board, mark, board.san(board.parse_uci(compared.best)))
        wdl = None if score is None else pov_wdl(score, after)
        pv = () if best is None else (compared or best.line).pv
        walk = board.copy(stack=False)
        line = tuple(walk.push_uci(word) for word in pv)
        yield ReviewedMove(move, board.turn, before, score, wdl, line, is_best, loss, compared, mark, words, rule)
        board = after


def _score_of(board: chess.Board, answer: Answer | None) -> chess.engine.PovScore | None:
    """Return the score of a position, by the rules if the game is over there; None if it is not known."""
    if answer is not None:
        return chess.engine.PovScore(answer.estimate[0], board.turn)
    finished = finished_result(board)
    return None if finished is None else finished.info.score


def move_accuracy(before: float, after: float) -> float:
    """Return the accuracy of a move, 0 to 100, from the mover's chances before and after it in percent.

    >>> move_accuracy(50, 55), round(move_accuracy(50, 40), 1)
    (100.0, 64.6)
    """
    if after >= before:
        return 100.0
    factor, rate, offset = _CURVE
    return max(0.0, min(100.0, factor * math.exp(rate * (before - after)) + offset + _UNCERTAINTY_BONUS))


def summarise(moves: Sequence[ReviewedMove]) -> dict[chess.Color, PlayerSummary]:
    """Return the figures of both sides, from the moves of a game in order; moves without scores do not count."""
    scored = [move for move in moves if None not in (move.before, move.score, move.loss)]
    return {color: _summary_of(color, scored, _volatilities(scored)) for color in chess.COLORS}


def _summary_of(color: chess.Color, moves: Sequence[ReviewedMove], weights: Sequence[float]) -> PlayerSummary:
    own = [(move, weight) for move, weight in zip(moves, weights, strict=True) if move.mover == color]
    marks = Counter(move.mark for move, _ in own if move.mark is not None)
    if not own:
        return PlayerSummary(0, None, None, marks)
    accuracies = [move.accuracy for move, _ in own]
    weighted = min(max(accuracies), statistics.fmean(accuracies, [weight for _, weight in own]))  # rounding errors
    harmonic = statistics.harmonic_mean([max(_LEAST_IN_HARMONIC_MEAN, value) for value in accuracies])
    average_loss = statistics.fmean(move.loss_cp for move, _ in own)
    return PlayerSummary(len(own), (weighted + harmonic) / 2, average_loss, marks)


def _volatilities(moves: Sequence[ReviewedMove]) -> list[float]:
    """Return the weight of each move: the volatility of the chances in the window that ends with the position after it.
    The first moves, whose windows would begin before the game, have the weight of the first window."""
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
    """Totals of the games so far."""

    games: int = 0
    positions: int = 0
    marks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MARK_NAMES, 0))
    kept: int | None = None
    """Number of answers kept from older results; None: there are no older results."""

    def add(self, judged: GameReview, kept: int = 0) -> None:
        """Add a finished game. kept: number of its answers from older results."""
        self.games += 1
        if self.kept is not None:
            self.kept += kept
        self.positions += len(judged.answers)
        for move in judged.moves:
            if move.mark is not None:
                self.marks[move.mark] += 1

    def text(self) -> str:
        found = ", ".join(f"{count} {mark}" for mark, count in self.marks.items())
        kept = "" if self.kept is None else f", {self.kept:,} kept from older results"
        return f"{counted(self.games, 'game')}, {counted(self.positions, 'position')}, {found}{kept}"


# -- as PGN ----------------------------------------------------------------------------------------------------------


def _set_tags(headers: chess.pgn.Headers, players: Mapping[chess.Color, PlayerSummary], annotator: str) -> None:
    """Set the tags of the annotator and of the players' figures, and replace those of an earlier analysis."""
    # several names are separated by colons (PGN standard, 9.9.1 and 8.1.1.4)
    others = [name for name in headers.get("Annotator", "").split(":") if name and not name.startswith("psearch ")]
    headers["Annotator"] = ":".join([*others, annotator])
    for color, player in players.items():
        side = side_name(color)
        for tag, value in (
            ("Accuracy", None if player.accuracy is None else f"{player.accuracy:.1f}"),
            ("ACPL", None if player.average_loss is None else f"{player.average_loss:.0f}"),
        ):
            headers.pop(side + tag, None)
            if value is not None:
                headers[side + tag] = value


def _add_line(parent: chess.pgn.GameNode, found: ReviewedMove) -> None:
    """Add the better line as a variation, unless one begins with the same move."""
    line, compared = found.best_line[:_LINE_PLIES], found.compared
    if compared is not None and line and not parent.has_variation(line[0]):
        first = parent.add_variation(line[0])
        first.set_eval(chess.engine.PovScore(compared.best_score, found.mover), compared.depth)
        first.add_line(line[1:])


# -- as JSON ---------------------------------------------------------------------------------------------------------


def game_object(judged: GameReview, file: str) -> dict[str, Any]:
    """Return a game for JSON. file: its name as the user gave it."""
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
    """Return the totals for JSON. total: number of all games, finished or not."""
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


def _position_objects(judged: GameReview) -> Iterator[dict[str, Any]]:
    """Yield the positions of the main line, each with the played move."""
    board = judged.work.game.board()
    played = list(judged.work.game.mainline_moves())
    for ply in range(len(played) + 1):
        values: dict[str, Any] = {"ply": ply, "fen": board.fen()}
        if ply in judged.answers:
            values |= answer_object(judged.answers[ply], board, MOST_PV_PLIES)
        elif not any(board.legal_moves):
            values["result"] = terminal_kind(board)
        if ply < len(played):
            move, found = played[ply], judged.moves[ply]
            values |= {"move": board.uci(move), "san": board.san(move), "mark": found.mark, "words": found.words}
            values["loss"] = None if found.loss is None else round(found.loss, 4)
            values["compared"] = None if found.compared is None else found.compared.as_json()
            board.push(move)
        yield values


# -- as tables -------------------------------------------------------------------------------------------------------


def game_title(judged: GameReview, file: str | None) -> str:
    """Return a title such as `game 3: London, 1851.06.21, 1-0`, after the name of the file if given. Unknown tags are
    left out."""
    headers = judged.work.game.headers
    facts = (headers.get(name, "").replace(".??", "") for name in ("Event", "Date", "Result"))
    known = ", ".join(fact for fact in facts if fact.strip("?.* "))
    title = f"game {judged.work.number}"
    if file is not None:
        title = f"{file}, {title}"
    return f"{title}: {known}" if known else title


class Players:
    """Figures of the players of many games, by name."""

    def __init__(self) -> None:
        self._games: dict[str, list[PlayerSummary]] = {}

    def add(self, judged: GameReview) -> None:
        """Add a game; a side without a name or without a judged move does not count."""
        for color, player in judged.players.items():
            name = _name_of(judged, color)
            if name and player.moves:
                self._games.setdefault(name, []).append(player)

    def rows(self) -> list[list[str]]:
        """Return rows for `TOTAL_COLUMNS`: the players with the most games, the most accurate first; none if nobody has
        more than one game. Accuracy is averaged over games, loss over moves."""
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


def player_rows(judged: GameReview) -> list[list[str]]:
    """Return White's and Black's rows for `PLAYER_COLUMNS`; `-` stands for a figure without judged moves."""
    rows = []
    for color, player in judged.players.items():
        side, name = side_name(color), judged.work.game.headers.get(side_name(color), "?")
        cells = _cells(player.accuracy, player.average_loss, player.marks)
        rows.append([f"{side}, {name}" if _name_of(judged, color) else side, *cells])
    return rows


def _name_of(judged: GameReview, color: chess.Color) -> str:
    return judged.work.game.headers.get(side_name(color), "").strip("? ")


def _cells(accuracy: float | None, loss: float | None, marks: Mapping[str, int]) -> list[str]:
    figures = ["-" if accuracy is None else f"{accuracy:.1f}%", "-" if loss is None else f"{loss:.0f}"]
    return [*figures, *(str(marks.get(mark, 0)) for mark in MARK_NAMES)]
