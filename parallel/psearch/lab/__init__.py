"""What measures and shows the search: `studies`, and `watching` it as it runs."""
