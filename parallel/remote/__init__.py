"""Other machines: `ray` gives work to a Ray cluster."""
