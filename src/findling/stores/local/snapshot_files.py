"""Snapshots on disk: a copy of the store, and its description in a small file beside it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from findling import __version__
from findling.domain.errors import CorruptError, FindlingError, FormatError, InvalidValueError, PathNotFoundError
from findling.domain.values import read_json
from findling.stores.filesystem import FileErrors, check_room, discard, sync_folder, write_whole
from findling.stores.lock import WriteLock, taken
from findling.stores.sqlite.backup import copy_store, find_damage, read_facts
from findling.stores.sqlite.schema import FORMAT

FOLDER = "snapshots"
"""The folder of a workspace that holds its snapshots."""

LOCK_FILE = "snapshot.lock"
"""The lock of processes that make, restore or delete snapshots."""

SUFFIX = ".sqlite"

OF_DAMAGED = "the store was damaged when it was copied: "
"""The beginning of the problem of a snapshot that keeps a damaged store on purpose."""

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)

_NAME = re.compile(r"\w[\w.-]{0,99}", re.ASCII)


class Snapshot(NamedTuple):
    """One snapshot by its description; `problem` is the reason why it cannot be restored."""

    name: str
    path: Path
    created_at: float
    size_bytes: int
    seq: int = 0
    counts: Mapping[str, int] = {}
    sha256: str = ""
    format: int = 0
    version: str = ""
    problem: str = ""


def check_name(name: str) -> str:
    """Return a valid name. Raises InvalidValueError for any other, such as one that leads out of the folder."""
    if not _NAME.fullmatch(name) or name.endswith((".", SUFFIX, ".json")):
        raise InvalidValueError(
            f"{name!r} is no name for a snapshot", hint="use up to 100 letters, digits, dots, dashes and underscores"
        )
    return name


def check_format(snapshot: Snapshot) -> None:
    """Raise FormatError for a snapshot that a newer findling has made."""
    if snapshot.format > FORMAT:
        raise FormatError(
            f"the snapshot {snapshot.name} has format {snapshot.format}, this findling knows formats up to {FORMAT}",
            hint="upgrade findling: `pip install --upgrade findling`",
        )


def default_name(folder: Path, prefix: str = "") -> str:
    """A new name by the present time."""
    stem = prefix + datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if not (folder / f"{name}{SUFFIX}").exists())


def write_snapshot(
    store: Path,
    path: Path,
    *,
    on_step: Callable[[int, int], None] | None = None,
    keeps_damage: bool = False,
    copy: Callable[[Path, Path], None] | None = None,
    needed: int | None = None,
) -> Snapshot:
    """Copy a store to `path` while others read and write it, as a whole or not at all.

    `copy` copies a part of about `needed` bytes instead. Raises InvalidValueError when the target exists, and
    DiskFullError, ReadOnlyError or PathNotFoundError for it. Raises CorruptError for an unreadable store, and for a
    damaged one unless the copy `keeps_damage`. Nothing is left behind then.
    """
    _check_target(path)
    require_room(path.parent, _store_bytes(store) if needed is None else needed, f"a snapshot of {store}", store.parent)
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        (copy or partial(copy_store, on_step=on_step))(store, part)
        damage = find_damage(part)
        if damage and not keeps_damage:
            raise CorruptError(f"{store} is damaged: {'; '.join(damage)}; no snapshot was made")
        values = _described(part, "; ".join(damage))
        write_whole(_description_of(path), (json.dumps(values, indent=2) + "\n").encode())
        try:
            with FileErrors(path):
                part.replace(path)
                sync_folder(path.parent)
        except BaseException:
            if not path.exists():
                _description_of(path).unlink(missing_ok=True)
            raise
    finally:
        part.unlink(missing_ok=True)
    return _snapshot(path, values)


def find_snapshots(folder: Path) -> list[Snapshot]:
    """All snapshots of a folder, the latest first."""
    found = [read_snapshot(path) for path in folder.glob(f"[!.]*{SUFFIX}")]
    return sorted(found, key=lambda one: (-one.created_at, one.name))


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot by its description. Raises FileNotFoundError when there is none."""
    name, status = path.name.removesuffix(SUFFIX), path.stat()
    try:
        return _read_description(path)
    except FileNotFoundError:
        problem = "its description is missing"
    except _UNREADABLE as error:
        problem = f"its description cannot be read: {error!r}"
    return Snapshot(name, path, status.st_mtime, status.st_size, problem=problem)


def way_back(workspace: Path) -> str:
    """The command for a damaged store: restore the latest sound snapshot, or rebuild without one."""
    name = next((one.name for one in find_snapshots(workspace / FOLDER) if not one.problem), "")
    return f"findling snapshot restore {name}" if name else "findling index --rebuild"


def examine(path: Path) -> list[str]:
    """The problems of a snapshot, one sentence each; empty when it can be restored."""
    told = read_snapshot(path)
    if told.problem:
        return [told.problem]
    if told.format > FORMAT:
        return [f"it has format {told.format}, this findling knows formats up to {FORMAT}"]
    size = path.stat().st_size
    if size != told.size_bytes:
        return [f"it has {size:,} bytes, not {told.size_bytes:,}"]
    if _digest(path) != told.sha256:
        return ["its checksum is not the one it was made with"]
    problems = find_damage(path)
    if problems:
        return problems
    try:
        header, counts = read_facts(path)
    except FindlingError as error:
        return [error.message]
    if (header.format, header.seq, counts) != (told.format, told.seq, dict(told.counts)):
        return ["its content is not what its description says"]
    return []


def delete_snapshot(path: Path) -> None:
    """Delete a snapshot and its description."""
    with FileErrors(path):
        path.unlink(missing_ok=True)
        _description_of(path).unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Delete drafts of killed processes. The caller holds the lock of the snapshots."""
    for draft in (*folder.glob(".*.part-*"), *folder.glob(".*.json.new")):
        draft.unlink(missing_ok=True)
    for description in folder.glob(f"*{SUFFIX}.json"):
        if not description.with_suffix("").exists():
            description.unlink(missing_ok=True)
    discard(folder / ".restoring")


def sweep_if_idle(workspace: Path) -> None:
    """Sweep a workspace unless a process is using its snapshots."""
    if (workspace / FOLDER).exists():
        with taken(WriteLock(workspace / LOCK_FILE), 0.0) as is_ours:
            if is_ours:
                sweep(workspace / FOLDER)


def require_room(folder: Path, needed: int, what: str, workspace: Path) -> None:
    """Raise DiskFullError when a folder has no room for so many bytes; hint at snapshots on the same disk."""
    is_same_disk = folder.stat().st_dev == workspace.stat().st_dev
    can_drop = is_same_disk and any(workspace.glob(f"{FOLDER}/[!.]*{SUFFIX}"))
    hint = "free some space there" + (", or findling snapshot drop NAME" if can_drop else "")
    check_room(folder, needed, what, hint=hint)


def _check_target(path: Path) -> None:
    if not path.parent.is_dir():
        raise PathNotFoundError(f"there is no folder {path.parent}", hint="create it first")
    if path.exists():
        raise InvalidValueError(f"{path} is there already", hint="choose another name, or drop it first")
    try:
        _read_description(path)  # left by somebody who has deleted the file itself
    except FileNotFoundError:
        return
    except _UNREADABLE as error:
        raise InvalidValueError(
            f"{_description_of(path)} is there already, and describes no snapshot", hint="choose another name"
        ) from error


def _described(part: Path, damage: str) -> dict[str, Any]:
    """The description of a copy, as it stands in its file."""
    header, counts = read_facts(part)
    return {
        "createdAt": datetime.now(UTC).isoformat(timespec="microseconds"),
        "seq": header.seq,
        "counts": counts,
        "bytes": part.stat().st_size,
        "sha256": _digest(part),
        "format": header.format,
        "version": __version__,
        **({"damage": damage} if damage else {}),
    }


def _read_description(path: Path) -> Snapshot:
    """A snapshot by its description. Raises FileNotFoundError, and `_UNREADABLE` for a foreign file."""
    return _snapshot(path, read_json(_description_of(path).read_bytes()))


def _snapshot(path: Path, values: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        path.name.removesuffix(SUFFIX),
        path,
        datetime.fromisoformat(values["createdAt"]).timestamp(),
        int(values["bytes"]),
        int(values["seq"]),
        {str(key): int(count) for key, count in values["counts"].items()},
        str(values["sha256"]),
        int(values["format"]),
        str(values["version"]),
        f"{OF_DAMAGED}{values['damage']}" if values.get("damage") else "",
    )


def _store_bytes(store: Path) -> int:
    return sum(file.stat().st_size for file in (store, store.with_name(f"{store.name}-wal")) if file.exists())


def _description_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
