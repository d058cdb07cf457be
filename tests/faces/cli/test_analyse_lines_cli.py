"""`psearch analyse` of JSON lines, with jobs, older results, kills at any moment, and workers that die."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import chess
import fake_workers
import pytest
from programs import PSEARCH, run_here
from timing import least

from psearch.batch.positions.position_pool import make_pool

TIMEOUT_S = 120
NODES = ["--nodes", "3000"]
MATE_IN_1, ALSO_MATE_IN_1 = (f"6k1/5ppp/8/8/8/8/{rank}/4R1K1 w - - 0 1" for rank in ("8", "7P"))


def positions(count: int) -> list[dict[str, Any]]:
    chance = random.Random(3)
    found = []
    for number in range(count):
        board = chess.Board()
        for _ in range(chance.randrange(2, 30)):
            board.push(chance.choice(list(board.legal_moves)))
            if board.is_game_over():
                board = chess.Board()
        found.append({"id": f"p{number}", "fen": board.fen()})
    return found


def written(path: Path, values: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in values))
    return str(path)


def analyse(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return run_here("analyse", *words, text=text)


def results(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def timeless(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one.items() if name != "time"} for one in values]


def test_from_stdin_to_stdout_in_the_order_of_the_input() -> None:
    asked = [*positions(30), {"fen": "8/8 w"}, {"id": 7, "moves": ["e2e4"], "limits": {"depth": 3}, "multipv": 2}]
    done = analyse(*NODES, "-", "--out", "-", text="".join(json.dumps(one) + "\n" for one in asked))
    found = results(done.stdout)
    assert done.returncode == 1  # one is no position
    assert [one["id"] for one in found] == [f"p{number}" for number in range(30)] + [31, 7]
    assert all(one["nodes"] <= 3000 and one["version"] for one in found[:30])
    assert "bad FEN" in found[30]["error"]
    assert (found[31]["depth"], len(found[31]["lines"]), found[31]["moves"]) == (3, 2, ["e2e4"])
    assert done.stderr == ""


def test_jobs_change_nothing(tmp_path: Path) -> None:
    file = written(tmp_path / "in.jsonl", positions(40))
    one, three = (results(analyse(*NODES, "--threads", "1", "--jobs", jobs, file).stdout) for jobs in ("1", "3"))
    assert timeless(one) == timeless(three)
    assert len(one) == 40


def test_a_deeper_older_result_is_kept(tmp_path: Path) -> None:
    asked = positions(6)
    deep = results(analyse("--depth", "7", written(tmp_path / "a.jsonl", asked[:4])).stdout)
    older = written(tmp_path / "older.jsonl", deep)
    out = tmp_path / "out.jsonl"
    file = written(tmp_path / "b.jsonl", [{**one, "id": number} for number, one in enumerate(asked)])
    done = analyse("--depth", "5", "--merge", older, "--out", str(out), file)
    assert (done.returncode, done.stderr) == (0, "6 positions, 4 kept from older results\n")
    found = results(out.read_text())
    assert [one["id"] for one in found] == list(range(6))
    assert [one["depth"] for one in found] == [7, 7, 7, 7, 5, 5]
    assert [one["pv"] for one in found[:4]] == [one["pv"] for one in deep]
    deeper = results(analyse("--depth", "8", "--merge", older, file).stdout)
    assert [one["depth"] for one in deeper] == [8] * 6
    with_lines = written(tmp_path / "c.jsonl", [{**one, "multipv": 2} for one in asked])
    assert [one["depth"] for one in results(analyse("--depth", "5", "--merge", older, with_lines).stdout)] == [5] * 6


def test_older_results_of_suites_and_games(tmp_path: Path) -> None:
    """Searched to depth 6, and merged into searches to depth 4: all of it is kept, whatever is written of it."""
    suite, games = tmp_path / "x.epd", tmp_path / "x.pgn"
    suite.write_text(f'{MATE_IN_1} bm Re8#; id "a";\nstartpos\n{ALSO_MATE_IN_1} am Re8#; id "b";\n')
    games.write_text("1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0\n\n1. d4 *\n")
    for file, count in ((suite, 3), (games, 9)):
        older = tmp_path / f"{file.suffix[1:]}.jsonl"
        deep = analyse("--depth", "6", "--threads", "1", "--json", "--out", str(older), str(file))
        assert deep.returncode == 0
        words = ["--threads", "1", "--merge", str(older), str(file)]
        again = analyse("--depth", "4", "--json", *words)
        assert (again.returncode, again.stderr.count("\n")) == (0, file == games)
        *first, before = results(older.read_text())
        *second, after = results(again.stdout)
        assert second == first
        assert after["summary"].pop("kept") == count
        assert after == before
        # deeper searches replace them
        deeper = analyse("--depth", "7", "--json", *words)
        assert results(deeper.stdout)[-1]["summary"]["kept"] == 0
        text = analyse("--depth", "4", *words)
        assert text.returncode == 0
        assert f"kept       {count} of {count} from older results" in text.stdout or file == games
    assert "2 games, 9 positions, " in text.stderr
    assert text.stderr.endswith(", 9 kept from older results\n")
    assert text.stdout.count(",6]") >= 7  # the depths in the comments
    # results of JSON lines are results, too
    lines = written(tmp_path / "lines.jsonl", [{"fen": MATE_IN_1}])
    deep = analyse("--depth", "5", "--out", str(tmp_path / "deep.jsonl"), lines)
    assert deep.returncode == 0
    mixed = analyse("--depth", "3", "--threads", "1", "--merge", str(tmp_path / "deep.jsonl"), str(suite))
    assert "kept       1 of 3 from older results" in mixed.stdout
    assert "solved     1 of 2" in mixed.stdout


# -- pipes -----------------------------------------------------------------------------------------------------------


def piped(*words: str) -> subprocess.Popen[str]:
    command = [*PSEARCH, "analyse", *words, "-"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def test_a_pipe_is_answered_as_it_comes() -> None:
    """Each position is written when the result of the one before is there."""
    with piped(*NODES) as running:
        assert running.stdin is not None and running.stdout is not None and running.stderr is not None
        asked = iter(enumerate(positions(36)))

        def seconds_of_eleven() -> float:
            began: list[float] = []
            for number, one in islice(asked, 12):
                assert running.stdin is not None and running.stdout is not None
                running.stdin.write("# said before\n" + json.dumps(one) + "\n")
                assert json.loads(running.stdout.readline())["id"] == f"p{number}"
                began.append(time.monotonic())
            return began[-1] - began[0]

        assert least(seconds_of_eleven, 1.5) < 1.5  # without being told it looks five times a second
        running.stdin.write('{"id": "no line feed"}')
        running.stdin.close()
        assert json.loads(running.stdout.readline())["id"] == "no line feed"
        assert (running.stdout.read(), running.stderr.read()) == ("", "")
        assert running.wait(TIMEOUT_S) == 0


def test_a_bad_line_of_a_pipe_ends_it_behind_the_results_of_those_before() -> None:
    with piped(*NODES) as running:
        asked = "".join(json.dumps(one) + "\n" for one in positions(20))
        out, err = running.communicate(asked + "{}\n{\n{}\n", timeout=TIMEOUT_S)
    assert running.returncode == 2
    assert [one["id"] for one in results(out)] == [f"p{number}" for number in range(20)] + [21]
    assert err == "psearch: standard input, line 22: not a JSON object\n"


def test_a_pipe_is_interrupted_while_nothing_comes() -> None:
    with piped(*NODES) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write('{"id": 1}\n')
        assert json.loads(running.stdout.readline())["id"] == 1
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=TIMEOUT_S)
    assert (running.returncode, out, err) == (130, "", "psearch: interrupted\n")


def test_a_pipe_whose_result_goes_to_a_file_goes_on(tmp_path: Path) -> None:
    """With a journal the whole input must be known first."""
    out = tmp_path / "out.jsonl"
    text = "".join(json.dumps(one) + "\n" for one in positions(30))
    assert analyse(*NODES, "--out", str(out), "-", text=text).returncode == 0
    assert timeless(results(out.read_text())) == timeless(results(analyse(*NODES, "-", text=text).stdout))


def test_a_fifo_without_a_line(tmp_path: Path) -> None:
    fifo = tmp_path / "x.jsonl"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_text, args=("# nothing\n",))
    writer.start()
    done = analyse(str(fifo))
    writer.join()
    assert (done.returncode, done.stderr) == (2, f"psearch: {fifo} has no positions\n")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "in.jsonl, line 2: not a JSON object"),
        ('{"id": 1.5}', "line 2: id must be text or a whole number"),
        ('{"fen": 3}', "line 2: fen must be text"),
        ('{"moves": "e4"}', "line 2: moves must be in UCI notation"),
        ('{"limits": {"deep": 3}}', "line 2: limits must be an object with depth, nodes or movetime"),
        ('{"limits": {"depth": 0}}', "line 2: depth must be a whole number from 1 to 100"),
        ('{"multipv": true}', "line 2: multipv must be a whole number"),
    ],
)
def test_lines_that_cannot_be_read(tmp_path: Path, line: str, reason: str) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"id": 1}\n' + line + "\n")
    done = analyse(*NODES, str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    file = written(tmp_path / "in.jsonl", positions(1))
    suite = tmp_path / "x.epd"
    suite.write_text("startpos\n")
    for words, reason in (
        (["--merge", str(suite), file], "x.epd, line 1: not a JSON object; merged files must hold JSON lines"),
        (["--merge", "-", "-"], "standard input can be read only once"),
        (["--jobs", "0", file], "from 1 to"),
        (["--syzygy", str(tmp_path), file], "no Syzygy tables"),
        ([file, str(suite)], "analyse them in two calls"),
    ):
        done = analyse(*NODES, *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert reason in done.stderr
        assert done.stderr.count("\n") == 1


def lines_of(journal: Path) -> int:
    """Whole lines of a journal, its heading with them."""
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def killed_at_random(tmp_path: Path, moments: int, count: int, seed: int) -> tuple[int, int]:
    """Kill the whole group at so many random moments, single workers in between, and let it end. Lines of the journal
    before the last run, and runs that were killed before the end. A moment is a number of further lines in the journal
    and up to 20 ms more, not a time: a fast machine would have ended by then, a slow one not begun."""
    chance = random.Random(seed)
    out = tmp_path / "out.jsonl"
    journal = Path(f"{out}.journal")
    file = written(tmp_path / "in.jsonl", positions(count))
    command = [*PSEARCH, "analyse", *NODES, "--threads", "1", "--jobs", "2", "--out", str(out), file]
    expected = timeless(results(analyse(*NODES, "--threads", "1", file).stdout))
    killed = 0
    for moment in range(moments):
        enough = lines_of(journal) + chance.randint(0, count // (2 * moments))
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as running:
            while running.poll() is None and lines_of(journal) < enough:
                time.sleep(0.01)
                if moment % 2 and chance.random() < 0.02:
                    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
                    if running.poll() is None and (pids := children.read_text().split()):
                        os.kill(int(chance.choice(pids)), signal.SIGKILL)
            time.sleep(chance.uniform(0, 0.02))
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                killed += 1
        if out.exists():
            break
    kept = lines_of(journal) - 1
    if journal.exists():
        keys = [json.loads(line)["key"] for line in journal.read_text().splitlines()[1:] if line.endswith("}")]
        assert len(set(keys)) == len(keys)
    if not out.exists():
        assert subprocess.run(command, stderr=subprocess.DEVNULL, timeout=TIMEOUT_S).returncode == 0
    assert timeless(results(out.read_text())) == expected
    assert not journal.exists()
    return kept, killed


@pytest.mark.parametrize(
    ("moments", "count"), [(3, 1_000), pytest.param(20, 6_000, marks=pytest.mark.slow)], ids=["three", "twenty"]
)
def test_killed_at_random_moments(tmp_path: Path, moments: int, count: int) -> None:
    kept, killed = killed_at_random(tmp_path, moments, count, seed=moments)
    print(f"{killed} runs killed, {kept} positions in the journal before the last run")
    assert kept > 0
    assert killed == moments


def test_a_position_that_kills_is_reported_and_the_rest_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_pool, "__defaults__", (*make_pool.__defaults__[:-1], fake_workers.Poisoned))

    def run(name: str, text: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / name
        file.write_text(text)
        done = analyse("--nodes", "500", "--jobs", "2", str(file))
        assert done.returncode == 1
        assert done.stderr.count(" is replaced: it was killed by signal 9") == 3
        return done

    lines = [{"fen": chess.STARTING_FEN}] * 4 + [{"fen": fake_workers.POISON}] + [{"fen": chess.STARTING_FEN}] * 4
    found = results(run("x.jsonl", "".join(json.dumps(one) + "\n" for one in lines)).stdout)
    assert ["error" in one for one in found] == [False] * 4 + [True] + [False] * 4
    suite = run("x.epd", f'startpos\n{fake_workers.POISON} bm a3; id "p";\nstartpos\n')
    rows = [line.split()[:3] for line in suite.stdout.splitlines()]
    assert ["p", "failed"] in rows
    assert "its process was lost 3 times" in suite.stderr
    assert "searched   1,000 nodes" in suite.stdout
    game = f'[SetUp "1"]\n[FEN "{fake_workers.POISON}"]\n\n1. a3 Kd7 *\n'
    games = run("x.pgn", game)
    assert games.stdout.count("[%eval") == 2
    assert "x.pgn, game 1, ply 0: its process was lost 3 times" in games.stderr
