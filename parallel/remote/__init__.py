"""Other machines: `ray` gives work to a Ray cluster, `one_position` searches one position with several machines."""
