"""Arguments and methods that python-chess's engines have too, each with what it is for."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import chess
import chess.engine
import numpy as np
import pytest
from paths import REPOSITORY
from timing import wait_for_ends, wait_until

import psearch
from psearch.api.blocking import Engine
from psearch.api.question import Question, time_manager
from psearch.processes.control import SearchControl
from psearch.results import Result
from psearch.settings import ENGINE_OPTIONS, SETTINGS

Limit = chess.engine.Limit
FEN = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"


@pytest.fixture
def engine() -> psearch.Engine:  # type: ignore[misc]  # a generator
    with psearch.Engine(hash_mb=4) as made:
        yield made


def test_positions_and_moves_as_text(engine: psearch.Engine) -> None:
    for board in ("startpos", chess.STARTING_FEN, chess.Board()):
        info = engine.analyse(board, Limit(depth=3), root_moves=["a2a3", "Nf3", chess.Move.from_uci("b1c3")])
        assert info["pv"][0].uci() in ("a2a3", "g1f3", "b1c3")
        assert engine.play(board, Limit(depth=1), root_moves="h4").move == chess.Move.from_uci("h2h4")
        with engine.analysis(board, Limit(depth=2)) as analysis:
            assert analysis.wait().move in chess.Board().legal_moves
    assert psearch.search("startpos", depth=1, hash_mb=1, root_moves=["Na3"]).bestmove == chess.Move.from_uci("b1a3")


def test_numbers_of_numpy(engine: psearch.Engine) -> None:
    for time_s in (np.float32(0.02), np.float64(0.02), np.float16(0.02)):
        assert engine.analyse("startpos", Limit(time=time_s))["depth"] >= 1
    assert engine.analyse("startpos", Limit(depth=np.int64(3)))["depth"] == 3
    assert engine.analyse("startpos", Limit(nodes=np.uint32(777)), multipv=np.int8(1))[0]["nodes"] == 777
    assert engine.analyse("startpos", Limit(nodes=1e3))["nodes"] == 1000
    assert engine.play("startpos", Limit(white_clock=np.float32(0.5), remaining_moves=np.int32(9))).move
    assert psearch.search("startpos", movetime_ms=np.float32(20), threads=np.int64(1), hash_mb=np.int16(1)).bestmove


def test_a_clock_that_is_not_reset_again() -> None:
    """Many programs say so by 0."""
    board = chess.Board()
    budgets = [
        time_manager(board, Limit(white_clock=10, black_clock=10, remaining_moves=moves), 20).budget
        for moves in (0, None, 1)
    ]
    assert budgets[0] == budgets[1] != budgets[2]


def test_an_engine_that_is_closed_while_it_is_configured_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = psearch.Engine(hash_mb=1)
    engine.ping()
    searcher = engine._searcher
    start = searcher.start

    def closed_meanwhile(size: Any) -> None:
        engine.close()
        start(size)

    monkeypatch.setattr(searcher, "start", closed_meanwhile)
    with pytest.raises(psearch.PsearchError, match="this engine is closed"):
        engine.configure({"Hash": 2})
    assert "closed" in repr(engine) and not searcher.supervisor.is_usable


def test_a_path_in_the_search_path_of_modules_is_ignored() -> None:
    """Notebooks often have one, and Python ignores it. A program with threads starts workers from a new interpreter."""
    program = """
import pathlib, sys, threading, chess.engine, psearch
sys.path.append(pathlib.Path.cwd())
threading.Thread(target=threading.Event().wait, daemon=True).start()
with psearch.Engine(threads=2, hash_mb=1) as engine:
    print(engine.play("startpos", chess.engine.Limit(depth=3)).move)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def test_info_selects(engine: psearch.Engine) -> None:
    limit = Limit(depth=2)
    assert engine.play(FEN, limit, info=chess.engine.INFO_NONE).info == {}
    basic = engine.analyse(FEN, limit, info=chess.engine.INFO_BASIC)
    assert basic["depth"] == 2
    assert not {"score", "pv"} & set(basic)
    assert "score" in engine.analyse(FEN, limit, info=chess.engine.INFO_SCORE)
    assert "pv" in engine.analyse(FEN, limit, info=chess.engine.INFO_PV)
    with engine.analysis(FEN, limit, info=chess.engine.INFO_NONE) as analysis:
        assert list(analysis) == []
        assert analysis.info == {}


def test_another_game_forgets(engine: psearch.Engine) -> None:
    def nodes(game: object) -> int:
        return int(engine.analyse(FEN, Limit(depth=7), game=game)["nodes"])

    first = nodes(None)
    assert nodes(None) < first
    assert nodes("one") == first
    assert nodes("one") < first
    assert nodes("two") == first
    with pytest.raises(psearch.PsearchError, match="game must be an object that can be compared"):
        engine.analyse(FEN, Limit(depth=1), game=np.zeros(2))
    assert nodes("three") == first


def test_wdl_is_of_our_model(engine: psearch.Engine) -> None:
    info = engine.analyse(FEN, Limit(depth=5))
    assert info["wdl"] == psearch.wdl(info["score"], chess.Board(FEN))
    assert info["wdl"].turn == chess.WHITE
    assert sum(info["wdl"]) == 1000
    stalemate = chess.Board("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1")
    assert tuple(engine.analyse(stalemate, Limit(depth=1))["wdl"]) == (0, 1000, 0)
    mated = chess.Board("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3")
    assert engine.analyse(mated, Limit(depth=1))["wdl"].white() == chess.engine.Wdl(0, 0, 1000)


def test_pondering_fills_the_table_until_the_next_call(engine: psearch.Engine) -> None:
    board = chess.Board(FEN)
    played = engine.play(board, Limit(depth=6), ponder=True, game="g")
    assert played.move is not None and played.ponder is not None
    assert not played.resigned and not played.draw_offered
    assert engine._pondering is not None
    pondering = engine._pondering
    workers = engine._searcher._supervisor.arena.worker
    wait_until(lambda: int(workers["nodes"].sum()) > 100_000)
    assert pondering._thread.is_alive()
    board.push(played.move)
    board.push(played.ponder)
    warm = engine.play(board, Limit(depth=7), game="g").info["nodes"]
    assert not pondering._thread.is_alive()
    assert warm < engine.play(board, Limit(depth=7), game="another").info["nodes"]
    for end in (engine.ping, engine.new_game, engine.stop, lambda: engine.send_game_result(board, chess.WHITE)):
        engine.play(FEN, Limit(depth=3), ponder=True)
        thread = engine._pondering._thread  # type: ignore[union-attr]
        end()
        thread.join(60)
        assert not thread.is_alive()
    engine.play(FEN, Limit(depth=3), ponder=True)
    thread = engine._pondering._thread
    engine.quit()
    assert not thread.is_alive()


def test_the_lag_of_moves_is_measured_while_it_ponders(engine: psearch.Engine) -> None:
    clock_s = 6.0  # no move takes 1 s of it
    for _ in range(3):
        engine.play(FEN, Limit(white_clock=clock_s, black_clock=clock_s), ponder=True, game="g")
        clock_s -= 1.0
    assert engine._lag._moves == 2


def test_configure(engine: psearch.Engine) -> None:
    assert engine.options["HASH"] == engine.options["hash"]
    assert tuple(engine.options) == tuple(option.name for option in ENGINE_OPTIONS)
    engine.configure({"threads": 2, "Hash": "8", "Policy": "ybw", "Pruning": "modern,lmr=0", "SplitDepth": 3})
    assert (engine.threads, engine.hash_mb) == (2, 8)
    assert (engine._settings.search.policy, engine._settings.search.split_depth) == ("ybw", 3)
    assert engine.analyse(FEN, Limit(depth=5))["depth"] == 5
    assert engine.analyse(FEN, Limit(depth=1), options={"Policy": "serial"})["depth"] == 1
    assert engine._settings.search.policy == "ybw"
    engine.configure({"Clear Hash": None})
    engine.configure({})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Threads": 0}, "Threads must be a whole number from 1 to 1024, not 0"),
        ({"Hash": None}, "Hash must be a whole number"),
        ({"Policy": "best"}, "policy must be one of"),
        ({"Pruning": "modern,lmr=7"}, "lmr must be"),
        ({"MultiPV": 3}, "give the argument multipv"),
        ({"UCI_Chess960": True}, "the board says it"),
        ({"Skill Level": 3}, "no option 'Skill Level', only Threads, Hash, .*popen_uci"),
        ({3: 3}, "options must be a mapping"),
        (["Hash"], "options must be a mapping"),
    ],
)
def test_bad_options_change_nothing(engine: psearch.Engine, options: object, message: str) -> None:
    before = engine._settings
    for call in (engine.configure, lambda given: engine.analyse(FEN, Limit(depth=1), options=given)):
        with pytest.raises(psearch.PsearchError, match=message):
            call(options)  # type: ignore[operator]
    assert engine._settings == before


def test_a_table_that_does_not_fit_leaves_the_old_one(engine: psearch.Engine) -> None:
    with pytest.raises(psearch.PsearchError, match="not enough memory"):
        engine.configure({"Hash": 1 << 23})
    assert engine.hash_mb == 4
    assert engine.analyse(FEN, Limit(depth=3))["depth"] == 3
    with pytest.raises(psearch.PsearchError, match="set them with configure"):
        engine.analyse(FEN, Limit(depth=1), options={"Hash": 16})


def test_ping_replaces_the_dead(engine: psearch.Engine, caplog: pytest.LogCaptureFixture) -> None:
    engine.ping()
    pid = engine._searcher._supervisor.pool.workers[0].pid
    os.kill(pid, signal.SIGKILL)
    wait_for_ends([pid])
    engine.ping()
    assert "killed by signal 9" in caplog.text
    engine.close()
    with pytest.raises(psearch.PsearchError, match="closed"):
        engine.ping()


def test_the_whole_of_an_analysis(engine: psearch.Engine) -> None:
    analysis = engine.analysis(FEN, Limit(depth=5), multipv=2)
    best = analysis.wait()
    assert not analysis.would_block()
    assert not analysis.empty()
    depths = [analysis.get()["depth"]]
    while (info := analysis.next()) is not None:
        depths.append(info["depth"])
    assert depths == sorted(depths) and depths[-1] == 5
    assert analysis.empty() and not analysis.would_block()
    with pytest.raises(chess.engine.AnalysisComplete):
        analysis.get()
    assert analysis.next() is None and list(analysis) == []
    assert best.move == analysis.info["pv"][0] == analysis.multipv[0]["pv"][0]
    assert [line["multipv"] for line in analysis.multipv] == [1, 2]


def test_a_stopped_search_is_waited_for(engine: psearch.Engine) -> None:
    analysis = engine.analysis(FEN)
    with pytest.raises(psearch.PsearchError, match="searching already: stop it first"):
        engine.configure({"Policy": "ybw"})
    analysis.stop()
    assert engine.analyse(FEN, Limit(depth=2))["depth"] == 2


def test_an_analysis_without_a_thread(engine: psearch.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(psearch.PsearchError, match="can't start new thread"):
            engine.analysis(FEN)
    assert engine.analyse(FEN, Limit(depth=2))["depth"] == 2


def test_results_are_short_and_show_the_board() -> None:
    result = psearch.search(FEN, depth=6, multipv=2, hash_mb=1)
    assert result.board == chess.Board(FEN)
    for shown in (repr(result), str(result), repr(result.info)):
        assert len(shown) < 140
        assert "\n" not in shown
        assert "depth=6" in shown
    assert f"bestmove={result.bestmove}" in repr(result)
    assert "lines=2" in repr(result)
    page = result._repr_html_()
    assert page.count("<svg") == 1 and page.count('class="arrow"') == 2  # its shaft and its head
    for line in result.lines:
        assert chess.Board(FEN).variation_san(line.pv).replace("'", "&#x27;") in page
    assert pickle.loads(pickle.dumps(result)) == result
    over = psearch.search("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1")
    assert "bestmove=None" in repr(over)
    assert "<svg" in str(over._repr_html_())


@pytest.mark.parametrize("limit", [None, Limit(), Limit(white_clock=60.0), Limit(black_inc=1.0)])
def test_without_a_limit_it_takes_five_seconds(limit: chess.engine.Limit | None, engine: psearch.Engine) -> None:
    """FEN has Black to move."""
    asked: list[Question] = []

    def stopped(question: Question, control: SearchControl, on_info: object = None) -> Result:
        asked.append(question)
        control.stop()
        return Engine._answer(engine, question, control)

    engine._answer = stopped  # type: ignore[method-assign]
    engine.analyse(FEN.replace(" w ", " b "), limit)
    if limit is not None:
        engine.play(FEN.replace(" w ", " b "), limit)
    assert [question.limit.time for question in asked] == [5.0] * len(asked)
    asked.clear()
    engine.analyse(FEN, Limit(depth=1))
    engine.play(FEN, Limit(white_clock=60.0))
    assert [question.limit.time for question in asked] == [None, None]
    with engine.analysis(FEN, limit) as analysis:
        analysis.get()
        assert not analysis._has_ended


def test_what_is_logged_has_a_name_where_nobody_has_set_up_logging() -> None:
    program = """
import os, signal, sys, psearch
with psearch.Engine(hash_mb=1) as engine:
    if "set up" in sys.argv:
        import logging
        logging.basicConfig(format="%(name)s says: %(message)s")
    os.kill(engine._searcher._supervisor.pool.workers[0].pid, signal.SIGKILL)
    engine._searcher._supervisor.pool.workers[0].join(60)
    engine.ping()
"""
    said = [
        subprocess.run([sys.executable, "-c", program, *more], check=True, stderr=subprocess.PIPE, text=True).stderr
        for more in ([], ["set up"])
    ]
    assert said == [
        "psearch: worker 0 was killed by signal 9; it has been replaced\n",
        "psearch says: worker 0 was killed by signal 9; it has been replaced\n",
    ]


def test_the_interpreter_knows_the_api() -> None:
    assert set(psearch.__all__) <= set(dir(psearch))
    assert all(name in psearch.__all__ for name in dir(psearch) if not name.startswith("__"))
    program = "import psearch, sys; dir(psearch); assert not {'chess', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_needs_no_search() -> None:
    board = chess.Board()
    counts = psearch.perft(board, 3, threads=2)
    assert sum(counts.values()) == 8_902 and set(counts) == set(board.legal_moves)
    with pytest.raises(psearch.PsearchError, match="depth must be"):
        psearch.perft("startpos", 0)
    white = psearch.evaluate(FEN)
    assert white is not None and white.turn == chess.WHITE
    mirrored = psearch.evaluate(chess.Board(FEN).mirror())
    assert mirrored is not None and mirrored.turn == chess.BLACK and mirrored.relative == white.relative
    assert psearch.evaluate("4k3/8/8/8/8/8/8/4RK2 b - - 0 1") is None


def test_engines_show_what_they_are(engine: psearch.Engine) -> None:
    assert repr(engine) == "<psearch.Engine (threads=1, hash_mb=4)>"
    engine.close()
    assert repr(engine) == "<psearch.Engine (threads=1, hash_mb=4, closed)>"
    assert repr(psearch.AsyncEngine(threads=3)) == "<psearch.AsyncEngine (threads=3, hash_mb=256)>"
    assert engine.id["name"].startswith("psearch ")


def test_moves_that_are_played_tell_what_they_cost(engine: psearch.Engine) -> None:
    """The program's clock loses more than the search takes; a game without increment is to last all the same."""
    for number, seconds in enumerate((1.0, 0.4, 0.2)):
        engine.play("startpos", Limit(white_clock=seconds, black_clock=seconds), game=1)
        assert engine._lag._moves == number
    engine.analyse("startpos", Limit(depth=1), game=1)
    engine.play("startpos", Limit(white_clock=0.1, black_clock=0.1), game=1)
    assert engine._lag._moves == 2  # what was between them took time, too
    assert 0.05 < engine._lag._sum_s <= 0.1
    engine.play("startpos", Limit(depth=1), game=2)
    assert engine._lag._moves == 0


def test_nothing_is_left_running() -> None:
    before = threading.active_count()
    with psearch.Engine(threads=2, hash_mb=1) as engine:
        pids = [worker.pid for worker in engine._searcher._supervisor.pool.workers]
        engine.play(FEN, Limit(depth=3), ponder=True)
    assert threading.active_count() == before
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


FILE = str(REPOSITORY / "docs" / "examples" / "my_policy.py")
DEPTH = chess.engine.Limit(depth=3)


def test_an_engine_is_made_with_it_and_may_change_it() -> None:
    with psearch.Engine(policy=FILE, hash_mb=1) as engine:
        assert engine.analyse(chess.Board(), DEPTH)["depth"] == 3
        engine.configure({"Policy": "ybw"})
        assert engine.analyse(chess.Board(), DEPTH)["depth"] == 3
        with pytest.raises(psearch.PsearchError, match="a file as Policy are for all searches"):
            engine.analyse(chess.Board(), DEPTH, options={"Policy": FILE})
        engine.configure({"Policy": FILE})
        assert engine.analyse(chess.Board(), DEPTH)["depth"] == 3


def test_search_takes_it() -> None:
    assert psearch.search("startpos", policy=FILE, depth=3, hash_mb=1).info.depth == 3


def test_a_mistake_is_raised_before_there_are_workers(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import nothing_of_the_kind\n")
    with pytest.raises(psearch.PsearchError, match=r"broken\.py:1: ModuleNotFoundError"):
        psearch.Engine(policy=str(file), hash_mb=1)


@pytest.mark.slow
def test_a_file_that_was_mended_is_taken_when_it_is_named_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    with psearch.Engine(hash_mb=1) as engine:
        board = chess.Board()
        engine.analyse(board, chess.engine.Limit(depth=4))
        filled = engine._searcher.supervisor.arena.fill_permille()
        for _ in range(2):
            with pytest.raises(psearch.PsearchError, match="it replaces nothing"):
                engine.configure({"Policy": str(file)})
        assert engine._searcher.supervisor.arena.fill_permille() == filled, "the table is still there"
        file.write_text(Path(FILE).read_text())
        engine.configure({"Policy": str(file)})
        first = engine._searcher.supervisor.arena.kernels
        file.write_text(Path(FILE).read_text().replace("LARGE = 5", "LARGE = 7"))
        engine.configure({"SplitDepth": 2})
        assert engine._searcher.supervisor.arena.kernels == first, "nobody has named it"
        engine.configure({"Policy": str(file)})
        assert engine._searcher.supervisor.arena.kernels != first
        assert engine.analyse(board, chess.engine.Limit(depth=3))["depth"] == 3


def test_the_option_takes_names_and_files() -> None:
    assert SETTINGS["policy"].of_text("YBW") == "ybw"
    assert SETTINGS["policy"].of_text("/home/me/My_Policy.py") == "/home/me/My_Policy.py"
    with pytest.raises(ValueError, match=r"Policy must be one of serial, .*, or a file, not 'no'"):
        SETTINGS["policy"].of_text("no")
    assert SETTINGS["policy"].of_chess_engine().parse(FILE) == FILE
