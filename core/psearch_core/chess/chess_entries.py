"""Chess kernels that Python calls as machine code, without numba."""

from psearch_core.toolchain.groups import Group

CHESS = Group(
    "chess",
    "psearch_core.chess.fill_tables",
    "psearch_core.chess.board.position",
    "psearch_core.chess.evaluation.evaluate",
)
fill_tables = CHESS.entry("fill_tables")
complete = CHESS.entry("complete")
evaluate_position_by_network = CHESS.entry("evaluate_position_by_network")
evaluate_position = CHESS.entry("evaluate_position")

PERFT = Group("perft", "psearch_core.chess.board.movegen")
perft = PERFT.entry("perft")
