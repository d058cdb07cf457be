"""A position, and the tables that every kernel reads.

Another game has its own position in the memory of one of chess: in its first 128 bytes, with `key` behind them.
"""

from __future__ import annotations

from psearch_core.records.layout import KPK_WORDS, record
from psearch_core.records.network_record import network_dtype
from psearch_core.terms import TERM_COUNT, UNIT_COUNT

position_dtype = record(
    [
        ("piece_bb", "u8", (6,)),  # by piece type, both colours: P N B R Q K
        ("color_bb", "u8", (2,)),  # white, black
        ("board", "u1", (64,)),  # 0 empty, else colour * 8 + piece type + 1
        ("castling_bb", "u8"),  # the rooks that may still castle (any file: Chess960)
        ("key", "u8"),  # Zobrist: pieces, side, castling rooks, en passant file if a capture is legal
        ("checkers", "u8"),  # pieces that give check to the side to move
        ("pinned", "u8"),  # own pieces of the side to move that shield its king; set by `find_pins`
        ("pawn_key", "u8"),  # Zobrist: pawns and kings only
        ("psq_mg", "i4"),  # material and piece-square sum, centipawns, White minus Black, middle game
        ("psq_eg", "i4"),  # the same, end game
        ("phase", "i2"),  # sum of PHASE over the pieces on the board, 24 at the start, more after promotions
        ("ep", "i2"),  # square a pawn may capture to en passant, legally; -1 none
        ("side", "i4"),  # 0 White, 1 Black to move
        ("rule50", "i4"),  # plies since the last capture or pawn move
        # plies since the last irreversible or null move: how far back a repetition can lie
        ("reversible", "i4"),
    ]
)

tables_dtype = record(
    [
        ("network", network_dtype),  # first, for its rows are to begin cache lines
        ("slider", "u8", (107648,)),  # rook and bishop attacks, indexed by pext or magic
        ("rook_offset", "i8", (64,)),
        ("bishop_offset", "i8", (64,)),
        ("rook_mask", "u8", (64,)),
        ("bishop_mask", "u8", (64,)),
        ("knight", "u8", (64,)),
        ("king", "u8", (64,)),
        ("pawn", "u8", (2, 64)),  # squares attacked by a pawn of that colour
        ("between", "u8", (4096,)),  # from * 64 + to: squares strictly between, on a line
        ("line", "u8", (4096,)),  # from * 64 + to: the whole line through both, edge to edge
        # own and neighbour files in front: no enemy pawn there makes a passed pawn
        ("passed", "u8", (2, 64)),
        ("front", "u8", (2, 64)),  # own file in front
        ("neighbours", "u8", (8,)),  # the files beside a file
        ("zobrist_piece", "u8", (16, 64)),
        ("zobrist_castling", "u8", (64,)),
        ("zobrist_ep", "u8", (8,)),
        ("zobrist_side", "u8"),
        ("psq_mg", "i4", (16, 64)),  # by board code; White positive, Black negative
        ("psq_eg", "i4", (16, 64)),
        ("phase", "i4", (16,)),
        ("terms", "i4", (TERM_COUNT,)),  # weights of psearch_core/terms.py: middle game * 65536 + end game, centipawns
        ("units", "i4", (UNIT_COUNT,)),  # of danger to a king
        ("rest_bound", "i8"),  # B: what terms beside material and piece-square tables may add up to, centipawns
        ("kpk", "u8", (KPK_WORDS,)),  # king and pawn against king, a bit for each position that is won
    ]
)
