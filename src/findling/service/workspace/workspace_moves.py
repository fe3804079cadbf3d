"""Moves of workspaces: an index between the home and its project, or along with a folder that has moved.

One renaming, or one note in the home, decides which of two folders counts. So a kill leaves the old index or the new.
"""

from __future__ import annotations

import errno
import os
from contextlib import closing
from pathlib import Path

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.service.workspace import workspace_folders as folders
from findling.service.workspace.backends import shown_url
from findling.service.workspace.host_files import follow_files
from findling.service.workspace.manifest import read_manifest, write_manifest
from findling.service.workspace.workspace import (
    PROJECT_FOLDER,
    backend_at,
    folder_name,
    folder_of,
    has_store,
    indexed_root,
    is_name,
    place_of,
    pointer_of,
    refuse_link,
)
from findling.service.workspace.workspaces import FoundWorkspace, existing_root, find_workspace
from findling.stores.filesystem import FileErrors, sync_folder
from findling.stores.local.maintenance import copy_folder


def move_workspace(text: str, to: str, *, home: Path) -> tuple[FoundWorkspace, bool]:
    """Move the index of a workspace to the `home` or into its `project`; returns whether it moved.

    Raises NotFoundError, InvalidValueError or LockedError.
    """
    with folders.changing(home):
        found = find_workspace(text, home)
        target = home / found.key if to == "home" else _folder_in_project(found, text)
        if place := place_of(found.folder):
            raise InvalidValueError(f"the truth of {text} lies at {shown_url(place)}", hint="it has no folder to move")
        if target == found.folder:
            return found, False
        with folders.holding(found.folder) as lock:
            _clear_copy(target, found.folder, home)
            if to == "project":
                folders.keep_out_of_git(found.folder)
                # Ignored until the index is there; then it counts.
                folders.note_place(found.key, home, target)
            folders.release_on_windows(lock)
            if _transfer(found.folder, target, home):
                folders.discard(found.folder, home)
            if to == "home":
                folders.forget_place(found.key, home)
    return FoundWorkspace(found.key, target), True


def adoptable_index(text: str, *, home: Path) -> Path | None:
    """The folder of an index in the project at this path that no note lists; None when there is none.

    Raises UntrustedSettingError for a link in its place.
    """
    folder = Path(text).expanduser().resolve() / PROJECT_FOLDER
    if not has_store(folder):
        return None
    try:
        find_workspace(text, home)
    except NotFoundError:
        refuse_link(folder)
        return folder
    return None


def adopt_index(text: str, *, home: Path) -> FoundWorkspace:
    """Use the index that lies in a project, of any origin, for the folder that it lies in now.

    Raises NotFoundError when there is none, InvalidValueError for one without files.
    """
    root = existing_root(text)
    with folders.changing(home):
        folder = adoptable_index(text, home=home)
        if folder is None:
            raise NotFoundError(f"there is no index in {root} to be used", hint="findling workspaces list")
        known = indexed_root(folder)
        if known is None or known == folder:
            raise InvalidValueError(f"{folder} holds no index of files", hint=f"delete {folder}")
        key = _name_of_moved(folder, known, home) or folder_name(root)
        with folders.holding(folder), FileErrors(folder):
            write_manifest(folder, root=str(root), name=key if is_name(key) else "")
            with closing(backend_at(folder).open_store()) as store:
                store.set_meta("root", str(root))
            # From here on it counts.
            folders.note_place(key, home, folder)
    return FoundWorkspace(key, folder)


def move_root(text: str, new_root: str | Path, *, home: Path) -> FoundWorkspace:
    """Give a workspace the new path of its root; nothing is indexed again.

    Raises NotFoundError, PathNotFoundError or InvalidValueError.
    """
    root = existing_root(new_root)
    with folders.changing(home):
        found = _found_after_move(text, root, home)
        if indexed_root(found.folder) == found.folder:
            raise InvalidValueError(f"the workspace {text} has no files", hint="findling workspaces list")
        with folders.holding(found.folder) as lock, FileErrors(found.folder):
            if found.folder.parent != home:
                found = _noted_in_project(found, root, home)
            elif not found.name and found.key != folder_name(root):
                _refuse_other_index(root, home)
                folders.release_on_windows(lock)
                key = folder_name(root)
                found = FoundWorkspace(key, folders.put_in_place(found.folder, home / key))
            write_manifest(found.folder, root=str(root), name=found.name)
            # The last step: after a kill before it, the old root still finds the workspace, and a retry continues.
            with closing(backend_at(found.folder).open_store()) as store:
                if place_of(found.folder):
                    follow_files(found.folder, store)
                store.set_meta("root", str(root))
    return found


def _folder_in_project(found: FoundWorkspace, text: str) -> Path:
    root = indexed_root(found.folder)
    if root is None or root == found.folder or not root.is_dir():
        raise InvalidValueError(f"the workspace {text} has no folder that its index could lie in", hint="--to home")
    return root / PROJECT_FOLDER


def _name_of_moved(folder: Path, former_root: Path, home: Path) -> str:
    """The name of an index that has moved along with its folder, if a note here says so."""
    manifest = read_manifest(folder)
    if manifest is None or not manifest.name:
        return ""
    pointer = pointer_of(manifest.name, home)
    is_noted = pointer.exists() and pointer.read_bytes() == os.fsencode(former_root / PROJECT_FOLDER)
    return manifest.name if is_noted and not has_store(former_root / PROJECT_FOLDER) else ""


def _clear_copy(target: Path, source: Path, home: Path) -> None:
    """Delete the copy of a killed move. Raises InvalidValueError for any other index."""
    if has_store(target):
        theirs, ours = (backend_at(folder).identity() for folder in (target, source))
        if (theirs and theirs.store_id) == (ours and ours.store_id):
            folders.discard(target, home)
    folders.make_room(target)


def _transfer(source: Path, target: Path, home: Path) -> bool:
    """Rename the folder, or copy it to another device; returns whether it is a copy."""
    with FileErrors(target):
        try:
            folders.put_in_place(source, target)
            sync_folder(source.parent)
            return False
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        draft = folders.draft_of(target, home)
        copy_folder(source, draft)
        folders.put_in_place(draft, target)
        return True


def _found_after_move(text: str, root: Path, home: Path) -> FoundWorkspace:
    """The workspace after its root was moved, perhaps with the index in it, or after a kill during `move_root`."""
    old_root = Path(text).expanduser().resolve()
    for key in [text] * is_name(text) + [folder_name(old_root)]:
        folder = folder_of(key, home)
        if has_store(folder):
            return FoundWorkspace(key, folder)
        if pointer_of(key, home).exists() and has_store(root / PROJECT_FOLDER):
            return FoundWorkspace(key, root / PROJECT_FOLDER)
    key = folder_name(root)
    if indexed_root(folder_of(key, home)) == old_root:
        return FoundWorkspace(key, folder_of(key, home))
    raise NotFoundError(f"there is no workspace {text}", hint="findling workspaces list")


def _noted_in_project(found: FoundWorkspace, root: Path, home: Path) -> FoundWorkspace:
    """Note the new place of an index that has moved along with its folder."""
    if found.folder != root / PROJECT_FOLDER:
        raise InvalidValueError(
            f"the index is still in {found.folder}", hint=f"findling workspaces set {found.folder.parent} --to home"
        )
    key = found.name or folder_name(root)
    if key != found.key:
        _refuse_other_index(root, home)
    folders.note_place(key, home, found.folder)
    if key != found.key:
        folders.forget_place(found.key, home)
    return FoundWorkspace(key, found.folder)


def _refuse_other_index(root: Path, home: Path) -> None:
    folder = folder_of(folder_name(root), home)
    if folder != root / PROJECT_FOLDER and has_store(folder):
        raise InvalidValueError(f"{root} has an index of its own", hint=f"findling workspaces drop {root}")
