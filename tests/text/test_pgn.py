"""Reading PGN: the same games as `chess.pgn.read_game` gives, in linear time, whatever the text holds. In files that
are malformed but countable no game is lost, or has another one's tags."""
# ruff: noqa: RUF001 (letters of other scripts are meant)

from __future__ import annotations

import io
import os
import tempfile
import time
from random import Random

import chess
import chess.pgn
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_pgn import OddGame, odd_file

from psearch.batch.analysis.games import judge_game
from psearch.text.pgn_text import PgnGame, Where, read_games, split_games
from psearch.text.source import Source

NAGS = ("$1", "$14", "!", "?", "!?", "??")
COMMENTS = ("{a}", "{ b c }", "{[%eval 0.30] two\nlines}", "{}", "{ ; ( $1 }")
MATE = '[SetUp "1"]\n[FEN "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"]'

OWN_LETTERS = ("KQRBN", "♔♕♖♗♘")


def games_of(text: str) -> list[PgnGame]:
    return list(read_games(Source.of_text("a file", text)))


def game_of(text: str) -> PgnGame:
    (work,) = games_of(text)
    return work


def written(game: chess.pgn.Game) -> str:
    return game.accept(chess.pgn.StringExporter())


def without_placeholders(game: chess.pgn.Game) -> chess.pgn.Game:
    """Remove the tags that python-chess adds where a game has none."""
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


def test_doubled_parentheses_are_a_variation_of_the_same_move() -> None:
    doubled = "1. e4 ((1. d4 d5)) e5 2. Nf3 ((2. d4)) Nc6 ((2... d6) (2... Qe7) 2... Nf6) 3. Bb5 *"
    assert " ".join(written(game_of(doubled).game).split()).endswith(
        "1. e4 ( 1. d4 d5 ) 1... e5 2. Nf3 ( 2. d4 ) 2... Nc6 ( 2... d6 ) ( 2... Qe7 ) ( 2... Nf6 ) 3. Bb5 *"
    )


def test_braces_of_comments_stay_as_parentheses() -> None:
    found = written(game_of("1. e4 {a {b c} e5 ; see {Smith}\n2. Nf3 *").game)
    assert "{ a (b c }" in found and "{ see (Smith) }" in found
    assert games_of(found)[0].problems == ()


@pytest.mark.parametrize(
    "game",
    [
        '[FEN "garbage"]\n\n1. e4 $1 {x} *',
        '[Variant "Atomic"]\n\n1.e4  e5 *',
        '[FEN "8/8/8/8/8/k7/8/7R w - - 0 1"]\r\n\r\n*',
    ],
)
def test_what_is_not_chess_is_kept_letter_by_letter(game: str) -> None:
    """Comments and line ends are kept, and the games around it are read."""
    text = f'[Event "before"]\n\n1. d4 *\n\n{game}\n\n[Event "after"]\n\n1. e4 *\n'
    first, broken, last = games_of("\ufeff" + text)
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
    assert (work.problem.text, work.problem.where, work.game.end().ply()) == ("more than 6 plies", Where.MAIN_LINE, 6)


def test_a_game_with_more_variations_than_fit_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psearch.text.pgn_text._MOST_NODES", 5)
    work = game_of("1. e4 (1. d4) (1. c4) (1. f4 e5 2. fxe5) 1... e5 2. Nf3 *")
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


def source_of(data: bytes) -> Source:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return Source("a file", os.dup(file.fileno()))


def moves_of(work: PgnGame) -> list[str]:
    return [move.uci() for move in work.game.mainline_moves()]


def facts(work: PgnGame) -> tuple[str, int]:
    return work.game.headers.get("Event", ""), len(moves_of(work))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_countable_files(seed: int) -> None:
    """Games, tags and moves are those that were written; so they are in the result."""
    data, games = odd_file(Random(seed))
    source = source_of(data)
    works = list(read_games(source))
    check(works, games, data)
    again = "".join(judge_game(work, {}, annotator="psearch").to_pgn() for work in works)
    for work, written in zip(works, games_of(again), strict=True):
        assert moves_of(written) == moves_of(work)
        assert {**written.game.headers, "Result": ""} == {**work.game.headers, "Result": ""}


def check(works: list[PgnGame], games: list[OddGame], data: bytes) -> None:
    assert [work.number for work in works] == list(range(1, len(games) + 1)), data
    for work, game in zip(works, games, strict=True):
        cut = work.problem is not None and work.problem.where is Where.MAIN_LINE
        if game.letters in OWN_LETTERS or not cut:
            assert moves_of(work) == game.moves, (work.problems, data)
        else:  # its letters fit two languages, or only English
            assert moves_of(work) == game.moves[: len(moves_of(work))]
        written = {name: " ".join(value.split()) for name, value in work.game.headers.items() if name != "Result"}
        assert written == {name: value for name, value in game.tags.items() if name != "Result"}, data


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[Event "a"]\n\n\n1. e4 e5 *\n\n[Event "b"]\n\n\n\n1. d4 *\n', [("a", 2), ("b", 1)]),
        ('[Event "a"]\n\n1. e4 *\n[Event "b"]\n\n1. d4 0-1[Event "c"]\n\n1. c4 *', [("a", 1), ("b", 1), ("c", 1)]),
        ('[Event "a"]\n\n1. e4 {open 1... e5 *\n\n[Event "b"]\n\n1. d4 {x} *\n', [("a", 1), ("b", 1)]),
        ('[Event "a"]\n\n1. e4 {open 1... e5 *\n[Event "b"]\n1. d4 *\n', [("a", 1), ("b", 1)]),
        ("1. e4 {open e5 *\n\n1. d4 d5 *\n\n1. c4 *", [("", 1), ("", 2), ("", 1)]),
        ('[Event "a"] [White "x"] 1. e4 e5 *\n[Event "b"][White "y"]\n1. d4 *', [("a", 2), ("b", 1)]),
        ('[Event "a"]\n\n1. e4 *\n\n\ufeff[Event "b"]\n\n1. d4 *\n', [("a", 1), ("b", 1)]),
        ('[Event "a"]\n\n1. e4 *\ufeff[Event "b"]\n\n1. d4 *\n', [("a", 1), ("b", 1)]),
        ('  [Event "a"]\n\n1. e4 *\n\n\t[Event "b"]\n\n1. d4 *\n', [("a", 1), ("b", 1)]),
        ('[Event "a\nb"]\n[Site "x"]\n\n1. e4 *\n', [("a b", 1)]),
        ('Dear all,\nhere are games.\n\n[Event "a"]\n\n1. e4 *\n\nRegards\n', [("a", 1)]),
        ('[Event "a"]\n\n1. e4 e5\n\n[Event "b"]\n\n1. d4\n', [("a", 2), ("b", 1)]),
        ('[Event "a"]\n\n1. e4\n\ne5 2. Nf3\n\n2... Nc6\n\n1-0\n\n[Event "b"]\n\n1. d4 *', [("a", 4), ("b", 1)]),
        ('[Event "a"]\r\r1. e4 e5 *\r\r[Event "b"]\r\r1. d4 *\r', [("a", 2), ("b", 1)]),
        ('[Event "a"]\r\r\n\r\r\n1. e4 e5 *\r\r\n', [("a", 2)]),
        ('[Event "a"]\n1. e4 *\n[Event "b"]\n1. d4 *', [("a", 1), ("b", 1)]),
        ("1. e4 e5 1-0 1. d4 d5 0-1\n1. c4 *", [("", 2), ("", 2), ("", 1)]),
        ("1. e4 e5\n\n1. d4 d5 2. c4\n\n1. c4", [("", 2), ("", 3), ("", 1)]),
        ('[Event "a"]\n\n1. e4 (1. d4 d5 *\n\n[Event "b"]\n\n1. c4 *', [("a", 1), ("b", 1)]),
        ("1. e4 (1. d4 d5 1-0\n\n1. c4 *", [("", 1), ("", 1)]),
        ('[Event "a"]\n\n1. e4 } e5 ) 2. Nf3 *', [("a", 3)]),
        ('[Event "a"]\n\n1. e4 {\n[x]\n\n[Event "no"]\n\n} e5 *', [("a", 2)]),
        ('[Event "The "big" cup"]\n\n1. e4 *', [('The "big" cup', 1)]),
        ('[Event "a"]\n\n*\n\n[Event "b"]\n\n[Event "c"]\n\n1. e4 *', [("a", 0), ("b", 0), ("c", 1)]),
        ('[Event "a"]\n\f\n1. e4 \f e5 *\x0c\n[Event "b"]\n\n1. d4 *\x1a', [("a", 2), ("b", 1)]),
        ('[Event "a"]\n\n1. e4 e5 1-0 {resigned}\n1-0\n\n{next}\n[Event "b"]\n\n1. d4 *', [("a", 2), ("b", 1)]),
        ("1. e4 {a {b} c} e5 *", [("", 2)]),
        ('; remark\n% other\n[Event "a"]\n; more\n\n1. e4 ; one\n% two\n1... e5 *', [("a", 2)]),
        ('[Event "a"]\n[White "x"\n[Black "y"]\n\n1. e4 *', [("a", 1)]),
        (f'[Event "a"]\n\n1. e4 e5 0-1\n[Event "b"]\n{MATE}\n\n1. Rd8# 1-0', [("a", 2), ("b", 1)]),
    ],
)
def test_where_games_begin_and_end(text: str, wanted: list[tuple[str, int]]) -> None:
    works = games_of(text)
    assert [facts(work) for work in works] == wanted
    texts = [work.source.text_between(work.begin, work.end) for work in works]
    assert "".join(texts).strip("\ufeff") == text.strip("\ufeff")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[Event "a"]\n\n1. e4 {open 1... e5 *\n\n[Event "b"]\n\n1. d4 *\n', 3, "a { without its }"),
        ('[Event "a"]\n\n1. e4 (1. d4 d5 *\n', 4, "a ( without its )"),
        ('[Event "a"]\n\n1. e4 } e5 *', 3, "a } without its {"),
        ('[Event "a"]\n\n1. e4 ) e5 *', 3, "a ) without its ("),
        ('[Event "a"]\n[White "x"\n[Black "y"]\n\n1. e4 *', 2, "'[White \"x\"' is not PGN"),
        ('[Event "a"]\n[White "x"]\n[White "y"]\n\n1. e4 *', 3, "the tag White occurs twice"),
        ('Hello\n\n[Event "a"]\n\n1. e4 *', 1, "'Hello' is not PGN"),
        ('[Event "a"]\n\n1. e4 *\n\nbye, all\n', 5, "'bye, all' is not PGN"),
        ("1. e4 {a {b} e5 *", 1, "a { inside a comment"),
        ("1. e4 e5 2. Nf3\n1. d4 *", 2, "no result before the next game"),
    ],
)
def test_what_is_no_pgn_is_named_and_kept(text: str, line: int, words: str) -> None:
    work = games_of(text)[0]
    assert [(problem.text, problem.line, problem.where) for problem in work.problems] == [(words, line, Where.TEXT)]
    written = "".join(judge_game(work, {}, annotator="psearch").to_pgn() for work in games_of(text))
    for kept in ("open 1... e5 *", '[White "x"', "Hello", "bye, all"):
        assert (kept in written) == (kept in text)


@pytest.mark.parametrize("word", ["Sf3", "Cf3", "Xf3", "KxR", "P-K4", "hello", "e4e5e6", "Nf3a", "Pf3"])
def test_a_word_that_is_no_move_is_refused_and_named(word: str) -> None:
    (work,) = games_of(f'[Event "a"]\n\n1. e4 Nf6 2. Nc3 Nc6 3. {word} e6 {{so}} 4. Bb5 1-0')
    assert work.problem.where is Where.MAIN_LINE
    assert word[-3:] in work.problem.text
    assert len(moves_of(work)) == 4
    assert f"{word} e6 (so) 4. Bb5" in work.game.end().comment
    assert work.game.headers["Result"] == "1-0"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1. Sf3 Sf6 2. d4 d5 3. Lf4 Lf5 4. Sc3 Dd6", "Nf3 Nf6 d4 d5 Bf4 Bf5 Nc3 Qd6"),  # German
        ("1. Cf3 Cf6 2. d4 d5 3. Ff4 Ff5 4. Dd3", "Nf3 Nf6 d4 d5 Bf4 Bf5 Qd3"),  # French
        ("1. Cf3 Cf6 2. d4 d5 3. Af4 Af5 4. Re2", None),  # Spanish: no such move of the king
        ("1. e4 e5 2. Re2 Re7 3. Cf3 Dd8", None),
        ("1. e4 e5 2. Re2 Re7 3. Cf3 Cf6", "e4 e5 Ke2 Ke7 Nf3 Nf6"),
        ("1. Pf3 Pf6 2. d4 e6 3. Lf4 De7", "Nf3 Nf6 d4 e6 Bf4 Qe7"),  # Dutch
        ("1. Cf3 Cf6 2. e3 e6 3. Bb5 Bb4", "Nf3 Nf6 e3 e6 Bb5 Bb4"),  # Portuguese
        ("1. Sf3 Sf6 2. e3 e6 3. Gb5 Gb4 4. Hе2", None),
        ("1. Sf3 Sf6 2. e3 e6 3. Gb5 Gb4 4. He2", "Nf3 Nf6 e3 e6 Bb5 Bb4 Qe2"),  # Polish
        ("1. Jf3 Jf6 2. e3 e6 3. Sb5 Sb4 4. De2", "Nf3 Nf6 e3 e6 Bb5 Bb4 Qe2"),  # Czech
        ("1. e4 e5 2. Кf3 Кc6 3. Сb5 Сc5 4. Крe2 Фe7", "e4 e5 Nf3 Nc6 Bb5 Bc5 Ke2 Qe7"),  # Russian
        ("1. ♘f3 ♞f6 2. ♙e3 ♟e6 3. ♗b5", "Nf3 Nf6 e3 e6 Bb5"),
        ("1. Sf3 Nf6 2. d4", None),  # two languages
        ("1. e4 <> 2. d4 -- 3. c4 Z0", "e4 -- d4 -- c4 --"),
        ("1. e2-e4 e7e5 2. Ng1-f3 Nb8c6 3. Bf1-b6", None),
        ("1. e2-e4 e7e5 2. Ng1-f3 Nb8c6 3. Bf1-b5", "e4 e5 Nf3 Nc6 Bb5"),
        ("1.e4,e5 2.Nf3!?,Nc6?! 3 Bb5 ... a6 4.Ba4 = Nf6 5.o-o", "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O"),
        ("1. ... e5", None),
        ("1. d4 d5 2. Nb d2 Ng f6", "d4 d5 Nd2 Nf6"),
        ("1. e4 a6 2. e5 d5 3. exd6e.p. a5 4. dxc7 e.p. a4 5. cxb8(Q)", "e4 a6 e5 d5 exd6 a5 dxc7 a4 cxb8=Q"),
        ("1. e4 a6 2. e5 d5 3. exd6ep a5 4. dxc7 a4 5. cxd8/N", "e4 a6 e5 d5 exd6 a5 dxc7 a4 cxd8=N"),
    ],
)
def test_moves_in_other_forms(text: str, wanted: str | None) -> None:
    """A game without `wanted` has a word that is refused and named."""
    (work,) = games_of(f'[Event "a"]\n\n{text} *')
    assert (work.problem is None) == (wanted is not None), work.problem
    if wanted is not None:
        board = chess.Board()
        assert [move.uci() for move in (board.push_san(word) for word in wanted.split())] == moves_of(work)


@pytest.mark.parametrize(
    "name",
    ["Standard Chess", "?", "", "normal", "From Position", "chess960 #100", "Chess 960", "Fischerandom", "Freestyle"],
)
def test_names_of_variants(name: str) -> None:
    (work,) = games_of(f'[Event "a"]\n[Variant "{name}"]\n\n1. e4 e5 *')
    assert work.problem is None
    assert facts(work) == ("a", 2)
    assert work.game.headers["Variant"] == name
    assert work.game.board().chess960 == (name[:2] in ("ch", "Ch", "Fi", "Fr") and name != "From Position")
    assert f'[Variant "{name}"]' in judge_game(work, {}, annotator="psearch").to_pgn()


def test_lines_of_two_encodings() -> None:
    data = '[Event "Šahović"]\n\n1. e4 *\n\n'.encode() + '[Event "Müller"]\n\n1. d4 *\n'.encode("latin-1")
    assert [game.tags["Event"] for game in split_games(source_of(data))] == ["Šahović", "Müller"]


def test_remarks_stay() -> None:
    (work,) = games_of('% for a program\n[Event "a"]\n\n1. e4 ; to the end\n% more\n1... e5 *')
    written = judge_game(work, {}, annotator="psearch").to_pgn()
    assert all(words in written for words in ("% for a program", "to the end", "% more"))
    assert work.problem is None
