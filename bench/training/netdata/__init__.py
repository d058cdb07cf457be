"""Games for training a net: how they are played, kept on disk and read.

- `kernels`: a whole game of the search against itself, and a game's positions as records, compiled.
- `playing`: a block of games, the same whenever and wherever it is played.
- `blocks`: a file of blocks, packed and checksummed.
- `manifest`: what files of games were, so that they can be played again.
- `records`, `reader`: from files to arrays of positions.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "match"))  # it reads books

from matchplay.scripts import EXIT_INTERRUPTED as EXIT_INTERRUPTED
from matchplay.scripts import Parser as Parser
from matchplay.scripts import run_script as run_script
