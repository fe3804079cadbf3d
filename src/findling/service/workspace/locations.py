"""Where the folder of a workspace may lie: a note of every place outside the home, and a look at who else is there."""

from __future__ import annotations

import os
from pathlib import Path

from findling.domain.results import Degradation
from findling.service.workspace.backends import has_store
from findling.service.workspace.workspace import (
    PROJECT_FOLDER,
    Workspace,
    folder_name,
    is_name,
    pointer_of,
    refuse_link,
)
from findling.stores.filesystem import FileErrors, write_whole

__all__ = ["forget_place", "keep_out_of_git", "note_place", "settle", "sync_warning", "synced_by"]

_SERVICES = {
    "dropbox": "Dropbox",
    "onedrive": "OneDrive",
    "nextcloud": "Nextcloud",
    "owncloud": "ownCloud",
    "google drive": "Google Drive",
    "icloud drive": "iCloud Drive",
    "iclouddrive": "iCloud Drive",
    "mobile documents": "iCloud Drive",
    "synology drive": "Synology Drive",
}
"""What folders that a service keeps in step with other machines are called, whole or up to ` - COMPANY`."""

_MARKS = {
    ".stfolder": "Syncthing",
    ".dropbox": "Dropbox",
    ".nextcloudsync.log": "Nextcloud",
    ".owncloudsync.log": "ownCloud",
}
"""What such services leave at the top of a folder of any name."""


def settle(workspace: Workspace, home: Path) -> list[Degradation]:
    """Make ready for the first write of a workspace; what its user should be told about the place.

    Raises ReadOnlyError or DiskFullError when the project or the home cannot be written, UntrustedSettingError when a
    link stands where the index should be.
    """
    folder, root = workspace.folder, workspace.root
    inside = root / PROJECT_FOLDER
    if folder != inside:
        return [_unused(root)] if not is_name(folder.name) and has_store(inside) else []
    if has_store(folder):
        return []
    refuse_link(folder)
    # The note comes before the index, which would be lost without it.
    keep_out_of_git(folder)
    note_place(folder_name(root), home, folder)
    warning = sync_warning(folder, str(root))
    return [warning] if warning is not None else []


def note_place(key: str, home: Path, folder: Path) -> None:
    """Note that a workspace lies, or will lie, in a folder outside the home."""
    from findling.stores.filesystem import make_private

    pointer, place = pointer_of(key, home), os.fsencode(folder)
    with FileErrors(pointer):
        make_private(pointer.parent)
        is_known = pointer.exists() and pointer.read_bytes() == place
    if not is_known:
        write_whole(pointer, place)


def forget_place(key: str, home: Path) -> None:
    """Take the note back; fine when there is none."""
    pointer_of(key, home).unlink(missing_ok=True)


def keep_out_of_git(folder: Path) -> None:
    """Have no repository take the folder in."""
    with FileErrors(folder):
        folder.mkdir(exist_ok=True, mode=0o700)
        rules = folder / ".gitignore"
        if not rules.exists():
            rules.write_text("*\n", encoding="ascii")


def sync_warning(folder: Path, called: str) -> Degradation | None:
    """What to tell about an index in a folder that is kept in step; `called` is the name or path of its workspace."""
    service = synced_by(folder)
    if not service:
        return None
    return Degradation(
        what=f"{folder} lies in a folder that {service} keeps in step; an index there may be damaged",
        fix=f"findling workspaces set {called} --to home",
    )


def _unused(root: Path) -> Degradation:
    return Degradation(
        what=f"{root / PROJECT_FOLDER} holds an index that is not used: it was not made here, or has moved with {root}",
        fix=f"findling workspaces drop {root}, then findling workspaces set {root} --to project; or delete it",
    )


def synced_by(path: Path) -> str:
    """The service that keeps a path in step with other machines, as far as names and marks tell; empty for none.

    An index there may be changed under our hands, and every write goes over the network.
    """
    for folder in (path, *path.parents):
        name = folder.name.lower()
        for known, service in _SERVICES.items():
            if name == known or name.startswith((f"{known} - ", f"{known}-")):
                return service
        # macOS: ~/Library/CloudStorage/OneDrive-Personal, GoogleDrive-me@example.com
        if folder.parent.name == "CloudStorage" and folder.parent.parent.name == "Library":
            return folder.name.partition("-")[0]
        for mark, service in _MARKS.items():
            if (folder / mark).exists():
                return service
    return ""
