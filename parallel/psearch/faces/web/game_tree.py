"""The game on the board of a page: a tree of `chess.pgn` nodes, and the node on the board.

The page refers to nodes by number; the root has 0. python-chess decides here which moves are legal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import chess
import chess.engine
import chess.pgn
import chess.svg

from psearch.results import PsearchError, relative_text
from psearch.text.fen import parse_position
from psearch.text.marks import winning_chance
from psearch.text.moves import MARK_NAGS, read_move
from psearch.text.openings import opening_of
from psearch.text.pgn_text import Where, read_games
from psearch.text.source import Source
from psearch.text.values import shown

MOST_NODES = 4_000
"""Most nodes of a tree; each takes about 200 bytes in a message."""
_LONGEST_COMMENT = 1_000
"""Longest comment that is shown, in characters."""
_MARKS = {nag: mark for mark, nag in MARK_NAGS.items() if nag <= chess.pgn.NAG_DUBIOUS_MOVE}
_EVAL = re.compile(r"\[%eval [^\]]*\](?: at (?:least|most) [-+#][-\d.]+)?")
"""Pattern of an evaluation in a comment, with the words that psearch adds for a bound."""
_COMMANDS = re.compile(rf"{_EVAL.pattern}|\[%[a-z]+ [^\]]*\]")
"""Pattern of the machine-readable parts of a comment: evaluations, clocks."""
_SHAPE = re.compile("[GRYB](?:[a-h][1-8]){1,2}")
_HEADER = re.compile("[A-Za-z0-9][A-Za-z0-9_+#=:-]*")
_MOST_HEADERS = 60
_FIXED = ("FEN", "SetUp", "Variant")
"""Headers that follow from the first position."""
_CP_LIMIT = 100_000
"""Largest score of a PGN file that is taken seriously, in centipawns."""


@dataclass
class _Entry:
    number: int
    facts: dict[str, Any] | None = None
    """Unchanging facts for the page."""
    found: tuple[chess.engine.PovScore, int] | None = None
    """Score and depth found by an analysis here."""


class GameTree:
    """Holds a game with its variations."""

    def __init__(self, game: chess.pgn.Game | None = None) -> None:
        self.game = game or chess.pgn.Game()
        self.here: chess.pgn.GameNode = self.game
        """Node on the board."""
        self._entries: dict[chess.pgn.GameNode, _Entry] = {}
        self._nodes: dict[int, chess.pgn.GameNode] = {}
        """Nodes by number."""
        self._next = 0
        self.renumber()

    @classmethod
    def of_fen(cls, text: str) -> GameTree:
        """Return a tree with one position. Raises PsearchError."""
        return cls.of_board(parse_position(text))

    @classmethod
    def of_board(cls, board: chess.Board) -> GameTree:
        """Return a tree with one position, without the moves before it."""
        game = chess.pgn.Game()
        if board != chess.Board():
            game.setup(board)
        return cls(game)

    @classmethod
    def of_pgn(cls, text: str) -> tuple[GameTree, str]:
        """Return the game of a PGN, and its errors in words, if any. Raises PsearchError if there is no game."""
        try:
            games = read_games(Source.of_text("the PGN", text))
        except UnicodeEncodeError:
            raise PsearchError("the PGN is not valid text") from None
        work = next(games, None)
        if work is None:
            raise PsearchError("there is no game in this PGN")
        if work.problem is not None and (
            not work.readable or (work.game.next() is None and work.problem.where is Where.MAIN_LINE)
        ):
            raise PsearchError(f"bad PGN: {work.problem.text}")
        problem = "" if work.problem is None else f"{work.problem.text}: {work.problem.consequence}"
        if next(games, None) is not None:
            problem = "another game begins in this one without tags or a move 1: only the first is shown"
        return cls(work.game), problem

    def copy(self) -> GameTree:
        """Return an independent copy with the same numbers and scores."""
        game = chess.pgn.Game(self.game.headers.copy())
        game.comment, game.nags = self.game.comment, set(self.game.nags)
        nodes: dict[chess.pgn.GameNode, chess.pgn.GameNode] = {self.game: game}
        for node in _walk(self.game)[1:]:
            assert isinstance(node, chess.pgn.ChildNode)
            nodes[node] = nodes[node.parent].add_variation(
                node.move, comment=node.comment, starting_comment=node.starting_comment, nags=node.nags
            )
        found = GameTree(game)
        found.here, found._next = nodes[self.here], self._next
        found._entries = {nodes[node]: replace(entry) for node, entry in self._entries.items()}
        found._nodes = {entry.number: node for node, entry in found._entries.items()}
        return found

    def renumber(self) -> None:
        """Number new nodes, and forget those that no longer exist. Raises PsearchError for too many nodes."""
        found = _walk(self.game)
        if len(found) > MOST_NODES:
            raise PsearchError(f"the game has more than {MOST_NODES:,} moves")
        for node in self._entries.keys() - set(found):
            del self._nodes[self._entries.pop(node).number]
        for node in found:
            if node not in self._entries:
                self._add(node)

    def _add(self, node: chess.pgn.GameNode) -> None:
        self._entries[node] = _Entry(self._next)
        self._nodes[self._next] = node
        self._next += 1

    def _node(self, number: int) -> chess.pgn.GameNode:
        node = self._nodes.get(number)
        if node is None:
            raise PsearchError("there is no such move in the game")
        return node

    @property
    def number(self) -> int:
        """Return the number of the node on the board."""
        return self._entries[self.here].number

    def has(self, node: chess.pgn.GameNode) -> bool:
        """Tell whether a node is still in the tree."""
        return node in self._entries

    def number_of(self, node: chess.pgn.GameNode) -> int:
        """Return the number of a node of the tree."""
        return self._entries[node].number

    def board(self) -> chess.Board:
        """Return the position on the board, with the moves before it."""
        return self.here.board()

    def go(self, number: int) -> None:
        """Put a node on the board. Raises PsearchError if the number is unknown."""
        self.here = self._node(number)

    def play(self, move: chess.Move) -> None:
        """Make a legal move: go to it if it exists, else add a variation. Raises PsearchError for too many moves."""
        child = next((child for child in self.here.variations if child.move == move), None)
        if child is None:
            if len(self._nodes) >= MOST_NODES:
                raise PsearchError(f"the game has more than {MOST_NODES:,} moves")
            child = self.here.add_variation(move)
            self._add(child)
        self.here = child

    def remove(self, number: int) -> None:
        """Delete a move and all that follow. Raises PsearchError for the root."""
        node = self._node(number)
        if not isinstance(node, chess.pgn.ChildNode):
            raise PsearchError("there is no such move in the game")
        if self.here in set(_walk(node)):
            self.here = node.parent
        node.parent.remove_variation(node)
        self.renumber()

    def promote(self, number: int) -> None:
        """Make the moves up to this one the main line. Raises PsearchError if the number is unknown."""
        node = self._node(number)
        while isinstance(node, chess.pgn.ChildNode):
            node.parent.promote_to_main(node)
            node = node.parent

    def draw(self, number: int, shapes: list[str]) -> None:
        """Replace the arrows and circles at a node, written as in PGN: `Gd2d4`, `Rd4`. Raises PsearchError."""
        if not all(map(_SHAPE.fullmatch, shapes)):
            raise PsearchError("shapes must be like Gd2d4 or Rd4")
        self._node(number).set_arrows(map(chess.svg.Arrow.from_pgn, shapes))

    def set_header(self, name: str, value: str) -> None:
        """Set a header of the PGN; an empty value removes it. Raises PsearchError."""
        headers, value = self.game.headers, " ".join(value.split()).replace('"', "'")
        if name in _FIXED:
            raise PsearchError(f"{name} follows from the first position")
        if not _HEADER.fullmatch(name):
            raise PsearchError(f"{shown(name)} cannot be the name of a header: letters, digits and _ can")
        if name == "Result" and value not in ("1-0", "0-1", "1/2-1/2", "*"):
            raise PsearchError("Result must be 1-0, 0-1, 1/2-1/2 or *")
        if value and name not in headers and len(headers) >= _MOST_HEADERS:
            raise PsearchError(f"the game has {_MOST_HEADERS} headers already")
        headers[name] = value
        if not value:
            del headers[name]

    def position(self) -> dict[str, Any]:
        """Return the position on the board and its legal moves."""
        board = self.board()
        outcome = board.outcome()
        last = board.peek() if board.move_stack else None
        return {
            "id": self.number,
            "fen": _fen(board),
            "turn": chess.COLOR_NAMES[board.turn],
            "chess960": board.chess960,
            "check": board.is_check(),
            "last": [chess.square_name(last.from_square), chess.square_name(last.to_square)] if last else None,
            "dests": destinations(board),
            "over": outcome_text(outcome) if outcome is not None else "",
        }

    def tree(self) -> dict[str, Any]:
        """Return the whole game: each node after its parent, the main line of each before its variations."""
        nodes = []
        left: list[tuple[chess.pgn.GameNode, chess.Board | None]] = [(self.game, None)]
        """Nodes to visit, with the position before each if it is known, since making moves is slow."""
        while left:
            node, before = left.pop()
            entry, board = self._entries[node], None
            if entry.facts is None:
                entry.facts, board = self._lasting_facts(node, before)
            left.extend((child, board) for child in reversed(node.variations))
            facts = dict(entry.facts)
            if isinstance(node, chess.pgn.ChildNode):
                facts["main"] = node.is_main_variation()
                facts["mark"] = next((_MARKS[nag] for nag in sorted(node.nags) if nag in _MARKS), "")
            if node.starting_comment:
                facts["before"] = _shown_comment(node.starting_comment)
            if node.comment:
                facts["comment"] = _shown_comment(node.comment)
                facts["shapes"] = [arrow.pgn() for arrow in node.arrows()]
            score = self.score_of(node)
            if score is not None:
                facts["eval"] = score
            nodes.append(facts)
        headers = list(self.game.headers.items())[:_MOST_HEADERS]
        return {
            "nodes": nodes,
            "here": self.number,
            "headers": {name: text[:_LONGEST_COMMENT] for name, text in headers},
        }

    def _lasting_facts(
        self, node: chess.pgn.GameNode, before: chess.Board | None
    ) -> tuple[dict[str, Any], chess.Board]:
        """Return the unchanging facts of a node, and its position. before: the position before it, if known."""
        moved: dict[str, Any] = {}
        if isinstance(node, chess.pgn.ChildNode):
            before = before or node.parent.board()
            squares = [chess.square_name(square) for square in (node.move.from_square, node.move.to_square)]
            moved = {"parent": self.number_of(node.parent), "uci": squares, "san": before.san(node.move)}
            board = before.copy(stack=False)
            board.push(node.move)
            if not board.chess960 and (opening := opening_of(board)):
                moved["opening"] = " ".join(opening)
        else:
            board = self.game.board()
        place = {"id": self.number_of(node), "ply": board.ply(), "fen": board.board_fen()}
        return {**place, "turn": chess.COLOR_NAMES[board.turn], **moved}, board

    def export(self) -> dict[str, str]:
        """Return the position as FEN and the game as PGN."""
        board = self.board()
        exporter = chess.pgn.StringExporter(columns=80, headers=True, variations=True, comments=True)
        return {"fen": _fen(board), "pgn": self.game.accept(exporter)}

    def keep_score(self, number: int, score: chess.engine.PovScore, depth: int) -> None:
        """Keep a score of a node, unless a deeper one is known from an earlier analysis or the PGN."""
        node = self._nodes.get(number)
        if node is not None:
            known = self._known(node)
            self._entries[node].found = (score, depth) if known is None or depth >= known[1] else known

    def score_of(self, node: chess.pgn.GameNode) -> dict[str, Any] | None:
        """Return the deepest score of a node for the page; None if there is none."""
        known = self._known(node)
        return None if known is None else score_facts(known[0])

    def score_at(self, number: int) -> dict[str, Any] | None:
        """Return the score of a node by number, like `score_of`; None if it was deleted."""
        node = self._nodes.get(number)
        return None if node is None else self.score_of(node)

    def write_scores(self, nodes: Iterable[chess.pgn.GameNode]) -> None:
        """Replace scores in the PGN that are less deep."""
        for node in nodes:
            known = self._known(node)
            if known is not None and node.eval() is not None and known[1] > (node.eval_depth() or 0):
                node.comment = _EVAL.sub("", node.comment).strip()
                node.set_eval(*known)

    def _known(self, node: chess.pgn.GameNode) -> tuple[chess.engine.PovScore, int] | None:
        """Return the deepest score of a node with its depth (0 if the PGN does not say it)."""
        found = self._entries[node].found if node in self._entries else None
        depth = node.eval_depth() or 0
        if found is not None and found[1] >= depth:
            return found
        score = node.eval()
        if score is None or abs(score.white().score(mate_score=_CP_LIMIT) or 0) > _CP_LIMIT:
            return found
        return score, depth


def move_of(board: chess.Board, origin: str, target: str, promotion: str) -> chess.Move:
    """Return the legal move between two squares; castling may be king takes rook. Raises PsearchError."""
    for move in board.legal_moves:
        moved = chess.square_name(move.from_square), chess.PIECE_SYMBOLS[move.promotion or 0] or ""
        if moved == (origin, promotion) and target in _targets(board, move):
            return move
    raise PsearchError(f"{origin[:2]}{target[:2]} is not a legal move")


def move_in_words(board: chess.Board, text: str) -> chess.Move:
    """Return a move that was typed: `Nf3`, `nf3`, `e4`, `e2e4`; `a8` promotes to a queen. Raises PsearchError."""
    word = text.strip()
    for reading in (word, word[:1].upper() + word[1:], f"{word}=Q"):
        with suppress(ValueError):
            if move := read_move(board, reading):
                return move
    raise PsearchError(f"{shown(text)} is not a legal move here")


def destinations(board: chess.Board) -> dict[str, list[str]]:
    """Return the target squares of the legal moves, by square of origin."""
    found: dict[str, list[str]] = {}
    for move in board.legal_moves:
        targets = found.setdefault(chess.square_name(move.from_square), [])
        targets.extend(target for target in _targets(board, move) if target not in targets)
    return found


def _targets(board: chess.Board, move: chess.Move) -> list[str]:
    """Return the target squares that select a move."""
    targets = [chess.square_name(move.to_square)]
    if board.is_castling(move) and not board.chess960:
        rook = chess.square(7 if board.is_kingside_castling(move) else 0, chess.square_rank(move.to_square))
        targets.append(chess.square_name(rook))
    return targets


def _shown_comment(text: str) -> str:
    return " ".join(_COMMANDS.sub("", text).split())[:_LONGEST_COMMENT]


def outcome_text(outcome: chess.Outcome) -> str:
    """Return why the game is over, in words."""
    reason = outcome.termination.name.lower().replace("_", " ")
    winner = {True: "White wins by ", False: "Black wins by ", None: "Draw by "}[outcome.winner]
    return winner + reason


def score_facts(score: chess.engine.PovScore, bound: str = "exact") -> dict[str, Any]:
    """Return a score from White's view: as text, in centipawns (mates are beyond 10,000), and as the chance to win
    of bar, graph and marks (`psearch.text.marks`). bound: of the score from the side to move's view.
    """
    white = score.white()
    if bound != "exact" and not score.turn:
        bound = "upper" if bound == "lower" else "lower"
    return {
        "text": relative_text(white, bound),
        "cp": white.score(mate_score=20_000),
        "points": round(winning_chance(white), 4),
    }


def _fen(board: chess.Board) -> str:
    return board.shredder_fen() if board.chess960 else board.fen()


def _walk(node: chess.pgn.GameNode) -> list[chess.pgn.GameNode]:
    """Return a node and all nodes after it, without recursion, since games are long."""
    found, left = [], [node]
    while left:
        found.append(left.pop())
        left.extend(reversed(found[-1].variations))
    return found
