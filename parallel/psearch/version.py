"""The version, once: packaging reads it from here, too."""

__version__ = "0.1.0.dev0"
