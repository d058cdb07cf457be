"""What `help` prints: one screen for somebody at a keyboard."""

from __future__ import annotations

HELP = """\
psearch speaks UCI, the protocol of chess programs. By hand, for example:

  position startpos moves e2e4 e7e5      or: position fen FEN [moves ...]
  go movetime 3000                       think for three seconds, then answer

go takes   depth N, nodes N, mate N, movetime MS, infinite, searchmoves MOVES,
           wtime btime winc binc MS, movestogo N, ponder, perft N
stop       answer now
setoption  setoption name Threads value 2; `uci` lists all options
isready    answered when all so far is done
ucinewgame forget the last game
d          the position on a board
eval       its static evaluation
bench      the fixed search that identifies the program's behaviour
debug on   say more about how the work is shared
quit       the end

Scores are in centipawns for the side to move. `psearch --help`, in a shell,
tells what else there is: searches with a live display, games, test suites."""
