"""Policies and rules as users name them: those of the package, a file, or what an installed package has declared."""

from __future__ import annotations

import os
from functools import lru_cache

from psearch.defaults import POLICY_NAMES

POLICIES, RULES = "psearch.policies", "psearch.rules"
"""Groups of entry points in which a package declares policies, and rules: a name, and the module that is the file."""
_MOST_NAMES = 64
"""Whoever speaks UCI may ask for any."""
SPLITTING_POLICIES = tuple(name for name in POLICY_NAMES if name != "serial")
"""Those for more than one worker."""


def is_code_file(name: str) -> bool:
    """Tell whether a policy or rules are named as a file: by its ending, or with a folder."""
    return name.endswith(".py") or os.sep in name


@lru_cache(_MOST_NAMES)
def declared_module(name: str, group: str) -> str:
    """Return the module that an installed package has declared by this name in a group; empty if none has."""
    from importlib.metadata import entry_points  # takes long: only for a name that is none of the package's

    return next((point.module for point in entry_points(group=group, name=name)), "")


def is_own_policy(policy: str) -> bool:
    """Tell whether a policy is named as a file, or by a name that an installed package has declared."""
    return is_code_file(policy) or bool(declared_module(policy, POLICIES))
