"""Measures the search (`studies`), and shows it while it runs (`watching`)."""
