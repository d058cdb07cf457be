"""Commands with `--on`, and their driver's process, on a cluster that is none (tests/support/fake_ray)."""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import cluster_tasks
import pytest
from programs import run_bench
from timing import has_ended, wait_for_ends, wait_until

import psearch
from psearch.processes.lifetime import open_pidfd
from psearch.remote import cluster_processes
from psearch.remote.cluster_processes import ClusterProcesses, cluster_address, end_session, share_out_on
from psearch.results import PsearchError, WorkerDied

SUITE = """\
r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - id "a";
rnbqkb1r/pp2pppp/3p1n2/8/3NP3/8/PPP2PPP/RNBQKB1R w KQkq - id "b";
"""


def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    program = "import sys; from psearch.faces.cli.main import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, *words], input=text, capture_output=True, text=True)


def test_a_study_has_the_same_figures_wherever_it_runs(fake_ray: Path) -> None:
    words = ["simulate", "--workers", "1,2", "--suite", "-", "--depth", "4", "--json"]
    here, there = run(*words, text=SUITE), run(*words, "--on", "auto", text=SUITE)
    assert here.returncode == there.returncode == 0, there.stderr
    assert here.stdout == there.stdout


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("nowhere", "--on nowhere: neither auto nor local, nor HOST:PORT or ray://HOST[:PORT]"),
        ("127.0.0.1:9", "no Ray cluster can be reached at 127.0.0.1:9: Connection refused"),
    ],
)
def test_where_there_is_no_cluster(fake_ray: Path, on: str, said: str) -> None:
    done = run("simulate", "--workers", "2", "--suite", "-", "--depth", "3", "--on", on, text=SUITE)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"psearch: {said}\n")


def test_one_position_is_searched_here(fake_ray: Path) -> None:
    done = run("--on", "auto", "--depth", "3", "startpos")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "psearch: --on needs many positions: use psearch analyse --on CLUSTER FILE\n"


def test_where_there_is_no_ray(fake_ray: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib import metadata\nfound = metadata.version\n"
        "def version(name):\n"
        "    if name == 'ray': raise metadata.PackageNotFoundError(name)\n"
        "    return found(name)\nmetadata.version = version\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run("simulate", "--workers", "2", "--suite", "-", "--depth", "3", "--on", "auto", text=SUITE)
    assert done.returncode == 2
    assert (
        done.stderr == "psearch: several machines need Ray, which is not installed: pip install 'ray[client]>=2.60'\n"
    )


def test_ray_is_not_touched_without_a_cluster() -> None:
    modules = "psearch, psearch.faces.cli.commands.simulate_command, psearch.remote.cluster_processes"
    subprocess.run([sys.executable, "-c", f"import sys, {modules}\nassert 'ray' not in sys.modules"], check=True)


def test_games_of_settings(fake_ray: Path, tmp_path: Path) -> None:
    """The nodes know nothing of the script: it goes there with the work."""
    book = tmp_path / "book.epd"
    book.write_text(SUITE)
    words = ["--second", "plain", "--nodes", "300", "--games", "4", "--book", str(book)]
    here, there = run_bench("match/quick.py", *words), run_bench("match/quick.py", *words, "--on", "auto")
    assert (there.returncode, there.stderr) == (0, "")
    assert here.stdout == there.stdout


def test_a_match(fake_ray: Path, tmp_path: Path) -> None:
    words = ["--nodes", "300", "--games", "4", "--most-moves", "20", "--on", "auto", "--out", str(tmp_path / "m")]
    done = run_bench("match/match.py", "--first", "option.Hash=1", "--second", "option.Hash=2", *words)
    assert done.returncode == 0, done.stderr
    again = run_bench("match/match.py", "--first", "option.Hash=1", "--second", "option.Hash=2", *words, "--resume")
    assert again.returncode == 0 and again.stdout == done.stdout
    assert (tmp_path / "m.pgn").read_text().count("[Result ") == 4


def _rows(text: str) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in text.splitlines()]
    return [{key: row.get(key) for key in ("line", "bestmove", "score", "depth", "nodes", "pv")} for row in rows]


def test_a_suite_has_the_same_answers_wherever_it_is_searched(fake_ray: Path) -> None:
    words = ["analyse", "--json", "--nodes", "2000", "-"]
    text = SUITE * 10
    here, there = run(*words, "--jobs", "1", text=text), run(*words, "--on", "auto", text=text)
    assert here.returncode == there.returncode == 0, there.stderr
    assert _rows(here.stdout) == _rows(there.stdout) and len(_rows(there.stdout)) == 21
    assert "psearch: positions by machine: one (127.0.0.1) 20\n" in there.stderr


def test_games_are_searched_game_by_game(fake_ray: Path) -> None:
    """The table is kept within a game, wherever that is."""
    text = "\n".join('[Event "x"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 *\n' for _ in range(4))
    words = ["analyse", "--json", "--nodes", "500", "-"]
    here, there = run(*words, "--jobs", "1", text=text), run(*words, "--on", "auto", text=text)
    assert here.returncode == there.returncode == 0, there.stderr

    def found(text: str) -> list[list[tuple[object, object]]]:
        games = [json.loads(line) for line in text.splitlines()]
        return [[(one.get("bestmove"), one.get("nodes")) for one in game.get("positions", [])] for game in games[:-1]]

    assert found(here.stdout) == found(there.stdout) and len(found(there.stdout)) == 4


def test_after_ctrl_c_the_same_command_goes_on(fake_ray: Path, tmp_path: Path) -> None:
    suite, out = tmp_path / "suite.epd", tmp_path / "out.jsonl"
    suite.write_text(SUITE * 200)
    words = ["analyse", "--json", "--nodes", "10000", "--on", "auto", "--out", str(out), str(suite)]
    program = [sys.executable, "-c", "import sys; from psearch.faces.cli.main import main; sys.exit(main())", *words]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        journal = Path(f"{out}.journal")
        end = time.monotonic() + 240
        while not journal.exists() or journal.read_text().count("\n") < 20:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130 and "the same command continues from there" in said
    done = run(*words)
    assert done.returncode == 0 and "continuing from there" in done.stderr
    assert [row["line"] for row in map(json.loads, out.read_text().splitlines()[:-1])] == list(range(1, 401))


def test_a_session_ends_with_processes_of_other_groups() -> None:
    """Ray's workers have groups of their own, and would make their folders again after these are removed."""
    both = "import subprocess, time; print(subprocess.Popen(['sleep', '60'], process_group=0).pid, flush=True)"
    waiting = [sys.executable, "-c", f"{both}; time.sleep(60)"]
    with subprocess.Popen(waiting, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        other = int(process.stdout.readline())
        begin = time.monotonic()
        end_session(process.pid, 0.3)
        assert time.monotonic() - begin >= 0.3
        assert has_ended(other)
        assert process.wait(10) == -signal.SIGKILL
    end_session(process.pid, 60.0)


@pytest.mark.slow
def test_no_node_can_work(fake_ray: Path) -> None:
    fake_ray.write_text("one 2\n")
    done = run("analyse", "--on", "auto", "--hash", "4096", "--nodes", "10", "-", text=SUITE)
    assert done.returncode == 2
    assert done.stderr == "psearch: no node of the cluster can work (a process needs 1 cores and 4,296 MiB)\n"


def _children() -> set[str]:
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


def test_every_task_is_answered_once(fake_ray: Path) -> None:
    before = _children()
    answers = list(share_out_on("auto", cluster_tasks.make, range(100)))
    assert sorted(answers) == [(place, place * place) for place in range(100)]
    assert _children() == before


def test_no_tasks(fake_ray: Path) -> None:
    assert list(share_out_on("auto", cluster_tasks.make, [])) == []


def test_what_was_lost_is_done_again(fake_ray: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    tasks = [1, ("die", str(tmp_path / "done")), 2, 3]
    answers = share_out_on("auto", cluster_tasks.make, tasks, on_note=notes.append)
    assert sorted(answers) == [(0, 1), (1, 0), (2, 4), (3, 9)]
    assert len(notes) == 1 and notes[0].startswith("a process on node one")


def test_a_task_that_nobody_survives(fake_ray: Path) -> None:
    with pytest.raises(WorkerDied, match="task 2 was lost 3 times with its process"):
        list(share_out_on("auto", cluster_tasks.make, [1, "die", 3]))


def test_what_a_task_raises_is_raised(fake_ray: Path) -> None:
    with pytest.raises(ValueError, match="I do not sing"):
        list(share_out_on("auto", cluster_tasks.make, [1, "sing"]))


def test_nodes_come_and_go(fake_ray: Path) -> None:
    notes: list[str] = []
    answers = share_out_on("auto", cluster_tasks.make, range(300), on_note=notes.append)
    found = []
    for number, answer in enumerate(answers):
        if number == 20:
            fake_ray.write_text("two 2\n")
        found.append(answer)
    assert sorted(found) == [(place, place * place) for place in range(300)]
    assert notes == ["node one (127.0.0.1) is gone"]


def test_a_node_with_another_psearch_is_named_and_the_others_go_on(fake_ray: Path) -> None:
    fake_ray.write_text("one 1\nother-version 1\n")
    notes: list[str] = []
    assert len(list(share_out_on("auto", cluster_tasks.make, range(20), on_note=notes.append))) == 20
    reason = f"psearch {psearch.__version__} is installed there, here 0.0.1"
    assert notes == [f"node other-version (127.0.0.1) cannot be used: {reason}"]


def test_tasks_are_read_as_they_are_given(fake_ray: Path) -> None:
    read = 0

    def tasks() -> Iterator[int]:
        nonlocal read
        while read < 10_000:
            read += 1
            yield read

    answers = share_out_on("auto", cluster_tasks.make, tasks())
    for _ in range(10):
        next(answers)
    assert read <= 14
    answers.close()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("InvalidAuthToken", "needs another token: set RAY_AUTH_MODE=token"),
        ("Could not find any running Ray instance. Please", "no Ray cluster runs on this machine: `ray start --head`"),
        ("something\nelse", "no Ray cluster is available at auto: something else"),
    ],
)
def test_no_connection(fake_ray: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: str) -> None:
    monkeypatch.setenv("FAKE_RAY_INIT", said)
    with pytest.raises(PsearchError) as caught:
        ClusterProcesses("auto", cluster_tasks.make)
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_a_cluster_that_does_not_answer(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_RAY_INIT", "hang")
    monkeypatch.setattr(cluster_processes, "CONNECT_S", 2.0)
    before = _children()
    with pytest.raises(PsearchError, match="no answer within 2 s"):
        ClusterProcesses("auto", cluster_tasks.make)
    assert _children() == before


def test_a_cluster_that_is_lost_is_left_at_once(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search may be under way: its driver is not waited for, that may be halted."""
    monkeypatch.setattr(cluster_processes, "_SILENCE_S", 3.0)
    monkeypatch.setattr(cluster_processes, "_CLOSE_S", 1000.0)
    with ClusterProcesses("auto", cluster_tasks.make) as cluster:
        os.kill(cluster._driver.pid, signal.SIGSTOP)
        with pytest.raises(PsearchError, match="has stalled for 3 s"):
            while True:
                cluster.give(0, 0, bytes(100_000))  # does not wait for ever when nobody reads it
                cluster.messages(0.1)


def test_what_is_awaited_ends_the_wait(fake_ray: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x")
    with ClusterProcesses("auto", cluster_tasks.make, most=0) as cluster:
        assert cluster.messages(1000.0, reading) == []
    os.close(reading)
    os.close(writing)


def test_files_of_a_cluster_for_one_command(fake_ray: Path) -> None:
    """Ray lets everybody write into its folder: nobody else gets to that, and it is removed."""
    with ClusterProcesses("local", cluster_tasks.make) as cluster:
        folder = cluster._folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {path.name for path in folder.iterdir()} == {"ray", "stderr"}
        assert len(str(folder)) < 30, "sockets have long names below it"
    assert not folder.exists()


_ISOLATED = """
import subprocess, sys
sys.path[:0] = {path!r}
subprocess.Popen = lambda words, **more: sys.exit(" ".join(words[1:-1]))
from psearch.remote.cluster_processes import ClusterProcesses
ClusterProcesses("auto", print)
"""


def test_an_isolated_program_has_an_isolated_driver(fake_ray: Path) -> None:
    program = _ISOLATED.format(path=[path for path in sys.path if path])
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True)
    assert done.stderr == "-I -P -m psearch.remote.ray_driver\n"


def test_a_frozen_program_has_no_driver(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(PsearchError, match="several machines need a Python interpreter"):
        ClusterProcesses("auto", cluster_tasks.make)


def test_what_ray_prints_is_not_seen(
    fake_ray: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_RAY_INIT", "print")
    assert len(list(share_out_on("auto", cluster_tasks.make, range(3)))) == 3
    assert capfd.readouterr() == ("", "")


def test_the_end_of_the_driver_is_noticed(fake_ray: Path) -> None:
    with ClusterProcesses("auto", cluster_tasks.make) as cluster:
        threading.Timer(0.5, cluster._driver.kill).start()
        with pytest.raises(PsearchError, match="the connection to the cluster is lost"):
            while True:
                cluster.messages(1.0)


_PROGRAM = """
import cluster_tasks, time
from psearch.remote.cluster_processes import ClusterProcesses
with ClusterProcesses("auto", cluster_tasks.make) as cluster:
    print(cluster._driver.pid, flush=True)
    time.sleep(100)
"""


def test_the_driver_ends_with_the_program(fake_ray: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    with program, program.stdout:
        watch = open_pidfd(int(program.stdout.readline()))
        assert watch is not None
        program.kill()
    try:
        assert select.select([watch], [], [], 60.0)[0]
    finally:
        os.close(watch)


def test_a_driver_that_connects_ends_with_its_program(fake_ray: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_RAY_INIT", "hang")
    program = subprocess.Popen([sys.executable, "-c", _PROGRAM], stderr=subprocess.DEVNULL)
    try:
        wait_until(Path(f"{fake_ray}.hangs").exists)
        (driver,) = _children_of(program.pid)
    finally:
        program.kill()
        program.wait()
    wait_for_ends([driver])


def _children_of(pid: int) -> list[int]:
    return [
        int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()
    ]


@pytest.mark.parametrize("text", ["", "ray://", "host", "host:0", "host:99999", "a b:1", "ray://h:1/x", "http://h:1"])
def test_addresses_that_are_none(fake_ray: Path, text: str) -> None:
    with pytest.raises(PsearchError, match=r"neither auto nor local, nor HOST:PORT or ray://HOST\[:PORT\]"):
        cluster_address(text)


def test_addresses(fake_ray: Path) -> None:
    pairs = {
        "auto": "auto",
        "local": "local",
        "head:6379": "head:6379",
        "[::1]:6379": "[::1]:6379",
        "ray://head": "ray://head:10001",
        "ray://[::1]": "ray://[::1]:10001",
    }
    assert {text: cluster_address(text) for text in pairs} == pairs


@pytest.mark.parametrize("version", ["2.9.3", "1.13.0", "0.8"])
def test_a_ray_that_is_too_old(fake_ray: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("psearch.remote.cluster_processes.metadata.version", lambda name: version)
    with pytest.raises(PsearchError, match=f"Ray {version} is too old, 2.60 or later is needed: pip install"):
        cluster_address("auto")
