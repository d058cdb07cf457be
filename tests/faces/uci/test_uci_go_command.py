"""The words of `go`."""

from __future__ import annotations

import chess

from psearch.faces.uci.go import GoCommand, parse_go


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
