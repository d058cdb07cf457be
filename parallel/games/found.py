"""A list of moves as a game writes it, at an address."""

from __future__ import annotations

from typing import cast

import numba
import numpy as np
from numba.core import types

from psearch.core.toolchain.intrinsics import view
from psearch.games.limits import MOST_MOVES

found_dtype = np.dtype([("moves", "u2", (MOST_MOVES,))])
Found = cast(types.Record, numba.from_dtype(found_dtype))
found_at = view(Found)
