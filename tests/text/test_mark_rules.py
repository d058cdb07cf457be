"""Marks of moves by the rule of lichess.org, from its published source, and by psearch's."""

from __future__ import annotations

import chess
import pytest
from chess.engine import Cp, Mate, Score

from psearch.results import WON_CP
from psearch.text.marks import Scores, winning_chance

WHITE, BLACK = chess.Board(), chess.Board("4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 b - - 0 1")


@pytest.mark.parametrize(
    ("best", "played", "mark"),
    [
        (Cp(0), Cp(-54), None),
        (Cp(0), Cp(-55), "?!"),
        (Cp(0), Cp(-110), "?!"),
        (Cp(0), Cp(-111), "?"),
        (Cp(0), Cp(-169), "??"),
        (Cp(670), Cp(1580), None),
        (Cp(1580), Cp(670), "?!"),  # of 0.951, the chance at 1000, 0.107 are lost
        (Cp(-273), Cp(-632), "??"),  # -0.464 to -0.822; by psearch's rule nothing: both are lost
        (Cp(1200), Cp(1001), None),  # beyond 1000 all is the same
        (Mate(3), Cp(1000), "?!"),
        (Mate(3), Cp(999), "?"),
        (Mate(3), Cp(701), "?"),
        (Mate(3), Cp(700), "??"),
        (Mate(3), Cp(WON_CP), None),  # still won, by a table
        (Mate(3), Mate(9), None),
        (Mate(3), Mate(-2), "??"),
        (Cp(-1000), Mate(-4), "?!"),
        (Cp(-701), Mate(-4), "?"),
        (Cp(0), Mate(-4), "??"),
        (Mate(-9), Mate(-1), None),
    ],
)
def test_the_rule_of_lichess(best: Score, played: Score, mark: str | None) -> None:
    assert Scores(best, played).mark(WHITE, "lichess") == mark


def test_what_is_lost_already_is_no_mistake_by_the_rule_of_psearch() -> None:
    scores = Scores(Cp(-273), Cp(-632))
    assert scores.mark(WHITE, "psearch") is None
    assert scores.seeming_loss(WHITE) == scores.loss(WHITE, "lichess") > 0.1


@pytest.mark.parametrize(
    ("board", "best", "played", "mark", "words"),
    [
        (WHITE, Cp(21), Cp(-44), "?!", "(0.21 → -0.44) Inaccuracy. Nf3 was best."),
        (BLACK, Cp(21), Cp(-144), "?", "(-0.21 → 1.44) Mistake. Nf3 was best."),
        (WHITE, Cp(550), Cp(20), "??", "(5.50 → 0.20) Blunder: misses a win. Nf3 was best."),
        (BLACK, Mate(2), Cp(20), "??", "(#-2 → -0.20) Blunder: misses mate in 2. Nf3 was best."),
        (WHITE, Cp(20), Mate(-1), "??", "(0.20 → #-1) Blunder: allows mate in 1. Nf3 was best."),
    ],
)
def test_words_explain_a_mark(board: chess.Board, best: Score, played: Score, mark: str, words: str) -> None:
    """They have both scores from White's view, and what the move misses or allows."""
    assert Scores(best, played).words(board, mark, "Nf3") == words


def test_a_mate_is_certain() -> None:
    assert [winning_chance(score) for score in (Mate(3), Mate(-3), Cp(0))] == [1, 0, 0.5]
