"""All workspaces of a user: list, create, rename, change and drop them.

Each change holds a lock on the home and is one renaming, so a kill leaves the state before or after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.backends import BackendLock
from findling.domain.errors import FindlingError, InvalidValueError, NotFoundError
from findling.service.workspace import workspace_folders as folders
from findling.service.workspace.backends import folder_of_url, is_url, shown_url
from findling.service.workspace.manifest import Manifest, own_quota, read_manifest, share_quota, write_manifest
from findling.service.workspace.quotas import Quota, disk_usage
from findling.service.workspace.workspace import (
    PERSONAL,
    PLACE_FILE,
    PLACES,
    PROJECT_FOLDER,
    Workspace,
    backend_at,
    check_name,
    existing_path,
    folder_name,
    folder_of,
    has_store,
    holds_workspace,
    indexed_root,
    is_formerly_named,
    is_name,
    place_of,
    pointer_of,
    workspace_in,
)
from findling.service.workspace.writer_queue import LOCK_PATIENCE_S, WriterQueue
from findling.stores.filesystem import FileErrors, write_whole
from findling.stores.local.legs import IDENTITY_FILE, STORE_FILE


class FoundWorkspace(NamedTuple):
    """A workspace that exists: its key in the home, and its folder."""

    key: str
    folder: Path

    @property
    def name(self) -> str:
        """Its name; empty for one that goes by the folder that it indexes."""
        return self.key if is_name(self.key) else ""


@dataclass(frozen=True, kw_only=True)
class WorkspaceAccount:
    """One line of `findling workspaces list`; `root` is empty without files, `problem` says why nothing is known."""

    name: str
    root: str
    folder: Path
    place: str
    resources: int = 0
    chunks: int = 0
    characters: int = 0
    size_bytes: int = 0
    indexed_at: float | None = None
    created_at: str = ""
    shared: bool = False
    quota: Quota | None = None
    is_root_missing: bool = False
    problem: str = ""

    @property
    def label(self) -> str:
        """Its name, or the folder that it indexes."""
        return self.name or self.root or str(self.folder)


def list_workspaces(home: Path) -> list[WorkspaceAccount]:
    """All workspaces, those with names first; an unreadable one is listed with its problem."""
    accounts = [account_of(found) for found in all_workspaces(home)]
    return sorted(accounts, key=lambda account: (not account.name, account.label))


def all_workspaces(home: Path) -> list[FoundWorkspace]:
    """Every workspace that exists, in the home or elsewhere."""
    if not home.is_dir():
        return []
    found_in = [path.parent for name in (STORE_FILE, IDENTITY_FILE, PLACE_FILE) for path in home.glob(f"*/{name}")]
    keys = {folder.name for folder in found_in if not folder.name.startswith(".") or is_formerly_named(folder)}
    keys |= {pointer.name for pointer in folders.pointers(home)}
    found = (FoundWorkspace(key, folder_of(key, home)) for key in sorted(keys))
    return [one for one in found if holds_workspace(one.folder)]


def all_places(home: Path) -> list[Workspace]:
    """Every workspace that exists as a place to search."""
    return [place_in(found) for found in all_workspaces(home)]


def place_in(found: FoundWorkspace) -> Workspace:
    """A workspace as a place to search, by its name where it has one."""
    place = Workspace(found.folder, found.folder)
    with suppress(FindlingError):  # its server is away: a search reports that
        place = workspace_in(found.folder)
    return place._replace(name=found.name)


def find_workspace(text: str, home: Path) -> FoundWorkspace:
    """The workspace with this name, or of this path, which need not exist any more. Raises NotFoundError."""
    for key in [text] * is_name(text) + [folder_name(Path(text).expanduser().resolve())]:
        folder = folder_of(key, home)
        if holds_workspace(folder):
            return FoundWorkspace(key, folder)
    raise NotFoundError(f"there is no workspace {text}", hint="findling workspaces list")


@cache
def root_of(label: str, home: Path) -> Path:
    """The folder that the paths of hits in a workspace are relative to, by the name that a hit gives it."""
    place = place_in(find_workspace(label, home))
    return place.root if place.has_files else Path()


def is_shared(folder: Path) -> bool:
    """Whether a workspace is marked as shared; an unreadable one is not, nor is the personal one."""
    with suppress(FindlingError):
        manifest = read_manifest(folder)
        return manifest is not None and manifest.shared and manifest.name != PERSONAL
    return False


def account_of(found: FoundWorkspace) -> WorkspaceAccount:
    """The size and state of a workspace, or the problem that hides them."""
    place = "project" if found.folder.name == PROJECT_FOLDER else shown_url(place_of(found.folder)) or "home"
    known: dict[str, Any] = {"name": found.name, "folder": found.folder, "place": place}
    known["size_bytes"] = disk_usage(found.folder)
    try:
        manifest = read_manifest(found.folder) or Manifest()
        with closing(backend_at(found.folder).open_store(readonly=True)) as store:
            counts, indexed_at, root = store.counts(), store.get_meta("indexed_at"), store.get_meta("root")
            quota = own_quota(found.folder, store)
    except FindlingError as error:
        return WorkspaceAccount(**known, root="", problem=error.message)
    return WorkspaceAccount(
        **known,
        root=root or "",
        resources=counts["resources"],
        chunks=counts["chunks"],
        characters=counts["characters"],
        indexed_at=float(indexed_at) if indexed_at else None,
        created_at=manifest.created_at,
        shared=manifest.shared,
        quota=quota,
        is_root_missing=bool(root) and not Path(root or "").exists(),
    )


def create_workspace(
    name: str,
    *,
    home: Path,
    root: str | Path | None = None,
    place: str = "home",
    shared: bool = False,
    quota: Quota | None = None,
) -> FoundWorkspace:
    """Create a workspace for a root, or one without files. Nothing is indexed yet.

    `place` is `home`, `project` or a URL: `file:` names the folder, another one the place of the truth, whose content
    stays. Raises InvalidValueError, PathNotFoundError or MissingExtraError.
    """
    _check_new(name)
    indexed = existing_root(root) if root is not None else None
    if place not in PLACES and not is_url(place):
        raise InvalidValueError(f"{place!r} is no place for a workspace", hint="home, project, or a URL: file:///PATH")
    if place == "project" and (indexed is None or not indexed.is_dir()):
        raise InvalidValueError(f"the workspace {name} has no folder to lie in", hint="--root FOLDER")
    with folders.changing(home):
        _refuse_taken(name, home)
        elsewhere = folder_of_url(place) if is_url(place) else None
        if place == "project" and indexed is not None:
            elsewhere = indexed / PROJECT_FOLDER
        target = elsewhere or home / name
        if elsewhere is not None:
            folders.make_room(elsewhere)
            folders.note_place(name, home, elsewhere)
        with folders.drafted(target, home) as draft:
            if is_url(place) and elsewhere is None:
                write_whole(draft / PLACE_FILE, place.encode())
            _create_store(draft, str(indexed or ""), quota)
            write_manifest(draft, name=name, root=str(indexed) if indexed else None, shared=shared, quota=quota)
            if place == "project":
                folders.keep_out_of_git(draft)
    return FoundWorkspace(name, target)


def _create_store(folder: Path, root: str, quota: Quota | None) -> None:
    """Create the truth of a new workspace; one that others have created at the same place keeps its root."""
    backend = backend_at(folder)
    with WriterQueue.of(folder).locked(LOCK_PATIENCE_S):
        backend.create_store()
        with closing(backend.open_store()) as store:
            if store.get_meta("root") is None:
                store.set_meta("root", root)
            backend.identify(store)
            if quota is not None:
                share_quota(folder, store, quota)


def rename_workspace(text: str, new_name: str, *, home: Path) -> FoundWorkspace:
    """Give a workspace another name. Raises NotFoundError, InvalidValueError for a name that cannot be or is taken."""
    _check_new(new_name)
    with _held(text, home) as (found, lock), FileErrors(found.folder):
        if not found.name:
            message = f"{text} goes by the folder that it indexes, so it has no name"
            raise InvalidValueError(message, hint=f"findling workspaces create {new_name} --root {text}")
        _refuse_taken(new_name, home)
        if found.folder.parent == home:
            folders.release_on_windows(lock)
            found = FoundWorkspace(new_name, folders.put_in_place(found.folder, home / new_name))
        else:
            pointer_of(found.key, home).rename(pointer_of(new_name, home))
            found = FoundWorkspace(new_name, found.folder)
        write_manifest(found.folder, name=new_name, root=_root_of(found.folder))
    return found


def change_workspace(
    text: str, *, home: Path, shared: bool | None = None, limits: Mapping[str, int] | None = None
) -> tuple[FoundWorkspace, Manifest]:
    """Change whether a workspace is shared, or its quota; values that are not given stay.

    `limits` are the changed limits of its quota, by their names; 0 removes one. Raises NotFoundError.
    """
    with _held(text, home) as (found, _):
        if shared and found.name:
            _check_new(found.name)
        changes: dict[str, Any] = {"name": found.name, "root": _root_of(found.folder)}
        if shared is not None:
            changes["shared"] = shared
        if limits:
            with closing(backend_at(found.folder).open_store()) as store:
                quota = (own_quota(found.folder, store) or Quota())._replace(**limits)
                changes["quota"] = quota if any(quota) else None
                share_quota(found.folder, store, quota)
                store.set_meta("limits", "")  # the next refresh retries the files that did not fit
        return found, write_manifest(found.folder, **changes)


def drop_workspace(text: str, *, home: Path) -> FoundWorkspace:
    """Delete the index of a workspace; the indexed files stay as they are, and may be gone. So may its server.

    Raises NotFoundError when there is none, LockedError when another process is writing it.
    """
    with _held(text, home, only_here=True) as (found, lock):
        folders.release_on_windows(lock)
        folders.discard(found.folder, home)
        # A killed move across devices may have left its copy.
        if (home / found.key).exists():
            folders.discard(home / found.key, home)
        folders.forget_place(found.key, home)
    return found


def _check_new(name: str) -> None:
    if check_name(name) == PERSONAL:
        message = "personal is the workspace of your own memories: it has no files and is not shared"
        raise InvalidValueError(message, hint="findling remember makes it; choose another name")


def existing_root(root: str | Path) -> Path:
    """The path in full. Raises PathNotFoundError when it is not there, InvalidValueError when it is not UTF-8."""
    path = existing_path(root)
    if os.fsencode(path).decode(errors="replace") != str(path):
        raise InvalidValueError(f"the name of {path} is not UTF-8", hint="rename the folder")
    return path


@contextmanager
def _held(text: str, home: Path, *, only_here: bool = False) -> Iterator[tuple[FoundWorkspace, BackendLock]]:
    """A workspace, with the locks on the home and on the workspace, or on its folder alone."""
    with folders.changing(home):
        found = find_workspace(text, home)
        with folders.holding(found.folder, only_here=only_here) as lock:
            yield found, lock


def _refuse_taken(name: str, home: Path) -> None:
    """Raise InvalidValueError when a workspace has this name, or files of others stand in its place."""
    if has_store(folder_of(name, home)):
        raise InvalidValueError(f"there is a workspace {name} already", hint="findling workspaces list")
    folders.make_room(home / name)


def _root_of(folder: Path) -> str | None:
    root = indexed_root(folder)
    return None if root in (None, folder) else str(root)
