"""`.ai` folders and the index in step: what is new or changed comes in, what is gone goes, and who wins is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import PathNotFoundError
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.resources import Resource
from findling.pipelines.indexing.document_build import text_documents
from findling.service.index.writing import WorkspaceWriter
from findling.sources.ai_folders import AI_FOLDER, KINDS, PROJECT, USER, AiFile, describe, find_ai_files, read_ai_file
from findling.sources.files.file_text import UnreadableError

__all__ = ["Shadow", "SyncReport", "sync_folders"]


class Shadow(NamedTuple):
    """Two files of one id: `winner` counts, `loser` stays below it in every answer."""

    winner: str
    loser: str


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """What a run did. `skipped` are files that were left out, and why; `folders` those that were looked into."""

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


def sync_folders(writer: WorkspaceWriter, root: Path, user_folder: Path | None = None) -> SyncReport:
    """Take in the `.ai` folder of a project and that of its user, by default `~/.ai`, which need not be there.

    Raises PathNotFoundError for a `user_folder` that is not there, and as `WorkspaceWriter.writing` does.
    """
    folders = _folders(root, user_folder)
    read, skipped = _read_all(folders, writer.settings["index.max_file_size"])
    shadows = _shadows(read)
    marks = _marks(shadows)
    work = _work(writer.store if writer.exists else None, read, marks)
    if work.put or work.doomed:
        with writer.writing() as put:
            # Another process may have synchronised before the lock was there.
            work = _work(writer.store, read, marks)
            written = ((_described(read[rid], marks.get(rid, {})), read[rid].text) for rid in work.put)
            put(chain.from_iterable(text_documents(written, writer.chunk_plan)), work.doomed)
    changed = len(work.put) - work.added
    return SyncReport(
        added=work.added,
        changed=changed,
        unchanged=len(read) - len(work.put),
        deleted=len(work.doomed),
        shadows=shadows,
        skipped=skipped,
        folders=tuple(str(folder) for folder in folders.values()),
    )


class _Read(NamedTuple):
    file: AiFile
    text: str
    digest: str
    changed_at: float


class _Work(NamedTuple):
    """The ids to write, how many of them are new, and those that have vanished."""

    put: list[str]
    added: int
    doomed: list[str]


def _folders(root: Path, user_folder: Path | None) -> dict[str, Path]:
    """The `.ai` folders that are there, by their scopes; one that belongs to both is the project's."""
    folders = {}
    own = root / AI_FOLDER
    # A project must not have files of its user read that lie elsewhere.
    if own.is_dir() and own.resolve().is_relative_to(root.resolve()):
        folders[PROJECT] = own
    theirs = _home_folder() if user_folder is None else user_folder.expanduser()
    if user_folder is not None and not user_folder.expanduser().is_dir():
        raise PathNotFoundError(f"there is no folder {user_folder}", hint="name the .ai folder of the user")
    if theirs is not None and theirs.is_dir() and not (PROJECT in folders and theirs.samefile(own)):
        folders[USER] = theirs.resolve()
    return folders


def _home_folder() -> Path | None:
    try:
        return Path.home() / AI_FOLDER
    except RuntimeError:  # no HOME and no entry in the user database, as in some containers
        return None


def _read_all(folders: Mapping[str, Path], max_size: int) -> tuple[dict[str, _Read], tuple[SkippedPath, ...]]:
    read: dict[str, _Read] = {}
    skipped: list[SkippedPath] = []
    for scope, folder in folders.items():
        for entry in find_ai_files(folder, scope, max_size):
            if isinstance(entry, SkippedPath):
                skipped.append(entry)
                continue
            try:
                read[entry.rid] = _Read(entry, *read_ai_file(entry, max_size))
            except UnreadableError as error:
                skipped.append(SkippedPath(entry.path, error.reason, error.detail))
    return read, tuple(skipped)


def _shadows(read: Mapping[str, _Read]) -> tuple[Shadow, ...]:
    pairs = ((rid, each.file._replace(scope=USER).rid) for rid, each in read.items() if each.file.scope == PROJECT)
    return tuple(Shadow(winner, loser) for winner, loser in pairs if loser in read)


def _marks(shadows: Iterable[Shadow]) -> dict[str, dict[str, str]]:
    """The fields by which both sides say what became of them; what supersedes the other wins in every search."""
    marks = {shadow.winner: {"shadows": USER, "supersedes": shadow.loser} for shadow in shadows}
    return marks | {shadow.loser: {"shadowed_by": PROJECT} for shadow in shadows}


def _work(store: TruthStore | None, read: Mapping[str, _Read], marks: Mapping[str, Mapping[str, str]]) -> _Work:
    stored = {} if store is None else _stored(store)
    put = [rid for rid, each in read.items() if not _is_current(stored.get(rid), each, marks.get(rid, {}))]
    return _Work(put, sum(rid not in stored for rid in put), [rid for rid in stored if rid not in read])


def _stored(store: TruthStore) -> dict[str, Resource]:
    """What earlier runs have put in; an item of the same type that somebody added is none of it."""
    rids = [rid for name in KINDS.values() for rid in store.rids(name)]
    documents = (store.document(rid) for rid in rids)
    return {each.resource.rid: each.resource for each in documents if each and "scope" in each.resource.fields}


def _is_current(stored: Resource | None, read: _Read, marks: Mapping[str, str]) -> bool:
    if stored is None or stored.fields.get("digest") != read.digest:
        return False
    place = stored.path if read.file.scope == PROJECT else stored.fields.get("file")
    is_in_place = place == (read.file.path if read.file.scope == PROJECT else read.file.absolute)
    return is_in_place and all(stored.fields.get(key) == marks.get(key) for key in _MARKS)


_MARKS = ("shadows", "shadowed_by", "supersedes")


def _described(read: _Read, marks: Mapping[str, str]) -> Resource:
    resource = describe(read.file, read.text, read.digest, read.changed_at)
    return replace(resource, fields={**resource.fields, **marks})
