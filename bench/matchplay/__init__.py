"""What bench/match.py is made of: engines, one game, openings, the arithmetic of results, the journal."""
