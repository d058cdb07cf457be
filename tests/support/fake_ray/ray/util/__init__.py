"""See `ray`."""
