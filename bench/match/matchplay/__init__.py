"""What bench/match/match.py is made of: engines, one game, openings, the arithmetic of results, the journal."""
