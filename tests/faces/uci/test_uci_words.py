"""What the words of UCI mean, without an engine: go, position, options, help, the strength that is asked for."""

from __future__ import annotations

import random
from dataclasses import replace

import chess
import chess.engine
import pytest

from psearch import settings
from psearch.faces.uci.go import _WORDS, GoCommand, parse_go
from psearch.faces.uci.strength import LEVELS, MAX_ELO, MIN_ELO, choose_line, node_limit, noise_cp
from psearch.faces.uci.uci_conversation import HELP, CurrentPosition, Uci
from psearch.faces.uci.uci_options import OPTIONS, OptionValues
from psearch.results import Info, PsearchError


def test_go_words() -> None:
    warnings: list[str] = []
    board = chess.Board()

    def parse(words: str) -> GoCommand:
        return parse_go(words.split(), board, warnings.append)

    assert parse("").infinite
    assert parse("winc 5 movestogo 3").infinite  # no limit among them
    assert not parse("depth 3").infinite
    assert parse("infinite wtime 5").infinite
    assert not parse("ponder").infinite and parse("ponder").ponder
    assert parse("wtime -5").wtime == 0
    assert parse("depth 0").depth == 1
    assert parse("movestogo 0 wtime 1").movestogo == 1
    assert parse("wtime 5").own_ms == (5, 0)
    assert parse("btime 7 binc 2").own_ms == (7, 2)  # white to move, only black's clock known
    assert parse("wtime 5 btime 7 binc 2").own_ms == (5, 0)
    assert warnings == []
    assert parse("depth x nodes 5 quickly searchmoves e2e5").nodes == 5
    assert warnings == [
        "go depth: a whole number is missing",
        "go: 'quickly' is not known and was ignored",
        "go searchmoves: 'e2e5' is not a legal move and was ignored",
    ]


def test_a_number_that_is_missing_eats_no_word() -> None:
    warnings: list[str] = []
    command = parse_go(["depth", "nodes", "5", "movetime"], chess.Board(), warnings.append)
    assert (command.depth, command.nodes, command.movetime) == (None, 5, None)
    assert warnings == ["go depth: a whole number is missing", "go movetime: a whole number is missing"]


def test_the_initial_position_until_something_is_set_up() -> None:
    assert CurrentPosition().board(chess960=False).fen() == chess.STARTING_FEN


def test_a_position_that_goes_on_keeps_the_history() -> None:
    position = CurrentPosition()
    for words in ("startpos moves g1f3", "startpos moves g1f3 g8f6 f3g1 f6g8", "startpos moves g1f3 g8f6"):
        position.set_up(words.split(), chess960=False)
        board = position.board(chess960=False)
        assert [move.uci() for move in board.move_stack] == words.split()[2:]
    position.set_up(f"fen {chess.STARTING_FEN} moves e2e4".split(), chess960=False)
    assert [move.uci() for move in position.board(chess960=False).move_stack] == ["e2e4"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "startpos or fen is missing"),
        ("moves e2e4", "startpos or fen is missing"),
        ("startpos moves e2e4 e2e4", "move 2: 'e2e4' is not a legal move"),
        ("startpos moves d2d4 d7d5 0000", "move 3: '0000' is not a legal move"),
        ("startpos e2e4", "startpos must stand alone"),
        ("fen 8/8 w - -", "bad FEN"),
    ],
)
def test_after_a_bad_position_there_is_none(words: str, reason: str) -> None:
    position = CurrentPosition()
    position.set_up(["startpos", "moves", "d2d4"], chess960=False)
    with pytest.raises(PsearchError, match=reason):
        position.set_up(words.split(), chess960=False)
    assert not position.board(chess960=False).occupied
    position.set_up(["startpos", "moves", "d2d4", "d7d5"], chess960=False)
    assert position.board(chess960=False).ply() == 2


@pytest.mark.parametrize(
    ("chess960", "fen", "word", "move"),
    [
        (False, "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1h1", "e1g1"),
        (True, "r3k2r/8/8/8/8/8/8/R3K2R w HAha -", "e1g1", "e1h1"),
        (False, "r3k2r/8/8/8/8/8/8/R3K2R w HAha -", "O-O-O", "e1c1"),
        (False, "8/P6k/8/8/8/8/8/K7 w", "a8=Q", "a7a8q"),
    ],
)
def test_moves_are_understood_in_every_notation(chess960: bool, fen: str, word: str, move: str) -> None:
    """File letters do not make it Chess960 where the option is off: a GUI of standard chess expects e1g1."""
    position = CurrentPosition()
    position.set_up(f"fen {fen} moves {word}".split(), chess960)
    board = position.board(chess960)
    assert board.uci(board.pop()) == move


def test_a_board_is_a_copy() -> None:
    position = CurrentPosition()
    position.board(chess960=False).push_uci("e2e4")
    assert position.board(chess960=True).fen() == chess.STARTING_FEN
    assert position.board(chess960=True).chess960
    assert not position.board(chess960=False).chess960


def test_options_declare_what_they_take() -> None:
    values = OptionValues()
    for option in OPTIONS:
        assert option.declaration().startswith(f"option name {option.name} type {option.kind}")
        if option.kind == "spin":
            for good in (option.low, option.high):
                values.set(option.name, str(good))
                assert values[option.name] == good
            for bad in (option.low - 1, option.high + 1, "", "1.5"):
                with pytest.raises(ValueError, match=option.name):
                    values.set(option.name, str(bad))
            assert values[option.name] == option.high
        elif option.kind == "combo":
            for choice in option.choices:
                values.set(option.name, choice.upper())
                assert values[option.name] == choice
        elif option.kind == "check":
            values.set(option.name, "true")
            assert values[option.name]
            values.set(option.name, "false")
            assert not values[option.name]
    copy = values.copy()
    values.set("Hash", "77")
    assert copy["Hash"] != 77


def test_where_files_are_forbidden_a_policy_is_one_of_the_package_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also none that an installed package has declared: its import is code as well."""
    values = OptionValues(files=False)
    values.set("Policy", "ybw")
    with pytest.raises(ValueError, match="Policy is not available: PSEARCH_NO_FILES forbids all files"):
        values.set("Policy", "/home/me/my_policy.py")
    monkeypatch.setattr(settings, "is_own_policy", lambda name: name == "installed")
    with pytest.raises(ValueError, match="Policy is not available"):
        values.set("Policy", "installed")
    assert values["Policy"] == "ybw"


def test_it_names_every_command_and_every_word_of_go() -> None:
    uci = Uci(print)
    said = HELP.replace(",", " ").split()
    protocol = {*uci._commands, *uci._own_commands} - {"uci", "register", "ponderhit", "help"}
    assert protocol <= set(said)
    assert set(_WORDS) <= set(said)


def test_it_is_printed_at_once() -> None:
    said: list[str] = []
    Uci(said.append).run(["help"])
    assert said == [HELP]


MATE_IN_ONE, MATE_IN_TWO = (chess.engine.PovScore(chess.engine.Mate(moves), chess.WHITE) for moves in (1, 2))


def line(number: int, score_cp: int) -> Info:
    return Info(
        7, 11, chess.engine.PovScore(chess.engine.Cp(score_cp), chess.WHITE), "exact", 1000, 0.25, multipv=number
    )


def test_levels_are_ordered() -> None:
    steps = range(MIN_ELO, MAX_ELO + 1, 50)
    limits = [node_limit(elo) for elo in steps]
    assert limits == sorted(set(limits))
    noises = [noise_cp(elo) for elo in steps]
    assert noises == sorted(set(noises), reverse=True)
    for level in LEVELS:
        assert (node_limit(level.elo), noise_cp(level.elo)) == (level.nodes, level.noise_cp)


def test_weak_levels_choose_worse_moves_now_and_then() -> None:
    lines = [line(number, score) for number, score in enumerate((40, 20, -30, -2000), start=1)]
    counts = {}
    for elo in (MIN_ELO, (MIN_ELO + MAX_ELO) // 2, MAX_ELO):
        dice = random.Random(elo)
        chosen = [choose_line(lines, elo, dice).multipv for _ in range(2000)]
        counts[elo] = [chosen.count(number) for number in (1, 2, 3, 4)]
        assert counts[elo] == sorted(counts[elo], reverse=True)
        assert counts[elo][3] <= 2  # nobody throws two queens away for fun
    assert counts[MAX_ELO] == [2000, 0, 0, 0]
    assert counts[MIN_ELO][0] < counts[(MIN_ELO + MAX_ELO) // 2][0] < 2000


def test_a_mate_that_is_seen_is_played() -> None:
    lines = [replace(line(1, 0), score=MATE_IN_ONE), replace(line(2, 0), score=MATE_IN_TWO)]
    dice = random.Random(1)
    assert {choose_line(lines, MIN_ELO, dice).multipv for _ in range(50)} == {1}
