"""The version of psearch; packaging reads it from here."""

__version__ = "0.1.0.dev0"
