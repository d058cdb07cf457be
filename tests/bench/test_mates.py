"""The check of announced mates: every position of the small files, and engines that get it wrong."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import chess
import pytest
from matchplay.engines import pass_over_late_lines
from matchplay.errors import MatchError
from mates import Answer, Problem, read_problems
from paths import BENCH, DATA, SUPPORT
from pruning_probes import MARGINS_BY_HAND
from timing import wait_until

MATES = BENCH / "match" / "mates.py"
FAKE = SUPPORT / "fake_engine.py"
TACTICAL = DATA / "tactical"
MATE_IN_2 = "kbK5/pp6/1P6/8/8/8/8/R7 w - -"
TIMEOUT_S = 240.0


def mates(*arguments: str) -> tuple[int, str, str]:
    process = subprocess.run(
        [sys.executable, str(MATES), *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    return process.returncode, process.stdout, process.stderr


def test_found_with_the_exact_distance() -> None:
    """Mates in 1 and 2, and a sample of mates in 3; also by two workers. `modern` needs depth 17 for some."""
    status, out, _ = mates("--extra", "3", str(TACTICAL / "terjekir_mate_in_1.epd"))
    assert (status, out) == (0, "mate in 1, depth 4: 64 of 64; first seen: 64 at 1\n")
    status, out, _ = mates(
        "--json", "--extra", "3", "--threads", "2",
        "--engine", "option.Pruning=ael option.PruningParameters=null_move=0",
        str(TACTICAL / "terjekir_mate_in_2_sample150.epd"), str(TACTICAL / "terjekir_mate_in_3_sample30.epd"),
    )  # fmt: skip
    found = json.loads(out)
    assert "Threads=2" in found["engine"]
    two, three = found["mates"]
    assert (two["mate"], two["positions"], three["mate"], three["positions"]) == (2, 150, 3, 30)
    assert found["misses"] == []
    assert status == 0
    assert sum(two["first_seen"].values()) == two["found"] == 150


def test_distances_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.epd"
    file.write_text(
        f'# comment\n{MATE_IN_2} dm 2; id "one";\n\n{MATE_IN_2} pv Ra6 bxa6 b7#;\n{MATE_IN_2} c3 "pv a1a6 b7a6 b6b7";\n'
    )
    assert [(problem.name, problem.moves) for problem in read_problems(file)] == [
        ("one", 2),
        ("a.epd:4", 2),
        ("a.epd:5", 2),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no position"),
        (f"{MATE_IN_2} bm Ra6;\n", "line 1"),
        (f"{MATE_IN_2} dm 0;\n", "line 1"),
        ("8/8/8/8/8/8/8/8 w - - dm 2;\n", "line 1"),
        (f"{MATE_IN_2} dm 2;\nrubbish dm 2;\n", "line 2"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "a.epd"
    file.write_text(text)
    with pytest.raises(MatchError, match=reason):
        read_problems(file)
    status, out, err = mates(str(file))
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_bad_options(tmp_path: Path) -> None:
    assert mates("no.epd")[0] == 2
    file = tmp_path / "a.epd"
    file.write_text(f"{MATE_IN_2} dm 2;\n")
    for words in (("--extra", "41"), ("--engine", "cmd=/no/such"), ("--threads", "0"), ("--threads", "x")):
        status, out, err = mates(*words, str(file))
        assert (status, out, err.count("\n")) == (2, "", 1)


def answer(score: chess.engine.Score, line: str) -> Answer:
    problem = Problem("here", chess.Board(MATE_IN_2 + " 0 1"), 2)
    return Answer(problem, score, [chess.Move.from_uci(word) for word in line.split()], 3, 3)


def test_what_counts_as_found() -> None:
    mate = chess.engine.Mate
    assert answer(mate(2), "a1a6 b7a6 b6b7").miss is None
    assert answer(mate(2), "a1a6").miss is None  # cut off by the table
    for wrong in (mate(1), mate(3), mate(-2), chess.engine.Cp(900)):
        assert answer(wrong, "a1a6").miss is not None
    assert "without mate" in (answer(mate(2), "a1a6 b7a6 c8d8").miss or "")
    assert "illegal" in (answer(mate(2), "a1b2").miss or "")


def test_a_miss_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "a.epd"
    file.write_text(f'{MATE_IN_2} dm 2; id "one";\n')
    command = f"{sys.executable} {FAKE} --say"
    for said in ("score mate 3", "score cp 50", "score mate 2 lowerbound"):
        status, out, _ = mates("--engine", f"cmd='{command} \"{said}\"'", str(file))
        assert status == 1
        assert out.startswith("MISS one: mate in 2: ")
        assert "0 of 1; first seen: never" in out


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C: what was found so far, and the engine is gone with it."""
    file = tmp_path / "a.epd"
    file.write_text(f"{MATE_IN_2} dm 2;\n" * 10000)
    pid_file = tmp_path / "pid"
    answers = tmp_path / "answers"
    wrapper = f"""
import builtins, os, runpy, sys
open('{pid_file}', 'w').write(str(os.getpid()))
sys.argv = ['x', '--wait', '0.1']
say = builtins.print
def say_and_count(*words, **how):
    say(*words, **how)
    open('{answers}', 'a').write("bestmove\\n" * ("bestmove" in words[0]))
builtins.print = say_and_count
runpy.run_path('{FAKE}', run_name='__main__')
"""
    (tmp_path / "engine.py").write_text(wrapper)
    process = subprocess.Popen(
        [sys.executable, str(MATES), "--engine", f"cmd='{sys.executable} {tmp_path / 'engine.py'}'", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: answers.exists() and answers.read_text().count("bestmove") >= 5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "mate in 2, depth 4: 0 of " in out
    wait_until(lambda: not Path(f"/proc/{pid_file.read_text()}").exists())


def test_a_line_that_comes_after_ctrl_c_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(pass_over_late_lines)
        answer = loop.create_future()
        answer.cancel()
        loop.call_soon(answer.set_result, None)
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert "InvalidStateError" not in caplog.text and "ZeroDivisionError" in caplog.text


def test_within_so_many_nodes() -> None:
    """Those that were once missed; without what finds them they still are."""
    quiet = str(TACTICAL / "quiet_mates_in_2.epd")
    status, out, _ = mates("--nodes", "50000", quiet)
    assert status == 0 and out.startswith("mate in 2, 50,000 nodes: 26 of 26; first seen:")
    nodes = [int(word.replace(",", "")) for word in out.splitlines()[1].replace(", ", " ").split() if word[0].isdigit()]
    assert len(nodes) == 3 and 0 < nodes[0] <= nodes[1] <= nodes[2] <= 50_000
    blind = {"mate_in_one": 0, "reply_iterations": 0, **MARGINS_BY_HAND}
    once = ",".join(f"{name}={value}" for name, value in blind.items())
    status, out, _ = mates("--json", "--nodes", "50000", "--engine", f"option.PruningParameters={once}", quiet)
    found = json.loads(out)
    assert status == 1 and len(found["misses"]) >= 20 and found["nodes"] == 50_000
