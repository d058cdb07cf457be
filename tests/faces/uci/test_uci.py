"""The UCI engine as a process: what a GUI or a match runner sends, and what must come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import chess
import pytest
from positions import MATED
from programs import processes_in_session
from timing import assert_no_processor_time, least, seconds_of, usual, wait_until
from uci_client import BESTMOVE, PSEARCH, Client, check_lines, infos, workers_of

from psearch.faces.uci.uci_options import OPTIONS

MIDDLE_GAME = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"
MATE_IN_2 = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"
STALEMATED = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"


@pytest.fixture(scope="module")
def engine() -> Iterator[Client]:
    """One engine for the tests that only talk; each leaves it idle."""
    with Client("uci") as client:
        client.send("uci")
        client.wait_for("uciok")
        client.ready()
        yield client


# The compliance list: forty steps, in order, in one conversation


def _says(*expected: str) -> Callable[[Client], None]:
    def check(client: Client) -> None:
        lines = client.ready()
        for text in expected:
            assert any(text in line for line in lines), (text, lines)

    return check


def _searches(words: str, position: str = "position startpos", exact: bool = True) -> Callable[[Client], None]:
    def check(client: Client) -> None:
        lines = client.go(words, position)
        found = infos(lines)
        assert found, lines
        if exact:
            assert any(info["bound"] == "" for info in found), lines

    return check


def _sends(*lines: str) -> Callable[[Client], None]:
    def check(client: Client) -> None:
        client.send(*lines)
        assert client.ready() == ["readyok"]

    return check


def _stops(client: Client) -> None:
    client.send("position startpos", "go infinite")
    client.nothing_for(0.3)
    client.send("stop")
    client.answer()


def _ready_in_a_search(client: Client) -> None:
    client.send("go infinite", "isready")
    sent = time.perf_counter()
    when, lines = client.until(lambda line: line == "readyok")
    assert when - sent < 1.0
    assert not any(line.startswith("bestmove") for line in lines)
    client.send("stop")
    client.answer()


def _a_game(client: Client) -> None:
    board = chess.Board()
    for _ in range(12):
        moves = " ".join(move.uci() for move in board.move_stack)
        lines = client.go("wtime 300 btime 300 winc 10 binc 10", f"position startpos{' moves ' * bool(moves)}{moves}")
        board.push_uci(lines[-1].split()[1])
    assert board.ply() == 12


def _is_idle(client: Client) -> None:
    client.send("stop", "ponderhit")
    assert client.ready() == ["readyok"]


SCOTCH = "position startpos moves e2e4 e7e5 g1f3 b8c6 d2d4"
BLACK = "position fen rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
COMPLIANCE: list[tuple[str, Callable[[Client], None]]] = [
    ("isready", _sends()),
    ("ucinewgame", _sends("ucinewgame")),
    ("startpos", _sends("position startpos")),
    ("go wtime 100", _searches("wtime 100")),
    ("go btime 100", _searches("btime 100")),
    ("black, go btime 100", _searches("btime 100", BLACK)),
    ("black, go wtime 100", _searches("wtime 100", BLACK)),
    ("white increment", _searches("wtime 100 winc 100")),
    ("black increment", _searches("btime 100 binc 100", BLACK)),
    ("all clocks", _searches("wtime 100 winc 100 btime 100 binc 100")),
    ("all clocks, black", _searches("wtime 100 winc 100 btime 100 binc 100", BLACK)),
    ("movestogo", _searches("wtime 100 btime 100 movestogo 1")),
    ("clocks and movestogo", _searches("wtime 500 winc 10 btime 500 binc 10 movestogo 40")),
    ("an overdrawn clock", _searches("wtime -50 btime 100")),
    ("no time at all", _searches("wtime 0 btime 0")),
    ("depth", _searches("depth 3")),
    ("nodes", _searches("nodes 500")),
    ("one node", _searches("nodes 1")),
    ("movetime", _searches("movetime 50")),
    ("depth and clock", _searches("depth 2 wtime 60000 btime 60000")),
    ("searchmoves", _searches("depth 3 searchmoves a2a3 h2h4")),
    ("mate", _searches("mate 2", f"position fen {MATE_IN_2}")),
    ("startpos with moves", _searches("wtime 100", SCOTCH)),
    ("one move more", _searches("wtime 100", SCOTCH + " e5d4")),
    ("another line", _searches("wtime 100", "position startpos moves d2d4")),
    ("fen with moves", _searches("btime 100", f"position fen {chess.STARTING_FEN} moves e2e4")),
    ("promotion", _searches("depth 4", "position fen 8/P6k/8/8/8/8/7p/K7 w - - 0 1")),
    ("mated", lambda client: _ends(client, MATED, "mate 0")),
    ("stalemated", lambda client: _ends(client, STALEMATED, "cp 0")),
    ("a bad fen", lambda client: (client.send("position fen 8/8/8 w"), _says("bad FEN")(client))[0]),
    ("a bad move", lambda client: (client.send("position startpos moves e2e5"), _says("not a legal move")(client))[0]),
    ("an unknown command", lambda client: (client.send("frobnicate"), _says("unknown command")(client))[0]),
    ("an unknown option", lambda client: (client.send("setoption name X value 1"), _says("no option")(client))[0]),
    ("an empty line", _sends("", "   ")),
    ("infinite and stop", _stops),
    ("isready in a search", _ready_in_a_search),
    ("stop without a search", _is_idle),
    ("ucinewgame after searches", _sends("ucinewgame")),
    ("setoption", _sends("setoption name Hash value 16", "setoption name Threads value 2")),
    ("a game", _a_game),
]


def _ends(client: Client, fen: str, score: str) -> None:
    assert client.go("depth 3", f"position fen {fen}") == [f"info depth 0 score {score}", "bestmove (none)"]


def test_compliance() -> None:
    assert len(COMPLIANCE) == 40
    with Client() as client:
        client.send("uci")
        client.wait_for("uciok")
        client.ready()  # the first run compiles, and says so
        for name, step in COMPLIANCE:
            print(name)
            step(client)
        assert not [line for line in client.log if "internal error" in line]


# Starting


def test_uciok_comes_before_anything_heavy_is_loaded() -> None:
    with Client("uci") as client:
        client.send("uci")
        _, lines = client.until(lambda line: line == "uciok", 5.0)
    assert lines[0].startswith("id name psearch ")
    assert lines[1].startswith("id author ")
    assert [line.split(" type ")[0].removeprefix("option name ") for line in lines[2:-1]] == [o.name for o in OPTIONS]


def test_the_reading_side_imports_nothing_heavy() -> None:
    code = """
import sys
import psearch.faces.cli.main
from psearch.faces.uci.uci_conversation import Uci
from psearch.faces.uci.player import Player
Player.start = lambda player: None
lines = []
uci = Uci(lines.append)
uci._obey("uci")
assert lines[0].endswith("uciok")
heavy = {"numba", "numpy", "llvmlite", "rich"}
print(sorted({"chess", *heavy} & set(sys.modules)))
uci._obey("position startpos moves e2e4")
uci._obey("go wtime 1000 btime 1000")
assert uci._player.latest.command.wtime == 1000
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n[]\n", "")


def test_the_first_go_imports_nothing_and_nothing_needs_numba_once_kernels_are_compiled() -> None:
    code = """
import queue, sys, threading
from psearch.faces.uci.uci_conversation import Uci
said, given = queue.SimpleQueue(), queue.SimpleQueue()
thread = threading.Thread(target=lambda: Uci(said.put).run(iter(given.get, None)))
thread.start()
def ask(words, end):
    given.put(words)
    while not said.get(timeout=250).split("\\n")[-1].startswith(end):
        pass
given.put("position startpos moves e2e4")
ask("isready", "readyok")
before = set(sys.modules)
ask("go wtime 1000 btime 1000", "bestmove")
print(sorted(set(sys.modules) - before))
for line, end in (("go depth 3", "bestmove"), ("eval", "static"), ("go perft 2", "Nodes")):
    ask(line, end)
given.put(None)
thread.join()
print("numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280)
    assert (done.stdout, done.stderr) == ("[]\nFalse\n", "")


def test_commands_sent_at_once_are_answered_in_order() -> None:
    """Scripts do not wait for answers. The end of the input is a quit: the search is cut short."""
    with Client() as client:
        client.send("uci", "isready", "position startpos moves e2e4", "go depth 4", "isready")
        _, lines = client.answer()
        kinds = [line for line in lines if line in ("uciok", "readyok") or line.startswith("bestmove")]
        assert kinds[:2] == ["uciok", "readyok"]
        if kinds.count("readyok") < 2:
            client.wait_for("readyok")


@pytest.mark.parametrize("text", ["", "uci\n", "isready\n", "isready\nquit\n", "go infinite\n", "go depth 3\nquit"])
def test_the_end_of_the_input_is_a_quit(text: str) -> None:
    done = subprocess.run(PSEARCH, input=text, capture_output=True, text=True, timeout=60, start_new_session=True)
    assert (done.returncode, done.stderr) == (0, "")
    if "isready" in text:
        assert "readyok" in done.stdout
    if "go" in text:
        assert BESTMOVE.fullmatch(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("state", ["idle", "searching"])
def test_nothing_outlives_the_engine(number: signal.Signals, state: str) -> None:
    client = Client("uci")
    client.send("setoption name Threads value 3")
    client.ready()
    assert len(workers_of(client)) == 3
    if state == "searching":
        client.send("go infinite")
        client.until(lambda line: line.startswith("info depth 5"))
    client.process.send_signal(number)
    assert client.process.wait(60) == (-number if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: not processes_in_session(client.process.pid))
    for thread in client._threads:
        thread.join(60)
    for stream in (client.process.stdin, client.process.stdout, client.process.stderr):
        stream.close()


def test_quit_while_counting_for_hours() -> None:
    with Client("uci") as client:
        client.send("setoption name Threads value 2")
        client.ready()
        client.send("go perft 15")
        time.sleep(0.3)
        start = time.monotonic()
    assert time.monotonic() - start < 5


def test_stop_ends_a_count_and_the_next_search_is_answered() -> None:
    with Client("uci") as client:
        client.ready()
        client.send("position startpos", "go perft 9")
        time.sleep(0.3)
        client.send("stop", "position startpos", "go depth 3")
        client.answer()


# Searching


def test_stop_is_answered_within_20_ms(engine: Client) -> None:
    """The best of some: the machine has other things to do. A search that polls would never get there."""

    def median() -> float:
        delays = []
        for _ in range(15):
            engine.send(f"position fen {MIDDLE_GAME}", "go infinite")
            engine.until(lambda line: line.startswith("info depth 6"))
            sent = engine.send("stop")
            delays.append(engine.answer()[0] - sent)
        return sorted(delays)[len(delays) // 2]

    assert least(median, 0.02) < 0.02


def test_the_clock_is_kept(engine: Client) -> None:
    """It is kept with many workers on few cores, too.

    Delays that the machine adds are allowed for by the median, and by several rounds: other programs may hold both
    cores for a second. An engine that waits for its slowest worker is late in all of them.
    """
    engine.send("setoption name Threads value 8", "setoption name Hash value 16")
    engine.ready()
    try:
        for words, limit_s in (("wtime 100 btime 100", 0.1), ("movetime 100", 0.1), ("wtime 50 winc 100", 0.05)):

            def median(words: str = words) -> float:
                used = []
                for _ in range(7):
                    sent = engine.send("position startpos moves e2e4 e7e5", f"go {words}")
                    used.append(engine.answer()[0] - sent)
                return sorted(used)[3]

            assert least(median, limit_s) < limit_s, words
    finally:
        engine.send("setoption name Threads value 1")
        engine.ready()


def test_one_legal_move_is_played_at_once(engine: Client) -> None:
    sent = engine.send("position fen 7k/8/8/8/8/8/q7/K7 w - - 0 1", "go wtime 600000 btime 600000")
    assert engine.answer()[0] - sent < 1.0


def test_infinite_never_answers_by_itself(engine: Client) -> None:
    """It waits even when the deepest iteration has ended: two kings."""
    engine.send("position fen 4k3/8/8/8/8/8/8/4K3 w - - 0 1", "go infinite")
    engine.nothing_for(1.5)
    engine.send("isready")
    engine.wait_for("readyok")
    sent = engine.send("stop")
    assert engine.answer()[0] - sent < 1.0
    engine.send("go infinite depth 2")
    engine.nothing_for(0.5)
    engine.send("stop")
    engine.answer()


@pytest.mark.parametrize("fen", [MATED, STALEMATED])
@pytest.mark.parametrize("words", ["infinite", "ponder"])
def test_nor_when_the_game_is_over(engine: Client, fen: str, words: str) -> None:
    engine.send(f"position fen {fen}", f"go {words}")
    engine.nothing_for(0.5)
    assert not [line for line in engine.ready() if line.startswith("bestmove")]
    engine.send("stop")
    assert engine.answer()[1][-1] == "bestmove (none)"


def test_ponder(engine: Client) -> None:

    def seconds(words: str, quiet_s: float, end: str) -> float:
        engine.send("position startpos moves e2e4 e7e5", f"go ponder {words}")
        engine.nothing_for(quiet_s)
        sent = engine.send(end)
        return engine.answer()[0] - sent

    for words in ("wtime 2000 btime 2000", "depth 2", "movetime 100"):
        # far more than the move would take
        assert least(partial(seconds, words, 0.7, "ponderhit"), 1.5) < 1.5
        # the opponent played something else
        assert least(partial(seconds, words, 0.2, "stop"), 0.5) < 0.5
    # the time begins with the hit
    assert 0.8 < least(partial(seconds, "movetime 1000", 0.3, "ponderhit"), 1.5) < 1.5


def test_go_while_searching_is_refused(engine: Client) -> None:
    engine.send("go infinite", "go depth 1")
    _, lines = engine.until(lambda line: "already" in line)
    assert not any(line.startswith("bestmove") for line in lines)
    engine.send("stop")
    engine.answer()


def test_a_go_takes_the_place_of_a_ponder_search(engine: Client) -> None:
    """python-chess sends one without a stop when its caller has played the expected moves on the very board it gave.

    It waits for one answer only; waiting for the end of a ponder search would take for ever.
    """
    for _ in range(5):
        engine.send("position startpos moves e2e4 e7e5 b1c3 d8h4", "go ponder movetime 100")
        engine.until(lambda line: line.startswith("info depth 3"))
        engine.send(f"position fen {MIDDLE_GAME}", "go depth 6")
        engine.until(lambda line: "ponder search was given up" in line)
        lines = engine.answer()[1]
        check_lines(lines, chess.Board(MIDDLE_GAME))
        assert max(int(info["depth"]) for info in infos(lines)) == 6
        assert engine.ready() == ["readyok"]


def test_a_go_right_behind_a_stop_waits_for_its_turn(engine: Client) -> None:
    """Polyglot, the adapter of xboard, does not wait for the answer to a ponder search that missed."""
    for words in ("ponder wtime 1000 btime 1000", "infinite"):
        engine.send("position startpos moves e2e4 e7e5", f"go {words}", "stop")
        engine.send("position startpos moves e2e4 c7c5 g1f3", "go depth 4", "isready")
        before = engine.answer()[1]
        first = before[-1].split()[1]
        lines = engine.answer()[1]
        chess.Board("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2").push_uci(first)
        assert max(int(info["depth"]) for info in infos(lines)) == 4
        chess.Board("rnbqkbnr/pp1ppppp/8/2p5/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 2").push_uci(lines[-1].split()[1])
        if "readyok" not in before + lines:  # the search may be over before `isready` is read
            engine.wait_for("readyok")


def test_multipv_lines_are_sorted_and_distinct(engine: Client) -> None:
    engine.send("setoption name MultiPV value 5")
    lines = engine.go("depth 7", f"position fen {MIDDLE_GAME}")
    found = infos(lines)
    blocks = [found[start : start + 5] for start in range(0, len(found), 5)]
    assert len(found) % 5 == 0
    assert {int(block[0]["depth"]) for block in blocks} == set(range(1, 8))
    for block in blocks:
        assert [info["multipv"] for info in block] == ["1", "2", "3", "4", "5"]
        assert len({info["pv"].split()[0] for info in block}) == 5
        assert len({info["depth"] for info in block}) == 1
        scores = [int(info["score"].split()[1]) for info in block]
        assert scores == sorted(scores, reverse=True)
    assert lines[-1].split()[1] == blocks[-1][0]["pv"].split()[0]
    lines = engine.go("depth 4", "position fen 7k/8/8/8/8/8/1q6/K7 w - - 0 1")  # fewer moves than lines
    assert {info["multipv"] for info in infos(lines)} == {"1"}
    engine.send("setoption name MultiPV value 1")


def test_searchmoves_are_obeyed(engine: Client) -> None:
    for words in ("h2h4", "h2h4 a2a3", "e2e5 a2a3 nonsense"):
        lines = engine.go(f"depth 5 searchmoves {words}")
        assert {info["pv"].split()[0] for info in infos(lines)} <= set(words.split())
        assert lines[-1].split()[1] in words.split()
    # a search of some moves leaves nothing behind that the search of all would believe
    assert engine.go("depth 6")[-1].split()[1] not in ("h2h4", "a2a3")


def test_mate_stops_when_it_is_found(engine: Client) -> None:
    lines = engine.go("mate 2", f"position fen {MATE_IN_2}")
    assert (infos(lines)[-1]["score"], infos(lines)[-1]["bound"]) == ("mate 2", "")
    assert lines[-1].startswith("bestmove a1a6")


def test_depth_and_nodes(engine: Client) -> None:
    engine.ready()
    assert max(int(info["depth"]) for info in infos(engine.go("depth 5"))) == 5
    assert infos(engine.go("nodes 3000"))[-1]["nodes"] == "3000"
    assert infos(engine.go("nodes 1"))[-1]["nodes"] == "1"


def test_perft(engine: Client) -> None:
    engine.send("position startpos", "go perft 3")
    _, lines = engine.until(lambda line: line.startswith("Nodes searched"))
    assert lines[-1] == "Nodes searched: 8902"
    assert "e2e4: 600" in lines
    assert engine.go("depth 2")  # at once: the count is over when its sum is out


def test_long_searches_tell_what_they_are_at(engine: Client) -> None:
    engine.send("debug on", f"position fen {MIDDLE_GAME}", "go movetime 5200")
    _, lines = engine.answer()
    assert sum(" currmove " in line for line in lines) >= 1
    assert any(line.startswith("info string workers 1 splits ") for line in lines)
    engine.send("debug off")
    assert not any("workers" in line for line in engine.go("depth 3"))


def test_chess960(engine: Client) -> None:
    fen = "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w GBgb - 0 1"
    engine.go("depth 5", f"position fen {fen}")
    castling = "position fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
    assert engine.go("depth 1 searchmoves e1g1", castling)[-1].startswith("bestmove e1g1")
    engine.send("setoption name UCI_Chess960 value true")
    engine.send(castling, "go depth 1 searchmoves e1h1")
    assert engine.answer()[1][-1].startswith("bestmove e1h1")
    engine.send(castling + " moves e1h1", "d")
    _, lines = engine.until(lambda line: line.startswith("FEN"))
    assert " b " in lines[-1]
    engine.send("setoption name UCI_Chess960 value false")


def test_d_and_eval_and_bench_words(engine: Client) -> None:
    engine.send("position startpos moves e2e4", "d")
    _, lines = engine.until(lambda line: line.startswith("FEN"))
    assert lines[0].startswith("r n b q")
    assert lines[-1] == "FEN: rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
    engine.send("eval")
    _, lines = engine.until(lambda line: "evaluation" in line)
    assert -2 < float(lines[-1].split()[2]) < 2
    engine.send("position fen 4k3/8/8/8/8/8/8/QQQ1K3 b - - 0 1", "eval")
    _, lines = engine.until(lambda line: "evaluation" in line)
    assert float(lines[-1].split()[2]) > 10  # from White's view, whoever is to move


def test_unknown_words_are_passed_over(engine: Client) -> None:
    engine.send("joho debug on", "debug off", "\x00\xff", "setoption Threads 3", "go depth two")
    engine.send("stop")
    _, lines = engine.answer()
    text = "\n".join(lines)
    assert "unknown command: 'joho'" in text
    assert "setoption: `name` is missing" in text
    assert "go depth: a whole number is missing" in text


NO_POSITION = "info string there is no position: the last one was refused"


def _is_bestmove(line: str) -> bool:
    return line.startswith("bestmove")


@pytest.mark.parametrize(
    "bad", ["fen", "fen 8/8 w - -", "startpos moves e2e4 e2e4", "moves e2e4", "startpos moves 0000", ""]
)
def test_after_a_refused_position_nothing_is_searched(engine: Client, bad: str) -> None:
    engine.send("position startpos moves e2e4", f"position {bad}")
    for go in ("go movetime 50", "go depth 3", "go mate 2", "go perft 2", "go wtime 1000 btime 1000"):
        engine.send(go)
        _, lines = engine.until(_is_bestmove)
        assert lines[-2:] == [NO_POSITION, "bestmove 0000"]
        assert not [line for line in lines if not line.startswith("info string") and not _is_bestmove(line)]
    for command in ("d", "eval"):
        engine.send(command)
        assert engine.until(lambda line: True)[1] == [NO_POSITION]
    assert engine.ready() == ["readyok"], "one answer for each go"
    engine.send("position startpos moves e2e4", "d")
    _, lines = engine.until(lambda line: line.startswith("FEN"))
    assert lines[-1].startswith("FEN: rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b")
    assert engine.go("depth 1", "position startpos")[-1] != "bestmove 0000"


@pytest.mark.parametrize(
    ("go", "release"),
    [("go infinite", "stop"), ("go ponder wtime 1000 btime 1000", "ponderhit"), ("go ponder", "stop")],
)
def test_after_a_refused_position_an_answer_is_held_back_as_any_other(engine: Client, go: str, release: str) -> None:
    engine.send("position fen 8/8 w", go)
    assert not any(map(_is_bestmove, engine.ready()))
    engine.send(release)
    assert engine.until(_is_bestmove)[1][-1] == "bestmove 0000"
    assert not any(map(_is_bestmove, engine.ready()))


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        ("name Threads value 0", "Threads must be a whole number from 1 to 1024"),
        ("name Threads value many", "'many'"),
        ("name Hash value 1_0", "Hash must be"),
        ("name Ponder value perhaps", "true or false"),
        ("name Policy value best", "one of serial"),
        ("name Pruning value none", "one of plain"),
        ("name PruningParameters value lmr=2", "pruning parameter lmr must be a whole number from 0 to 1"),
        ("name PruningParameters value speed=2", "no pruning parameter is called 'speed'"),
        ("name UCI_Elo value 9999", "; UCI_Elo stays"),
        ("name Ponder value 1", "; Ponder stays false"),
        ("name Shape value x", "no option is called 'Shape'"),
        ("name Cluster value auto", "no option is called 'Cluster'"),
        ("value 3", "`name` is missing"),
    ],
)
def test_bad_options_are_reported_and_change_nothing(engine: Client, words: str, warning: str) -> None:
    engine.send(f"setoption {words}")
    lines = engine.ready()
    assert len(lines) == 2
    assert warning in lines[0]


def test_a_hash_that_does_not_fit_is_refused_and_the_old_one_stays(engine: Client) -> None:
    engine.send("setoption name Hash value 16777216")
    assert any("not enough memory" in line for line in engine.ready())
    engine.go("depth 3")
    engine.send("setoption name Hash value 16")
    assert engine.ready() == ["readyok"]


def test_option_names_and_values_do_not_depend_on_case(engine: Client) -> None:
    engine.send("setoption name multipv value 2", "setoption name policy value YBW")
    assert engine.ready() == ["readyok"]
    assert {info["multipv"] for info in infos(engine.go("depth 3"))} == {"1", "2"}
    engine.send("setoption name MultiPV value 1", "setoption name Policy value calibrated")


def test_pruning_takes_effect_and_what_is_wrong_does_not(engine: Client) -> None:
    """A bad parameter does not stand in the way of a mode either."""
    engine.send("setoption name Threads value 1", f"position fen {MIDDLE_GAME}")

    def nodes() -> str:
        engine.send("setoption name Clear Hash")
        return str(infos(engine.go("depth 6"))[-1]["nodes"])

    counts = [nodes()]
    for words in ("PruningParameters value lmr=0, lmp_base=9", "PruningParameters value", "Pruning value ael"):
        engine.send(f"setoption name {words}")
        assert engine.ready() == ["readyok"]
        counts.append(nodes())
    engine.send("setoption name PruningParameters value lmr=7", "setoption name Pruning value ael")
    complaint, _ = engine.ready()
    assert complaint.endswith("not '7'; PruningParameters stays empty")
    counts.append(nodes())
    assert counts[0] == counts[2] and counts[3] == counts[4] and len(set(counts)) == 3
    engine.send("setoption name Pruning value modern")
    assert engine.ready() == ["readyok"]


def test_threads_and_clear_hash_take_effect(engine: Client) -> None:
    engine.send("setoption name Threads value 3")
    engine.ready()
    assert len(workers_of(engine)) == 3
    engine.send("setoption name Threads value 1")
    engine.ready()
    assert len(workers_of(engine)) == 1
    first = infos(engine.go("depth 8"))[-1]["nodes"]
    second = infos(engine.go("depth 8"))[-1]["nodes"]
    engine.send("setoption name Clear Hash")
    third = infos(engine.go("depth 8"))[-1]["nodes"]
    assert int(second) < int(first)
    assert third == first


def test_limited_strength_searches_less(engine: Client) -> None:
    engine.send("setoption name UCI_LimitStrength value true", "setoption name UCI_Elo value 1200")
    lines = engine.go("wtime 60000 btime 60000", f"position fen {MIDDLE_GAME}")
    assert int(infos(lines)[-1]["nodes"]) <= 1000
    assert {info["multipv"] for info in infos(lines)} == {"1"}
    engine.send("setoption name UCI_AnalyseMode value true")  # an analysis is never weakened
    assert int(infos(engine.go("movetime 200"))[-1]["nodes"]) > 1000
    engine.send("setoption name UCI_AnalyseMode value false", "setoption name UCI_LimitStrength value false")


# Deaths


def only_worker(client: Client) -> int:
    """Return the process id of the only worker; one that was killed before may take a moment to end."""
    wait_until(lambda: len(workers_of(client)) == 1)
    return workers_of(client)[0]


def test_a_worker_that_dies_costs_the_search_and_not_the_game() -> None:
    with Client("uci") as client:
        client.send("setoption name Threads value 3")
        client.ready()
        for _ in range(3):
            sent = client.send("position startpos", "go wtime 60000 btime 60000")
            client.until(lambda line: line.startswith("info depth 4"))
            os.kill(workers_of(client)[1], signal.SIGKILL)
            _, lines = client.until(lambda line: "was killed by signal 9" in line)
            when, lines = client.answer()
            assert infos(lines), "the search goes on with new workers"
            assert when - sent < 10.0, "on the same clock"
            assert chess.Move.from_uci(lines[-1].split()[1]) in chess.Board().legal_moves
        assert client.go("depth 6")
        assert len(workers_of(client)) == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_workers_that_are_lost_again_and_again_cost_no_time_and_no_move(number: signal.Signals) -> None:
    with Client("uci") as client:
        client.send("setoption name Threads value 3")
        client.ready()
        client.send("position startpos moves e2e4")
        late, ready = [], []
        for _ in range(3):
            start = time.monotonic()
            client.send("go movetime 2000")
            lines = client.until(lambda line: line.startswith("info depth 5 "))[1]
            os.kill(workers_of(client)[0], number)
            lines += client.until(lambda line: "new workers continue" in line)[1]
            os.kill(workers_of(client)[-1], number)
            lines += client.answer()[1]
            late.append(time.monotonic() - start - 2.0)
            last = [line for line in lines if line.startswith("info depth") and " pv " in line][-1]
            assert lines[-1].split()[1] == last.split(" pv ")[1].split()[0]
            ready.append(seconds_of(client.ready))
        assert usual(late) < 0.5 and usual(ready) < 1.5, (late, ready)
        assert client.go("depth 6")


def test_a_worker_that_dies_between_searches() -> None:
    with Client("uci") as client:
        client.ready()
        (killed,) = workers_of(client)
        os.kill(killed, signal.SIGKILL)
        # noticed at once, while nothing is asked of the engine
        client.until(lambda line: "was killed by signal 9; it has been replaced" in line)
        assert only_worker(client) != killed
        assert infos(client.go("depth 4"))


def test_workers_that_die_as_soon_as_they_are_replaced_are_not_started_for_ever() -> None:
    with Client("uci") as client:
        client.ready()
        times: list[float] = []
        while len(times) < 2 or times[-1] - times[-2] > 0.7:  # two within a second, also on a machine that is slow
            assert len(times) < 50
            os.kill(only_worker(client), signal.SIGKILL)
            times.append(client.until(lambda line: "it has been replaced" in line)[0])
        os.kill(only_worker(client), signal.SIGKILL)
        client.nothing_for(0.5)
        assert any("it has been replaced" in line for line in client.go("depth 4"))


def test_idle_engines_use_no_processor_time() -> None:
    with Client("uci") as client:
        client.send("setoption name Threads value 4")
        client.ready()
        client.go("movetime 100")
        assert_no_processor_time([client.process.pid, *workers_of(client)])
