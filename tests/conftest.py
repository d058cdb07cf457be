"""Fixtures that more than one test file uses."""

from __future__ import annotations

import signal
from collections.abc import Callable

import numpy as np
import pytest

from psearch.cli import main as cli
from psearch.core import kernels as compiled
from psearch.core.entries import CHESS, INSPECT, PERFT


def pytest_configure() -> None:
    """Programs started by the tests shall hear Ctrl-C. A shell that puts a command into the background has it ignore
    the signal, and that is inherited."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def kernels() -> None:
    """Every compiled entry of the chess layer, callable."""
    compiled.load(CHESS, INSPECT, PERFT)


@pytest.fixture(scope="session")
def tables(kernels: None) -> np.ndarray:
    """The tables that every kernel reads; nobody writes to them."""
    from psearch.core.tables import make_tables

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
