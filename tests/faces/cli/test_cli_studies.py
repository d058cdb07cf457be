"""`psearch speedup` and `simulate`: refusals, the shape of the answers, logs, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from paths import REPOSITORY
from programs import PSEARCH

from psearch.arena.control_groups import usable_memory_mb
from psearch.faces.cli.commands import speedup_command
from psearch.files.raw_log import RawLog
from psearch.lab.studies import plots
from psearch.simulation.costs import Costs

Run = Callable[..., tuple[int, str, str]]
ROW_FIELDS = set(
    [
        "policy",
        "threads",
        "positions",
        "speedup",
        "low",
        "high",
        "nps_scaling",
        "node_overhead",
        "idle_share",
        "splits",
        "joins",
        "aborted_share",
    ]
)
COLUMNS = {"speedup", "95% interval", "nps", "nodes", "idle", "splits", "joins", "aborted"}
"""columns of every table that are explained"""


@pytest.fixture
def suite(tmp_path: Path) -> str:
    path = tmp_path / "suite.epd"
    path.write_text(
        "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10\n"
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1\n"
        "r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - 0 10\n"
    )
    return str(path)


# Refusals

SPEEDUP = ["speedup", "--suite", "SUITE"]
SIMULATE = ["simulate", "--workers", "2", "--suite", "SUITE"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["speedup"], "--suite is missing"),
        (["speedup", "--suite", "nowhere.epd"], "cannot read nowhere.epd"),
        ([*SPEEDUP, "--threads", "0"], "whole number from 1 to 1024"),
        ([*SPEEDUP, "--threads", "1,...,3"], "doubling does not lead to 3"),
        ([*SPEEDUP, "--seconds", "0"], "must be a number from 0.01"),
        ([*SPEEDUP, "--seconds", "nan"], "must be a number"),
        ([*SPEEDUP, "--seconds", "2", "--depth", "5"], "not allowed with"),
        ([*SPEEDUP, "--policy", "calibrated,magic"], "no policy is called 'magic'"),
        ([*SPEEDUP, "--policy", "serial"], "no policy is called 'serial'"),
        ([*SPEEDUP, "--repeat", "0"], "whole number"),
        ([*SPEEDUP, "--hash", "16777216"], "does not fit"),
        ([*SPEEDUP, "--log", "no/such/folder/x.jsonl"], "cannot write the log"),
        (["speedup", "--from-log", "nowhere.jsonl"], "cannot read the log"),
        (["speedup", "--from-log", "SUITE"], "line 1: not a line of this study's log"),
        (["speedup", "--from-log", "SUITE", "--suite", "SUITE"], "leave out --suite"),
        (["speedup", "--from-log", "SUITE", "--policy", "nosuch"], "leave out --policy"),
        (["simulate", "--from-log", "SUITE", "--with", "SUITE"], "leave out --with"),
        (["simulate", "--from-log", "SUITE", "--costs", "SUITE"], "leave out --costs"),
        (["simulate", "--from-log", "SUITE", "--tree-nodes", "5000"], "leave out --tree-nodes"),
        (["simulate", "--from-log", "SUITE", "--game", "SUITE"], "leave out --game"),
        (["simulate", "--suite", "SUITE", "--depth", "3"], "--workers is missing"),
        (["simulate", "--workers", "2", "--depth", "3"], "--suite is missing"),
        ([*SIMULATE], "--depth or --tree-nodes is missing"),
        ([*SIMULATE, "--depth", "3", "--tree-nodes", "5000"], "not allowed with"),
        ([*SIMULATE, "--tree-nodes", "10"], "whole number from 1000"),
        ([*SIMULATE, "--depth", "3", "--open-idle", "101"], "from 0 to 100"),
        ([*SIMULATE, "--depth", "101"], "whole number from 1 to 100"),
        ([*SIMULATE, "--depth", "3", "--costs", "SUITE"], "cannot read costs"),
        ([*SIMULATE, "--depth", "3", "--jitter", "2"], "number from 0 to 1"),
        ([*SIMULATE, "--depth", "3", "--jobs", "0"], "whole number"),
        ([*SIMULATE, "--depth", "3", "--seed", "-1"], "whole number"),
        (["calibrate"], "calibrate is a script of the repository: python bench/study/calibrate.py"),
    ],
)
def test_bad_input_is_one_line_and_2(
    run: Run, suite: str, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*(suite if word == "SUITE" else word for word in words))
    assert (status, out) == (2, "")
    assert err.startswith("psearch: ") and err.count("\n") == 1, err
    assert said in err
    assert os.listdir(tmp_path) == ["suite.epd"], "a refused study leaves no log"


def test_a_picture_without_matplotlib_is_refused(run: Run, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, err = run("simulate", "--workers", "2", "--suite", suite, "--depth", "3", "--plot", "x.png")
    assert (status, err) == (2, "psearch: --plot needs matplotlib: pip install matplotlib\n")


@pytest.mark.parametrize("name", ["x.pdf", "no/such/folder/x.png", "folder.png"])
def test_plots_that_cannot_be_written(
    run: Run, suite: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.png").mkdir()
    status, _, err = run("simulate", "--workers", "2", "--suite", suite, "--depth", "3", "--plot", name)
    assert status == 2
    assert err.count("\n") == 1


# Answers


def explained(out: str) -> set[str]:
    """The columns that a table's glossary explains."""
    return {name for line in out.splitlines() if line.startswith("  ") for name in line[2:].split("  ")[0].split(", ")}


@pytest.mark.parametrize(
    "words",
    [
        ["speedup", "--repeat", "1", "--threads", "1,2", "--depth", "4"],
        ["simulate", "--workers", "2", "--depth", "4"],
        ["predict", "--depth", "4"],
    ],
)
def test_no_file_is_written_unasked(
    run: Run, suite: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--json"]):
        status, out, err = run(*words, "--suite", suite, *more)
        assert status == 0, err
        assert "raw log" not in err
    assert json.loads(out).get("log") is None
    assert os.listdir(tmp_path) == ["suite.epd"]


def test_predict(run: Run, suite: str) -> None:
    words = ["predict", "--suite", suite, "--depth", "5"]
    status, out, err = run(*words, "--json")
    assert status == 0, err
    report = json.loads(out)
    assert (report["depth"], report["positions"], report["interrupted"]) == (5, 2, False)
    assert [rule["tree_nodes"] for rule in report["rules"]] == [report["tree_nodes"]] * 4
    status, out, err = run(*words)
    assert status == 0 and "small trees: " in err and "few positions: " in err
    assert "\n\n2 positions, " in out and ", depth 5; pruning modern\n" in out
    judged = {"1st move", "Brier class", "calibrated", "later", "needed", "used"}
    assert explained(out) >= judged | {"PV", "wasted PV", "CUT", "ALL right"}
    assert "All rules are measured on the same nodes; calibrated predicts the types of kannan." in out


def test_an_interrupted_prediction_shows_the_rules_that_are_finished(
    run: Run, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from psearch.lab.studies import prediction_study

    study = prediction_study.study

    def interrupted(*arguments: Any, **named: Any) -> Iterator[Any]:
        yield from study(*arguments, **{**named, "rules": ("garms", "kannan")})
        raise KeyboardInterrupt

    monkeypatch.setattr(prediction_study, "study", interrupted)
    _, out, err = run("predict", "--suite", suite, "--depth", "4")
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["garms", "kannan"]
    assert "interrupted; 2 rules of 4 finished" in err


def test_a_log_of_the_documents_is_read(run: Run) -> None:
    logs = Path(__file__).parents[3] / "docs" / "measurements" / "study-selective" / "logs.jsonl.xz"
    status, out, err = run("simulate", "--from-log", f"{logs}#ecm293")
    assert status == 0, err
    assert [line.split()[1] for line in out.splitlines()[1:7]] == ["4", "16", "64"] * 2
    assert "293 positions, 114 k nodes per tree (mean, one worker); pruning modern\ndepths: the last below" in out


def test_speedup(run: Run, suite: str, tmp_path: Path) -> None:
    log = str(tmp_path / "log.jsonl")
    words = ["--suite", suite, "--threads", "1,2", "--depth", "5", "--repeat", "2", "--hash", "2", "--log", log]
    status, out, err = run("speedup", *words, "--json")
    assert status == 0, err
    report = json.loads(out)
    fields = {"rows", "positions", "tree_nodes", "pruning", "driver", "depths", "ceilings", "pairs", "log"}
    assert set(report) == {*fields, "interrupted"}
    assert (report["positions"], report["driver"], report["log"]) == (2, "pvs", log) and report["tree_nodes"] > 100
    (row,) = report["rows"]
    assert set(row) == ROW_FIELDS
    assert (row["policy"], row["threads"], row["positions"]) == ("calibrated", 2, 2), "the third position is the first"
    assert row["low"] <= row["speedup"] <= row["high"]
    assert 0.3 < report["ceilings"]["2"] < 5
    lines = [json.loads(line) for line in Path(log).read_text().splitlines()]
    assert lines[0]["about"]["study"] == "speedup"
    assert lines[0]["about"]["machine"]["cpu"]
    assert len(lines) == 1 + 2 * 2 * 2 + 1

    status, out, _ = run("speedup", "--from-log", log, "--json")
    assert status == 0
    again = json.loads(out)
    assert (again["rows"], again["ceilings"]) == (report["rows"], report["ceilings"])
    status, out, err = run("speedup", "--from-log", log)
    assert status == 0 and [line[:12] for line in err.splitlines()] == ["psearch: sma", "psearch: few"]
    assert out.splitlines()[1].split()[:2] == ["calibrated", "2"]
    assert explained(out) >= {*COLUMNS, "ceiling"}
    assert "\n\n2 positions, " in out
    assert "pruning modern, driver pvs\ndepths: the same for all; random histories\n" in out


def test_simulate(run: Run, suite: str, tmp_path: Path) -> None:
    def rows(*more: str) -> tuple[list[dict[str, Any]], str]:
        log = str(tmp_path / f"log{len(more)}.jsonl")
        words = ["--workers", "1,2,...,8", "--suite", suite, "--depth", "5", "--hash", "2"]
        words += ["--policy", "ybw,calibrated"]
        status, out, err = run("simulate", *words, "--log", log, "--json", *more)
        assert status == 0, err
        report = json.loads(out)
        fields = {"rows", "positions", "tree_nodes", "pruning", "driver", "depths", "costs", "pairs", "fits", "log"}
        assert set(report) == {*fields, "interrupted"}
        compared = [(pair["policy"], pair["over"], pair["threads"], pair["positions"]) for pair in report["pairs"]]
        assert compared == [("calibrated", "ybw", count, 2) for count in (2, 4, 8)], (
            "the first that was named is the base"
        )
        assert report["positions"] == 2 and report["tree_nodes"] > 100
        assert {fit["policy"] for fit in report["fits"]} == {"ybw", "calibrated"}
        return report["rows"], log

    first, log = rows()
    assert all(set(row) == ROW_FIELDS for row in first)
    assert {(row["policy"], row["threads"]) for row in first} == {
        (policy, count) for policy in ("ybw", "calibrated") for count in (2, 4, 8)
    }
    second, other_log = rows("--jobs", "2")
    assert second == first
    assert Path(log).read_text().splitlines()[1:] == Path(other_log).read_text().splitlines()[1:]
    about = json.loads(Path(log).read_text().splitlines()[0])["about"]
    assert about["costs"]["node"] > 0 and about["arguments"]["depth"] == 5
    status, out, _ = run("simulate", "--from-log", log)
    assert status == 0
    assert "costs: the defaults (" in out and "  8 workers, calibrated over ybw: x" in out
    assert out.count("/P: a speedup of at most ") == 2 and "T(P)/T(1) = c + w/P" in out
    assert explained(out) >= COLUMNS
    assert "ceiling" not in out


@pytest.mark.parametrize("study", ["speedup", "simulate"])
def test_the_driver_is_named_wherever_figures_are(
    run: Run, suite: str, study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the driver of the searches that were made, or of their log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(speedup_command, "_CEILING_ROUNDS", 1)
    monkeypatch.setattr(speedup_command, "_CEILING_S", (0.01, 0.01))
    titles: list[str] = []
    monkeypatch.setattr(plots, "_save", lambda figure, *rest: titles.append(figure.axes[0].get_title()))
    words = ["--workers", "2"] if study == "simulate" else ["--threads", "2", "--repeat", "1"]
    words += ["--suite", suite, "--positions", "1", "--depth", "7", "--hash", "1"]
    logs = [Path("pvs.jsonl"), Path("null.jsonl")]
    assert "driver pvs" in run(study, *words, "--log", str(logs[0]))[1]
    for how in ([*words, "--driver", "null", "--log", str(logs[1])], ["--from-log", str(logs[1])]):
        status, out, err = run(study, *how, "--plot", "a.png")
        assert status == 0, err
        assert [text.count("driver null") for text in (out, titles.pop())] == [1, 1]
    assert json.loads(run(study, "--from-log", str(logs[1]), "--json")[1])["driver"] == "null"
    first, other = (json.loads(log.read_text().splitlines()[1])["nodes"] for log in logs)
    assert first != other  # of one worker, which searches the same every time


@pytest.mark.parametrize("study", ["speedup", "simulate"])
def test_trees_that_end_in_a_mate_are_left_out_and_named(run: Run, tmp_path: Path, study: str) -> None:
    """Both studies do so, in the table and in the table of the log."""
    file, log = tmp_path / "suite.epd", str(tmp_path / "log.jsonl")
    file.write_text(
        'kbK5/pp6/1P6/8/8/8/8/R7 w - - id "mate";\n'
        'r1bq1rk1/pp3ppp/2n1pn2/3p4/3P4/2PBPN2/P4PPP/R1BQ1RK1 w - - id "middle";\n'
    )
    size = ["--tree-nodes", "10000", "--workers", "2"] if study == "simulate" else ["--seconds", "0.3", "--repeat", "1"]
    status, out, err = run(study, "--suite", str(file), *size, "--hash", "2", "--log", log)
    assert status == 0, err
    assert "1 position, " in out and "\nleft out, solved before that size: mate\n" in out
    assert run(study, "--from-log", log)[1] == out


BUSY = {"transfer": 8425.0, "poll_line": 480.0, "join": 4000.0, "system_load": 3.2, "machine": "made up"}


def test_costs_of_a_busy_machine_are_named(run: Run, suite: str, tmp_path: Path) -> None:
    """A speedup below 1 is named, too."""
    file = tmp_path / "costs.json"
    Costs(**BUSY).save(file)  # type: ignore[arg-type]
    words = ["simulate", "--suite", suite, "--tree-nodes", "3000", "--workers", "8", "--hash", "1", "--positions", "2"]
    status, out, err = run(*words, "--costs", str(file))
    assert status == 0 and "costs.json: transfer is 47 times the default, poll_line is 96" in err
    assert "at load 3.2" in out and "slower than one worker: calibrated with 8 (x0." in err
    status, out, err = run(*words)
    assert status == 0 and "times the default" not in err and "slower than" not in err


def test_costs_that_are_far_off() -> None:
    assert Costs().far_off() == []
    assert Costs().without_sharing().far_off() == [], "a file without the costs of sharing sets them to zero"
    assert Costs(leave=7.0, lock=7.0, abort=1.0, system_load=9.0).far_off() == []  # as a hot cache has them
    for field in fields(Costs):
        if field.type == "float" and field.default and field.name != "side_by_side":
            (dear,) = Costs(**{field.name: field.default * 6}).far_off()
            assert dear == f"{field.name} is 6 times the default"


def test_simulate_with_validation_and_costs(
    run: Run, suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("costs.json").write_text('{"node": 500.0, "qnode": 500.0, "machine": "made up"}')
    words = ["--workers", "3", "--suite", suite, "--depth", "2", "--hash", "1", "--split-depth", "1"]
    more = ["--validate", "--costs", "costs.json", "--positions", "1", "--jitter", "0.5", "--seed", "7"]
    log = Path("log.jsonl")
    status, out, err = run("simulate", *words, *more, "--log", str(log))
    assert status == 0, err
    assert "raw log: log.jsonl\n" in err
    assert out.splitlines()[1].split()[3] == "-" and "none for a single position" in out
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["about"]["costs"]["machine"] == "made up"
    assert lines[0]["about"]["costs"]["jitter"] == 0.5
    assert [line["seed"] for line in lines[1:]] == [7, 7]


def test_plots(run: Run, suite: str, tmp_path: Path) -> None:
    plot = tmp_path / "plot.png"
    words = ["--workers", "2,4", "--suite", suite, "--depth", "3", "--hash", "1", "--plot", str(plot)]
    status, _, err = run("simulate", *words)
    assert status == 0, err
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot.png", "suite.epd"]


def test_names_of_files_are_drawn_as_they_are(run: Run, suite: str, tmp_path: Path) -> None:
    """Names of files are labels of a plot, also those that matplotlib takes for a formula, or would not draw."""
    policies = [tmp_path / name for name in ("_mine.py", "a$\\q$.py")]
    for policy in policies:
        policy.write_bytes((REPOSITORY / "docs" / "examples" / "my_policy.py").read_bytes())
    plot = tmp_path / "plot.png"
    words = ["--workers", "2", "--suite", suite, "--depth", "2", "--hash", "1", "--plot", str(plot)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status, _, err = run("simulate", *words, "--policy", ",".join(map(str, policies)))
    assert status == 0 and plot.exists(), err


def test_a_plot_of_nothing_is_told(run: Run, suite: str, tmp_path: Path) -> None:
    plot = tmp_path / "plot.png"
    status, _, err = run("simulate", "--workers", "1", "--suite", suite, "--depth", "2", "--plot", str(plot))
    assert status == 0 and "there is nothing to compare" in err and not plot.exists()


def test_only_the_first_positions_of_a_game(run: Run) -> None:
    game = str(REPOSITORY / "docs" / "examples" / "tic_tac_toe.py")
    words = ["simulate", "--game", game, "", "5", "51", "--workers", "2", "--depth", "3", "--json", "--positions"]
    assert [json.loads(run(*words, count)[1])["positions"] for count in ("1", "2", "9")] == [1, 2, 3]


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "--workers", "2", "--depth", "2", "--on", "nowhere.invalid:6379"],
        ["simulate", "--workers", "2", "--tree-nodes", "1000000"],
    ],
)
def test_a_study_that_does_not_begin_leaves_the_log_of_another(run: Run, tmp_path: Path, words: list[str]) -> None:
    log, mated = tmp_path / "log.jsonl", tmp_path / "mated.epd"
    with RawLog(log, {"study": "another"}) as former:
        former.note(fact=1)
    content = log.read_bytes()
    mated.write_text("7k/5Q2/8/6K1/8/8/8/8 w - - bm Qg7;\n")
    if "--on" not in words:
        assert run(*words, "--suite", str(mated), "--log", str(log))[0] == 2
        assert run(*words, "--suite", str(mated), "--log", str(tmp_path / "new.jsonl"))[0] == 2
        assert not (tmp_path / "new.jsonl").exists()
    else:
        pytest.importorskip("ray")
        assert run(*words, "--suite", str(mated), "--log", str(log))[0] == 2
    assert log.read_bytes() == content


@pytest.mark.parametrize("words", [["speedup", "--threads", "1,2"], ["simulate", "--workers", "2", "--jobs", "2"]])
def test_tables_that_fit_alone_but_not_together_are_refused(run: Run, suite: str, words: list[str]) -> None:
    size = str(usable_memory_mb() * 2 // 3)
    status, out, err = run(*words, "--suite", suite, "--depth", "2", "--hash", size)
    assert (status, out) == (2, "") and f"--hash {size}, 2 times, does not fit" in err, err


def test_an_interrupt_keeps_what_is_finished(suite: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ["simulate", "--workers", "2,4,...,512", "--suite", suite, "--depth", "9", "--log", str(log), "--json"]
    process = subprocess.Popen([*PSEARCH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240
    while not log.exists() or log.read_text().count("\n") < 4:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"] is True
    assert report["rows"][0]["threads"] == 2
    assert "Traceback" not in err
