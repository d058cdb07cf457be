"""Recipes of groups, as the program tells them to its compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class PlugIn(NamedTuple):
    """A user's file whose kernels stand in for hooks."""

    file: str
    """absolute path"""
    module: str
    """by which it is imported; empty: it is no module of a package"""
    digest: str
    """`kernel_cache.content_hash` of the file"""
    beside: tuple[str, ...] = ()
    """file, module and digest of a second file, whose kernels stand in for other hooks: a game's policy"""


class Recipe(NamedTuple):
    """Says from what a group is compiled."""

    modules: tuple[str, ...]
    """those that define its entries"""
    replaced: Mapping[str, str] = {}
    """kernels of which it has another version, by symbol; a user's file does not replace these"""
    adapter: str = ""
    """the module that makes kernels of a user's plain functions, by `adapt`, and tries them out, by `try_out`"""
