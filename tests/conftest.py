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
    """Programs started by the tests shall hear Ctrl-C, and the end of a terminal. A shell that puts a command into the
    background has it ignore the one, `nohup` the other, and that is inherited; a handler is not."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


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
