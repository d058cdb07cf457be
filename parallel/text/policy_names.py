"""Policies as users name them: one of the package's, a file, or one that an installed package has declared."""

from __future__ import annotations

import os
from functools import lru_cache

from psearch.defaults import POLICY_NAMES

ENTRY_POINTS = "psearch.policies"
"""The group of entry points in which a package declares policies: a name, and the module that is the policy's file."""
_MOST_NAMES = 64
"""Whoever speaks UCI may ask for any."""
SPLITTING_POLICIES = tuple(name for name in POLICY_NAMES if name != "serial")
"""Those for more than one worker."""


def is_policy_file(policy: str) -> bool:
    """Tell whether a policy is named as a file: by its ending, or with a folder."""
    return policy.endswith(".py") or os.sep in policy


@lru_cache(_MOST_NAMES)
def module_of_policy(name: str) -> str:
    """Return the module that an installed package has declared as a policy of this name; empty if none has."""
    from importlib.metadata import entry_points  # takes long: only for a name that is none of the package's

    return next((point.module for point in entry_points(group=ENTRY_POINTS, name=name)), "")


def is_own_policy(policy: str) -> bool:
    """Tell whether a policy is named as a file, or by a name that an installed package has declared."""
    return is_policy_file(policy) or bool(module_of_policy(policy))
