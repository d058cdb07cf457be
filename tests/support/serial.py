"""The search with one worker, driven from a test, and what it found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import chess

from psearch.arena.arena import Arena
from psearch.arena.setup import write_search
from psearch.options import SearchOptions
from psearch.results import Limits
from psearch.scheduler.scheduler_entries import work
from psearch_core.chess.board.bridge import to_chess_move
from psearch_core.records.pruning_record import MODES

DEFAULT = SearchOptions(policy="serial")
PLAIN = SearchOptions.plain(policy="serial")
AEL = SearchOptions(policy="serial", pruning=MODES["ael"])


@dataclass(frozen=True)
class Found:
    """The outcome of a search, as codes and numbers of the search itself."""

    score: int
    best: chess.Move
    nodes: int
    depth: int
    seldepth: int
    pv: list[chess.Move]
    """The last line reported; all its moves are legal, or making this record fails."""


def found(arena: Arena, board: chess.Board) -> Found:
    """Return the result of an arena whose search is done."""
    header = arena.header[0]
    best = to_chess_move(int(header["best_move"]), board)
    assert best in board.legal_moves
    count = int(header["info_count"])
    depth, seldepth, line = 0, 0, []
    if count:
        info = header["infos"][(count - 1) % len(header["infos"])]
        depth, seldepth = int(info["depth"]), int(info["seldepth"])
        line = legal_line(board, [int(code) for code in info["pv"][: int(info["pv_length"])]])
    nodes = int(arena.worker["nodes"].sum())
    return Found(int(header["score"]), best, nodes, depth, seldepth, line)


def legal_line(board: chess.Board, codes: list[int]) -> list[chess.Move]:
    """Codes as moves, each checked to be legal where it is played."""
    walk = board.copy(stack=False)
    line = []
    for code in codes:
        move = to_chess_move(code, walk)
        assert move in walk.legal_moves, (board.fen(), line, move)
        line.append(move)
        walk.push(move)
    return line


def search(arena: Arena, board: chess.Board | str, limits: Limits | int, options: SearchOptions = DEFAULT) -> Found:
    """Search with worker 0 of the arena until done; `limits` may be just a depth. Nothing is cleared first."""
    board = chess.Board(board) if isinstance(board, str) else board
    limits = Limits(depth=limits) if isinstance(limits, int) else limits
    write_search(arena, board, limits, options)
    while not work(arena.context, 0, 1 << 20):
        continue
    return found(arena, board)


def without(*switches: str, options: SearchOptions = DEFAULT) -> SearchOptions:
    """A serial search with some switches off."""
    techniques = [switch for switch in switches if hasattr(options.pruning, switch)]
    others = [switch for switch in switches if switch not in techniques]
    pruning = replace(options.pruning, **dict.fromkeys(techniques, 0))
    return replace(options, pruning=pruning, **dict.fromkeys(others, 0))
