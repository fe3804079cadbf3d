"""Where a workspace lives, and which one a path belongs to."""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, PathNotFoundError

__all__ = ["STORE_FILE", "Workspace", "home_folder", "locate"]

STORE_FILE = "index.sqlite"
"""The truth of a workspace; a folder that holds it is a workspace."""


class Workspace(NamedTuple):
    """A folder with an index, the root it indexes, and the part of that root that was asked for ("" for all)."""

    folder: Path
    root: Path
    scope: str


def locate(path: str | Path, *, home: Path, name: str = "") -> Workspace:
    """The workspace that a path belongs to: its own, or that of the nearest folder above it that has one.

    A path that belongs to none yet gets a workspace of its own. A name chooses a workspace by name instead.
    Raises PathNotFoundError when the path is not there, InvalidValueError for a name that is no folder name.
    """
    target = Path(path).expanduser()
    try:
        target = target.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise PathNotFoundError(f"there is no {path}", hint="name a folder or file that exists") from error
    if name:
        if not re.fullmatch(r"[\w][\w.-]*", name):
            raise InvalidValueError(f"{name!r} is no workspace name", hint="use letters, digits, dot, dash, underscore")
        return Workspace(home / name, target, "")
    for root in (target, *target.parents):
        folder = home / _folder_name(root)
        if (folder / STORE_FILE).exists():
            scope = "" if root == target else target.relative_to(root).as_posix()
            return Workspace(folder, root, scope)
    return Workspace(home / _folder_name(target), target, "")


def home_folder(configured: str) -> Path:
    """The folder that holds all workspaces: the configured one, or the user's data folder."""
    if configured:
        return Path(configured).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("findling", appauthor=False)) / "workspaces"


def _folder_name(root: Path) -> str:
    # The name is for people who look into the folder; the digest of the whole path makes it unique.
    slug = re.sub(r"[^\w.-]+", "-", root.name).strip("-.")[:40] or "root"
    return f"{slug}-{blake2b(str(root).encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"
