"""Conversations with the UCI engine as nobody would hold them, and what must be so after each.

`sessions` makes them; `check_reader` holds one with the thread that reads, where a stand-in searches; `EngineSessions`
with the whole engine in this process.
"""

from __future__ import annotations

import re
from random import Random
from unittest.mock import patch

import chess
from hypothesis import strategies as st
from odd_fens import oddly_written
from paths import DATA
from uci_client import Talk

from psearch.faces.uci.go import Go, State
from psearch.faces.uci.uci_conversation import Uci
from psearch.faces.uci.uci_options import OPTIONS, Option, OptionValues


def _is_valid(fen: str) -> bool:
    try:
        return chess.Board(fen).is_valid()
    except ValueError:
        return False


_FENS = [line.split("\t")[0] for line in (DATA / "fen_cases.tsv").read_text("utf-8").splitlines()[1:]]
_ODD_MOVES = [line.split("\t")[0] for line in (DATA / "uci_moves.tsv").read_text("utf-8").splitlines()[1:]]
_VALID = st.sampled_from([fen for fen in _FENS if "/" in fen and _is_valid(fen)])
_SEED = st.integers(0, 1000)
_NUMBERS = [
    "0",
    "1",
    "2",
    "-1",
    "3",
    "7",
    "100",
    "127",
    "128",
    "1000",
    "99999999999",
    "9" * 18,
    "9" * 19,
    "1e3",
    "0x10",
]
_GO_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "mate", "movetime", "perft")
_SAID = re.compile(
    r"info string [^\n\r]*|info depth [^\n]*|bestmove \S+( ponder \S+)?|readyok|uciok|id (name|author) [^\n]+|"
    r"option name [^\n]+|FEN: .*|([.pnbrqkPNBRQK] ?){8}|static evaluation .*|[a-h][1-8][a-h][1-8]\w?: \d+|"
    r"info nodes .*|Nodes searched: \d+|"
)
"""Every line that the engine may say."""


def _option_lines(text: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def values(option: Option) -> st.SearchStrategy[str]:
        good = {
            "spin": st.integers(option.low - 1, option.high + 1).map(str),
            "check": st.sampled_from(["true", "false", "TRUE"]),
            "combo": st.sampled_from([*option.choices, "none"]),
            "string": st.sampled_from(["", "<empty>", "lmr=0", "/nowhere/a  b", "a\0b", "singular_margin=1000"]),
            "button": st.just(""),
        }[option.kind]
        return st.one_of(good, text, st.sampled_from(_NUMBERS)).map(lambda v: f"setoption name {option.name} value {v}")

    return st.one_of(st.sampled_from(OPTIONS).flatmap(values), text.map(lambda v: f"setoption name {v}"))


@st.composite
def _positions(draw: st.DrawFn) -> str:
    odd = st.builds(
        lambda fen, seed: f"fen {oddly_written(chess.Board(fen), Random(seed), in_line=True)}", _VALID, _SEED
    )
    base = draw(st.one_of(st.just("startpos"), st.sampled_from(_FENS).map(lambda fen: f"fen {fen}"), odd))
    board = chess.Board()
    if base != "startpos":
        try:
            board = chess.Board(base[4:])
        except ValueError:
            board = chess.Board(None)
    moves = []
    for _ in range(draw(st.integers(0, 6))):
        legal = list(board.legal_moves) if board.is_valid() else []
        if not legal:
            break
        board.push(draw(st.sampled_from(legal)))
        moves.append(board.peek().uci())
    if draw(st.integers(0, 5)) == 0:
        moves.insert(draw(st.integers(0, len(moves))), draw(st.sampled_from(_ODD_MOVES)))
    return f"position {base}" + (" moves " + " ".join(moves) if moves else "")


@st.composite
def _goes(draw: st.DrawFn) -> str:
    words = ["go"]
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["number", "number", "number", "flag", "moves", "junk"]))
        if kind == "number":
            words += [draw(st.sampled_from(_GO_NUMBERS)), draw(st.sampled_from(_NUMBERS))]
        elif kind == "flag":
            words.append(draw(st.sampled_from(["infinite", "ponder"])))
        elif kind == "moves":
            words += ["searchmoves", *draw(st.lists(st.sampled_from(["e2e4", "g1f3", *_ODD_MOVES]), max_size=4))]
        else:
            words.append(draw(st.sampled_from(["go", "depth", "x" * 500, "\0", "\udcff"])))
    return " ".join(words)


def _spoiled(line: str) -> st.SearchStrategy[str]:
    """A line with a word lost, doubled, repeated many times, or another kind of blank."""
    words = line.split(" ")
    place = st.integers(0, len(words) - 1)
    return st.one_of(
        place.map(lambda i: " ".join(words[:i] + words[i + 1 :])),
        place.map(lambda i: " ".join(words[: i + 1] + words[i:])),
        place.map(lambda i: " ".join(words[:i] + [words[i]] * 300 + words[i:])),
        st.sampled_from(["\t", "  ", "\u00a0", "\r", " joho "]).map(lambda blank: line.replace(" ", blank)),
        st.just(line[: len(line) // 2]),
    )


_TEXT = st.text(st.characters(exclude_characters="\n"), max_size=20)
_SIMPLE = st.sampled_from(
    [
        "uci",
        "isready",
        "ucinewgame",
        "stop",
        "ponderhit",
        "debug on",
        "debug off",
        "debug",
        "register later",
        "d",
        "",
        " \t",
    ]
)
_LINES = st.one_of(_SIMPLE, _option_lines(_TEXT), _positions(), _goes(), _TEXT, _goes())


def sessions(most_lines: int = 12) -> st.SearchStrategy[list[str]]:
    """Lines to say to the engine, one after the other, without their ends; none is `quit`."""
    line = st.one_of(_LINES, _LINES, _LINES.flatmap(_spoiled)).filter(lambda text: "quit" not in text.split())
    return st.lists(line, min_size=1, max_size=most_lines)


def check_lines_said(text: str) -> None:
    """Each line is one that the engine may say; an internal error is none."""
    for line in text.split("\n"):
        assert _SAID.fullmatch(line), repr(line)
        assert "internal error" not in line, line


# The thread that reads


class _StandIn:
    """In the place of a `Player`: keeps what is asked of it, and answers a `go` when it may."""

    def __init__(self, say: object, values: OptionValues) -> None:
        self.latest: Go | None = None
        self.asked: list[Go] = []

    def search(self, go: Go, debug: bool) -> None:
        go.begin()
        self.latest = go
        self.asked.append(go)

    def answer(self) -> None:
        """Give the answer that is due, if one is."""
        if self.latest is not None and self.latest.state is State.MAY_ANSWER:
            self.latest.answer("bestmove 0000")

    def _nothing(self, *arguments: object) -> None:
        pass

    start = settle = ready = new_game = clear_hash = evaluate = bench = close = _nothing


def check_reader(lines: list[str]) -> None:
    """Hold a session with the thread that reads. What it refuses changes nothing; what it asks for makes sense."""
    said: list[str] = []
    with patch("psearch.faces.uci.uci_conversation.Player", _StandIn):
        uci = Uci(said.append)
    player = uci._player
    assert isinstance(player, _StandIn)
    for line in lines:
        before = _state(uci)
        said.clear()
        uci.run([line + "\n"])
        text = "\n".join(said)
        check_lines_said(text)
        assert len(said) <= 12 and len(text) < 8000, "not echoed whole"
        if "info string setoption: " in text:
            assert _state(uci) == before, line
        if "info string position: " in text:
            assert (_options(uci), _board(uci).occupied) == (before[0], 0), line
        player.answer()
    for option in OPTIONS:
        value = uci._values._values[option.name]
        if option.kind != "button":
            assert option.of_text(str(value)) == value
    for go in player.asked:
        _check_go(go)


def _state(uci: Uci) -> tuple[object, ...]:
    board = _board(uci)
    return _options(uci), board.fen(), board.move_stack


def _board(uci: Uci) -> chess.Board:
    return uci._position.board(chess960=False)


def _options(uci: Uci) -> object:
    return dict(uci._values._values), uci._debug


def _check_go(go: Go) -> None:
    command = go.command
    assert command.board.is_valid() or not command.board.occupied
    assert all(move in command.board.legal_moves for move in command.searchmoves)
    assert len(set(command.searchmoves)) == len(command.searchmoves)
    for name, least, most in (("depth", 1, 100), ("perft", 1, 100), ("nodes", 1, 10**18), ("mate", 1, 10**18)):
        value = getattr(command, name)
        assert value is None or least <= value <= most
    assert command.movestogo is None or command.movestogo >= 1
    clock_ms, increment_ms = command.own_ms
    assert (clock_ms is None or clock_ms >= 0) and increment_ms >= 0


# The whole engine


class EngineSessions:
    """The engine in this process, with one small worker and without files, through many sessions; a context manager.

    Needs PSEARCH_NO_FILES in the environment.
    """

    def __init__(self) -> None:
        self._talk = Talk()
        self._asked: list[Go] = []
        search = self._talk.uci._player.search

        def noting(go: Go, debug: bool) -> None:
            self._asked.append(go)
            search(go, debug)

        self._talk.uci._player.search = noting  # type: ignore[method-assign]

    def __enter__(self) -> EngineSessions:
        self._talk.__enter__()
        self._reset()
        return self

    def __exit__(self, *exception: object) -> None:
        self._talk.__exit__(*exception)

    def check(self, lines: list[str]) -> None:
        """Hold a session. Each `go` that was taken is answered, and the engine is as ready as before."""
        self._asked.clear()
        for line in lines:
            words = line.split()
            if {"perft", "bench", "threads", "hash"} & {word.casefold() for word in words}:
                continue  # these may rightly take long
            self._talk.send(line)
            if "go" in words:
                self._talk.send("stop")
        self._reset()
        assert all(go.is_answered for go in self._asked)

    def _reset(self) -> None:
        for option in OPTIONS:
            if option.kind != "button" and not option.is_path:
                value = str(option.default).lower() if option.kind == "check" else option.default or "<empty>"
                self._talk.send(f"setoption name {option.name} value {value}")
        self._talk.send(
            "setoption name Hash value 1", "debug off", "position fen 7k/8/8/8/8/8/8/KB6 w - - 0 1", "isready"
        )
        self._talk.send("go depth 2 searchmoves b1h7")  # nobody else would play that
        for text in self._talk.until("bestmove b1h7", timeout_s=60):
            check_lines_said(text)
