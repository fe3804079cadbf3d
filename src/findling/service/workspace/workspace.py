"""Where a workspace lives, and which one a path belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import (
    CorruptError,
    FindlingError,
    InvalidValueError,
    NotIndexedError,
    PathNotFoundError,
    UntrustedSettingError,
)
from findling.service.workspace.backends import backend_at, has_store
from findling.stores.local.layout import IDENTITY_FILE

__all__ = [
    "PLACES",
    "PROJECT_FOLDER",
    "Workspace",
    "check_name",
    "folder_name",
    "folder_of",
    "has_items",
    "holds_file",
    "holds_workspace",
    "home_folder",
    "indexed_root",
    "is_formerly_named",
    "is_name",
    "is_vast",
    "locate",
    "pointer_of",
    "refuse_link",
    "workspace_in",
    "workspaces_above",
]

PROJECT_FOLDER = ".findling"
"""The folder of a workspace that lies inside what it indexes."""

PLACES = ("home", "project")
"""Where a new workspace is put: with all others, or into the folder that it indexes."""

_POINTERS = ".places"
"""The folder in the home that says which workspaces lie elsewhere; no workspace can be called so.

An index in a project counts only when it stands here: whoever ships a folder must not have their index opened.
"""

_NAME = re.compile(r"\w[\w.-]*")

_HASHED = re.compile(r"\+.{1,40}\+[0-9a-f]{32}", re.DOTALL)
"""The folder of a path that is too long to be one: the end of it and a hash."""

_LONGEST_NAME = 200
"""Bytes of a folder's name; most file systems take 255."""


class Workspace(NamedTuple):
    """A folder with an index, the root it indexes, and the part of that root that was asked for ("" for all).

    `only` names the one file below the root that is indexed, when the workspace was made for a single file. `is_guess`
    says that nobody has named the root yet: what is put first into a workspace decides whether it has files. `part` is
    the part of the root that a search indexes, if it is not indexed yet: a workspace may hold no files so far, and
    whoever asks for one folder has not asked for those beside it.
    """

    folder: Path
    root: Path
    scope: str = ""
    only: str = ""
    is_guess: bool = False
    part: str = ""

    @property
    def has_files(self) -> bool:
        """Whether it indexes what lies on disk; one that holds other things only is its own root."""
        return self.root != self.folder

    @property
    def subject(self) -> str:
        """What is noted as indexed when something that is no file is put in first; empty for no files."""
        return str(self.root / self.only) if self.has_files and not self.is_guess else ""


def locate(path: str | Path, *, home: Path, name: str = "", place: str = "home") -> Workspace:
    """The workspace that a path belongs to: its own, or that of the nearest folder above it that has one.

    A path that belongs to none yet gets a workspace of its own, in the home or in the project as `place` says; one that
    exists is found wherever it is. A name chooses a workspace by name instead; then the current folder, wherever it is,
    stands for the whole of it. Raises PathNotFoundError when the path is not there, InvalidValueError for a name that
    is no folder name or a path outside the named workspace, UntrustedSettingError when a new workspace would have to
    take over an index that somebody else has put into the project.
    """
    target = Path(path).expanduser()
    try:
        target = target.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise PathNotFoundError(f"there is no {path}", hint="name a folder or file that exists") from error
    if name:
        return _named(folder_of(check_name(name), home), target, name, is_default=str(path) == ".")
    folder_at = _finder(home)
    for root in (target, *target.parents):
        folder = folder_at(root)
        if holds_workspace(folder):
            found = _on(folder, root, target)
            return found._replace(part=found.only or found.scope)
    # A file cannot hold its index.
    in_project = place == "project" and target.is_dir()
    folder = _free_folder_in(target) if in_project else home / folder_name(target)
    found = _on(folder, target, target)
    return found._replace(part=found.only)


def workspaces_above(folder: Path, subject: Path, home: Path) -> list[Workspace]:
    """The workspaces of the folders above the `subject` of the one in a folder, the nearest first.

    One that goes by a name has none: whoever names it means that one alone.
    """
    folder_at = _finder(home)
    if folder_at(subject) != folder:
        return []
    above = [Workspace(folder_at(root), root) for root in subject.parents]
    return [place for place in above if holds_workspace(place.folder)]


def workspace_in(folder: Path) -> Workspace:
    """All of the workspace in a folder; one that cannot be read counts as one without files."""
    root = indexed_root(folder) or folder
    return _on(folder, root, root)


def folder_of(key: str, home: Path) -> Path:
    """The folder of the workspace with this name, or of this root: elsewhere if it really is there, or in the home."""
    for known in filter(None, (key, _former_name(key))):
        try:
            elsewhere = Path(os.fsdecode(pointer_of(known, home).read_bytes()))
        except FileNotFoundError:
            continue
        # Whoever deletes the folder has dropped the index, and need not know what else tells of it.
        if holds_workspace(elsewhere) and not elsewhere.is_symlink():
            return elsewhere
    return _in_home(key, home)


def holds_workspace(folder: Path) -> bool:
    """Whether there is a workspace in a folder, also one that has lost its store."""
    return has_store(folder) or (folder / IDENTITY_FILE).exists()


def pointer_of(key: str, home: Path) -> Path:
    """The file that says where the workspace lies, if it is not in the home."""
    return home / _POINTERS / key


def indexed_root(folder: Path) -> Path | None:
    """What the workspace in a folder indexes: itself when it has no files.

    None when there is no workspace, or none that can be read.
    """
    if not has_store(folder):
        return None
    try:
        with closing(backend_at(folder).open_store(readonly=True)) as store:
            root = store.get_meta("root")
    except (CorruptError, NotIndexedError):
        # Just being made, or damaged: whoever opens it next says so, and may rebuild it.
        return None
    if root is None:
        return None
    return Path(root) if root else folder


def holds_file(workspace: Workspace, file: Path) -> bool:
    """Whether a file is in the index of a workspace, which need not be there."""
    if not has_store(workspace.folder) or not file.is_relative_to(workspace.root):
        return False
    try:
        with closing(backend_at(workspace.folder).open_store(readonly=True)) as store:
            return store.document(f"file:{file.relative_to(workspace.root).as_posix()}") is not None
    except (CorruptError, NotIndexedError):
        return False


def has_items(folder: Path) -> bool:
    """Whether a workspace may hold what lies in no folder; one that cannot be read, or has lost its store, may."""
    try:
        with closing(backend_at(folder).open_store(readonly=True)) as store:
            return store.has_items()
    except NotIndexedError:  # just being made, dropped meanwhile, or lost
        return holds_workspace(folder) and not has_store(folder)
    except FindlingError:  # whoever asks it is told why
        return True


def is_name(text: str) -> bool:
    """Whether this may be the name of a workspace."""
    return _NAME.fullmatch(text) is not None and len(os.fsencode(text)) <= _LONGEST_NAME


def check_name(text: str) -> str:
    """The name of a workspace. Raises InvalidValueError for what cannot be one."""
    if not is_name(text):
        raise InvalidValueError(f"{text!r} is no workspace name", hint="use letters, digits, dot, dash and underscore")
    return text


def is_vast(root: Path) -> bool:
    """Whether a folder is a home folder, holds one, or is a whole disk: nobody indexes that by accident."""
    try:
        home = Path.home().resolve()
    except RuntimeError:
        return root == root.parent
    return root == root.parent or root == home or root in home.parents


def home_folder(configured: str) -> Path:
    """The folder that holds all workspaces: the configured one, or the user's data folder."""
    if configured:
        return Path(configured).expanduser().absolute()
    if os.name == "posix" and os.uname().sysname == "Linux":
        # What platformdirs says too, without its 8 ms.
        return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "findling" / "workspaces"
    import platformdirs

    return Path(platformdirs.user_data_dir("findling", appauthor=False)) / "workspaces"


def folder_name(root: Path) -> str:
    """A readable name that no other path has: its parts joined by `+`, what is special in them escaped."""
    escaped = (part.replace("%", "%25").replace("+", "%2B").replace(":", "%3A") for part in root.parts)
    name = "+".join(escaped).replace(os.sep, "") or "+"
    encoded = name.encode("utf-8", "surrogateescape")
    if len(encoded) <= _LONGEST_NAME:
        return name
    from hashlib import blake2b  # 3 ms of OpenSSL that only very deep paths need

    # No other name begins with a dot, which is for what is being made or deleted.
    return f"+{root.name[:40]}+{blake2b(encoded, digest_size=16).hexdigest()}"


def is_formerly_named(folder: Path) -> bool:
    """Whether a folder holds the workspace of a very deep path under the name that such paths had at first."""
    root = indexed_root(folder) if _HASHED.fullmatch(f"+{folder.name}") else None
    return root is not None and _former_name(folder_name(root)) == folder.name


def refuse_link(folder: Path) -> None:
    """Raise UntrustedSettingError for a link in the place of an index: whoever ships a project must not say where."""
    if folder.is_symlink():
        raise UntrustedSettingError(
            f"{folder} is a link, and an index is never put where a link leads", hint=f"delete {folder}"
        )


def _former_name(key: str) -> str:
    return key[1:] if _HASHED.fullmatch(key) else ""


def _in_home(key: str, home: Path) -> Path:
    former = _former_name(key)
    return home / former if former and holds_workspace(home / former) else home / key


def _finder(home: Path) -> Callable[[Path], Path]:
    """What tells where the workspace of a root lies, or would lie in the home; it looks for pointers just once."""
    has_pointers = (home / _POINTERS).exists()
    return lambda root: (folder_of if has_pointers else _in_home)(folder_name(root), home)


def _on(folder: Path, root: Path, target: Path) -> Workspace:
    if root.is_file():
        return Workspace(folder, root.parent, only=root.name)
    return Workspace(folder, root, "" if root == target else target.relative_to(root).as_posix())


def _named(folder: Path, target: Path, name: str, *, is_default: bool) -> Workspace:
    # What a named workspace indexes was settled when it was made; a path inside it narrows the search.
    known = indexed_root(folder)
    root = known or target
    if root == folder:
        if is_default or target == folder.resolve():
            return Workspace(folder, folder)
        raise InvalidValueError(
            f"the workspace {name!r} has no files, so no part of it is {target}",
            hint=f"findling --workspace {name} QUERY",
        )
    if known is None and is_default:
        return _on(folder, root, root)._replace(is_guess=True)
    if target == root or root in target.parents:
        return _on(folder, root, target)
    if is_default:
        return _on(folder, root, root)
    raise InvalidValueError(
        f"{target} is not part of the workspace {name!r}, which indexes {root}", hint=f"name a path below {root}"
    )


def _free_folder_in(root: Path) -> Path:
    folder = root / PROJECT_FOLDER
    refuse_link(folder)
    if has_store(folder):
        raise UntrustedSettingError(
            f"{folder} holds an index that was not made here",
            hint=f"findling workspaces set {root} --to project, if you trust it; or delete {folder}",
        )
    return folder
