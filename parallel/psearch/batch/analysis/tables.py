"""Results as rows of a table, CSV or Parquet by the ending of the file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from psearch.results import PsearchError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_GAME = ("game", "ply", "move_number", "cp_white", "mate_white", "win", "draw", "lose", "depth")
_WHOLE = {*_GAME, "line", "cp", "mate", "seldepth", "nodes", "points"}
_REAL = {"accuracy", "clock_s", "time_s"}
_ENDINGS = (".csv", ".parquet")
_GROUP = 20_000
"""Rows that are written to Parquet together."""
POSITION = (
    *("id", "fen", "bestmove", "cp", "mate", "cp_white", "mate_white", "win", "draw", "loss", "bound", "depth"),
    *("seldepth", "nodes", "time_s", "pv"),
)
"""Columns of a position (`PositionResult.as_row`)."""
MOVE = (
    *("file", "game", "white", "black", "result", "date", "eco", "opening", "ply", "move_number", "side", "fen", "uci"),
    *("san", "best", "pv", "cp_white", "mate_white", "win", "draw", "lose", "depth", "mark", "words", "loss"),
    *("accuracy", "clock_s"),
)
"""Columns of a move of a game (`GameReview.to_rows`)."""


def ending_of(file: str | None) -> str:
    """Return the ending of a table's file; empty for other files and none."""
    ending = Path(file).suffix.lower() if file is not None else ""
    return ending if ending in _ENDINGS else ""


def columns_of(first: Sequence[str], multipv: int) -> list[str]:
    """Return columns of rows with this number of lines, the first one in the columns `first`."""
    return [*first, *(f"{name}_{number}" for number in range(2, multipv + 1) for name in ("cp", "mate", "pv"))]


def _writable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row in which texts that UTF-8 cannot hold, as some names of files, are escaped."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }


class CsvTable:
    """A table as CSV, in an open file."""

    def __init__(self, file: SupportsWrite[str], columns: Sequence[str]) -> None:
        self._writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        self._writer.writeheader()

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._writer.writerows(map(_writable, rows))

    def end(self) -> None:
        """Do nothing: all rows have been written."""


class ParquetTable:
    """A table as Parquet. file: open for bytes; columns: their names, each with the type that its name stands for.
    Raises PsearchError without pyarrow."""

    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        try:
            import pyarrow  # type: ignore[import, unused-ignore]
            import pyarrow.parquet  # type: ignore[import, unused-ignore]
        except ImportError:
            raise PsearchError("a .parquet file needs pyarrow: pip install 'psearch-chess[tables]'") from None

        def kind(name: str) -> Any:
            if name.rpartition("_")[0] in ("cp", "mate") or name in _WHOLE or (name == "loss" and "time_s" in columns):
                return pyarrow.int64()
            return pyarrow.float64() if name in _REAL or name == "loss" else pyarrow.string()

        self._schema = pyarrow.schema([(name, kind(name)) for name in columns])
        self._table = pyarrow.Table
        self._writer = pyarrow.parquet.ParquetWriter(file, self._schema)
        self._rows: list[Mapping[str, Any]] = []

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows += (_writable({**row, "id": str(row["id"])} if "id" in row else row) for row in rows)
        if len(self._rows) >= _GROUP:
            self._write()

    def end(self) -> None:
        """Write the rest and the end of the file."""
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._rows:
            self._writer.write_table(self._table.from_pylist(self._rows, self._schema))
            self._rows = []
