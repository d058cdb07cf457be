"""Counts the marks of the same games by lichess's rule on two evaluations, `--marks lichess` and `--marks psearch`.

    psearch analyse --nodes 20000 --threads 1 --json --out games.jsonl games.pgn
    python bench/study/marks.py games.pgn games.jsonl

The evaluations are searched once, so the rules alone make the difference. Games without results are left out. Below the
table stand the moves that the two rules of psearch mark differently, and the marks within the first ten plies.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from psearch.batch.analysis.analysis_files import OlderResults
from psearch.batch.analysis.games import GameReview, judge_game
from psearch.results import PsearchError
from psearch.settings import MARK_RULES
from psearch.terminal.streams import text_table
from psearch.text.marks import MARK_NAMES, Scores
from psearch.text.pgn_text import PgnGame, read_games
from psearch.text.source import read_source

PLAIN = "lichess's, on the two evaluations alone"
_THEORY_PLIES = 10
_CLEAR_CP = 250
"""Score from which a position counts as decided, in centipawns."""


@dataclass
class Counts:
    """What one rule has found in all games."""

    marks: Counter[str] = field(default_factory=Counter)
    early: int = 0
    """Marks within the first plies."""
    accuracies: list[float] = field(default_factory=list)

    def add(self, review: GameReview, marks: list[str | None]) -> None:
        self.marks.update(mark for mark in marks if mark is not None)
        self.early += sum(mark is not None for mark in marks[:_THEORY_PLIES])
        self.accuracies += [player.accuracy for player in review.players.values() if player.accuracy is not None]


@dataclass
class Found:
    """What all rules have found."""

    games: int = 0
    moves: int = 0
    counts: dict[str, Counts] = field(default_factory=lambda: {name: Counts() for name in (PLAIN, *MARK_RULES)})
    different: int = 0
    """Moves that the two rules mark differently."""
    different_in_decided: int = 0
    """Moves marked differently whose best move was worth more than `_CLEAR_CP`."""

    def add(self, work: PgnGame, older: OlderResults) -> None:
        """Add a game, if it has results."""
        answers = older.of_game(work.game.board(), work.game.mainline_moves())
        if not answers:
            return
        plain = judge_game(work, {ply: replace(answer, compared=None) for ply, answer in answers.items()})
        self.counts[PLAIN].add(plain, list(_plain_marks(plain)))
        reviews = {rule: judge_game(work, answers, rule) for rule in MARK_RULES}
        for rule, review in reviews.items():
            self.counts[rule].add(review, [move.mark for move in review.moves])
        self.games += 1
        self.moves += len(plain.moves)
        for one, other in zip(*(review.moves for review in reviews.values()), strict=True):
            if one.mark != other.mark and one.compared is not None:
                self.different += 1
                best = one.compared.scores.best.score(mate_score=10_000)
                self.different_in_decided += best is not None and abs(best) > _CLEAR_CP

    def text(self) -> str:
        rows = [
            [name, *(str(count.marks[mark]) for mark in MARK_NAMES), f"{statistics.fmean(count.accuracies):.1f}", early]
            for name, count in self.counts.items()
            for early in [str(count.early)]
        ]
        columns = ("rule", *MARK_NAMES, "accuracy", f"first {_THEORY_PLIES} plies")
        return (
            f"{self.games} games, {self.moves:,} moves\n\n{text_table(columns, rows, left=1)}\n"
            f"marked differently: {self.different}, {self.different_in_decided} of them beyond 2.5 pawns"
        )


def _plain_marks(review: GameReview) -> Iterator[str | None]:
    """Yield the marks by the scores before and after each move alone, as lichess gives them."""
    board = review.work.game.board()
    for node, move in zip(review.work.game.mainline(), review.moves, strict=True):
        mark = None
        if move.before is not None and move.score is not None:
            mark = Scores(move.before.pov(move.mover), move.score.pov(move.mover)).mark(board, "lichess")
        yield mark
        board.push(node.move)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", help="games as PGN")
    parser.add_argument("results", help="output of psearch analyse --json for them, or for the first of them")
    options = parser.parse_args()
    try:
        older, found = OlderResults(read_source(options.results)), Found()
        for work in read_games(read_source(options.games)):
            found.add(work, older)
    except PsearchError as error:
        raise SystemExit(f"marks.py: {error}") from None
    if not found.games:
        raise SystemExit(f"marks.py: {options.results} has no results of {options.games}")
    print(found.text())


if __name__ == "__main__":
    main()
