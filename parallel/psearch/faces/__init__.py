"""What users meet: `cli`, `uci`, and the page (`web`). For programs there is `psearch.api`."""
