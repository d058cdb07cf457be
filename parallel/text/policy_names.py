"""Policies as users name them: one of the package's, a file, or one that an installed package has declared."""

from __future__ import annotations

import os
from functools import cache

from psearch.defaults import POLICY_NAMES

ENTRY_POINTS = "psearch.policies"
"""The group of entry points in which a package declares policies: a name, and the module that is the policy's file."""


def is_policy_file(policy: str) -> bool:
    """Tell whether a policy is named as a file: by its ending, or with a folder."""
    return policy.endswith(".py") or os.sep in policy


@cache
def module_of_policy(name: str) -> str:
    """Return the module that an installed package has declared as a policy of this name; empty if none has."""
    from importlib.metadata import entry_points  # takes long: only for a name that is none of the package's

    return next((point.module for point in entry_points(group=ENTRY_POINTS, name=name)), "")


class PolicyNames(tuple[str, ...]):
    """The names that there are, for lists and messages; holds files and declared names, too."""

    def __contains__(self, policy: object) -> bool:
        return super().__contains__(policy) or (
            isinstance(policy, str) and (is_policy_file(policy) or bool(module_of_policy(policy)))
        )


POLICIES = PolicyNames(POLICY_NAMES)
SPLITTING_POLICIES = PolicyNames(name for name in POLICY_NAMES if name != "serial")
"""Those for more than one worker."""
