"""Parts of bench/match/match.py: engines, one game, openings, the arithmetic of results, the journal."""
