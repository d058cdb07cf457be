"""Opening books in Polyglot's format and Syzygy tables, read by python-chess. Tables are probed for the root only.

This module adds checks of the files that python-chess does not make, and facts that a table does not know: the
half-move clock, the repetitions of the game so far, and mate.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import chess
import chess.polyglot
import chess.syzygy
import numpy as np

from psearch.closing import Closing
from psearch.results import WON_CP, Info, PsearchError

_COPIED = 64 << 20
"""Largest size of a file, in bytes, that is copied: all books, and all tables of five men."""
_ENTRY_BYTES = 16
_FIFTY_MOVES = 100
"""Plies without capture or pawn move after which the game is drawn."""

WIN, CURSED_WIN, DRAW, BLESSED_LOSS, LOSS = 2, 1, 0, -1, -2
"""Results of a table. A cursed win and a blessed loss are draws by the fifty-move rule."""

_REST_OF_64 = 16
"""Size of any table in bytes, modulo 64."""
_MOST_NAMED = 4

_DTZ_OF_ZEROING = {WIN: 1, CURSED_WIN: 101, DRAW: 0, BLESSED_LOSS: -101, LOSS: -1}
"""DTZ before a capture or pawn move, by result. By convention, a DTZ beyond 100 is a draw by the fifty-move rule."""


def _file_bytes(path: str) -> mmap.mmap:
    """Return the bytes of a regular file for python-chess's readers. Raises OSError.

    Small files are copied into memory, larger ones are mapped: a mapped file that is cut short while it is in use, or
    that the disk fails to read, ends the whole program (SIGBUS).
    """
    # nonblocking, since opening a pipe without a writer would block
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if status.st_size > _COPIED:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        data = file.read()
    if not data:
        raise OSError("it is empty")
    copy = mmap.mmap(-1, len(data))
    copy[:] = data
    return copy


class Book(chess.polyglot.MemoryMappedReader):
    """An open book; a context manager. Raises PsearchError when the file is not a book."""

    def __init__(self, path: str) -> None:
        try:
            self.mmap = _file_bytes(path)
        except (OSError, ValueError) as error:  # ValueError: a name with a null character
            raise PsearchError(f"cannot read the book {path!r}: {getattr(error, 'strerror', None) or error}") from None
        problem = ""
        if len(self.mmap) % _ENTRY_BYTES:
            problem = f"{len(self.mmap):,} bytes are not a whole number of entries"
        elif not _is_in_order(self.mmap):
            problem = "its entries are not in the order of their keys"
        if problem:
            self.close()
            raise PsearchError(f"{path} is not a Polyglot book: {problem}")

    def __len__(self) -> int:
        """Return the number of entries, which are moves, not positions."""
        return len(self.mmap) // _ENTRY_BYTES

    def pick(self, board: chess.Board, random: Random) -> chess.Move | None:
        """Return a random legal move of the book, with probabilities in proportion to the weights, or None."""
        try:
            return self.weighted_choice(board, random=random).move
        except IndexError:
            return None

    def expected(self, board: chess.Board) -> chess.Move | None:
        """Return the move with the largest weight, or None."""
        entry = self.get(board)
        return None if entry is None else entry.move


def _is_in_order(entries: mmap.mmap) -> bool:
    """Tell whether the keys are sorted, as a binary search needs."""
    keys = np.frombuffer(entries, ">u8")[::2]
    return bool((keys[1:] >= keys[:-1]).all())


@dataclass(frozen=True)
class RootProbe:
    """The tables' verdict on a position, for the side to move."""

    wdl: int
    """Result, from `WIN` to `LOSS`, with the half-move clock and the repetitions of the game."""
    dtz: int
    """Plies to the next capture or pawn move, or to mate, if both sides play for it; negative if lost, 0 if drawn. The
    tables may be wrong by one ply."""
    best: list[chess.Move]
    """Moves that keep the result, the one with the most progress first."""
    hits: int
    """Number of root moves that were looked up."""

    def scored(self, info: Info) -> Info:
        """Return a report of the search with the number of look-ups and the tables' score: won, lost or drawn. A mate
        that the search has found is kept, and so is the score of a move that does not keep the result."""
        import chess.engine  # slow to import, because of asyncio

        info = replace(info, tbhits=self.hits)
        relative = info.score.relative
        if info.pv and info.pv[0] not in self.best:
            return info
        if abs(self.wdl) == WIN and relative.is_mate() and (relative > chess.engine.Cp(0)) == (self.wdl > 0):
            return info
        value = {WIN: WON_CP, LOSS: -WON_CP}.get(self.wdl, 0)
        return replace(info, score=chess.engine.PovScore(chess.engine.Cp(value), info.score.turn), bound="exact")


@dataclass(frozen=True)
class _Outcome:
    """A root move and its outcome, for the side that plays it."""

    move: chess.Move
    wdl: int
    dtz: int
    mates: bool = False
    repeats: bool = False

    @property
    def merit(self) -> tuple[int, ...]:
        """Order of the moves; the largest is the best. For wins: mate, then new positions, then the shortest way to the
        next capture or pawn move. For losses: the longest way."""
        if self.wdl > 0:
            return (self.wdl, int(self.mates), int(not self.repeats), -self.dtz)
        return (self.wdl, 0, 0, -self.dtz)

    def rank(self, clock: int, has_repeated: bool) -> tuple[int, ...]:
        """Return the rank, which equally good moves share, by Stockfish's rule.

        All sure wins have the same rank until a position has occurred twice; from then on progress counts. All losses
        have the same rank while the fifty-move rule is far; then the longest is the best.
        """
        if self.wdl == WIN and not has_repeated:
            return (WIN,)
        if self.wdl == LOSS and -2 * self.dtz + clock < _FIFTY_MOVES:
            return (LOSS,)
        return self.merit


class _CheckedTable(chess.syzygy.Table):
    """A table that checks its file on opening, which python-chess does not do."""

    def __init__(self, path: str, *, variant: type[chess.Board]) -> None:
        super().__init__(path, variant=variant)
        self._named = (self.key, self.mirrored_key)
        """Keys by the name of the file; `key` is later set by the header."""

    def init_mmap(self) -> None:
        if self.data is None:
            data = _file_bytes(self.path)
            if len(data) % 64 != _REST_OF_64:
                data.close()
                raise OSError(f"{self.path}: {len(data):,} bytes is not a possible size of a table")
            self.data = data

    def check_pieces(self, orders: Iterable[Sequence[int]]) -> None:
        """Raise OSError when the pieces in the header are not those of the file's name. A probe would otherwise never
        end, looking for the squares of a piece that is not on the board."""
        if {chess.syzygy.recalc_key(list(pieces)) for pieces in orders} != {self.key} or self.key not in self._named:
            self.initialized = False  # so that the next probe checks it again
            raise OSError("its pieces are not those of its name")


class _WdlTable(_CheckedTable, chess.syzygy.WdlTable):
    """A checked table of wins, draws and losses."""

    def init_table_wdl(self) -> None:
        if not self.initialized:
            super().init_table_wdl()
            by_file = [self.pieces] if not self.has_pawns else [file.pieces for file in self.files]
            self.check_pieces(order for orders in by_file for order in orders.values())


class _DtzTable(_CheckedTable, chess.syzygy.DtzTable):
    """A checked table of plies to the next capture or pawn move."""

    def init_table_dtz(self) -> None:
        if not self.initialized:
            super().init_table_dtz()
            self.check_pieces([self.pieces] if not self.has_pawns else [file.pieces for file in self.files])


class _Tables(chess.syzygy.Tablebase):
    """Tables of python-chess with checks; invalid files are left out, and listed in `problems`."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def _open_table(self, hashtable: Any, Table: Any, path: str) -> int:
        is_wdl = Table is chess.syzygy.WdlTable
        try:
            with open(path, "rb") as file:
                begin, size = file.read(4), os.fstat(file.fileno()).st_size
        except OSError as error:
            self.problems.append(f"endgame table {path} is left out: {error.strerror}")
            return 0
        if begin != (chess.Board.tbw_magic if is_wdl else chess.Board.tbz_magic) or size % 64 != _REST_OF_64:
            self.problems.append(f"damaged endgame table {path} is left out")
            return 0
        return super()._open_table(hashtable, _WdlTable if is_wdl else _DtzTable, path)


class RootProber(Closing):
    """Syzygy tables of one or more folders; a context manager. path: folders, separated by `:` as in UCI's SyzygyPath.
    Raises PsearchError when no folder has a table. Tables are opened on demand."""

    def __init__(self, path: str) -> None:
        self._tables = _Tables()
        self.files = 0
        reasons = []
        for folder in filter(None, path.split(os.pathsep)):
            try:
                found = self._tables.add_directory(folder)
            except (OSError, ValueError) as error:
                reasons.append(f"cannot read endgame tables in {folder}: {getattr(error, 'strerror', None) or error}")
                continue
            self.files += found
            if not found:
                reasons.append(f"no Syzygy tables (.rtbw, .rtbz) in {folder!r}")
        wdl, dtz = self._tables.wdl, self._tables.dtz
        for missing, there, kind in ((dtz, wdl, ".rtbz (DTZ)"), (wdl, dtz, ".rtbw (WDL)")):
            alone = [table.path for key, table in there.items() if key not in missing]
            names = sorted({os.path.basename(path).partition(".")[0] for path in alone})
            if names:
                shown = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
                have, are = ("tables have", "are") if len(names) > 1 else ("table has", "is")
                reasons.append(f"{len(names):,} endgame {have} no {kind} and {are} not used: {shown}")
        self.problems = self._tables.problems + reasons
        """Problems, one line each; all other tables are used."""
        if not self.files:
            self.close()
            raise PsearchError(self.problems[0] if self.problems else "no Syzygy tables: no folder is named")
        self.most_pieces = max(len(name.replace("v", "")) for name in (*wdl, *dtz))
        """Number of pieces of the largest table, including kings and pawns."""

    def close(self) -> None:
        """Close every table. May be called twice."""
        self._tables.close()

    def probe(self, board: chess.Board) -> RootProbe | None:
        """Return the tables' verdict on a position; the board's move stack counts as the game's history.

        None if the tables do not have it: too many pieces, castling rights, no legal move, or a missing table (WDL and
        DTZ of the position and of every capture and promotion are needed). Raises PsearchError for damage that shows in
        the probe; tables have no checksum that could be verified quickly.
        """
        if chess.popcount(board.occupied) > self.most_pieces or board.clean_castling_rights():
            return None
        position = board.copy()
        position.castling_rights = chess.BB_EMPTY  # python-chess refuses a right without its rook
        try:
            outcomes = [self._outcome(position, move) for move in board.legal_moves]
        except chess.syzygy.MissingTableError:
            return None
        except Exception as error:
            # python-chess does not check what it reads: damage can lead to almost any exception
            reason = f"{type(error).__name__}: {error}"
            raise PsearchError(f"damaged endgame table for {board.fen()}: {reason}") from None
        if not outcomes:
            return None
        outcomes.sort(key=lambda outcome: outcome.merit, reverse=True)
        top = outcomes[0]
        situation = board.halfmove_clock, _has_repeated(board)
        best = [outcome.move for outcome in outcomes if outcome.rank(*situation) == top.rank(*situation)]
        hits = sum(not outcome.mates for outcome in outcomes)
        return RootProbe(top.wdl, top.dtz, best, hits)

    def _outcome(self, position: chess.Board, move: chess.Move) -> _Outcome:
        clock, zeroing = position.halfmove_clock, position.is_zeroing(move)
        position.push(move)
        try:
            if position.is_checkmate():
                return _Outcome(move, WIN, 1, mates=True)
            if position.is_fifty_moves() or position.is_repetition(3):
                return _Outcome(move, DRAW, 0)
            if zeroing:
                # the clock restarts here, so the tables' result is right
                wdl = -self._tables.probe_wdl(position)
                return _Outcome(move, wdl, _DTZ_OF_ZEROING[wdl])
            after = self._tables.probe_dtz(position)
            if after == 0:
                return _Outcome(move, DRAW, 0)
            dtz = 1 - after if after < 0 else -1 - after
            # Tables may be wrong by one ply, except where it would change the result for a new clock. So with a running
            # clock a sum of exactly 100 is uncertain, and counts as a draw by the fifty-move rule.
            total = abs(dtz) + clock
            in_time = total < _FIFTY_MOVES or (clock == 0 and total == _FIFTY_MOVES)
            wdl = (WIN if in_time else CURSED_WIN) if dtz > 0 else (LOSS if in_time else BLESSED_LOSS)
            return _Outcome(move, wdl, dtz, repeats=position.is_repetition(2))
        finally:
            position.pop()


def _has_repeated(board: chess.Board) -> bool:
    """Tell whether a position has occurred twice since the last capture or pawn move."""
    position = board.copy()
    seen = {position.epd()}
    while position.halfmove_clock and position.move_stack:
        position.pop()
        if position.epd() in seen:
            return True
        seen.add(position.epd())
    return False
