"""Final lines: legal, whole, and of the score beside them; and what a walk through the table may not do."""

from __future__ import annotations

import random
from collections.abc import Iterator

import chess
import chess.engine
import pytest
from inspect_node import TableEntry, TableProbe
from paths import DATA
from positions import KIWIPETE, absurd, sample
from reports import cp, moves

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.arena.shared_results import StoredResult, TableReader
from psearch.options import SearchOptions
from psearch.processes.line_completion import whole_line
from psearch.processes.request import SearchRequest
from psearch.processes.supervisor import Supervisor
from psearch.results import Info, Limits, Result
from psearch_core.chess.board.bridge import from_chess_move
from psearch_core.constants import BOUND_EXACT, BOUND_LOWER, BOUND_UPPER, MATE, NO_MOVE

START = chess.Board()
MATES_CUT_SHORT = (
    "4n3/p7/2b1p3/3kB1K1/2pP2R1/qp2pp2/nN2N3/2b2B2 w - - 0 1",
    "1r5k/4NP1b/7K/8/6R1/8/8/8 w - - 0 1",
    "N7/PPPPPPPP/K1k3rB/b1pnnb1p/8/1r6/pp3p2/7q w - - 0 1",
    "r1b2r2/pp3Npk/6np/8/2q1N3/4Q3/PPP2RPP/6K1 w - - 0 1",
    "4rk2/2p1n1bQ/1p2BBp1/1q4N1/p1b1PP2/6P1/P1P5/3r1RK1 b - - 0 1",
)
"""The last move of these mates was lost, or did not mate."""
BACK_RANK = chess.Board("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1")
ROOKS = chess.Board("7k/8/8/8/8/8/R7/1R4K1 w - - 0 1")
"""Mate in 2: Ra7 Kg8 Rb8#"""


def played(board: chess.Board, line: list[chess.Move]) -> chess.Board:
    after = board.copy()
    for move in line:
        assert move in after.legal_moves, f"{move} in {line} from {board.fen()}"
        after.push(move)
    return after


def must_have_reply(board: chess.Board, line: Info) -> bool:
    after = played(board, line.pv[:1])
    is_draw = after.is_repetition(2) or after.halfmove_clock >= 100 or after.is_insufficient_material()
    return line.depth >= 2 and any(after.legal_moves) and not is_draw


def check_lines(board: chess.Board, result: Result) -> None:
    assert result.bestmove == result.info.pv[0] == result.lines[0].pv[0]
    assert result.ponder == (result.info.pv[1] if len(result.info.pv) > 1 else None)
    for line in result.lines:
        end = played(board, line.pv)
        assert len(line.pv) >= 2 or not must_have_reply(board, line), f"{board.fen()} {line}"
        mate = line.score.relative.mate()
        # "mated in 1 or better", say, leaves open how long the game goes on
        if mate is not None and line.bound != ("upper" if mate > 0 else "lower"):
            plies = 2 * mate - 1 if mate > 0 else -2 * mate
            assert len(line.pv) <= plies
            assert line.bound != "exact" or (len(line.pv) == plies and end.is_checkmate())


@pytest.mark.parametrize("threads", [1, 2])
def test_final_lines_are_whole(threads: int) -> None:
    """Wherever the search is stopped: with an exact score, in a window that was missed, or in the middle."""
    dice = random.Random(threads)
    bounds = 0
    with Supervisor(threads, 4) as engine:
        for board in sample(threads, 100) + absurd(threads, 20):
            limits = Limits(nodes=dice.choice((30, 100, 300, 1000, 3000, 10_000)))
            result = engine.search(SearchRequest(board, limits, multipv=dice.choice((1, 1, 1, 3))))
            check_lines(board, result)
            bounds += result.info.bound != "exact"
    assert bounds > 20, "the test is of lines that a search does not hand over whole"


def test_lines_of_mates_end_with_the_mate() -> None:
    problems = (DATA / "tactical" / "terjekir_mate_in_2_sample150.epd").read_text().splitlines()
    found = 0
    with Supervisor(1, 4) as engine:
        for problem in problems[:40]:
            board = chess.Board.from_epd(problem)[0]
            result = engine.search(SearchRequest(board, Limits(nodes=10_000, mate=2)))
            check_lines(board, result)
            found += result.info.score.relative.is_mate()
    assert found > 20


@pytest.mark.parametrize(("threads", "lines"), [(1, 1), (1, 3), (2, 3)])
def test_whatever_is_told_of_a_mate_is_played_out(threads: int, lines: int) -> None:
    """Every line, of finished iterations and of bounds that promise a mate: it mates, and no later than promised. It
    may mate earlier, by a reply that was the best one where the table has it from."""
    dice = random.Random(threads + lines)
    names = ("mates2000_sample120.epd", "terjekir_mate_in_3_sample80.epd", "terjekir_mate_in_2_sample150.epd")
    problems = [dice.sample((DATA / "tactical" / name).read_text().splitlines(), 20) for name in names]
    boards = [chess.Board.from_epd(problem)[0] for each in problems for problem in each]
    told = early = 0
    with Supervisor(threads, 16) as engine:
        for board in [*boards, *(chess.Board(fen) for fen in MATES_CUT_SHORT)]:
            engine.forget()
            infos: list[Info] = []
            options = SearchOptions(driver=dice.choice(("pvs", "null")))
            limits = Limits(nodes=dice.choice((1_000, 5_000, 20_000)))
            request = SearchRequest(
                board, limits, options, on_info=infos.append, live_from_s=float("inf"), multipv=lines
            )
            infos += engine.search(request).lines
            for line in infos:
                mate = line.score.pov(board.turn).mate()
                if mate is None or line.bound == ("upper" if mate > 0 else "lower"):
                    continue
                plies = 2 * mate - 1 if mate > 0 else -2 * mate
                assert played(board, line.pv).is_checkmate() and len(line.pv) <= plies, f"{board.fen()} {line}"
                told += 1
                early += len(line.pv) < plies
    assert told > 100 and early <= told // 100


def test_a_choice_among_moves_is_kept_and_the_only_move_has_a_reply() -> None:
    board = chess.Board(KIWIPETE)
    only = moves("a2a3", "h1f1")
    in_check = chess.Board("4k3/8/8/8/8/8/4q3/R3K2R w KQ - 0 1")
    with Supervisor(1, 4) as engine:
        for nodes in (100, 1000, 10_000):
            result = engine.search(SearchRequest(board, Limits(nodes=nodes), only=only))
            check_lines(board, result)
            assert result.bestmove in only
        result = engine.search(SearchRequest(in_check, Limits(nodes=2000)))
        check_lines(in_check, result)
        assert in_check.legal_moves.count() == 1 and result.ponder is not None


class Table:
    """An arena whose table holds what a test puts there, with a root written into it."""

    def __init__(self) -> None:
        self.arena = Arena(1, 1)
        self.probe = TableProbe(self.arena.context)
        self.reader = TableReader(self.arena)

    def root(self, board: chess.Board) -> None:
        write_search(self.arena, board, Limits(depth=1), SearchOptions())

    def put(self, board: chess.Board, code: int, score: int = 0, depth: int = 5, bound: int = BOUND_EXACT) -> None:
        self.probe.store(self.reader.key(board), TableEntry(code, score, 0, depth, bound, 0))

    def put_line(self, board: chess.Board, *words: str) -> None:
        walk = board.copy()
        for word in words:
            move = walk.parse_uci(word)
            self.put(walk, from_chess_move(move, walk))
            walk.push(move)

    def line(self, board: chess.Board, info: Info, *known: str) -> str:
        self.root(board)
        return " ".join(move.uci() for move in whole_line(self.arena, board, info, moves(*known)))


@pytest.fixture
def table(kernels: None) -> Iterator[Table]:
    one = Table()
    yield one
    one.arena.close()


def info(depth: int, *line: str, score: chess.engine.PovScore | None = None, bound: str = "lower") -> Info:
    return Info(depth, depth, cp(0) if score is None else score, bound, 1, 0.1, moves(*line))


def mate_in(count: int) -> chess.engine.PovScore:
    return chess.engine.PovScore(chess.engine.Mate(count), chess.WHITE)


def test_the_reader_is_the_twin_of_the_kernel(table: Table) -> None:
    dice = random.Random(1)
    stored = 0
    boards = sample(3, 500)
    for board in boards:
        if dice.random() < 0.7:
            bound = dice.choice((BOUND_UPPER, BOUND_LOWER, BOUND_EXACT))
            table.put(board, dice.randrange(1 << 16), dice.randrange(-MATE, MATE + 1), dice.randrange(256), bound)
    for board in boards:
        key = table.reader.key(board)
        entry = table.probe.probe(key)
        expected = entry and StoredResult(entry.move, entry.score, entry.depth, entry.bound)
        assert table.reader.entry(key) == expected
        stored += entry is not None
    assert 250 < stored < 500


def test_the_table_goes_on_where_the_report_ends(table: Table) -> None:
    table.put_line(START, "e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6")
    assert table.line(START, info(5, "e2e4")) == "e2e4 e7e5 g1f3 b8c6 f1b5", "no further than the depth"
    assert table.line(START, info(1, "e2e4")) == "e2e4 e7e5", "but with a reply"
    assert table.line(START, info(4, "e2e4"), "e2e4", "c7c5", "d2d4") == "e2e4 c7c5 d2d4"
    assert table.line(START, info(3, "e2e4", "c7c5", "b1c3", "b8c6")) == "e2e4 c7c5 b1c3 b8c6"


def test_entries_of_other_positions_are_not_played(table: Table) -> None:
    after = played(START, moves("e2e4"))
    for code in (from_chess_move(chess.Move.from_uci("e4e5"), after), 0xFFFF, NO_MOVE, 12 | 28 << 6 | 7 << 12):
        table.put(after, code)
        assert table.line(START, info(5, "e2e4")) == "e2e4"
    quiet_double_push = chess.E7 | chess.E5 << 6
    table.put(after, quiet_double_push)  # the right squares, the wrong kind
    assert table.line(START, info(5, "e2e4")) == "e2e4"


def test_the_reply_that_is_left_when_all_have_failed(table: Table) -> None:
    """The best for the other side, by what was looked at in earnest."""
    after = played(START, moves("e2e4"))
    for word, score, depth in (("e7e5", 60, 6), ("c7c5", 40, 5), ("a7a6", 90, 6), ("g7g5", -300, 1)):
        table.put(played(after, moves(word)), NO_MOVE, score, depth, BOUND_LOWER)
    assert table.line(START, info(5, "e2e4")) == "e2e4 c7c5"


def test_no_position_comes_twice(table: Table) -> None:
    table.put_line(START, *("g1f3", "g8f6", "f3g1", "f6g8"))
    assert table.line(START, info(9, "g1f3")) == "g1f3 g8f6 f3g1"
    game = played(START, moves("g1f3", "g8f6", "f3g1"))  # the reply would repeat the first position
    assert table.line(game, info(9, "b8c6")) == "b8c6"
    table.put_line(played(game, moves("f6g8")), "e2e4")
    assert table.line(game, info(9, "f6g8")) == "f6g8", "the line is at a repetition already"


def test_the_line_ends_with_the_game(table: Table) -> None:
    board = chess.Board("7k/8/8/8/8/8/R7/1R4K1 w - - 98 80")
    table.put_line(board, "a2a6", "h8g8", "b1b7")
    assert table.line(board, info(9, "a2a6")) == "a2a6 h8g8", "fifty moves"
    bare = chess.Board("7k/8/8/8/8/8/r7/1K6 w - - 0 1")
    table.put_line(bare, "b1a2", "h8g8")
    assert table.line(bare, info(9, "b1a2")) == "b1a2", "bare kings"
    assert table.line(BACK_RANK, info(9, "e1e8", score=mate_in(1))) == "e1e8"
    table.root(START)
    table.arena.header[0]["options"]["tt"] = 0
    assert whole_line(table.arena, START, info(5, "e2e4"), ()) == moves("e2e4"), "a search without the table"


def test_a_mate_is_followed_where_the_table_is_sure_of_it(table: Table) -> None:
    won = played(played(ROOKS, moves("a2a7")), moves("h8g8"))
    table.put(won, from_chess_move(chess.Move.from_uci("b1b8"), won), MATE - 1, 3, BOUND_LOWER)
    assert table.line(ROOKS, info(9, "a2a7", score=mate_in(2))) == "a2a7 h8g8 b1b8"
    # it was a line to something else before
    assert table.line(ROOKS, info(9, "a2a7", score=mate_in(2)), "a2a7", "h8g8", "a7a1") == "a2a7 h8g8 b1b8"
    # a result without a move keeps the one that an older result had
    table.put(won, from_chess_move(chess.Move.from_uci("b1c1"), won), MATE - 1, 3, BOUND_LOWER)
    assert table.line(ROOKS, info(9, "a2a7", score=mate_in(2))) == "a2a7 h8g8 b1b8"
    # an entry of an earlier search, which had not seen it
    table.put(won, from_chess_move(chess.Move.from_uci("b1c1"), won), 500, 9, BOUND_EXACT)
    assert table.line(ROOKS, info(9, "a2a7", score=mate_in(2))) == "a2a7 h8g8 b1b8", "any move that mates"
    # no mate is claimed: at least a mate against, at most a mate
    table.put_line(START, "e2e4", "e7e5", "g1f3")
    assert table.line(START, info(3, "e2e4", score=mate_in(1), bound="upper")) == "e2e4 e7e5 g1f3"
    assert table.line(START, info(3, "e2e4", score=mate_in(-1))) == "e2e4 e7e5 g1f3"
