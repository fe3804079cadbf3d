"""The files of a move of a workspace's truth: one of them decides which truth counts."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from findling.pipelines.export.copying import finish_copy
from findling.service.workspace.workspace import PLACE_FILE, backend_at, place_of
from findling.stores.filesystem import FileErrors, make_private, sync_folder, write_whole
from findling.stores.local.legs import STORE_FILE, folder_legs, forget_identity

_FROM = "from.url"
"""The file in the folder of a move that holds the URL of a truth that is about to be left."""


def prepare_move(folder: Path, draft: Path, url: str) -> None:
    """Make the folder of the new truth, unless a move to the same place was stopped."""
    with FileErrors(draft):
        if draft.exists() and place_of(draft) != url:
            shutil.rmtree(draft)
        make_private(draft)
        if url:
            write_whole(draft / PLACE_FILE, url.encode())
        else:
            write_whole(draft / _FROM, place_of(folder).encode())


def switch_truth(folder: Path, draft: Path, url: str) -> None:
    """Have the new truth count. The last step of each way is one file."""
    with FileErrors(folder):
        if url:
            write_whole(folder / PLACE_FILE, url.encode())
            return
        forget_identity(folder)
        for suffix in ("-wal", ""):
            if (path := draft / f"{STORE_FILE}{suffix}").exists():
                path.replace(folder / path.name)
        sync_folder(folder)
        (folder / PLACE_FILE).unlink()
        sync_folder(folder)


def tidy_move(folder: Path, draft: Path) -> None:
    """Remove the truth that was left with its legs, and take over those of the new one. A second time does nothing."""
    if not draft.exists():
        return
    here = place_of(folder)
    with FileErrors(folder):
        if here:
            forget_identity(folder)
            for suffix in ("-wal", "-shm", ""):
                (folder / f"{STORE_FILE}{suffix}").unlink(missing_ok=True)
        elif (draft / _FROM).exists():
            write_whole(draft / PLACE_FILE, (draft / _FROM).read_bytes())
            backend_at(draft).put_store_aside()
        for legs in _legs_in(folder):
            shutil.rmtree(legs, ignore_errors=True)
        for legs in _legs_in(draft):
            legs.replace(folder / legs.name)
        shutil.rmtree(draft)
    with closing(backend_at(folder).open_store()) as store:
        finish_copy(store, store, is_used=True)


def _legs_in(folder: Path) -> list[Path]:
    return [place for legs in folder_legs(folder).values() for place in legs.folders()]
