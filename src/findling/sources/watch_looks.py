"""A look at a whole tree, as the scan sees it: enough to tell whether anything has changed since the look before."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from findling.domain.ports import SkippedPath
from findling.sources.discovery import scan
from findling.sources.user_rules import Rules

__all__ = ["Look", "Tree", "look_at"]


class Tree(NamedTuple):
    """What is watched: the folder, the rules that decide what of it is indexed, and the one file of it, if it is one.

    A folder that is not there is missed by `look_at`, never made.
    """

    root: Path
    rules: Rules
    only: str = ""


class Look(NamedTuple):
    """What a look tells: a digest of all files that would be indexed, and when each folder was changed.

    Paths of folders are relative to the root, with a slash at their end; the root itself is empty.
    """

    digest: bytes
    folders: dict[str, int]


def look_at(tree: Tree) -> Look:
    """Look at a tree; what is kept of it grows with its folders, not with its files.

    Raises PathNotFoundError for a root that is not there, InvalidValueError for a rule that can match nothing.
    """
    digest = blake2b(digest_size=16)
    folders: dict[str, int] = {}
    for found in scan(str(tree.root), tree.rules, tree.only, folders):
        if not isinstance(found, SkippedPath):
            digest.update(f"{found.path}\0{found.size}\0{found.changed_ns}\0{found.inode}\n".encode())
    return Look(digest.digest(), folders)
