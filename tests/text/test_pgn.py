"""Reading PGN: the same games as `chess.pgn.read_game` gives, in linear time, whatever the text holds."""

from __future__ import annotations

import io
import time
from random import Random

import chess
import chess.pgn
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psearch.text.pgn_text import PgnGame, Where, read_games
from psearch.text.source import Source

NAGS = ("$1", "$14", "!", "?", "!?", "??")
COMMENTS = ("{a}", "{ b c }", "{[%eval 0.30] two\nlines}", "{}", "{ ; ( $1 }")


def games_of(text: str) -> list[PgnGame]:
    return list(read_games(Source.of_text("a file", text)))


def game_of(text: str) -> PgnGame:
    (work,) = games_of(text)
    return work


def written(game: chess.pgn.Game) -> str:
    return game.accept(chess.pgn.StringExporter())


def without_placeholders(game: chess.pgn.Game) -> chess.pgn.Game:
    """Without the tags that python-chess adds where a game has none."""
    for tag, value in list(game.headers.items()):
        if value in ("?", "????.??.??", "*"):
            del game.headers[tag]
    return game


def variation(board: chess.Board, plies: int, depth: int, dice: Random) -> str:
    """A line of legal moves from here, with all that may stand between them."""
    words = [dice.choice(COMMENTS)] if dice.random() < 0.2 else []
    board = board.copy()
    for _ in range(plies):
        legal = list(board.legal_moves)
        if not legal:
            break
        number = f"{board.fullmove_number}." + ("" if board.turn else "..")
        words += [number] * (dice.random() < 0.5) + [board.san(move := dice.choice(legal))]
        words += [dice.choice(NAGS) for _ in range(dice.randrange(2))]
        words += [dice.choice(COMMENTS) for _ in range(dice.randrange(2))]
        if depth and dice.random() < 0.3:
            words += ["(", variation(board, dice.randint(1, 4), depth - 1, dice), ")"]
            words += [dice.choice(COMMENTS)] * (dice.random() < 0.3)
        board.push(move)
    return " ".join(words)


def game_text(dice: Random) -> str:
    headers = dice.choice(("", '[Event "a"]\n[Result "1-0"]\n\n', '[White "Ö"]\n\n[Black "b"]\n'))
    return headers + variation(chess.Board(), dice.randint(1, 12), 2, dice) + dice.choice((" *", " 1-0", "")) + "\n\n"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_the_games_are_those_of_python_chess(seed: int) -> None:
    dice = Random(seed)
    texts = [game_text(dice) for _ in range(dice.randint(1, 3))]
    for number, following in enumerate(texts[1:]):  # nothing else says that another game begins
        if not following.startswith("[") and texts[number][-3:-2] not in "*0":
            texts[number] = texts[number].rstrip("\n") + " *\n\n"
    text = "".join(texts)
    text = text.replace("\n", "\r\n") if dice.random() < 0.2 else text
    stream = io.StringIO(text)
    theirs = []
    while (game := chess.pgn.read_game(stream)) is not None:
        assert not game.errors
        theirs.append(written(without_placeholders(game)))
    ours = games_of(text)
    assert [work.problem for work in ours] == [None] * len(ours)
    assert [written(without_placeholders(work.game)) for work in ours] == theirs
    assert [work.number for work in ours] == list(range(1, len(ours) + 1))


def test_no_tag_is_made_up() -> None:
    assert dict(game_of('[White "a"]\n\n1. e4 1-0').game.headers) == {"White": "a", "Result": "1-0"}


def test_comments_of_an_empty_variation_stay() -> None:
    assert "1. e4 { a b }" in written(game_of("1. e4 ({a}) {b} e5 *").game)
    assert "( { a b } 1. d4" in written(game_of("1. e4 ({a} {b} 1. d4) e5 *").game)


@pytest.mark.parametrize(
    "game",
    [
        '[FEN "garbage"]\n\n1. e4 $1 {x} *',
        '[Variant "Atomic"]\n\n1.e4  e5 *',
        '[FEN "8/8/8/8/8/k7/8/7R w - - 0 1"]\r\n\r\n*',
    ],
)
def test_what_is_not_chess_is_kept_letter_by_letter(game: str) -> None:
    """With its comments, line ends and all; the games around it are read."""
    text = f'[Event "before"]\n\n1. d4 *\n\n{game}\n\n[Event "after"]\n\n1. e4 *\n'
    first, broken, last = games_of("\ufeff" + text)
    assert broken.problem is not None
    assert broken.problem.where is Where.GAME
    assert broken.original() == game
    assert [work.game.headers["Event"] for work in (first, last)] == ["before", "after"]
    assert last.original() == '[Event "after"]\n\n1. e4 *'


def test_numbers_without_end_are_left_out() -> None:
    work = game_of(f"1. e4 ${'1' * 5000} e5 $5 *")
    assert work.problem is None
    assert [node.nags for node in work.game.mainline()] == [set(), {5}]


def test_a_game_longer_than_any_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psearch.text.pgn_text._MOST_PLIES", 6)
    work = game_of("1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 *")
    assert work.problem is not None
    assert (work.problem.text, work.problem.where, work.game.end().ply()) == ("more than 6 plies", Where.MAIN_LINE, 6)


def test_a_game_with_more_variations_than_fit_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psearch.text.pgn_text._MOST_NODES", 5)
    work = game_of("1. e4 (1. d4) (1. c4) (1. f4 e5 2. fxe5) 1... e5 2. Nf3 *")
    assert work.problem is not None
    assert (work.problem.text, work.problem.where) == ("more than 5 moves", Where.MAIN_LINE)
    assert len(work.game.variations) == 4


@pytest.mark.parametrize(
    ("begin", "part", "end"),
    [
        ("1. e4 ", "{a}", " e5 *"),
        ("1. e4 ", "()", " e5 *"),
        ("1. e4 ", "(1. d4 ", " *"),
        ("1. e4 ", "(1. d4)", " e5 *"),
        ("", "x", ""),
        ("", '[A "', ""),
        ("", "{", ""),
    ],
)
def test_time_is_linear_in_the_text(begin: str, part: str, end: str) -> None:
    """Four times the text, not sixteen times the time."""

    def seconds(count: int) -> float:
        text = begin + part * count + end
        best = 1e9
        for _ in range(2):
            began = time.process_time()
            games_of(text)
            best = min(best, time.process_time() - began)
        return best

    count = 1_000
    while (once := seconds(count)) < 0.01 and count < 100_000:
        count *= 2
    assert seconds(4 * count) < 9 * once + 0.01
