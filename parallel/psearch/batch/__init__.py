"""Searches of many positions: `positions` distributes them to processes and machines, `analysis` reads them from files
and interprets the answers."""
