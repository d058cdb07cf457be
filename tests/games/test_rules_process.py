"""The rules of a user's game run in a process of their own: whatever they do there, who asks gets an answer or a line.

A position of the file's game may hold a trap, the number behind its heap: a rule that crashes, or never returns.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from paths import DATA
from programs import PIPES, PSEARCH, descendants, processes_in_session

from psearch.games import Game, search
from psearch.results import PsearchError

RULES = ("moves", "make", "ended", "result", "evaluate", "key")
CRASHES = {rule: number for number, rule in enumerate(RULES, start=1)}
LOOPS = {rule: 10 + number for rule, number in CRASHES.items()}
TIMEOUT_S = 120


def _with_traps(text: str) -> str:
    text = text.replace('("heap", "i4")', '("heap", "i4"), ("trap", "i4"), ("far", "i4", (2,))')
    text = text.replace("pos.heap = 60", "pos.heap = 60\n    pos.trap = 0")
    for rule, number in CRASHES.items():
        head = re.search(rf"def {rule}\(.*\):\n", text)
        text = text.replace(head[0], f"{head[0]}    trapped(pos, {number})\n")
    traps = """
def trapped(pos, number):
    count = 0
    pos.far[(pos.trap == number) << 50] = 0
    while pos.trap == number + 10:
        count += 1
    return count


def read_position(pos, text):
    pos.heap, pos.trap = map(int, text.split())


def start"""
    return text.replace("def start", traps.lstrip("\n"), 1).replace(
        "return pos.heap\n", "return pos.heap + (pos.trap << 8)\n"
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("game") / "traps.py"
    path.write_text(_with_traps((DATA / "games" / "take_away.py").read_text("utf-8")))
    return path


@pytest.fixture(scope="module")
def game(file: Path) -> Game:
    return Game(file)


def asked(game: Game, rule: str, trap: int) -> object:
    position = game.read(f"9 {trap}")
    if rule in ("moves", "ended"):
        return position.moves()
    if rule == "make":
        return position.line_text([3])
    return {
        "result": position.result,
        "evaluate": position.static_score,
        "key": lambda: position._ask("number", "key"),
    }[rule]()


def line_of(file: Path, rule: str) -> int:
    return next(
        number for number, line in enumerate(file.read_text().split("\n"), 1) if line.startswith(f"def {rule}(")
    )


@pytest.mark.parametrize("rule", RULES)
def test_one_that_crashes_or_does_not_return_is_a_line(rule: str, file: Path, game: Game) -> None:
    for trap, words in (
        (CRASHES[rule], "it crashes: SIGSEGV"),
        (LOOPS[rule], "it did not come back within 1 s of processor time"),
    ):
        for _ in range(2):  # what is known is not tried again
            with pytest.raises(PsearchError) as raised:
                asked(game, rule, trap)
            assert str(raised.value) == f"{file}:{line_of(file, rule)}: {rule}: {words}"
    assert game.read("3 0").moves() == [1, 2, 3]


def test_perft_that_crashes_is_a_line(file: Path, game: Game) -> None:
    with pytest.raises(PsearchError, match=re.escape(f"{file}: perft: it crashes: SIGSEGV")):
        game.read(f"9 {CRASHES['make']}").perft(3)
    assert game.read("5 0").perft(2) == 8


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV])
def test_a_process_that_somebody_else_ends_or_stops_is_replaced(number: int, file: Path) -> None:
    game = Game(file)
    assert game.start().moves() == [1, 2, 3, 5]
    (process,) = game._rules._running  # type: ignore[union-attr]
    os.kill(process.pid, number)
    assert game.read("2 0").moves() == [1, 2]
    assert game._rules._running[0].pid != process.pid  # type: ignore[union-attr]


def test_it_ends_with_the_game(file: Path) -> None:
    gc.collect()  # the games of other tests
    held = []
    for _ in range(3):
        assert search(str(file), "9 0", threads=1, hash_mb=1).solved
        held.append((descendants(os.getpid()), len(os.listdir("/proc/self/fd"))))
    assert held[1] == held[2]


def test_threads_and_forks_may_ask(game: Game) -> None:
    found: list[list[int]] = []
    position = game.read("4 0")
    threads = [
        threading.Thread(target=lambda: found.extend(position.after(1).moves() for _ in range(50))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == 200 * [[1, 2, 3]]
    child = os.fork()
    if child == 0:
        os._exit(0 if position.after(2).moves() == [1, 2] else 1)
    assert position.after(2).moves() == [1, 2]
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("rule", ["moves", "key"])
def test_the_command_ends_with_a_line(rule: str, file: Path, game: Game) -> None:
    for trap in (CRASHES[rule], LOOPS[rule]):
        words = [*PSEARCH, "game", str(file), f"9 {trap}", "--threads", "1"]
        process = subprocess.Popen(words, start_new_session=True, **PIPES)
        output, errors = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, output) == (2, "")
        assert re.fullmatch(rf"psearch: {re.escape(str(file))}:\d+: {rule}: it .*\n", errors)
        assert processes_in_session(process.pid) == []


WAITING = """
import sys
from psearch.games import Game
game = Game(sys.argv[1])
game.start().moves()
print("asking", flush=True)
game.read("120 0").perft(100)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_that_waits_for_an_answer_can_be_ended(number: int, file: Path, game: Game) -> None:
    words = [sys.executable, "-c", WAITING, str(file)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as program:
        assert program.stdout is not None and program.stdout.readline() == "asking\n"
        time.sleep(0.3)
        program.send_signal(number)
        program.wait(TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while processes_in_session(program.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes_in_session(program.pid) == []
