"""What fails costs no move that could be had otherwise, is reported once, and is tried again; kernels that are slow to
load."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import chess
import pytest
from paths import DATA
from timing import least
from uci_client import Client, Talk, infos, workers_of

from psearch.faces.uci import resources
from psearch.faces.uci.resources import FileOption
from psearch.processes import child, patience
from psearch.processes.supervisor import Supervisor
from psearch.results import PsearchError, WorkerDied
from psearch.scheduler.scheduler_entries import load_kernels
from psearch.searcher import searcher as workers
from psearch.searcher.notices import Notices

KRK = "8/8/8/8/8/2k5/8/K6R w - - 0 1"
NO_KERNELS = "info string cannot search: no room for the kernels"


class Failing:
    """Stands for a function: raises while it is told to."""

    def __init__(self, function: Callable[..., Any], error: Exception) -> None:
        self.function = function
        self.error: Exception | None = error
        self.calls = 0

    def __call__(self, *arguments: Any, **names: Any) -> Any:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return self.function(*arguments, **names)


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> Failing:
    failing = Failing(load_kernels, PsearchError("no room for the kernels"))
    monkeypatch.setattr(resources, "load_kernels", failing)
    return failing


@pytest.fixture
def talk() -> Iterator[Talk]:
    with Talk() as conversation:
        yield conversation


def test_kernels_that_cannot_be_loaded_are_told_once_and_tried_again(no_kernels: Failing, talk: Talk) -> None:
    assert talk.ready() == [NO_KERNELS, "readyok"]
    talk.send("position startpos", "go movetime 100 searchmoves h2h4 a2a3")
    lines = talk.until("bestmove")
    assert lines == ["info string no search is possible: playing any legal move", "bestmove h2h4"]
    calls = no_kernels.calls
    assert talk.ready() == ["readyok"]
    talk.send("ucinewgame")
    assert talk.ready() == ["readyok"]
    assert len(talk.go("depth 2", KRK)) == 1
    assert no_kernels.calls == calls + 4
    no_kernels.error = None
    lines = talk.go("depth 3", chess.STARTING_FEN)
    assert infos(lines) and "info string kernels could be loaded now" in lines
    assert talk.ready() == ["readyok"]


def test_a_load_that_fails_late_is_not_tried_on_the_clock(
    no_kernels: Failing, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psearch.faces.uci.player._QUICK_S", -1.0)
    talk.ready()
    calls = no_kernels.calls
    talk.go("depth 2", KRK)
    assert no_kernels.calls == calls
    no_kernels.error = None
    assert talk.ready()[-1] == "readyok"
    assert infos(talk.go("depth 2", KRK))


def test_whatever_prevents_the_load_is_told_in_one_line(no_kernels: Failing, talk: Talk) -> None:
    no_kernels.error = EOFError("Ran out of\ninput")
    assert talk.ready() == ["info string cannot search: EOFError: Ran out of\\ninput", "readyok"]


def test_tables_and_book_need_no_kernels(no_kernels: Failing, talk: Talk) -> None:
    talk.send(f"setoption name SyzygyPath value {DATA / 'syzygy'}")
    assert talk.go("movetime 100", KRK)[-1].split()[1] in ("h1h5", "h1h2", "a1b1", "h1h4", "h1h3")
    talk.send(
        f"setoption name BookFile value {DATA / 'polyglot' / 'lasker-trap.bin'}", "setoption name OwnBook value 1"
    )
    talk.send("setoption name OwnBook value true", "position startpos moves d2d4", "go movetime 100")
    assert talk.until("bestmove")[-2:] == ["info string book move d7d5", "bestmove d7d5"]


def test_a_damaged_table_is_switched_off_and_the_search_goes_on(talk: Talk, tmp_path: Path) -> None:
    for name in ("KRvK.rtbw", "KRvK.rtbz"):
        (tmp_path / name).touch()
    talk.send(f"setoption name SyzygyPath value {tmp_path}")
    lines = talk.go("depth 5", KRK)
    assert [line for line in lines if "damaged endgame table" in line] == [lines[0]]
    assert infos(lines) and infos(lines)[-1]["tbhits"] == "0"
    lines = talk.go("depth 5", KRK)
    assert infos(lines) and not any("damaged" in line for line in lines)
    for name in ("KRvK.rtbw", "KRvK.rtbz"):  # the download is complete now
        shutil.copy(DATA / "syzygy" / name, tmp_path)
    talk.send("ucinewgame")
    assert infos(talk.go("depth 5", KRK))[-1]["score"] == "cp 20000"


def test_a_book_that_is_cut_short_while_it_is_open(talk: Talk, tmp_path: Path) -> None:
    """The part that was read counts; a mapped file would end the engine."""
    path = tmp_path / "book.bin"
    shutil.copy(DATA / "polyglot" / "lasker-trap.bin", path)
    talk.send(f"setoption name BookFile value {path}", "setoption name OwnBook value true", "isready")
    assert talk.until("readyok") == ["readyok"]
    path.write_bytes(b"")
    fen = "rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1"
    assert talk.go("depth 4", fen)[-1].startswith("bestmove d7d5")


def test_a_part_of_the_tables_that_is_missing_is_told(talk: Talk, tmp_path: Path) -> None:
    """Tables without DTZ, and a folder that is not there: an info string each, once, and the rest is used."""
    for name in ("KRvK.rtbw", "KRvK.rtbz", "KQvK.rtbw"):
        shutil.copy(DATA / "syzygy" / name, tmp_path)
    talk.send(f"setoption name SyzygyPath value {tmp_path}/nowhere:{tmp_path}")
    assert talk.ready() == [
        f"info string SyzygyPath: cannot read endgame tables in {tmp_path}/nowhere: No such file or directory",
        "info string SyzygyPath: 1 endgame table has no .rtbz (DTZ) and is not used: KQvK",
        "readyok",
    ]
    lines = talk.go("depth 5", KRK)
    assert infos(lines)[-1]["score"] == "cp 20000" and not any("SyzygyPath" in line for line in lines)


def test_a_pipe_as_a_book_or_tables_holds_nothing_up(talk: Talk, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "KRvK.rtbw")
    for option in ("BookFile", "SyzygyPath"):
        talk.send(f"setoption name {option} value {tmp_path / 'KRvK.rtbw'}")
        (complaint, _) = talk.ready()
        assert complaint.startswith(f"info string {option}: ")
    assert infos(talk.go("depth 3", KRK))


def test_workers_that_are_refused_leave_those_of_before(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.send("setoption name Hash value 2")
    assert talk.ready() == ["readyok"]

    def refuse(threads: int, hash_mb: int, start_method: str | None, *kinds: bool) -> Supervisor:
        if hash_mb > 2:
            raise OSError(12, "Cannot allocate memory")
        return Supervisor(threads, hash_mb, start_method, *kinds)

    monkeypatch.setattr(workers, "Supervisor", refuse)
    talk.send("setoption name Hash value 4")
    (complaint, _) = talk.ready()
    assert "Cannot allocate memory; continuing with Threads 1 and Hash 2" in complaint
    for _ in range(2):
        assert infos(talk.go("depth 3", chess.STARTING_FEN))
    monkeypatch.setattr(workers, "Supervisor", Supervisor)
    talk.send("ucinewgame")
    assert talk.ready() == ["info string Threads 1 and Hash 4 are available again", "readyok"]


def test_a_search_that_fails_answers_with_its_latest_line(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Supervisor.search

    def dies(supervisor: Supervisor, request: Any) -> Any:
        search(supervisor, request)
        raise WorkerDied("worker 0 was killed")

    monkeypatch.setattr(Supervisor, "search", dies)
    lines = talk.go("depth 5", chess.STARTING_FEN)
    assert "info string worker 0 was killed" in lines
    assert lines[-1].split()[1] == infos(lines)[-1]["pv"].split()[0]


def test_without_processes_this_one_searches(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(threads: int, hash_mb: int, start_method: str | None, *kinds: bool) -> Supervisor:
        if start_method != "inline":
            raise PsearchError("cannot start 1 worker processes: Resource temporarily unavailable")
        return Supervisor(threads, hash_mb, start_method, *kinds)

    monkeypatch.setattr(workers, "Supervisor", refuse)
    talk.send("setoption name Hash value 64", "setoption name Threads value 4")
    complaint = talk.ready()[-2]  # one before it is of the table alone, if the engine was quick
    assert complaint.endswith("continuing with no worker process and Hash 64")
    lines = talk.go("depth 6", chess.STARTING_FEN)
    assert infos(lines)[-1]["depth"] == "6" and not any("info string" in line for line in lines)
    talk.send("go infinite")
    talk.until("info depth 5")
    talk.send("isready", "stop")
    assert talk.until("bestmove")
    monkeypatch.setattr(workers, "Supervisor", Supervisor)
    talk.send("ucinewgame")
    assert talk.ready() == ["info string Threads 4 and Hash 64 are available again", "readyok"]


def test_workers_that_can_find_nothing_are_helped_out_by_this_process(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Supervisor.search

    def dies(supervisor: Supervisor, request: Any) -> Any:
        if supervisor.pool.are_processes:
            raise WorkerDied("worker 0 was killed")
        return search(supervisor, request)

    monkeypatch.setattr(Supervisor, "search", dies)
    lines = talk.go("depth 5 searchmoves h2h4 a2a3", chess.STARTING_FEN)
    assert infos(lines)[-1]["depth"] == "5"
    assert lines[-1].split()[1] in ("h2h4", "a2a3")


def test_a_ponderhit_is_not_lost_with_a_search_that_fails(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Supervisor.search

    def dies(supervisor: Supervisor, request: Any) -> Any:
        if supervisor.pool.are_processes:
            while request.control.take_ponderhit() is None:
                time.sleep(0.001)
            raise WorkerDied("worker 0 was killed")
        return search(supervisor, request)

    monkeypatch.setattr(Supervisor, "search", dies)
    talk.send("position startpos", "go ponder wtime 2000 btime 2000")
    talk.send("ponderhit")
    assert talk.until("bestmove")


def test_nobody_waits_for_workers_that_are_late(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have a share of the time of the next search, and are replaced then."""
    engines: list[Supervisor] = []

    class Kept(Supervisor):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            engines.append(self)

    monkeypatch.setattr(workers, "Supervisor", Kept)
    monkeypatch.setattr(patience, "SETTLE_S", 1000.0)
    monkeypatch.setattr(child, "process_state", lambda pid: "D")  # halted, but not by a signal
    talk.send("setoption name Threads value 2")
    talk.ready()
    for is_asked in (True, False):
        talk.send("position startpos", "go infinite")
        talk.until("info depth 5 ")
        os.kill(engines[-1].pool.workers[0].pid, signal.SIGSTOP)
        talk.send("stop")
        talk.until("bestmove")
        if is_asked:
            talk.ready()
        assert infos(talk.go("movetime 300", chess.STARTING_FEN))


def test_without_descriptors_the_latest_line_and_then_this_process(tmp_path: Path) -> None:
    """The death of a worker frees those of the old workers, and no more."""
    with Client("uci") as client:
        client.send("setoption name Threads value 2")
        client.ready()
        client.send("position startpos", "go movetime 3000")
        client.until(lambda line: line.startswith("info depth 5"))
        pid = client.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        most = max(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()) + 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, hard))
        os.kill(workers_of(client)[0], signal.SIGKILL)
        lines = [client.log[-1], *client.answer()[1]]
        assert lines[-1].split()[1] == infos(lines)[-1]["pv"].split()[0]
        for _ in range(2):
            assert infos(client.go("movetime 200")), "this process searches"
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        client.send("ucinewgame")
        client.ready()
        assert len(workers_of(client)) == 2
        assert infos(client.go("depth 5"))


def test_margins_that_no_score_can_bear_are_refused_at_once(talk: Talk) -> None:
    talk.send("setoption name PruningParameters value lmr=0")
    assert talk.ready() == ["readyok"]
    talk.send("setoption name PruningParameters value reverse_futility_margin=-999999")
    (complaint, _) = talk.ready()
    assert "reverse_futility_margin must be a whole number from 0" in complaint
    assert complaint.endswith("PruningParameters stays lmr=0")
    assert talk.ready() == ["readyok"]


def test_no_file_is_touched_where_the_environment_forbids_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PSEARCH_NO_FILES", "1")
    with Talk() as talk:
        talk.send("uci")
        declared = "\n".join(talk.until("uciok"))
        for option in ("BookFile", "SyzygyPath", "Trace"):
            assert f"name {option} " not in declared
            talk.send(f"setoption name {option} value {tmp_path / 'x'}")
            (complaint, _) = talk.ready()
            assert f"{option} is not available: PSEARCH_NO_FILES forbids all files" in complaint
            talk.send(f"setoption name {option} value <empty>")
            assert talk.ready() == ["readyok"]
        assert infos(talk.go("depth 3", chess.STARTING_FEN))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("PSEARCH_NO_FILES", "0")
    with Talk() as talk:
        talk.send("uci")
        assert any("name Trace " in line for line in talk.until("uciok"))


def test_signal_handlers_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Talk() as talk:
        talk.ready()
    assert signal.getsignal(signal.SIGTERM) is before


LOAD_S = 1.0


def test_what_compiles_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_kernels(progress: Callable[[str], None]) -> float:
        load_kernels()
        progress("compiling kernels")
        return 1.0

    monkeypatch.setattr(resources, "load_kernels", compile_kernels)
    told = "info string kernels compiled in 1 s and kept for the next start"
    with Talk() as talk:
        assert talk.ready() == ["info string compiling kernels", told, "readyok"]


Go: TypeAlias = Callable[[str], tuple[list[dict[str, str]], float]]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Go:
    """Return an engine's lines about its first `go`, whose kernels take a second to load, and the seconds it took."""

    def load_slowly(progress: Callable[[str], None]) -> float:
        time.sleep(LOAD_S)
        return load_kernels()

    def go(words: str) -> tuple[list[dict[str, str]], float]:
        start = time.perf_counter()
        with Talk() as talk:
            talk.send("setoption name Hash value 64")  # to take the memory of a larger table costs time, too
            lines = infos(talk.go(words, chess.STARTING_FEN))
            return lines, time.perf_counter() - start

    load_kernels()
    monkeypatch.setattr(resources, "load_kernels", load_slowly)
    return go


def test_loading_is_no_thinking(slow: Go) -> None:
    def milliseconds() -> float:
        lines, _ = slow("movetime 600")
        assert int(lines[-1]["depth"]) >= 5
        return int(lines[-1]["time"])

    assert 300 <= least(milliseconds, 650) <= 650


def test_the_clock_of_a_game_runs_while_kernels_are_loaded(slow: Go) -> None:
    def seconds() -> float:
        lines, taken = slow("wtime 2000 btime 2000 movestogo 1")
        assert int(lines[-1]["depth"]) >= 5
        return max(taken, 2 * int(lines[-1]["time"]) / 1000)  # of which a second is no thinking

    assert least(seconds, 2.0) < 2.0


class Files:
    def __init__(self) -> None:
        self.events: list[str] = []
        self.missing = {"missing"}
        self.option = FileOption("BookFile", self.open, Notices(self.events.append), close=self.close)

    def open(self, path: str) -> str:
        if path in self.missing:
            raise PsearchError(f"cannot read {path}")
        self.events.append(f"open {path}")
        return path

    def close(self, path: str) -> None:
        self.events.append(f"close {path}")

    def settle(self, path: str) -> list[str]:
        self.events.clear()
        self.option.settle(path)
        return list(self.events)

    def ask(self) -> str | None:
        self.events.clear()
        return self.option.ask(self.answer)

    def answer(self, path: str) -> str:
        if "damaged" in path:
            raise PsearchError(f"{path} cannot be read")
        return f"read {path}"


def test_a_path_is_opened_once_and_closed_before_the_next() -> None:
    files = Files()
    assert files.settle("") == []
    assert files.settle("a") == ["open a"]
    assert files.settle("a") == []
    assert files.ask() == "read a"
    assert files.settle("b") == ["close a", "open b"]
    assert files.settle("") == ["close b"]
    assert files.ask() is None


def test_a_path_that_cannot_be_opened_is_reported_once() -> None:
    files = Files()
    files.settle("a")
    assert files.settle("missing") == ["close a", "BookFile: cannot read missing; continuing without it"]
    assert files.ask() is None
    assert files.settle("missing") == []
    assert files.settle("a") == ["open a"]


def test_what_fails_when_it_is_asked_is_told_once_and_switched_off() -> None:
    files = Files()
    files.settle("damaged")
    assert files.ask() is None
    assert files.events == ["BookFile: damaged cannot be read; continuing without it", "close damaged"]
    assert files.ask() is None and files.events == []
    assert files.settle("damaged") == []


def test_what_failed_is_tried_again() -> None:
    files = Files()
    files.settle("missing")
    files.events.clear()
    files.option.retry()
    assert files.events == []  # told already
    files.missing.clear()
    files.option.retry()
    files.option.retry()
    assert files.events == ["open missing"]
    assert files.ask() == "read missing"
    files.settle("damaged")
    files.ask()
    files.events.clear()
    files.option.retry()
    assert files.ask() is None  # damaged as before: closed again, and not told again
    assert files.events == ["close damaged"]
