"""Many positions: `positions` shares them out to processes and machines, `analysis` reads them from files and says
what the answers mean."""
