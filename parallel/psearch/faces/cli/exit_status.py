"""Exit status of every command: 0 answered, 128 + N ended by signal N, else one of these."""

from __future__ import annotations

EXIT_WRONG = 1
"""What the command checks is not as it must be: perft counts, leaves, sound pruning, games of a PGN."""
EXIT_SYSTEM = 1
"""The system refused something: a full disk."""
EXIT_BAD_INPUT = 2
EXIT_WORKER_DIED = 3
EXIT_SIGNAL = 128
