"""Where the folder of a workspace may lie: a note of every place outside the home, and a look at who else is there."""

from __future__ import annotations

import os
from pathlib import Path

from findling.service.whole_files import write_whole
from findling.service.workspace import PROJECT_FOLDER, STORE_FILE, Workspace, folder_name, pointer_of
from findling.stores.sqlite_files import StoreErrors

__all__ = ["forget_place", "keep_out_of_git", "note_place", "settle", "synced_by"]

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


def settle(workspace: Workspace, home: Path) -> None:
    """Make ready for the first write of a workspace that lies in its project; any other one needs nothing.

    Raises ReadOnlyError or DiskFullError when the project or the home cannot be written.
    """
    folder, root = workspace.folder, workspace.root
    if folder == root / PROJECT_FOLDER and not (folder / STORE_FILE).exists():
        # The note comes before the index, which would be lost without it, and after the folder: a note that leads to
        # none is cleared away.
        keep_out_of_git(folder)
        note_place(folder_name(root), home, folder)


def note_place(key: str, home: Path, folder: Path) -> None:
    """Note that a workspace lies, or will lie, in a folder outside the home."""
    pointer, place = pointer_of(key, home), os.fsencode(folder)
    with StoreErrors(pointer):
        pointer.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_known = pointer.exists() and pointer.read_bytes() == place
    if not is_known:
        write_whole(pointer, place)


def forget_place(key: str, home: Path) -> None:
    """Take the note back; fine when there is none."""
    pointer_of(key, home).unlink(missing_ok=True)


def keep_out_of_git(folder: Path) -> None:
    """Have no repository take the folder in."""
    with StoreErrors(folder):
        folder.mkdir(exist_ok=True, mode=0o700)
        rules = folder / ".gitignore"
        if not rules.exists():
            rules.write_text("*\n", encoding="ascii")


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
