"""Fixtures that more than one test file uses."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable

import hypothesis
import numpy as np
import pytest
from fake_cluster import fake_ray  # noqa: F401  # a fixture
from inspect_entries import INSPECT
from round_robin_entries import ROUND_ROBIN

from psearch.defaults import POLICY_NAMES
from psearch.faces.cli import main as cli
from psearch.lab.studies.uniform_tree import UNIFORM_TREE
from psearch.scheduler.scheduler_entries import PREDICTION, SEARCH, load_kernels
from psearch.simulation.simulation_entries import VIRTUAL
from psearch_core.chess.chess_entries import CHESS, PERFT
from psearch_core.toolchain import groups

# an example that takes long says something of the machine
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


def pytest_configure() -> None:
    """Programs started by the tests shall hear Ctrl-C, and the end of a terminal. A shell that puts a command into the
    background has it ignore the one, `nohup` the other, and that is inherited; a handler is not."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


NIGHTLY = ("tests/core/toolchain/", "tests/batch/analysis/test_marks.py", "tests/faces/web/test_web_looks.py")
"""Places whose slow tests are nightly: other processors and damaged caches, marks of an analysis, looks of the page."""
OF_BENCH = ("test_matchplay.py", "test_fuzz.py")
"""Files of tests/bench that are never nightly: the rules of games, and the readers of all inputs."""
POLICIES = ("calibrated", "garms", "lazy")
"""One that predicts, one that opens by a rule, one that shares nothing; tests of properties under others are slow."""
_OF_POLICIES = ("tests/scheduler/", "tests/simulation/", "tests/games/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests of policies, and the nightly tests."""
    for item in items:
        path = item.path.relative_to(item.config.rootpath).as_posix()
        policy = item.callspec.params.get("policy") if hasattr(item, "callspec") else None
        if path.startswith(_OF_POLICIES) and policy in POLICY_NAMES and policy not in POLICIES:
            item.add_marker("slow")
        if path.startswith("tests/bench/") and item.path.name not in OF_BENCH:
            item.add_marker("slow")
            item.add_marker("nightly")
        elif path.startswith(NIGHTLY) and item.get_closest_marker("slow"):
            item.add_marker("nightly")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before there are several processes of tests: what has to be compiled takes a minute on a slow machine, and those
    who wait for it have limits of time of their own."""
    is_one_of_several = hasattr(session.config, "workerinput")
    if session.config.getoption("numprocesses", None) and not is_one_of_several:
        every = (CHESS, INSPECT, PERFT, SEARCH, PREDICTION, VIRTUAL, ROUND_ROBIN)
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        with contextlib.suppress(groups.KernelError):  # the tests will tell
            groups.load(*every, UNIFORM_TREE, progress=terminal and _progress_on(terminal))


def _progress_on(terminal: pytest.TerminalReporter) -> Callable[[str], None]:
    """One line: of a terminal, where it is written over, or in a log."""
    said: list[str] = []

    def show(text: str) -> None:
        if terminal.isatty:
            terminal.rewrite(text, erase=True)
        elif not said:
            terminal.write_line("compiling kernels, once: this takes half a minute or more")
            said.append(text)

    return show


@pytest.fixture(scope="session")
def kernels() -> None:
    """Every compiled entry of the chess layer, callable."""
    groups.load(CHESS, INSPECT, PERFT)


@pytest.fixture(scope="session")
def search_kernels() -> None:
    """Compile the kernels of a search, before programs that are started look at the clock."""
    load_kernels()


@pytest.fixture(scope="session")
def tables(kernels: None) -> np.ndarray:
    """The tables that every kernel reads; nobody writes to them."""
    from psearch_core.chess.tables import make_tables

    made = make_tables()
    made.flags.writeable = False
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command line in this process: words to exit status, stdout, stderr."""

    def run_here(*words: str) -> tuple[int, str, str]:
        try:
            status = cli.main(words)
        except SystemExit as leaving:
            status = int(str(leaving.code))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_here
