"""The workspace of a path: its folder, its root, and the names of both."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.errors import (
    CorruptError,
    FindlingError,
    InvalidValueError,
    NotIndexedError,
    PathNotFoundError,
    UntrustedSettingError,
)
from findling.stores.local.legs import IDENTITY_FILE, STORE_FILE

if TYPE_CHECKING:
    from findling.domain.backends import Backend

PERSONAL = "personal"
"""The workspace of a person's own memories, found from every folder; it has no files and is not shared."""

PLACES = ("home", "project")
"""Places of a new workspace: with all others, or in the folder that it indexes."""

PLACE_FILE = "place.url"
"""The file in a workspace's folder that holds the URL of its truth, if that is elsewhere."""

PROJECT_FOLDER = ".findling"
"""The folder of a workspace inside the root. A stranger who ships one must not have findling connect to a URL."""

_POINTERS = ".places"
"""The folder in the home that lists the workspaces elsewhere; no workspace can have this name.

An index in a project counts only when it is listed: findling must not open the index that a stranger ships.
"""

_NAME = r"\w[\w.-]*"

_HASHED = re.compile(r"\+.{1,40}\+[0-9a-f]{32}", re.DOTALL)
"""The folder of a path that is too long to be one: the end of it and a hash."""

_LONGEST_NAME = 200
"""Bytes of a folder's name; most file systems take 255."""


class Workspace(NamedTuple):
    """A folder with an index, the root it indexes, and the part of that root that was asked for ("" for all).

    `only` names the one file that a workspace of a single file indexes. `is_guess`: nobody has named the root yet, so
    the first write decides whether it has files. `part` is the part of the root that a first search indexes. `name`
    stands for it in answers of several workspaces, by default its root.
    """

    folder: Path
    root: Path
    scope: str = ""
    only: str = ""
    is_guess: bool = False
    part: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """Its name, or the root that it goes by."""
        return self.name or str(self.root / self.only)

    @property
    def has_files(self) -> bool:
        """Whether it indexes files; a workspace without files is its own root."""
        return self.root != self.folder

    @property
    def subject(self) -> str:
        """The root to note when the first write is no file; empty for no files."""
        return str(self.root / self.only) if self.has_files and not self.is_guess else ""


def locate(path: str | Path, *, home: Path, name: str = "", place: str = "home") -> Workspace:
    """The workspace that a path belongs to: its own, or that of the nearest folder above it that has one.

    A path without one gets a workspace of its own, in the home or in the project as `place` says. A `name` chooses a
    workspace instead; then the path `.` stands for all of it. Raises PathNotFoundError, InvalidValueError or
    UntrustedSettingError.
    """
    if name:
        folder = folder_of(check_name(name), home)
        return _named(folder, _path_in(folder, path), name, is_default=str(path) == ".")
    target, folder_at = existing_path(path), _finder(home)
    for root in (target, *target.parents):
        folder = folder_at(root)
        if holds_workspace(folder):
            found = _on(folder, root, target)
            return found._replace(part=found.only or found.scope)
    folder = home / folder_name(target)
    if place == "project" and target.is_dir():  # a file cannot hold its index
        folder = target / PROJECT_FOLDER
        refuse_link(folder)
        if has_store(folder):
            hint = f"findling workspaces set {target} --to project, if you trust it; or delete {folder}"
            raise UntrustedSettingError(f"{folder} holds an index that was not made here", hint=hint)
    found = _on(folder, target, target)
    return found._replace(part=found.only)


def existing_path(path: str | Path) -> Path:
    """The path in full. Raises PathNotFoundError when it is not there."""
    try:
        return Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise PathNotFoundError(f"there is no {path}", hint="name a folder or file that exists") from error


def workspaces_above(folder: Path, subject: Path, home: Path, *, personal: bool = True) -> list[Workspace]:
    """The workspaces of the folders above the `subject` of the one in a folder, nearest first, and the `personal` one.

    A workspace with a name has none: its name means that one alone.
    """
    places: Sequence[Workspace] = _plain_places(subject, home)
    if not places or os.access(f"{home}/{_POINTERS}", os.F_OK):
        folder_at = _finder(home)
        places = [Workspace(folder_at(root), root) for root in (subject, *subject.parents)]
    own, *above = places
    if own.folder != folder:
        return []
    return [place for place in (*above, *[personal_place(home)] * personal) if holds_workspace(place.folder)]


def personal_place(home: Path) -> Workspace:
    """The workspace of a person's own memories, which need not exist."""
    folder = folder_of(PERSONAL, home)
    return Workspace(folder, folder, name=PERSONAL)


@lru_cache(maxsize=64)
def _plain_places(subject: Path, home: Path) -> tuple[Workspace, ...]:
    """The places in the home of a path and the folders above it; none where one may have a former name.

    To find them takes 50 µs, and every question asks for them three times.
    """
    names = {root: folder_name(root) for root in (subject, *subject.parents)}
    if any(map(_former_name, names.values())):
        return ()
    return tuple([Workspace(home / name, root) for root, name in names.items()])


def workspace_in(folder: Path) -> Workspace:
    """The whole workspace in a folder; an unreadable one counts as one without files."""
    root = indexed_root(folder) or folder
    return _on(folder, root, root)


def folder_of(key: str, home: Path) -> Path:
    """The folder of the workspace with this name or root: in the home, or at the place of its note."""
    for known in filter(None, (key, _former_name(key))):
        try:
            elsewhere = Path(os.fsdecode(pointer_of(known, home).read_bytes()))
        except FileNotFoundError:
            continue
        # Deleting the folder drops the index, whatever the note says.
        if holds_workspace(elsewhere) and not elsewhere.is_symlink():
            return elsewhere
    return _in_home(key, home)


def holds_workspace(folder: Path) -> bool:
    """Whether there is a workspace in a folder, also one that has lost its store."""
    # Most folders above are not there, and a question asks for all of them three times: `exists` costs an exception.
    return os.access(folder, os.F_OK) and (has_store(folder) or (folder / IDENTITY_FILE).exists())


def backend_at(folder: Path) -> Backend:
    """The backend of the workspace in a folder. Raises as `open_backend` does."""
    if url := place_of(folder):
        from findling.service.workspace.backends import open_backend

        return open_backend(url, folder)
    from findling.stores.local.backend import LocalBackend

    return LocalBackend(folder)


def place_of(folder: Path) -> str:
    """The URL of the place that holds the truth of a workspace; empty when that is the folder itself."""
    if folder.name == PROJECT_FOLDER:
        return ""
    try:
        return (folder / PLACE_FILE).read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def has_store(folder: Path) -> bool:
    """Whether a folder holds a truth store, or names the place of one."""
    return (folder / STORE_FILE).exists() or bool(place_of(folder))


def pointer_of(key: str, home: Path) -> Path:
    """The note of a workspace that does not lie in the home."""
    return home / _POINTERS / key


def indexed_root(folder: Path) -> Path | None:
    """The root of the workspace in a folder: itself without files; None without a readable workspace."""
    if not has_store(folder):
        return None
    try:
        with closing(backend_at(folder).open_store(readonly=True)) as store:
            root = store.get_meta("root")
    except (CorruptError, NotIndexedError):
        return None  # half created, or damaged: opening it reports that
    return None if root is None else Path(root or folder)


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
    """Whether a workspace may hold resources that are no files; an unreadable one may."""
    try:
        with closing(backend_at(folder).open_store(readonly=True)) as store:
            return store.has_items()
    except NotIndexedError:  # half created, dropped meanwhile, or lost
        return holds_workspace(folder) and not has_store(folder)
    except FindlingError:  # a search reports it
        return True


def is_name(text: str) -> bool:
    """Whether this may be the name of a workspace."""
    return re.fullmatch(_NAME, text) is not None and len(os.fsencode(text)) <= _LONGEST_NAME


def check_name(text: str) -> str:
    """The name of a workspace. Raises InvalidValueError for what cannot be one."""
    if not is_name(text):
        raise InvalidValueError(f"{text!r} is no workspace name", hint="use letters, digits, dot, dash and underscore")
    return text


def is_vast(root: Path) -> bool:
    """Whether a folder is a home folder, holds one, or is a whole disk, which must not be indexed by accident."""
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
    """A readable name that no other path has: its parts joined by `+`, special characters escaped."""
    escaped = (part.replace("%", "%25").replace("+", "%2B").replace(":", "%3A") for part in root.parts)
    name = "+".join(escaped).replace(os.sep, "") or "+"
    encoded = name.encode("utf-8", "surrogateescape")
    if len(encoded) <= _LONGEST_NAME:
        return name
    from hashlib import blake2b  # 3 ms of OpenSSL that only very deep paths need

    # A leading dot marks folders that are being created or deleted.
    return f"+{root.name[:40]}+{blake2b(encoded, digest_size=16).hexdigest()}"


def is_formerly_named(folder: Path) -> bool:
    """Whether a folder holds the workspace of a very deep path under the name of earlier versions."""
    root = indexed_root(folder) if _HASHED.fullmatch(f"+{folder.name}") else None
    return root is not None and _former_name(folder_name(root)) == folder.name


def refuse_link(folder: Path) -> None:
    """Raise UntrustedSettingError for a link in the place of an index: a project must not choose another place."""
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
    """A function from a root to the folder of its workspace; it looks for notes just once."""
    has_pointers = (home / _POINTERS).exists()
    return lambda root: (folder_of if has_pointers else _in_home)(folder_name(root), home)


def _on(folder: Path, root: Path, target: Path) -> Workspace:
    if root.is_file():
        return Workspace(folder, root.parent, only=root.name)
    return Workspace(folder, root, "" if root == target else target.relative_to(root).as_posix())


def _path_in(folder: Path, path: str | Path) -> Path:
    """The path in full; the root of a workspace may be on another host, or away."""
    try:
        return existing_path(path)
    except PathNotFoundError:
        if Path(path) != indexed_root(folder):
            raise
        return Path(path)


def _named(folder: Path, target: Path, name: str, *, is_default: bool) -> Workspace:
    # The root of a named workspace is fixed; a path inside it narrows the search.
    known = indexed_root(folder)
    root = known or (folder if name == PERSONAL else target)
    if root == folder:
        if is_default or target == folder.resolve():
            return Workspace(folder, folder)
        message = f"the workspace {name!r} has no files, so no part of it is {target}"
        raise InvalidValueError(message, hint=f"findling --workspace {name} QUERY")
    if known is None and is_default:
        return _on(folder, root, root)._replace(is_guess=True)
    if target == root or root in target.parents:
        return _on(folder, root, target)
    if is_default:
        return _on(folder, root, root)
    raise InvalidValueError(
        f"{target} is not part of the workspace {name!r}, which indexes {root}", hint=f"name a path below {root}"
    )
