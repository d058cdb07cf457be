"""What is told in one line and ends the match."""


class MatchError(Exception):
    """Bad input, or an engine that cannot be started."""
