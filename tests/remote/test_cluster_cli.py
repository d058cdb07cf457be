"""Commands with `--on`, on a cluster that is none (tests/support/fake_ray)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import run_bench

SUITE = """\
r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - id "a";
rnbqkb1r/pp2pppp/3p1n2/8/3NP3/8/PPP2PPP/RNBQKB1R w KQkq - id "b";
"""


def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """`psearch` with these arguments."""
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
    program = f"import sys, {modules}\nassert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


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
    """Without what depends on the clock."""
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
    lines = [row["line"] for row in map(json.loads, out.read_text().splitlines()[:-1])]
    assert lines == list(range(1, 401))


@pytest.mark.slow
def test_no_node_can_work(fake_ray: Path) -> None:
    fake_ray.write_text("one 2\n")
    done = run("analyse", "--on", "auto", "--hash", "4096", "--nodes", "10", "-", text=SUITE)
    assert done.returncode == 2
    assert done.stderr == "psearch: no node of the cluster can work (a process needs 1 cores and 4,296 MiB)\n"
