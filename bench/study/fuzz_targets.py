"""Readers of input, each as a function of one text or file: the targets of `fuzz.py`.

A target returns when the input is read or was refused with a `PsearchError`; whatever else comes out of it is a fault.
It checks what it can of what was read.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
import json
import keyword
import lzma
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import chess
import chess.engine
import chess.pgn

from psearch.api.question import time_manager, to_limits
from psearch.batch.analysis.analysis_files import AnalysisJournal
from psearch.batch.analysis.games import Tally, count_positions, game_object, judge_game, positions
from psearch.batch.analysis.suite_results import SuiteSummary, SuiteTable, Survey, json_object, judge, summary_text
from psearch.batch.positions.task import Answer, Choice, Line
from psearch.faces.cli.arguments import worker_counts
from psearch.faces.cli.command_list import COMMANDS, SEARCH, parser_of
from psearch.files.raw_log import read_log
from psearch.games import Game
from psearch.games.game_file import run_file
from psearch.lab.studies.comparisons import summarise, table
from psearch.lab.studies.speedup_study import Sample
from psearch.options import pruning_named
from psearch.processes.task_processes import share_out
from psearch.processes.time_manager import GameClock, allot
from psearch.results import PsearchError, WorkerDied
from psearch.scheduler import scheduler_entries
from psearch.simulation.costs import Costs
from psearch.terminal.streams import printable
from psearch.text.chess_files import Book, RootProber
from psearch.text.epd_text import parse_perft_suite, read_positions
from psearch.text.fen import check_position, parse_position
from psearch.text.moves import choose_moves, play_moves
from psearch.text.pgn_text import read_games
from psearch.text.source import Source, read_source
from psearch_core.toolchain import jit
from psearch_core.toolchain.compiler.build import Build
from psearch_core.toolchain.compiler.front_end import prepare
from psearch_core.toolchain.kernel_cache import content_hash
from psearch_core.toolchain.kernel_sets import KernelSet

LONGEST = 1 << 16
"""Characters of a mutated text: parts are repeated, and the time a program takes must show in seconds."""

WORDS = (
    "\0", "\n", "\r\n", "\r", "\t", " ", "  ", "\x1b[31m", "\x1b]0;x\x07", "\x85", "\u2028", "\u202e", "\ufeff",
    "\ud800", "é", "٣", "²", "_", "-", "--", "+", "=", "0", "-1", "1e9", "nan", "inf", "9" * 9, "9" * 19, "9" * 400,
    "9" * 5000, "18446744073709551616", "1_000", "0x10", "#", ";", "%", "$", "$" + "9" * 30, "\\", "\"", "'", "{", "}",
    "(", ")", "[", "]", "{}", "()", "((", "))", "{ ", " }", "[[", "<", ">", "*", "1-0", "1/2-1/2", "null", "true", "[]",
    "startpos", "moves", "fen", "position", "go", "infinite", "w", "b", "KQkq", "HAha", "e3", "e9", "8/8/8/8/8/8/8/8",
    "k7/8/8/8/8/8/8/7K", "e2e4", "e7e8q", "0000", "O-O", "Nf3", "Qxf7#", "e8=Q+", "--", "Z0", "@@@@", "P@e4", "bm",
    "am", "id", "c0", "c8", "c9", "hmvc", "fmvn", "pv", "acd", "D1 20", "[FEN \"", "[Variant \"", "[Event \"x\"]\n",
    "[SetUp \"1\"]\n", "[%eval 1.0]", "/dev/zero", "/dev/null", "..", "~", "--depth", "--nodes", "--threads", "--help",
    "--json", "--out", "=", "#2", "dm", "BM", "//", ";;", "<>", "Sf3", "Nb d7", "e8(Q)", "e.p.", "\r\r\n", "\f", "\x1a",
    "1.", "1...", "[White \"x", "[Event \"y\"] ", "[%clk 0:01]", "\n\n\n", "{\n\n[Event \"z\"]\n", "½-½",
)  # fmt: skip
"""Pieces of the formats, and what programs trip over."""


def mutated(text: str, others: Sequence[str], dice: Random) -> str:
    """The text after one to eight mutations; others: texts to take parts from."""
    for _ in range(1 + min(dice.getrandbits(3) for _ in range(3))):
        text = _mutated_once(text, others, dice)[:LONGEST]
    return text


def mutated_source(text: str, others: Sequence[str], dice: Random) -> str:
    """A Python file after one to four names, numbers or operators were exchanged for others of such files; now and then
    a text as any."""
    if dice.random() < 0.1:
        return mutated(text, others, dice)
    words = [token for each in (text, *others) for token in _tokens(each)]
    lines = text.splitlines(True)
    chosen = dice.sample(_tokens(text), 1 + dice.getrandbits(2))
    for token in sorted(chosen, key=lambda token: token.start, reverse=True):  # from behind: places stay
        (row, begin), (_, end) = token.start, token.end
        word = dice.choice([other.string for other in words if other.type == token.type])
        word = word if dice.random() < 0.8 else dice.choice(("0", "-1", "(1 << 62)", "None", "0.5", "()"))
        lines[row - 1] = lines[row - 1][:begin] + word + lines[row - 1][end:]
    return "".join(lines)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """The names, numbers and operators of a file of Python, without what would rarely leave it one."""
    return [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.OP)
        and token.string not in "()[]{},:."
        and not keyword.iskeyword(token.string)
    ]


def mutated_bytes(data: bytes, dice: Random) -> bytes:
    """Return a changed binary file: bits flipped, ranges cut out, repeated or filled."""
    changed = bytearray(data)
    for _ in range(1 + dice.getrandbits(2)):
        begin, end = _range(len(changed), dice)
        kind = dice.randrange(6)
        if kind == 0 and changed:
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del changed[begin:end]
        elif kind == 2:
            changed[begin:begin] = changed[begin:end][: 1 << 12]
        elif kind == 3:
            changed[begin:end] = bytes([dice.choice((0, 255, dice.getrandbits(8)))]) * (end - begin)
        elif kind == 4:
            del changed[begin:]
        else:
            changed[begin:end] = dice.randbytes(min(end - begin, 64))
    return bytes(changed)


def _range(length: int, dice: Random) -> tuple[int, int]:
    begin = dice.randint(0, length)
    return begin, min(length, begin + int(dice.expovariate(0.1)))


def _mutated_once(text: str, others: Sequence[str], dice: Random) -> str:
    kind = dice.randrange(9)
    begin, end = _range(len(text), dice)
    match kind:
        case 0 | 1:
            return text[:begin] + dice.choice(WORDS) + text[begin:]
        case 2:
            return text[:begin] + dice.choice(WORDS) + text[end:]
        case 3:
            return text[:begin] + text[end:]
        case 4:
            return text[:begin] + text[begin:end] * int(2 ** dice.uniform(1, 12)) + text[end:]
        case 5:
            return text[:begin] + chr(dice.choice((dice.randrange(128), dice.randrange(0x3000)))) + text[begin + 1 :]
        case 6:
            words = text.split(" ")
            a, b = dice.randrange(len(words)), dice.randrange(len(words))
            words[a], words[b] = words[b], words[a]
            return " ".join(words)
        case 7:
            other = dice.choice(others) if others else ""
            return text[:begin] + other[dice.randint(0, len(other)) :]
        case _:
            return text[:begin]


DATA = Path(__file__).parents[2] / "tests" / "data"
EXAMPLES = DATA.parents[1] / "docs" / "examples"
GAMES = ("tic_tac_toe", "connect_four", "othello")
sys.path.append(str(DATA.parent / "support"))  # what the tests insist on is asked for here, too
_ABOUT = {"input": "abc", "depth": 7}


@dataclass(frozen=True)
class Target:
    name: str
    run: Callable[[bytes], None]
    seeds: Sequence[bytes]
    weight: int = 1
    """Share of the cases."""
    is_text: bool = True
    patience: float = 1.0
    """Factor of the time limit."""
    mutate: Callable[[str, Sequence[str], Random], str] = mutated

    def case(self, dice: Random) -> bytes:
        """A seed after mutations, rarely the seed itself."""
        seed = dice.choice(self.seeds)
        if not self.is_text:
            return mutated_bytes(seed, dice)
        others = [self.seeds[dice.randrange(len(self.seeds))].decode("utf-8", "replace")]
        text = self.mutate(seed.decode("utf-8", "replace"), others, dice)
        encoding = "latin-1" if dice.random() < 0.02 else "utf-8"
        return text.encode(encoding, "surrogatepass" if encoding == "utf-8" and dice.random() < 0.1 else "replace")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _check_shown(text: str) -> None:
    """Check that output does not steer the terminal, and is one text with line ends."""
    if printable(text) != text:
        raise AssertionError(f"not printable: {text!a}")


@contextlib.contextmanager
def _file(data: bytes, name: str = "input") -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="psearch-fuzz-") as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path


@contextlib.contextmanager
def _source(data: bytes) -> Iterator[Source]:
    with _file(data) as path:
        yield read_source(str(path))


def _answer(board: chess.Board) -> Answer:
    """Return an answer that a search may have found."""
    word = board.uci(next(iter(board.legal_moves)))
    return Answer(
        word, [Line(chess.engine.Cp(20), "exact", 9, 15, [word])], 1000, 1.0, 0, 0, [Choice(word, 0.5, 7, 400)]
    )


# -- positions -------------------------------------------------------------------------------------------------------


def run_fen(data: bytes) -> None:
    """A FEN: what is accepted is a position, and is written and read again as the same."""
    text = _text(data)
    with contextlib.suppress(PsearchError):
        parse_position(text, strict=False)
    board = parse_position(text)
    check_position(board)
    again = parse_position(board.shredder_fen() if board.chess960 else board.fen())
    if again.fen() != board.fen() or not board.is_valid():
        raise AssertionError("another position")


def run_odd_fen(data: bytes) -> None:
    """A FEN and a number that says in which odd way it is written: that is the same position."""
    from odd_fens import oddly_written

    fen, _, number = _text(data).partition("\t")
    board = parse_position(fen)
    text = oddly_written(board, Random(number))
    try:
        again = parse_position(text)
    except PsearchError as error:
        raise AssertionError(f"{text!a} is refused: {error}") from None
    if (again.fen(), again.castling_rights) != (board.fen(), board.castling_rights):
        raise AssertionError(f"{text!a} is another position, {again.fen()}")


def run_moves(data: bytes) -> None:
    board = chess.Board()
    with contextlib.suppress(PsearchError):
        choose_moves(board, _text(data), "--searchmoves")
    play_moves(board, _text(data), "--moves")


# -- files -----------------------------------------------------------------------------------------------------------


def run_epd(data: bytes) -> None:
    """A suite: every position is judged, and shown."""
    with _source(data) as source:
        refused: list[str] = []
        survey = Survey.of(read_positions(source, refused.append))
        _check_shown("".join(refused))
        rows, summary = SuiteTable(survey), SuiteSummary()
        for position in read_positions(source, refused.append):
            verdict = judge(position, _answer(position.board) if any(position.board.legal_moves) else None)
            summary.add(verdict, "a file")
            _check_shown(rows.head() + rows.row(verdict) + summary.solved_text)
            json.loads(json.dumps(json_object(verdict, "a file")))
        _check_shown(summary_text(summary.figures(survey.positions)))


def run_perft_suite(data: bytes) -> None:
    with _source(data) as source:
        parse_perft_suite(source)


def run_pgn(data: bytes) -> None:
    """Games: each is annotated and can be read again."""
    with _source(data) as source:
        tally = Tally()
        works = list(read_games(source))
        for work in works:
            _check_shown("".join(problem.text for problem in work.problems))
            if count_positions(work) > 300:
                continue  # slow, not wrong
            judged = judge_game(work, {place.ply: _answer(place.board) for place in positions(work)})
            tally.add(judged)
            json.loads(json.dumps(game_object(judged, "a file")))
            written = judged.to_pgn()
            if work.readable:
                again = list(read_games(Source.of_text("again", written)))
                moves = [move.uci() for move in work.game.mainline_moves()]
                if len(again) != 1 or [move.uci() for move in again[0].game.mainline_moves()][: len(moves)] != moves:
                    raise AssertionError("another game")


def run_journal(data: bytes) -> None:
    """The journal of an analysis: what is refused stays, what is accepted can be used."""
    with _file(data) as path:
        try:
            with AnalysisJournal(path, _ABOUT) as journal:
                for key in list(journal._offsets):
                    answer = journal.get(key)
                    with contextlib.suppress(ValueError):
                        answer.check(chess.Board())
                        judge(next(iter(read_positions(Source.of_text("x", chess.STARTING_FEN)))), answer)
                journal.add("more", _answer(chess.Board()))
        except PsearchError:
            if path.read_bytes() != data:
                raise AssertionError("a file that was refused was changed") from None


def run_log(data: bytes, name: str = "log.jsonl") -> None:
    """Read the raw log of a study, to its table."""
    with _file(data, name) as path:
        samples, _ = read_log(path, Sample)
        _check_shown(table(summarise(samples)))


def run_costs(data: bytes) -> None:
    with _file(data) as path:
        costs = Costs.load(path)
        if not 0 <= costs.join < 1e12 or costs.join_in_nodes < 1:
            raise AssertionError("no costs")


def run_book(data: bytes) -> None:
    with _file(data, "book.bin") as path, Book(str(path)) as book:
        for fen in (chess.STARTING_FEN, "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"):
            move = book.pick(chess.Board(fen), Random(0))
            if move is not None and move not in chess.Board(fen).legal_moves:
                raise AssertionError("an illegal move")


def run_tables(data: bytes) -> None:
    """Endgame tables: WDL and DTZ of KRvK, one of them damaged."""
    with _file(data, "KRvK.rtbw" if data[:4] == b"\x71\xe8\x23\x5d" else "KRvK.rtbz") as path:
        other = "KRvK.rtbz" if path.suffix == ".rtbw" else "KRvK.rtbw"
        (path.parent / other).symlink_to(DATA / "syzygy" / other)
        with RootProber(str(path.parent)) as prober:
            for fen in ("8/8/8/8/3k4/8/8/3K3R w - - 0 1", "8/8/8/8/3k4/8/8/3K3R b - - 0 1"):
                prober.probe(chess.Board(fen))


# -- words -----------------------------------------------------------------------------------------------------------


def run_command_line(data: bytes) -> None:
    """Arguments: parsed, or refused with one line and status 2; help is 0."""
    words = [word for word in _text(data).split() if "\0" not in word]
    name = words.pop(0) if words and words[0] in COMMANDS else SEARCH
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            parser_of(name).parse_intermixed_args(words)
    except SystemExit as leaving:
        if leaving.code not in (0, 2):
            raise AssertionError(f"status {leaving.code}") from None
        if leaving.code == 2 and (err.getvalue().count("\n") != 1 or out.getvalue()):
            raise AssertionError(f"not one line: {err.getvalue()!a}") from None
    _check_shown(err.getvalue())


def run_words(data: bytes) -> None:
    """Texts inside arguments: pruning parameters, numbers of workers."""
    text = _text(data)
    with contextlib.suppress(argparse.ArgumentTypeError):
        worker_counts(text)
    pruning_named(text)


_GAME_MOVES = 200
"""of a game that a clock must last for"""


def run_limit(data: bytes) -> None:
    """Limits of python-chess with numbers of all kinds."""
    names = ("time", "depth", "nodes", "mate", "white_clock", "white_inc", "black_clock", "remaining_moves")
    values = {}
    for number, word in enumerate(_text(data).split()[: len(names)]):
        try:
            values[names[number]] = json.loads(word)
        except (ValueError, RecursionError):
            continue
    limit = chess.engine.Limit(**values)
    to_limits(limit)
    time_manager(chess.Board(), limit, 20).is_due(1.0)


def run_clock(data: bytes) -> None:
    """Clocks of games: milliseconds left and added, moves to the next control, overhead, lag of a move. No budget is
    beyond the clock, and 200 moves that could be paid for at once are."""
    words = [int(word[:9]) for word in _text(data).split() if word.isascii() and word.isdigit()]
    if len(words) < 5:
        return
    time_s, increment_s, overhead_s, lag_s = (words[at] / 1000 for at in (0, 1, 3, 4))
    period = words[2] or None
    moves = min(period or _GAME_MOVES, _GAME_MOVES)
    lag_s = min(lag_s, overhead_s)
    left_s = time_s
    is_payable = time_s >= overhead_s + moves * (lag_s + 0.001)
    for number in range(moves):
        to_go = None if period is None else period - number
        budget = allot(GameClock(left_s, increment_s, to_go, lag_s, number), overhead_s)
        if not 0 < budget.soft_s <= budget.hard_s or budget.hard_s > max(left_s, 0.001) + 1e-9:
            raise AssertionError(f"{budget} of {left_s} s")
        left_s -= budget.hard_s + lag_s
        if is_payable and left_s < -1e-6:
            raise AssertionError(f"move {number + 1} is lost on time")
        left_s += increment_s


def run_uci(data: bytes) -> None:
    """Lines for the UCI engine, with a stand-in for what searches."""
    from uci_sessions import check_reader

    check_reader([line for line in _text(data).split("\n")[:50] if "quit" not in line])


# -- a user's files of kernels --------------------------------------------------------------------------------------


@functools.cache
def run_game_position(data: bytes) -> None:
    """A game, and a position of it in words: the moves are told, and its board."""
    name, _, text = _text(data).partition(":")
    position = Game(EXAMPLES / f"{name if name in GAMES else GAMES[0]}.py").read(text)
    _check_shown("".join(map(position.move_text, position.moves())))
    position.game.board_text(position)


def run_kernels(data: bytes) -> None:
    """A file with a game, a policy or a rule: a process apart finds that it can be compiled, or says in a line why not.

    That is all but the machine code, which is as good as the types. Some seconds of a core.
    """
    adapter = "psearch.games.user_game" if b"NAME" in data else ""
    with _file(data, "mine.py") as path:
        if adapter:
            run_file(str(path), data)
        for module in (*scheduler_entries.SEARCH.recipe.modules, "psearch.games.game_compiler", "psearch.own_rule"):
            importlib.import_module(module)  # here, once
        kernels = KernelSet(str(path), "", content_hash(data), adapter=adapter)
        try:
            list(share_out(_compiler, [kernels], 1))
        except WorkerDied as error:
            raise AssertionError(str(error)) from None


def _compiler() -> Callable[[KernelSet], None]:
    return _compile


def _compile(kernels: KernelSet) -> None:
    """Find the types of a user's kernels, in a process apart. Raises PlugInError."""
    group = kernels.group(scheduler_entries.SEARCH)
    build = Build("", {group.name: group.recipe})
    prepare(jit.registry.values())
    of_user = () if build.loaded is None else build.loaded.imported
    for symbol, kernel in build.closures[group.name].items():
        if kernel.py_func.__module__ in of_user:
            build.front_end(symbol)


# -- all -------------------------------------------------------------------------------------------------------------


def _lines(path: str) -> list[bytes]:
    return [line for line in (DATA / path).read_bytes().split(b"\n") if line and not line.startswith(b"#")]


_GAME = b"""[Event "a"]
[White "\xc5\xa0ahovi\xc4\x87"]
[Result "1-0"]

1. e4 {book [%clk 0:01:00]} e5 $1 (1... c5 2. Nf3 (2. c3 {x}) d6) 2. Bc4 Nc6?! 3. Qh5 ; rest
Nf6 4. Qxf7# 1-0

[Event "Fischer"]
[Variant "Chess960"]
[SetUp "1"]
[FEN "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"]
[Result "*"]

1. O-O O-O-O *
"""


_EPD_LINES = [
    b"6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - " + operations
    for operations in (
        b"bm #2;", b"bm #-2; c0 \"4men\";", b"BM Rd8#; ID \"a\";", b"bm: Rd8+!, Rd7; id: b", b"dm 1; bm Rd8 +; // so",
        b"id BACK.01; c0 two words; ce -+; eval +M5;", b"bm Rd8# id \"c\"; am Td1;", b"bm Td8; acd 99; pv Rd8#;",
    )
]  # fmt: skip


_GAME_POSITIONS = [
    b"tic_tac_toe:1425",
    b"connect_four:52753311433677442422121",
    b"othello:d3 c5 f6 f5 e6",
    b"othello:O--OOOOX-OOOOOOXOOXXOOOXOOXOOOXXOOOOOOXX---OOOOX----O--X-------- X",
]


def _journal_seed() -> bytes:
    lines = [{"journal": "psearch analysis 4", "about": _ABOUT}]
    lines += [{"key": f"line {number}", "answer": _answer(chess.Board()).as_record()} for number in range(3)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _log_seed() -> bytes:
    samples = [
        Sample("a", chess.STARTING_FEN, 8, policy, threads, repeat, 0.5 / threads, 1000, "+20", "e2e4", 5, 5, 3, 0.1)
        for policy, threads in (("serial", 1), ("ybw", 2))
        for repeat in range(2)
    ]
    lines = [{"about": {"study": "speedup"}}, *map(asdict, samples), {"ceilings": {"2": 1.9}}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def kernel_targets() -> list[Target]:
    """Return the targets of users' kernel files, of which a case takes seconds."""
    seeds = [path.read_bytes() for path in sorted(EXAMPLES.glob("*.py"))]
    return [Target("kernels", run_kernels, seeds, patience=10, mutate=mutated_source)]


def targets() -> list[Target]:
    """All others, with the malformed inputs that are known as seeds."""
    fens = [line.split(b"\t")[0] for line in _lines("fen_cases.tsv")]
    epds = [json.loads(line)["epd"].encode() for line in _lines("epd_cases.jsonl")] + _lines("suites/mixed.epd")
    moves = [line.split(b"\t")[0] for line in _lines("uci_moves.tsv")] + [b"e4 e5 Nf3 Nc6 Bb5", b"e2e4 c7c5 g1f3"]
    commands = [
        b"--depth 5 --threads 2 startpos",
        b"--movetime 100 --hash 16 --policy ybw --pruning modern,lmr=0 --json " + fens[-1],
        b"analyse --nodes 1000 --out x.pgn y.pgn",
        b"perft 3 startpos",
        b"simulate --workers 1,2,...,64 --suite x --depth 4",
        b"speedup --suite x --policy ybw,lazy --threads 2",
        *(name.encode() + b" --help" for name in COMMANDS),
    ]
    sessions = [
        b"uci\nisready\nposition startpos moves e2e4 e7e5\ngo wtime 1000 btime 1000 winc 10\nstop",
        b"setoption name Hash value 16\nsetoption name MultiPV value 3\ngo depth 5 searchmoves e2e4\nponderhit",
        *(b"position fen " + fen + b" moves e2e4\ngo infinite\nstop\nd" for fen in fens[::16]),
        *(b"position startpos moves " + move for move in moves),
    ]
    from odd_pgn import odd_file

    odd_games = [odd_file(Random(seed))[0] for seed in range(40)]
    tables = [(DATA / "syzygy" / f"KRvK.{kind}").read_bytes() for kind in ("rtbw", "rtbz")]
    perft = _lines("perft/standard6_cpw.epd") + _lines("perft/tricky_shakmaty.epd")[:9]
    fens += [line.split(b";")[0].strip() for line in perft + _lines("perft/fischer_960_ethereal.epd")[:40]] * 2
    log = _log_seed()
    return [
        Target("fen", run_fen, fens, 20),
        Target("odd fen", run_odd_fen, fens, 10, mutate=lambda fen, others, dice: f"{fen}\t{dice.getrandbits(32)}"),
        Target("moves", run_moves, moves, 4),
        Target("epd", run_epd, [*epds, *_EPD_LINES, b"\n".join(epds[:3] + _EPD_LINES)], 20),
        Target("perft suite", run_perft_suite, perft, 4),
        Target("pgn", run_pgn, [_GAME, _GAME[:250], b"1. e4 e5 2. Nf3 *\n", *odd_games], 20),
        Target("journal", run_journal, [_journal_seed()], 8),
        Target("log", run_log, [log], 3),
        Target("packed log", functools.partial(run_log, name="log.jsonl.xz"), [lzma.compress(log)], 1, is_text=False),
        Target("costs", run_costs, [json.dumps(asdict(Costs())).encode()], 3),
        Target("book", run_book, [(DATA / "polyglot" / "lasker-trap.bin").read_bytes()], 3, is_text=False),
        Target("tables", run_tables, tables, 3, is_text=False),
        Target("command line", run_command_line, commands, 5),
        Target("words", run_words, [b"modern,lmr=0,lmp_base=4", b"sound", b"1,2,4,...,64"], 4),
        Target("uci", run_uci, sessions, 10),
        Target("game position", run_game_position, _GAME_POSITIONS, 4),
        Target("clock", run_clock, [b"4000 0 0 15 15", b"60000 600 0 30 2", b"300000 0 40 1000 200", b"1 0 1 0 0"], 4),
        Target("limit", run_limit, [b"1.5 10 1000 3 60.0 1.0 60.0 40", b"null null null null 1e9 NaN Infinity -1"], 4),
    ]
