"""What is asked of a node before it is given work. Ray carries the text of this module there, so that the question can
be asked where psearch is missing or another one: it imports nothing at the top."""

from __future__ import annotations


def look() -> dict[str, str]:
    """Return who this node is, as `psearch.remote.ray.identity` says it; without `psearch` where that is not
    installed."""
    try:
        from psearch.version import __version__
    except ImportError:
        return {}
    try:
        from psearch.remote.ray.identity import identity
    except ImportError:
        return {"psearch": __version__}
    try:
        return identity()
    except OSError as error:
        return {"problem": f"its psearch cannot be read: {error}"}
