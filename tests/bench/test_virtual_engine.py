"""`bench/study/virtual_engine.py` and `Simulator.play`: games in virtual time."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import chess
import chess.engine
import pytest
from paths import BENCH
from positions import MIDDLE_GAME

from psearch.options import SearchOptions
from psearch.simulation.costs import Costs
from psearch.simulation.simulator import Simulator

SCRIPT = BENCH / "study" / "virtual_engine.py"
ONE_MOVE = "7k/8/8/8/8/8/1r6/K7 w - - 0 1"
MILLISECOND = 0.001


@pytest.fixture(scope="module")
def eight() -> Iterator[Simulator]:
    made = Simulator(8, 4, Costs().without_sharing())
    yield made
    made.close()


def play(simulator: Simulator, fen: str, seconds: float) -> tuple[int, float, int, int]:
    found = simulator.play(chess.Board(fen), seconds, SearchOptions())
    return found.nodes, found.seconds, found.depth, found.bestmove


@pytest.mark.parametrize("limit", [MILLISECOND, 10 * MILLISECOND, 50 * MILLISECOND])
def test_time_is_kept_to_within_some_nodes(eight: Simulator, limit: float) -> None:
    eight.forget()
    nodes, seconds, depth, _ = play(eight, MIDDLE_GAME, limit)
    assert limit <= seconds < limit + 0.2 * MILLISECOND
    assert depth > 1 and 0.5 * 8 * limit < Costs().seconds_of(nodes) <= 8 * seconds * 1.1


def test_no_worker_searches_on_after_the_answer(eight: Simulator) -> None:
    eight.forget()
    play(eight, MIDDLE_GAME, 5 * MILLISECOND)
    assert eight.arena.header[0]["idle_workers"] == 8
    assert (eight.arena.stack["state"] == 0).all() and not eight.arena.stack["open_mask"].any()


def test_the_table_is_kept_until_it_is_to_be_forgotten(eight: Simulator) -> None:
    eight.forget()
    first = play(eight, MIDDLE_GAME, 5 * MILLISECOND)
    later = [play(eight, MIDDLE_GAME, 5 * MILLISECOND) for _ in range(8)]
    eight.forget()
    assert play(eight, MIDDLE_GAME, 5 * MILLISECOND) == first
    assert later[-1][2] > first[2], "what was found before need not be searched again"


def test_a_search_to_a_depth_has_no_deadline(eight: Simulator) -> None:
    before = eight.search("", chess.Board(MIDDLE_GAME), 8, SearchOptions())
    play(eight, MIDDLE_GAME, MILLISECOND)
    assert eight.search("", chess.Board(MIDDLE_GAME), 8, SearchOptions()) == before


def test_the_only_move_is_played_at_once(eight: Simulator) -> None:
    nodes, _, depth, _ = play(eight, ONE_MOVE, 1.0)
    assert depth == 1 and nodes < 100


def converse(*lines: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_a_conversation() -> None:
    said = converse(
        "uci",
        "setoption name Threads value 4",
        "isready",
        "ucinewgame",
        "position startpos moves e2e4 e7e5",
        "go nodes 4000",
        "",
        "quit",
        "uci",
    )
    assert said[0].startswith("id name psearch") and "uciok" in said and said.count("uciok") == 1
    info, answer = said[-2:]
    found = re.fullmatch(r"info depth \d+ score cp -?\d+ nodes (\d+) time 2 pv \w+", info)
    assert found and 8000 < int(found[1]) < 20_000, "four workers, 4,000 nodes of time each"
    board = chess.Board()
    board.push_san("e4")
    board.push_san("e5")
    assert board.is_legal(chess.Move.from_uci(answer.removeprefix("bestmove ")))


def test_a_change_to_a_pruning_mode() -> None:
    change = "setoption name Pruning value modern,null_move=0"
    as_it_is, changed = (converse(*lines, "position startpos", "go nodes 4000") for lines in ((), (change,)))
    assert as_it_is != changed


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("go depth 3", "go takes nodes N"),
        ("setoption name Threads value 1025", "Threads must be a whole number from 1 to 1024, not '1025'"),
        ("setoption name Hash value", "setoption takes name NAME value VALUE"),
        (
            "position startpos moves e2e5",
            "move 1: 'e2e5' is not a legal move in rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq",
        ),
        ("position fen nonsense", "FEN"),
        ("setoption name Pruning value modern,lmr_under=3", "no pruning parameter is called 'lmr_under'"),
    ],
)
def test_what_it_cannot_obey(line: str, complaint: str) -> None:
    said = converse(line, "quit")
    assert len(said) == 1 and said[0].startswith("info string ") and complaint in said[0]


def test_a_client_can_play_with_it() -> None:
    with chess.engine.SimpleEngine.popen_uci([sys.executable, str(SCRIPT)], timeout=120) as engine:
        engine.configure({"Threads": 2, "Hash": 1, "Policy": "ybw"})
        board = chess.Board("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1")
        result = engine.play(board, chess.engine.Limit(nodes=3000), info=chess.engine.INFO_SCORE)
        assert result.move == chess.Move.from_uci("e1e8") and result.info["score"].relative == chess.engine.Mate(1)
