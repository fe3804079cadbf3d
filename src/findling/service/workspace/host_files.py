"""The one host that follows the files of a workspace whose truth several hosts share.

The others search what it has indexed. Their folders have other files, or none: an index run there would delete the
first host's.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import UsageError
from findling.service.workspace.workspace import place_of
from findling.stores.filesystem import write_whole

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore

_HOST = "host"
"""Name of the small value with the id of the host that follows the files."""

_ID_FILE = "host.txt"
"""The id of this host, in the folder of the workspace."""


def is_followed_elsewhere(folder: Path, store: TruthStore) -> bool:
    """Whether another host follows the files of the workspace in a folder."""
    host = store.get_meta(_HOST)
    return host is not None and host != _own_id(folder) and not _is_of_home(host, folder)


def follow_files(folder: Path, store: TruthStore) -> None:
    """Have this host follow the files from now on, whoever did before. The caller holds the write lock."""
    own, host = _own_id(folder), store.get_meta(_HOST)
    if not own:
        own = host if host is not None and _is_of_home(host, folder) else os.urandom(8).hex()
        write_whole(folder / _ID_FILE, own.encode())
    if host != own:
        store.set_meta(_HOST, own)


def claim_files(folder: Path, store: TruthStore) -> None:
    """Have this host follow the files. The caller holds the lock. Raises UsageError when another host does."""
    refuse_files_of_others(folder, store)
    if place_of(folder):
        follow_files(folder, store)


def refuse_files_of_others(folder: Path, store: TruthStore) -> None:
    """Raise UsageError when another host follows the files; it names the way to take them over."""
    if place_of(folder) and is_followed_elsewhere(folder, store):
        raise UsageError(
            f"another host indexes the files of this workspace: {store.get_meta('root')} there; this one searches them",
            hint=f"findling workspaces set {folder.name} --root PATH, to index a folder of this host instead",
        )


def _is_of_home(host: str, folder: Path) -> bool:
    """Whether a host is this one under another URL: the server was renamed, restored, or goes by two names."""
    return any(_own_id(other.parent) == host for other in folder.parent.glob(f"*/{_ID_FILE}"))


def _own_id(folder: Path) -> str:
    with suppress(OSError):
        return (folder / _ID_FILE).read_text("ascii").strip()
    return ""
