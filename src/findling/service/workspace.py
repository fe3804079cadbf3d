"""Where a workspace lives, and which one a path belongs to."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import CorruptError, InvalidValueError, NotIndexedError, PathNotFoundError
from findling.stores.sqlite import SqliteStore

__all__ = ["STORE_FILE", "Workspace", "home_folder", "indexed_root", "locate"]

STORE_FILE = "index.sqlite"
"""The truth of a workspace; a folder that holds it is a workspace."""


_LONGEST_NAME = 200
"""Bytes of a folder's name; most file systems take 255."""


class Workspace(NamedTuple):
    """A folder with an index, the root it indexes, and the part of that root that was asked for ("" for all).

    `only` names the one file below the root that is indexed, when the workspace was made for a single file.
    """

    folder: Path
    root: Path
    scope: str = ""
    only: str = ""


def locate(path: str | Path, *, home: Path, name: str = "") -> Workspace:
    """The workspace that a path belongs to: its own, or that of the nearest folder above it that has one.

    A path that belongs to none yet gets a workspace of its own. A name chooses a workspace by name instead; then the
    current folder, wherever it is, stands for the whole of it. Raises PathNotFoundError when the path is not there,
    InvalidValueError for a name that is no folder name or a path outside the named workspace.
    """
    target = Path(path).expanduser()
    try:
        target = target.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise PathNotFoundError(f"there is no {path}", hint="name a folder or file that exists") from error
    if name:
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise InvalidValueError(
                f"{name!r} is no workspace name", hint="use letters, digits, dot, dash and underscore"
            )
        return _named(home / name, target, is_default=str(path) == ".")
    for root in (target, *target.parents):
        folder = home / _folder_name(root)
        if (folder / STORE_FILE).exists():
            return _on(folder, root, target)
    return _on(home / _folder_name(target), target, target)


def indexed_root(folder: Path) -> Path | None:
    """What the workspace in a folder indexes; None when there is no workspace, or none that can be read."""
    if not (folder / STORE_FILE).exists():
        return None
    try:
        with SqliteStore.open(folder / STORE_FILE, readonly=True) as store:
            root = store.get_meta("root")
    except (CorruptError, NotIndexedError):
        # Just being made, or damaged: whoever opens it next says so, and may rebuild it.
        return None
    return Path(root) if root else None


def _on(folder: Path, root: Path, target: Path) -> Workspace:
    if root.is_file():
        return Workspace(folder, root.parent, only=root.name)
    return Workspace(folder, root, "" if root == target else target.relative_to(root).as_posix())


def _named(folder: Path, target: Path, *, is_default: bool) -> Workspace:
    # What a named workspace indexes was settled when it was made; a path inside it narrows the search.
    root = indexed_root(folder) or target
    if target == root or root in target.parents:
        return _on(folder, root, target)
    if is_default:
        return _on(folder, root, root)
    raise InvalidValueError(
        f"{target} is not part of the workspace {folder.name!r}, which indexes {root}", hint=f"name a path below {root}"
    )


def home_folder(configured: str) -> Path:
    """The folder that holds all workspaces: the configured one, or the user's data folder."""
    if configured:
        return Path(configured).expanduser().absolute()
    if os.name == "posix" and os.uname().sysname == "Linux":
        # What platformdirs says too, without its 8 ms.
        return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "findling" / "workspaces"
    import platformdirs

    return Path(platformdirs.user_data_dir("findling", appauthor=False)) / "workspaces"


def _folder_name(root: Path) -> str:
    """A readable name that no other path has: its parts joined by `+`, what is special in them escaped."""
    escaped = (part.replace("%", "%25").replace("+", "%2B").replace(":", "%3A") for part in root.parts)
    name = "+".join(escaped).replace(os.sep, "") or "+"
    encoded = name.encode("utf-8", "surrogateescape")
    if len(encoded) <= _LONGEST_NAME:
        return name
    from hashlib import blake2b  # 3 ms of OpenSSL that only very deep paths need

    return f"{root.name[:40]}+{blake2b(encoded, digest_size=16).hexdigest()}"
