"""Games for training a net: how they are played, kept on disk and read.

- `kernels`: a whole game of the search against itself, and a game's positions as records, compiled.
- `openings`: where a game begins.
- `playing`: a block of games, the same whenever and wherever it is played.
- `commands`: how the commands of this folder end.
- `blocks`: a file of blocks, packed and checksummed.
- `reader`: from files to arrays of positions.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "match"))  # it reads books
