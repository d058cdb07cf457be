"""The game on the board of a page."""

from __future__ import annotations

import random

import chess
import chess.engine
import pytest

from psearch.faces.web.game_tree import (
    MOST_NODES,
    GameTree,
    destinations,
    move_in_words,
    move_of,
    score_facts,
)
from psearch.results import PsearchError

CASTLING = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
PROMOTING = "8/4P1k1/8/8/8/8/8/4K3 w - - 0 1"


def played(tree: GameTree, *words: str) -> GameTree:
    for word in words:
        tree.play(move_in_words(tree.board(), word))
    return tree


def test_the_first_position() -> None:
    position = GameTree().position()
    assert position["id"] == 0
    assert position["turn"] == "white"
    assert position["last"] is None
    assert sum(map(len, position["dests"].values())) == 20
    assert sorted(position["dests"]["g1"]) == ["f3", "h3"]
    assert position["over"] == ""


def test_moves_and_variations() -> None:
    tree = played(GameTree(), "e4", "e5", "Nf3")
    tree.go(1)
    played(tree, "c5")
    nodes = {node["id"]: node for node in tree.tree()["nodes"]}
    assert [node.get("san") for node in nodes.values()] == [None, "e4", "e5", "Nf3", "c5"]
    assert [node.get("parent") for node in nodes.values()] == [None, 0, 1, 2, 1]
    assert nodes[4]["main"] is False and nodes[3]["main"] is True
    assert nodes[4]["ply"] == 2 and nodes[4]["turn"] == "white"
    assert nodes[4]["fen"] == tree.board().board_fen()
    assert tree.tree()["here"] == 4


def test_a_move_that_is_there_is_gone_to() -> None:
    tree = played(GameTree(), "e4", "e5")
    tree.go(0)
    played(tree, "e4")
    assert tree.number == 1
    assert len(tree.tree()["nodes"]) == 3


def test_remove_takes_what_follows() -> None:
    tree = played(GameTree(), "e4", "e5", "Nf3")
    tree.remove(2)
    assert tree.number == 1
    assert len(tree.tree()["nodes"]) == 2
    with pytest.raises(PsearchError):
        tree.go(3)
    with pytest.raises(PsearchError):
        tree.remove(0)


@pytest.mark.parametrize("seed", range(5))
def test_the_page_is_told_of_each_node_what_is_so(seed: int) -> None:
    """Moves made, removed and promoted at random; told in between, as what was told once is kept."""
    dice = random.Random(seed)
    tree = GameTree()
    for _ in range(120):
        nodes = tree.tree()["nodes"]
        tree.go(dice.choice(nodes)["id"])
        kind = dice.random()
        if kind < 0.08 and tree.number:
            tree.remove(tree.number)
        elif kind < 0.16:
            tree.promote(tree.number)
        else:
            for _ in range(dice.randint(1, 4)):
                tree.play(dice.choice(list(tree.board().legal_moves)))
    found = tree.tree()["nodes"]
    assert len({node["id"] for node in found}) == len(found)
    told = set()
    for facts in found:
        assert facts.get("parent", 0) in told | {0}  # after its parent
        told.add(facts["id"])
        tree.go(facts["id"])
        board = tree.board()
        assert (facts["fen"], facts["turn"]) == (board.board_fen(), chess.COLOR_NAMES[board.turn])
        assert facts["ply"] == board.ply()
        if board.move_stack:
            move = board.pop()
            assert facts["san"] == board.san(move)
            assert facts["parent"] == tree.number_of(tree.here.parent)


def test_promote() -> None:
    tree = played(GameTree(), "e4", "e5")
    tree.go(1)
    played(tree, "c5", "Nf3")
    tree.promote(4)
    assert [node.get("san") for node in tree.tree()["nodes"]] == [None, "e4", "c5", "Nf3", "e5"]


def test_a_comment_before_a_variation_is_shown() -> None:
    tree = GameTree.of_pgn("1. e4 { ok } ( { also [%csl Ge4] good } 1. d4 ) e5 *")[0]
    facts = {node.get("san"): node for node in tree.tree()["nodes"]}
    assert (facts["e4"].get("before"), facts["d4"].get("before")) == (None, "also good")


def test_castling_is_a_move_of_the_king_to_either_square() -> None:
    board = chess.Board(CASTLING)
    assert {"c1", "g1", "a1", "h1"} <= set(destinations(board)["e1"])
    assert move_of(board, "e1", "h1", "") == move_of(board, "e1", "g1", "") == chess.Move.from_uci("e1g1")
    assert move_of(board, "e1", "a1", "") == chess.Move.from_uci("e1c1")


def test_castling_in_chess960_is_king_takes_rook() -> None:
    tree = GameTree.of_fen("rk5r/8/8/8/8/8/8/RK5R w HAha - 0 1")
    position = tree.position()
    assert position["chess960"]
    assert {"a1", "h1"} <= set(position["dests"]["b1"])
    tree.play(move_of(tree.board(), "b1", "h1", ""))
    assert tree.tree()["nodes"][1]["san"] == "O-O"
    assert tree.export()["fen"].split()[2] == "ha"


def test_promotion() -> None:
    board = chess.Board(PROMOTING)
    assert destinations(board)["e7"] == ["e8"]
    assert move_of(board, "e7", "e8", "n").promotion == chess.KNIGHT
    with pytest.raises(PsearchError):
        move_of(board, "e7", "e8", "")
    with pytest.raises(PsearchError):
        move_of(board, "e7", "e8", "k")


@pytest.mark.parametrize(
    "words", [("e2", "e5", ""), ("e7", "e5", ""), ("", "", ""), ("zz", "e4", ""), ("e2", "e4", "q")]
)
def test_illegal_moves(words: tuple[str, str, str]) -> None:
    with pytest.raises(PsearchError):
        move_of(chess.Board(), *words)


@pytest.mark.parametrize("text", ["", "e5", "--", "0000", "O-O", "e2e5", "\x00", "Ke2 "])
def test_words_that_are_no_move(text: str) -> None:
    with pytest.raises(PsearchError):
        move_in_words(chess.Board(), text)


def test_the_end_of_a_game() -> None:
    position = played(GameTree(), "f3", "e5", "g4", "Qh4").position()
    assert position["over"] == "Black wins by checkmate"
    assert position["dests"] == {} and position["check"]


def test_pgn_in_and_out() -> None:
    text = '[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n1. e4 $4 {[%eval 0.31] a comment} (1. d4 d5) 1... e5 1-0\n'
    tree, problem = GameTree.of_pgn(text)
    assert problem == ""
    facts = tree.tree()
    assert [facts["headers"][name] for name in ("White", "Black", "Result")] == ["A", "B", "1-0"]
    first = facts["nodes"][1]
    assert first["mark"] == "??" and first["comment"] == "a comment" and first["eval"]["cp"] == 31
    again, _ = GameTree.of_pgn(tree.export()["pgn"])
    assert again.tree()["nodes"] == facts["nodes"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "no game",
        "https://example.org/a?b=c",
        "1. e5",
        '[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n[SetUp "1"]\n\n1. e4',
        "\ud800",
    ],
)
def test_no_pgn(text: str) -> None:
    with pytest.raises(PsearchError):
        GameTree.of_pgn(text)


def test_a_game_that_breaks_off_says_so() -> None:
    tree, problem = GameTree.of_pgn("1. e4 e5 2. Ke3 Nf6")
    assert len(tree.tree()["nodes"]) == 3
    assert "the rest of the game is kept as a comment" in problem
    assert "Ke3 Nf6" in tree.export()["pgn"]


def test_too_long_a_game() -> None:
    moves = " ".join(f"{number}. Nf3 Nf6 {number}. Ng1 Ng8" for number in range(MOST_NODES // 4 + 1))
    with pytest.raises(PsearchError, match="moves"):
        GameTree.of_pgn(moves)


def test_scores_are_kept_by_depth() -> None:
    tree = played(GameTree(), "e4")
    node = tree.here
    for cp, depth in ((20, 10), (90, 4)):
        tree.keep_score(1, chess.engine.PovScore(chess.engine.Cp(cp), chess.WHITE), depth)
    score = tree.score_of(node)
    assert score is not None and (score["text"], score["cp"]) == ("+0.20", 20)
    assert tree.tree()["nodes"][1]["eval"] == score


def test_a_bound_is_seen_from_white() -> None:
    """A lower bound for Black, who is to move, is an upper bound for White; a won position needs no mark."""
    for turn, text in ((chess.WHITE, ">=+0.50"), (chess.BLACK, "<=-0.50")):
        assert score_facts(chess.engine.PovScore(chess.engine.Cp(50), turn), "lower")["text"] == text
    won = chess.engine.PovScore(chess.engine.Cp(20_000), chess.BLACK)
    assert score_facts(won, "lower") == {"text": "lost", "cp": -20_000, "points": 0.0246}


def test_arrows_and_circles_of_a_pgn() -> None:
    tree, problem = GameTree.of_pgn("1. e4 {[%csl Gd4,Re5][%cal Gd2d4] good [%eval 0.3]} e5 *")
    node = tree.tree()["nodes"][1]
    assert not problem and node["comment"] == "good" and node["shapes"] == ["Gd4", "Re5", "Gd2d4"]
    tree.draw(node["id"], ["Bg1f3", "Ya1"])
    pgn = tree.export()["pgn"]
    assert "[%csl Ya1][%cal Bg1f3] good [%eval 0.3]" in " ".join(pgn.split())
    assert GameTree.of_pgn(pgn)[0].tree()["nodes"][1]["shapes"] == ["Ya1", "Bg1f3"]
    tree.draw(node["id"], [])
    assert tree.tree()["nodes"][1]["shapes"] == []
    for shapes in (["Xd4"], ["Gd9"], ["Gd4d5d6"], [""]):
        with pytest.raises(PsearchError, match="Gd2d4 or Rd4"):
            tree.draw(node["id"], shapes)


def test_headers_of_a_pgn() -> None:
    tree = played(GameTree.of_fen(CASTLING), "O-O")
    for name, value in (("White", " Paul  Morphy "), ("Opening", 'The "best"'), ("Result", "1-0")):
        tree.set_header(name, value)
    headers = tree.tree()["headers"]
    assert headers["White"] == "Paul Morphy" and headers["Opening"] == "The 'best'" and headers["FEN"] == CASTLING
    assert GameTree.of_pgn(tree.export()["pgn"])[0].tree()["headers"] == headers
    tree.set_header("Opening", "")
    tree.set_header("Nothing", "")
    assert list(headers.keys() - tree.tree()["headers"].keys()) == ["Opening"]
    for name, value, words in (
        ("FEN", "8/8/8/8/8/8/8/8 w - - 0 1", "first position"),
        ("A b", "x", "cannot be the name"),
        ("Result", "2-0", "Result must be"),
    ):
        with pytest.raises(PsearchError, match=words):
            tree.set_header(name, value)
    with pytest.raises(PsearchError, match="60 headers"):
        for number in range(61):
            tree.set_header(f"Tag{number}", "x")
