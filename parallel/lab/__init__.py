"""What measures and shows the search: `studies`, the `costs` of its parts, and `watching` it as it runs."""
