"""Fixtures that more than one test file uses."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from psearch.core import jit

_MODULES_WITH_ENTRIES = ("perft", "tables", "position", "inspect")


@pytest.fixture(scope="session")
def kernels() -> None:
    """Every compiled entry of the chess layer, callable."""
    for name in _MODULES_WITH_ENTRIES:
        importlib.import_module(f"psearch.core.{name}")
    jit.build()


@pytest.fixture(scope="session")
def tables(kernels: None) -> np.ndarray:
    """The tables that every kernel reads; nobody writes to them."""
    from psearch.core.tables import make_tables

    made = make_tables()
    made.flags.writeable = False
    return made
