"""Chess, and what happens inside one node of the search. Knows nothing of processes or scheduling."""
