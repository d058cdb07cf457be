"""The modes of selective search, and the texts in which a user names one and changes it.

- plain: nothing is left out: full width, to the nominal depth.
- sound: what cannot change the value of any root move: sound futility at frontier nodes and in quiescence.
- ael: Heinz's three together: adaptive null move pruning, extended futility pruning, limited razoring.
- modern: what has been measured to play best.
"""

from __future__ import annotations

import re
from dataclasses import replace

from psearch_core.records.pruning_record import MODES as MODES
from psearch_core.records.pruning_record import PARAMETERS
from psearch_core.records.pruning_record import Pruning as Pruning

PLAIN, SOUND, AEL, MODERN = (MODES[name] for name in ("plain", "sound", "ael", "modern"))


def parse_pruning(text: str) -> Pruning:
    """Return a mode, and changes to it: `modern`, or `modern,lmr=0,lmp_base=4`. Raises ValueError with a line for the
    user."""
    mode, *changes = [word.strip() for word in text.split(",")]
    if mode not in MODES:
        raise ValueError(f"pruning must begin with one of {', '.join(MODES)}, not {mode[:40]!r}")
    values = {}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in PARAMETERS:
            raise ValueError(f"no pruning parameter is called {name[:40]!r}; `psearch stats --parameters` lists them")
        _, least, most = PARAMETERS[name]
        if not re.fullmatch("[+-]?[0-9]{1,6}", value) or not least <= int(value) <= most:
            wanted = f"a whole number from {least} to {most}"
            raise ValueError(f"pruning parameter {name} must be {wanted}, not {value[:40]!r}")
        values[name] = int(value)
    return replace(MODES[mode], **values)


def pruning_text(pruning: Pruning) -> str:
    """Return the shortest text that `parse_pruning` turns into it."""
    texts = []
    for mode, base in MODES.items():
        changes = [
            f"{name}={getattr(pruning, name)}" for name in PARAMETERS if getattr(pruning, name) != getattr(base, name)
        ]
        texts.append(",".join([mode, *changes]))
    return min(texts, key=lambda text: text.count(","))
