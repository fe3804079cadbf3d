"""The engine: everything findling does, for every face that people and programs use."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from findling.domain.errors import CorruptError, LockedError, NotIndexedError, ReadOnlyError
from findling.domain.ports import Progress, ProgressEvent, SkippedPath
from findling.domain.queries import Filters, SearchRequest
from findling.domain.resources import Document, Resource
from findling.domain.results import IndexReport, SearchAnswer
from findling.pipelines.documents import make_document
from findling.pipelines.indexing import IndexOptions, Survey, catch_up, survey, update
from findling.pipelines.searching import search
from findling.service.settings import Settings, load_settings
from findling.service.workspace import STORE_FILE, Workspace, home_folder, locate
from findling.sources.discovery import Rules
from findling.stores.keyword import TantivyLeg
from findling.stores.keyword_query import Scoring
from findling.stores.lock import WriteLock
from findling.stores.sqlite import SqliteStore
from findling.text.analysis import FINGERPRINT

__all__ = ["Check", "Engine", "Status", "open_engine"]

_LOCK_PATIENCE_S = 600.0
"""How long a command that must write waits for another writer; a first index of a large tree takes minutes."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """What a workspace holds, and how far its leg has come."""

    root: Path
    home: Path
    resources: int
    chunks: int
    characters: int
    size_bytes: int
    seq: int
    keyword_seq: int
    indexed_at: float | None
    skipped: Mapping[str, int]
    format: int
    analyzer: str


@dataclass(frozen=True, kw_only=True)
class Check:
    """One finding of `check`: what was looked at, whether it is well, and what to do if not."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def open_engine(path: str | Path = ".", *, workspace: str | None = None, settings: Settings | None = None) -> Engine:
    """Open the workspace that `path` belongs to; nothing is written before something is indexed.

    Raises PathNotFoundError when the path is not there, and the errors of `load_settings`.
    """
    settings = settings or load_settings(path)
    name = workspace or settings["workspace.name"]
    return Engine(locate(path, home=home_folder(settings["store.home"]), name=name), settings)


class Engine:
    """One workspace, opened: index into it, search in it, look after it. Use it as a context manager."""

    def __init__(self, workspace: Workspace, settings: Settings) -> None:
        self.home, self.root, self.scope = workspace
        self._settings = settings
        self._store: SqliteStore | None = None
        self._leg: TantivyLeg | None = None
        self._notes: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release files; closing twice is fine."""
        if self._leg is not None:
            self._leg.close()
        if self._store is not None:
            self._store.close()
        self._leg = self._store = None

    # Indexing

    def is_indexed(self) -> bool:
        """Whether an indexing run has been completed here."""
        if not self._store_path.exists():
            return False
        return self._open_store().get_meta("indexed_at") is not None

    def index(self, *, on_progress: Progress | None = None, rebuild: bool = False) -> IndexReport:
        """Take in everything below the root that is new, changed or gone.

        `rebuild` starts from nothing; a damaged store is moved aside. Raises LockedError when another process
        keeps writing, ReadOnlyError and DiskFullError when the workspace cannot be written.
        """
        with self._writing():
            if rebuild:
                self._start_over()
            if on_progress is not None:
                on_progress(ProgressEvent("scan", 0, 0, 0, 0))
            found = survey(self._open_store(), self.root, self._rules)
            report = update(self._open_store(), self._open_leg(), self.root, found, self._options, on_progress)
            self._open_store().set_meta("root", str(self.root))
            return report

    def preview(self) -> tuple[list[str], list[SkippedPath]]:
        """What an indexing run would find: the paths it would index, and what it would leave out."""
        from findling.sources.discovery import scan

        paths: list[str] = []
        skipped: list[SkippedPath] = []
        for entry in scan(str(self.root), self._rules):
            if isinstance(entry, SkippedPath):
                skipped.append(entry)
            else:
                paths.append(entry.path)
        return paths, skipped

    def add(self, items: Iterable[tuple[Resource, str]]) -> int:
        """Upsert resources that are not files, each with its text; returns how many changed."""
        with self._writing():
            store, leg = self._open_store(), self._open_leg()
            catch_up(store, leg)
            size = self._settings["chunk.size"]
            changed = 0
            for batch in _batches((make_document(resource, text, chunk_size=size) for resource, text in items), 500):
                changes = store.write(batch)
                leg.apply(changes)
                changed += len(changes)
            leg.commit(store.seq())
            if store.get_meta("indexed_at") is None:
                store.set_meta("indexed_at", repr(time.time()))
            return changed

    def forget(self, paths: Sequence[str]) -> int:
        """Drop files, and everything below folders, from the index; returns how many resources went.

        The files themselves stay, and come back with the next indexing unless they are excluded.
        """
        self._must_be_indexed()
        prefixes = [path.strip("/") for path in paths]
        with self._writing():
            store, leg = self._open_store(), self._open_leg()
            doomed = [
                resource.rid
                for resource in store.resources()
                if any(_is_below(resource.path, prefix) for prefix in prefixes)
            ]
            catch_up(store, leg)
            changes = store.write((), doomed)
            leg.apply(changes)
            leg.commit(store.seq())
            return len(changes)

    def forget_everything(self) -> None:
        """Delete the workspace's folder; the indexed files are not touched."""
        self.close()
        shutil.rmtree(self.home, ignore_errors=True)
        if self.home.exists():
            raise ReadOnlyError(f"{self.home} cannot be deleted", hint="check its permissions")

    # Searching

    def search(
        self, request: SearchRequest | str, *, refresh: bool = True, on_progress: Progress | None = None, **options: Any
    ) -> SearchAnswer:
        """Answer a question; options are the fields of SearchRequest.

        With `refresh`, a first search indexes and every later one first takes in what has changed on disk.
        Raises NotIndexedError when there is nothing to search and `refresh` is off.
        """
        if isinstance(request, str):
            request = SearchRequest(query=request, **options)
        elif options:
            request = replace(request, **options)
        started = time.perf_counter()
        self._notes = []
        if refresh and self._settings["search.refresh"] == "auto":
            self._refresh(on_progress)
        self._must_be_indexed()
        self._level_leg()
        refreshed_ms = round((time.perf_counter() - started) * 1000, 3)
        if self.scope:
            request = replace(request, filters=_within(request.filters, self.scope))
        answer = search(
            self._open_store(),
            self._open_leg(),
            request,
            unit=self._settings["keyword.unit"],
            snippet_lines=self._settings["search.snippet_lines"],
            degraded=self._notes,
        )
        return replace(answer, timings_ms={"refresh": refreshed_ms, **answer.timings_ms})

    # Looking after it

    def status(self) -> Status:
        """What the workspace holds. Raises NotIndexedError when there is none."""
        self._must_be_indexed()
        store = self._open_store()
        counts = store.counts()
        indexed_at = store.get_meta("indexed_at")
        return Status(
            root=self.root,
            home=self.home,
            resources=counts["resources"],
            chunks=counts["chunks"],
            characters=counts["characters"],
            size_bytes=sum(file.stat().st_size for file in self.home.rglob("*") if file.is_file()),
            seq=store.seq(),
            keyword_seq=self._open_leg().seq(),
            indexed_at=float(indexed_at) if indexed_at else None,
            skipped=Counter(entry.reason for entry in store.skipped()),
            format=store.format,
            analyzer=FINGERPRINT,
        )

    def skipped(self) -> list[SkippedPath]:
        """What the latest run left out, and why."""
        self._must_be_indexed()
        return self._open_store().skipped()

    def ls(self, prefix: str = "") -> Iterator[Resource]:
        """The resources of the index in order of their ids, or those at and below a path."""
        self._must_be_indexed()
        below = "/".join(part for part in (self.scope, prefix.strip("/")) if part and part != ".")
        for resource in self._open_store().resources():
            if not below or _is_below(resource.path, below):
                yield resource

    def check(self) -> list[Check]:
        """Examine the workspace: is every part there, sound, and in step with the others?"""
        from findling.service.checks import check_workspace

        self._must_be_indexed()
        return [
            Check(name=name, ok=not problem, detail=problem or detail, hint=hint if problem else "")
            for name, detail, problem, hint in check_workspace(self.home, self._open_store(), self._open_leg)
        ]

    def repair(self) -> IndexReport:
        """Rebuild the leg from the truth."""
        self._must_be_indexed()
        with self._writing():
            started = time.monotonic()
            store = self._open_store()
            if self._leg is not None:
                self._leg.close()
            shutil.rmtree(self._leg_folder, ignore_errors=True)
            self._leg = None
            catch_up(store, self._open_leg())
            counts = store.counts()
            return IndexReport(
                unchanged=counts["resources"], chunks=counts["chunks"], seconds=time.monotonic() - started
            )

    # Inside

    @property
    def _store_path(self) -> Path:
        return self.home / STORE_FILE

    @property
    def _leg_folder(self) -> Path:
        return self.home / "keyword"

    @property
    def _rules(self) -> Rules:
        return self._options.rules

    @property
    def _options(self) -> IndexOptions:
        value = self._settings
        rules = Rules(
            include=value["index.include"],
            exclude=value["index.exclude"],
            hidden=value["index.hidden"],
            follow_symlinks=value["index.follow_symlinks"],
            use_ignore_files=value["index.use_ignore_files"],
            max_file_size=value["index.max_file_size"],
        )
        return IndexOptions(rules=rules, chunk_size=value["chunk.size"], batch_bytes=value["index.batch_bytes"])

    def _open_store(self) -> SqliteStore:
        if self._store is None:
            writable = os.access(self._store_path if self._store_path.exists() else self.home, os.W_OK)
            self._store = SqliteStore.open(self._store_path, readonly=not writable)
        return self._store

    def _open_leg(self) -> TantivyLeg:
        if self._leg is None:
            self._leg = TantivyLeg.open(
                self._leg_folder,
                store_id=self._open_store().get_meta("store_id") or "",
                scoring=self._scoring(),
                unit=self._settings["keyword.unit"],
            )
        return self._leg

    def _scoring(self) -> Scoring:
        value = self._settings
        weights = {name: float(value[f"keyword.weight_{name}"]) for name in ("title", "heading", "path", "tags")}
        return Scoring(k1=value["keyword.k1"], b=value["keyword.b"], weights={"body": 1.0, **weights})

    def _must_be_indexed(self) -> None:
        if not self._store_path.exists():
            raise NotIndexedError(f"{self.root} is not indexed", hint=f"findling index {self.root}")

    @contextlib.contextmanager
    def _writing(self, patience_s: float = _LOCK_PATIENCE_S) -> Iterator[None]:
        """Hold the write lock of the workspace, making its folder if need be."""
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = WriteLock(self.home / "write.lock")
            acquired = lock.acquire(patience_s)
        except PermissionError as error:
            raise ReadOnlyError(
                f"{self.home} cannot be written: {error.strerror}",
                hint="check its permissions, or choose another place with FINDLING_HOME",
            ) from error
        if not acquired:
            raise LockedError(f"another process is writing {self.home}", hint="try again when it has finished")
        try:
            self._name_store()
            yield
        finally:
            if self._leg is not None:
                self._leg.close()
                self._leg = None
            lock.release()

    def _name_store(self) -> None:
        """Give a new store an identity, by which its leg is told from one that a deleted store left behind."""
        store = self._open_store()
        if store.get_meta("store_id") is None:
            store.set_meta("store_id", os.urandom(8).hex())

    def _refresh(self, on_progress: Progress | None) -> None:
        """Take in what has changed on disk; what stands in the way is told in the answer."""
        if not self.is_indexed():
            self.index(on_progress=on_progress)
            return
        if not self.root.exists():
            self._notes.append(f"{self.root} is gone; the answer comes from the index alone")
            return
        found = survey(self._open_store(), self.root, self._rules)
        if found.differs:
            self._take_in(found, on_progress)

    def _take_in(self, found: Survey, on_progress: Progress | None) -> None:
        waiting = len(found.changed) + len(found.vanished)
        try:
            with self._writing(patience_s=0.0):
                # Another process may have written since: what counts is what differs now.
                found = survey(self._open_store(), self.root, self._rules)
                update(self._open_store(), self._open_leg(), self.root, found, self._options, on_progress)
        except LockedError:
            self._notes.append(f"another process is indexing; {waiting} changed files may be missing")
        except ReadOnlyError:
            self._notes.append(f"the index cannot be written; {waiting} changed files are missing")

    def _level_leg(self) -> None:
        """Let the leg catch up with the truth, mending it if it is damaged."""
        store = self._open_store()
        try:
            behind = store.seq() - self._open_leg().seq()
            damage = ""
        except CorruptError as error:
            behind, damage = -1, error.message
        if not behind:
            return
        try:
            with self._writing(patience_s=0.0 if not damage else _LOCK_PATIENCE_S):
                if damage:
                    shutil.rmtree(self._leg_folder, ignore_errors=True)
                    self._notes.append("the keyword leg was damaged and has been rebuilt")
                catch_up(store, self._open_leg())
        except (LockedError, ReadOnlyError) as error:
            if damage:
                raise CorruptError(damage, hint="findling repair") from error
            self._notes.append(f"the keyword leg is {behind} changes behind; findling repair brings it up to date")

    def _start_over(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = self._leg = None
        shutil.rmtree(self._leg_folder, ignore_errors=True)
        for suffix in ("", "-wal", "-shm"):
            self._store_path.with_name(STORE_FILE + suffix).unlink(missing_ok=True)
        self._name_store()


def _within(filters: Filters, scope: str) -> Filters:
    paths = tuple("/".join((scope, path.strip("/"))) for path in filters.path) or (scope,)
    return replace(filters, path=paths)


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/") or prefix in ("", ".")


def _batches(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
