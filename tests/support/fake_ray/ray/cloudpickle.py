"""Nothing travels here."""

from __future__ import annotations

from types import ModuleType


def register_pickle_by_value(module: ModuleType) -> None:
    pass
