"""Sync of `.ai` folders with the index: new and changed files are written, missing ones deleted, shadows marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import PathNotFoundError
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.resources import Resource
from findling.service.index.writing import WorkspaceWriter
from findling.service.settings.settings import user_home
from findling.sources.ai_folders import AI_FOLDER, KINDS, PROJECT, USER, AiFile, describe, find_ai_files, read_ai_file
from findling.sources.files.file_text import UnreadableError

_MARKS = ("shadows", "shadowed_by", "supersedes")
"""Fields that mark both files of a shadow."""


class Shadow(NamedTuple):
    """Two files of one id: `winner` counts, `loser` stays below it in every answer."""

    winner: str
    loser: str


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """The outcome of a run. `skipped` are files that were left out, with reasons; `folders` those that were read."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    shadows: tuple[Shadow, ...] = ()
    skipped: tuple[SkippedPath, ...] = ()
    folders: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = {"added": self.added, "changed": self.changed, "unchanged": self.unchanged, "deleted": self.deleted}
        counts |= {"shadowed": len(self.shadows), "left out": len(self.skipped)}
        return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing found"


class _ReadFile(NamedTuple):
    file: AiFile
    text: str
    digest: str
    changed_at: float


class _Work(NamedTuple):
    """The ids to write, the number of new ones among them, and the ids to delete."""

    put: list[str]
    added: int
    doomed: list[str]


def sync_folders(writer: WorkspaceWriter, root: Path, user_folder: Path | None = None) -> SyncReport:
    """Index the `.ai` folder of a project and that of its user, by default `~/.ai`, which need not be there.

    Raises PathNotFoundError for a `user_folder` that is not there, and as `WorkspaceWriter.writing` does.
    """
    folders = _folders(root, user_folder)
    read, skipped = _read_all(folders, writer.settings["index.max_file_size"])
    pairs = ((rid, each.file._replace(scope=USER).rid) for rid, each in read.items() if each.file.scope == PROJECT)
    shadows = tuple(Shadow(winner, loser) for winner, loser in pairs if loser in read)
    marks = _marks(shadows)
    work = _work(writer.store if writer.exists else None, read, marks)
    if work.put or work.doomed:
        with writer.writing() as put:
            # Another process may have synced before the lock was there.
            work = _work(writer.store, read, marks)
            put(writer.documents(_described(read[rid], marks.get(rid, {})) for rid in work.put), work.doomed)
    return SyncReport(
        added=work.added,
        changed=len(work.put) - work.added,
        unchanged=len(read) - len(work.put),
        deleted=len(work.doomed),
        shadows=shadows,
        skipped=skipped,
        folders=tuple(str(folder) for folder in folders.values()),
    )


def _folders(root: Path, user_folder: Path | None) -> dict[str, Path]:
    """The existing `.ai` folders by their scopes; one that belongs to both is the project's."""
    folders = {}
    own = root / AI_FOLDER
    # A project must not have files of its user read that lie elsewhere.
    if own.is_dir() and own.resolve().is_relative_to(root.resolve()):
        folders[PROJECT] = own
    if user_folder is not None:
        theirs: Path | None = user_folder.expanduser()
    else:
        theirs = home / AI_FOLDER if (home := user_home()) is not None else None
    is_there = theirs is not None and theirs.is_dir()
    if user_folder is not None and not is_there:
        raise PathNotFoundError(f"there is no folder {user_folder}", hint="name the .ai folder of the user")
    if theirs is not None and is_there and not (PROJECT in folders and theirs.samefile(own)):
        folders[USER] = theirs.resolve()
    return folders


def _read_all(folders: Mapping[str, Path], max_size: int) -> tuple[dict[str, _ReadFile], tuple[SkippedPath, ...]]:
    read: dict[str, _ReadFile] = {}
    skipped: list[SkippedPath] = []
    for scope, folder in folders.items():
        for entry in find_ai_files(folder, scope, max_size):
            if isinstance(entry, SkippedPath):
                skipped.append(entry)
                continue
            try:
                read[entry.rid] = _ReadFile(entry, *read_ai_file(entry, max_size))
            except UnreadableError as error:
                skipped.append(SkippedPath(entry.path, error.reason, error.detail))
    return read, tuple(skipped)


def _marks(shadows: Iterable[Shadow]) -> dict[str, dict[str, str]]:
    """The fields of both files of each shadow; the one that supersedes the other wins in every search."""
    marks = {shadow.winner: {"shadows": USER, "supersedes": shadow.loser} for shadow in shadows}
    return marks | {shadow.loser: {"shadowed_by": PROJECT} for shadow in shadows}


def _work(store: TruthStore | None, read: Mapping[str, _ReadFile], marks: Mapping[str, Mapping[str, str]]) -> _Work:
    # An item of the same type that somebody added has no scope, and stays.
    rids = [rid for name in KINDS.values() for rid in store.rids(name)] if store is not None else []
    documents = (store.document(rid) for rid in rids) if store is not None else ()
    stored = {each.resource.rid: each.resource for each in documents if each and "scope" in each.resource.fields}
    put = [rid for rid, each in read.items() if not _is_current(stored.get(rid), each, marks.get(rid, {}))]
    return _Work(put, sum(rid not in stored for rid in put), [rid for rid in stored if rid not in read])


def _is_current(stored: Resource | None, read: _ReadFile, marks: Mapping[str, str]) -> bool:
    if stored is None or stored.fields.get("digest") != read.digest:
        return False
    is_project = read.file.scope == PROJECT
    place = stored.path if is_project else stored.fields.get("file")
    is_in_place = place == (read.file.path if is_project else read.file.absolute)
    return is_in_place and all(stored.fields.get(key) == marks.get(key) for key in _MARKS)


def _described(read: _ReadFile, marks: Mapping[str, str]) -> tuple[Resource, str]:
    resource = describe(read.file, read.text, read.digest, read.changed_at)
    return replace(resource, fields={**resource.fields, **marks}), read.text
